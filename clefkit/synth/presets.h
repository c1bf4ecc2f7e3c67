#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "clefkit/model/config.h"

namespace clefkit {

// The two texts that fix a model's architecture.
struct ConfigTexts {
  std::string config_json;       // config.json
  std::string head_config_json;  // joint_head_config.json
};

// "clef-flash" and "clef", the released sizes; "nano", about 4 million parameters; "tiny", under
// one million.
const std::vector<std::string>& preset_names();

// Throws Error(kInvalidArgument) for an unknown name. clef-flash gives the release's files byte for
// byte.
ConfigTexts preset_config(std::string_view name);

// A joint_head_config.json for text layers of this width, in the proportions of the release.
std::string default_head_config_json(std::size_t hidden_size);

}  // namespace clefkit
