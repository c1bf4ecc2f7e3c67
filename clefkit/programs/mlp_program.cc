#include "clefkit/programs/mlp_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/model/tensor_plan.h"
#include "clefkit/model/text_scales.h"
#include "clefkit/programs/rms_norm.h"

namespace clefkit {
namespace {

// Units lose what reaches 2^15, on its way through a sum too (ane.md 5). Eight times is left for
// requests larger than those measured and for the palettes' rounding of the weights. It costs
// little: a sum of 2^12 is of products far above the subnormals that the factor is there to avoid.
constexpr double kLargestScaled = 32768.0 / 8;

std::string part_of(std::size_t layer, const char* name) {
  return fmt::format("mlp_{:02}_{}", layer, name);
}

// What the result of that name was multiplied with, if there is such a result.
std::optional<double> multiplier(const mil::Function& function, const std::string& name) {
  const auto statement_of = [&](const std::string& result) {
    return std::ranges::find_if(function.statements, [&](const mil::Statement& statement) {
      return !statement.outputs.empty() && statement.outputs[0].name == result;
    });
  };
  const auto scaled = statement_of(name);
  if (scaled == function.statements.end()) return std::nullopt;
  const mil::Argument* const y = scaled->argument("y");
  const auto* const constant = y == nullptr ? nullptr : std::get_if<std::string>(y);
  if (scaled->op == "mul" && constant != nullptr) {
    const auto made = statement_of(*constant);
    const mil::Value* const value =
        made == function.statements.end() ? nullptr : made->attribute("val");
    const auto* const elements =
        value == nullptr ? nullptr : std::get_if<std::vector<double>>(&value->elements);
    if (elements != nullptr && elements->size() == 1) return elements->front();
  }
  throw Error(ErrorCode::kCorruptData, name, "expected a product with a number");
}

}  // namespace

std::uint64_t choose_mlp_factor(double largest_activation, double largest_sum) {
  if (!(largest_activation > 0) || !(largest_sum > 0)) return 1;
  std::uint64_t factor = kLargestMlpFactor;
  const double largest = std::max(largest_activation, largest_sum);
  while (factor > 1 && !(static_cast<double>(factor) * largest <= kLargestScaled)) factor /= 2;
  return factor;
}

double mlp_factor_of(const mil::Function& function, std::size_t layer) {
  const double up = multiplier(function, part_of(layer, "scaled")).value_or(1);
  const double down = multiplier(function, part_of(layer, "unscaled")).value_or(1);
  if (up * down != 1) {
    throw_error(ErrorCode::kCorruptData, part_of(layer, "unscaled"),
                "the MLP is scaled by {} and back by {}, expected the inverse", up, down);
  }
  return up;
}

ProgramBuilder::Name emit_mlp(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                              const TextConfig& config, std::size_t layer,
                              const FindWeight& find_weight, double scale) {
  using Name = ProgramBuilder::Name;
  const std::string prefix = text_layer_prefix(layer);
  const auto part = [&](const char* name) { return part_of(layer, name); };
  const auto weight = [&](const char* name) -> const BlobWeight& {
    return find_weight(prefix + name);
  };

  const Name normed = emit_rms_norm(builder, x, weight("post_attention_layernorm.weight"),
                                    config.rms_norm_eps, part("norm"));
  const Name gate = builder.linear(normed, weight("mlp.gate_proj.weight"), part("gate"));
  const Name up = builder.linear(normed, weight("mlp.up_proj.weight"), part("up"));
  Name inner = builder.binary("mul", builder.silu(gate, part("silu")), up, part("inner"));
  if (scale != 1) {
    inner = builder.binary("mul", inner, builder.scalar(scale, part("scale")), part("scaled"));
  }
  Name down = builder.linear(inner, weight("mlp.down_proj.weight"), part("down"));
  if (scale != 1) {
    down =
        builder.binary("mul", down, builder.scalar(1 / scale, part("unscale")), part("unscaled"));
  }
  return builder.binary("add", x, down, part("out"));
}

}  // namespace clefkit
