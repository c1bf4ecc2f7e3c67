#include "clefkit/programs/layer_norm.h"

#include <fmt/format.h>

#include "clefkit/programs/rms_norm.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;

}  // namespace

ProgramBuilder::Name emit_layer_norm(ProgramBuilder& builder, const Name& x,
                                     const BlobWeight& weight, const BlobWeight& bias,
                                     double epsilon, std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  constexpr double kLargest = ScaledTokens::kLargest;
  const std::int64_t channels = builder.type(x).shape.at(1);

  const ScaledTokens scaled = emit_scaled_tokens(builder, x, hint);
  const Name mean = builder.channel_mean(scaled.x, kLargest, part("mean"));
  const Name centred = builder.binary("sub", scaled.x, mean, part("centred"));
  const Name squares = builder.binary("mul", centred, centred, part("squares"));
  const Name variance = builder.channel_mean(squares, kLargest * kLargest, part("variance"));
  const Name normed =
      emit_over_root(builder, {centred, scaled.factor}, variance, epsilon, part("normed"));
  const Name weighted =
      builder.binary("mul", normed, builder.weight(weight, {1, channels, 1, 1}), part("weighted"));
  return builder.binary("add", weighted, builder.weight(bias, {1, channels, 1, 1}), hint);
}

}  // namespace clefkit
