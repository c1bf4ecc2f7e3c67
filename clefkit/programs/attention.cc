#include "clefkit/programs/attention.h"

#include <fmt/format.h>

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;

constexpr double kProbabilityScale = 16;

}  // namespace

ProgramBuilder::Name emit_rotated(ProgramBuilder& builder, const Name& x, const Name& cos,
                                  const Name& sin, std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const std::int64_t half = builder.type(cos).shape.at(1);
  const std::int64_t rest = builder.type(x).shape.at(1) - 2 * half;
  std::vector<std::int64_t> sizes{half, half};
  if (rest > 0) sizes.push_back(rest);
  std::vector<Name> parts = builder.split(x, 1, sizes, part("parts"));
  const Name second_sin = builder.binary("mul", parts[1], sin, part("sin"));
  const Name first_cos = builder.binary("mul", parts[0], cos, part("cos"));
  const Name first = builder.binary("sub", first_cos, second_sin, part("first"));
  const Name first_sin = builder.binary("mul", parts[0], sin, part("sin"));
  const Name second_cos = builder.binary("mul", parts[1], cos, part("cos"));
  parts[1] = builder.binary("add", second_cos, first_sin, part("second"));
  parts[0] = first;
  return builder.concat(parts, 1, hint);
}

ProgramBuilder::Name emit_attention(ProgramBuilder& builder, const AttentionInput& input,
                                    std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const Name products = builder.matmul_transposed_x(input.queries, input.keys, part("scores"));
  const Name scores = builder.binary("add", products, input.mask, part("scores_masked"));
  const Name probabilities = builder.softmax(scores, part("probabilities"));
  const Name raised =
      builder.binary("mul", probabilities, builder.scalar(kProbabilityScale, "probability_scale"),
                     part("probabilities_scaled"));
  const Name unscale = builder.scalar(1 / kProbabilityScale, "probability_unscale");
  const Name attended = builder.matmul_transposed_y(input.values, raised, part("attended_scaled"));
  return builder.binary("mul", attended, unscale, part("attended"));
}

}  // namespace clefkit
