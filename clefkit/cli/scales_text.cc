#include "clefkit/cli/scales_text.h"

#include <fmt/format.h>

#include <functional>
#include <map>

namespace clefkit::cli {

std::string scales_text(const TextScales& scales) {
  if (scales.mlp.empty()) return "MLP inputs as they are, nothing was measured";
  std::map<std::uint64_t, std::size_t, std::greater<>> layers;  // By factor.
  for (const MlpScale& scale : scales.mlp) ++layers[scale.factor];
  std::string out = "MLP inputs of ";
  for (const auto& [factor, count] : layers) {
    out += fmt::format("{} layer{} x{}, ", count, count == 1 ? "" : "s", factor);
  }
  return out + fmt::format("measured on {} tokens", scales.tokens);
}

}  // namespace clefkit::cli
