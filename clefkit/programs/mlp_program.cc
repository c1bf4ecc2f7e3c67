#include "clefkit/programs/mlp_program.h"

#include <fmt/format.h>

#include "clefkit/model/tensor_plan.h"
#include "clefkit/programs/rms_norm.h"

namespace clefkit {

ProgramBuilder::Name emit_mlp(ProgramBuilder& builder, const ProgramBuilder::Name& x,
                              const TextConfig& config, std::size_t layer,
                              const FindWeight& find_weight, double scale) {
  using Name = ProgramBuilder::Name;
  const std::string prefix = text_layer_prefix(layer);
  const auto part = [&](const char* name) { return fmt::format("mlp_{:02}_{}", layer, name); };
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
