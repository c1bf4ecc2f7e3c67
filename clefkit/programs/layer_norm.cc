#include "clefkit/programs/layer_norm.h"

#include <fmt/format.h>

#include "clefkit/programs/rms_norm.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;

// The mean over the channels of numbers whose mean magnitude is at most `largest`. Shares of 1/C
// would be subnormal products for all but the largest channels; so each channel gets the largest
// power of two that keeps the sum below 2^15, with a sixteenth to spare for rounding.
Name emit_exact_mean(ProgramBuilder& builder, const Name& x, double largest,
                     std::string_view hint) {
  if (builder.spellings().reduce_mean) return builder.channel_mean(x, hint);
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const auto channels = static_cast<double>(builder.type(x).shape.at(1));
  double share = 1;
  while (largest * channels * share * 17 / 16 >= 0x1p15) share /= 2;
  const Name sum = builder.channel_sum(x, share, part("sum"));
  return builder.binary("mul", sum, builder.scalar(1 / (channels * share), part("count")), hint);
}

}  // namespace

ProgramBuilder::Name emit_layer_norm(ProgramBuilder& builder, const Name& x,
                                     const BlobWeight& weight, const BlobWeight& bias,
                                     double epsilon, std::string_view hint) {
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  constexpr double kLargest = ScaledTokens::kLargest;
  const std::int64_t channels = builder.type(x).shape.at(1);

  const ScaledTokens scaled = emit_scaled_tokens(builder, x, hint);
  const Name mean = emit_exact_mean(builder, scaled.x, kLargest, part("mean"));
  const Name centred = builder.binary("sub", scaled.x, mean, part("centred"));
  const Name squares = builder.binary("mul", centred, centred, part("squares"));
  const Name variance = emit_exact_mean(builder, squares, kLargest * kLargest, part("variance"));
  const Name normed =
      emit_over_root(builder, {centred, scaled.factor}, variance, epsilon, part("normed"));
  const Name weighted =
      builder.binary("mul", normed, builder.weight(weight, {1, channels, 1, 1}), part("weighted"));
  return builder.binary("add", weighted, builder.weight(bias, {1, channels, 1, 1}), hint);
}

}  // namespace clefkit
