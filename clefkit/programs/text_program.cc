#include "clefkit/programs/text_program.h"

#include <fmt/format.h>

#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/programs/delta_rule.h"
#include "clefkit/programs/full_attention_program.h"
#include "clefkit/programs/linear_attention_program.h"

namespace clefkit {
namespace {

using Name = ProgramBuilder::Name;

using mil::dim;

class Emitter {
 public:
  Emitter(const TextConfig& config, const FindWeight& find_weight,
          const TextProgramOptions& options)
      : config_(config),
        find_weight_(find_weight),
        options_(options),
        builder_(options.weight_path, options.spellings),
        x_(builder_.input("x", {1, dim(config.hidden_size), 1, kProgramTokens})) {}

  mil::Program layers(const PlannedProgram& planned) {
    for (const std::size_t layer : planned.layers) {
      if (config_.layer_types.at(layer) == LayerType::kLinearAttention) add_linear(layer);
      const auto factor = options_.mlp_factors.find(layer);
      x_ = emit_mlp(builder_, x_, config_, layer, find_weight_,
                    factor == options_.mlp_factors.end() ? 1 : factor->second);
    }
    return finish();
  }

  mil::Program attention(std::size_t layer, std::size_t context) {
    const std::int64_t half = dim(config_.rotary_dim / 2);
    const std::int64_t places = dim(context) - kProgramTokens;
    if (places < 1) {
      throw_error(ErrorCode::kInternal, "context", "{}, expected more than {}", context,
                  kProgramTokens);
    }
    const FullAttentionOutput output = emit_full_attention(
        builder_,
        {.x = x_,
         .cos = builder_.input("cos", {1, half, 1, kProgramTokens}),
         .sin = builder_.input("sin", {1, half, 1, kProgramTokens}),
         .mask = builder_.input("mask", {1, 1, kProgramTokens, dim(context)}),
         .k_cache = builder_.input("k_cache", {1, dim(config_.kv_dim()), 1, places}),
         .v_cache = builder_.input("v_cache", {1, dim(config_.kv_dim()), 1, places})},
        config_, layer, find_weight_);
    x_ = output.x;
    outputs_ = {{output.k, "k_out"}, {output.v, "v_out"}};
    return finish();
  }

 private:
  void add_linear(std::size_t layer) {
    const std::int64_t past = dim(config_.linear_conv_kernel_dim) - 1;
    if (valid_.empty()) {
      valid_ = builder_.input("valid", {1, 1, 1, kProgramTokens});
      select_ = builder_.input("conv_select", {1, 1, past + kProgramTokens, past});
    }
    const auto port = [&](const char* name) { return fmt::format("{}_{:02}", name, layer); };
    const LinearAttentionOutput output = emit_linear_attention(
        builder_,
        {.x = x_,
         .conv_state =
             builder_.input(port("conv_state"), {1, dim(config_.conv_channels()), 1, past}),
         .recurrent_state =
             builder_.input(port("recurrent_state"),
                            {1, dim(config_.linear_num_value_heads),
                             dim(config_.linear_key_head_dim), dim(config_.linear_value_head_dim)}),
         .valid = valid_,
         .conv_select = select_},
        config_, layer, find_weight_);
    x_ = output.x;
    outputs_.emplace_back(output.conv_state, port("conv_state") + "_out");
    outputs_.emplace_back(output.recurrent_state, port("recurrent_state") + "_out");
  }

  mil::Program finish() {
    builder_.output(x_, "x_out");
    for (const auto& [result, name] : outputs_) builder_.output(result, name);
    return std::move(builder_).finish();
  }

  const TextConfig& config_;
  const FindWeight& find_weight_;
  const TextProgramOptions& options_;
  ProgramBuilder builder_;
  Name x_, valid_, select_;
  std::vector<std::pair<Name, std::string>> outputs_;
};

}  // namespace

mil::Program emit_text_program(const TextConfig& config, const PlannedProgram& planned,
                               std::size_t context, const FindWeight& find_weight,
                               const TextProgramOptions& options) {
  Emitter emitter(config, find_weight, options);
  return planned.kind == ProgramKind::kAttention ? emitter.attention(planned.layers.at(0), context)
                                                 : emitter.layers(planned);
}

}  // namespace clefkit
