#include "clefkit/programs/rms_norm.h"

#include <fmt/format.h>

#include <cmath>

namespace clefkit {
namespace {

// 64 over it is the largest power of two of FP16.
constexpr double kSmallestMaximum = 0x1p-9;

}  // namespace

ScaledTokens emit_scaled_tokens(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                std::string_view hint) {
  using Name = ProgramBuilder::Name;
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };

  const Name magnitude = builder.unary("abs", x, part("abs"));
  const Name maximum = builder.channel_maximum(magnitude, part("max"));
  const Name at_least = builder.binary(
      "maximum", maximum, builder.scalar(kSmallestMaximum, "smallest_maximum"), part("divisor"));
  const Name factor = builder.binary("real_div", builder.scalar(ScaledTokens::kLargest, "largest"),
                                     at_least, part("factor"));
  return {builder.binary("mul", x, factor, part("scaled")), factor};
}

ProgramBuilder::Name emit_over_root(ProgramBuilder& builder, const ScaledTokens& tokens,
                                    const ProgramBuilder::Name& mean, double epsilon,
                                    std::string_view hint) {
  using Name = ProgramBuilder::Name;
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  // eps · factor², without eps alone, which is no normal number of FP16.
  const Name root = builder.binary(
      "mul", tokens.factor, builder.scalar(std::sqrt(epsilon), "sqrt_eps"), part("root_eps"));
  const Name scaled_epsilon = builder.binary("mul", root, root, part("eps"));
  const Name sum = builder.binary("add", mean, scaled_epsilon, part("sum"));
  const Name inverse = builder.inverse_root(sum, part("inverse"));
  return builder.binary("mul", tokens.x, inverse, hint);
}

ProgramBuilder::Name emit_normalized(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                     double epsilon, std::string_view hint) {
  using Name = ProgramBuilder::Name;
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const ScaledTokens scaled = emit_scaled_tokens(builder, x, hint);
  const Name squares = builder.binary("mul", scaled.x, scaled.x, part("squares"));
  const Name mean =
      builder.channel_mean(squares, ScaledTokens::kLargest * ScaledTokens::kLargest, part("mean"));
  return emit_over_root(builder, scaled, mean, epsilon, hint);
}

ProgramBuilder::Name emit_rms_norm(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                                   const BlobWeight& weight, double epsilon,
                                   std::string_view hint) {
  using Name = ProgramBuilder::Name;
  const auto part = [&](const char* name) { return fmt::format("{}_{}", hint, name); };
  const Name normed = emit_normalized(builder, x, epsilon, part("normed"));
  const std::int64_t channels = builder.type(x).shape.at(1);
  const Name gain = builder.weight(weight, {1, channels, 1, 1});
  return builder.binary("add", normed, builder.binary("mul", normed, gain, part("gain")), hint);
}

}  // namespace clefkit
