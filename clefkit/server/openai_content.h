#pragma once

#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/questions/request.h"

namespace clefkit::server {

// Which parts a content list may hold, and what an image leaves in it.
struct OpenAiContentRules {
  bool input_text = false, input_image = false, input_json = false;
  bool output_text = false, refusal = false;
  // Whether `{"image": "images[0]"}` stays in an image's place.
  bool marks_images = true;
};

// A string, or a list of parts, as a value of the state or an instruction: the sole part's text or
// data, or the list of all. Images go to `images`. Throws Error(kInvalidArgument).
Json read_openai_content(Json* content, const std::string& where, const OpenAiContentRules& rules,
                         std::vector<MediaSource>& images);

// The state that an `input` stands for: its text; its only message, of a user's the content alone;
// or the list of its messages and calls. Throws Error(kInvalidArgument).
Json read_openai_input(Json* input, std::vector<MediaSource>& images);

}  // namespace clefkit::server
