#include "clefkit/model/program_plan.h"

#include <fmt/format.h>

#include <iterator>

#include "clefkit/model/tensor_plan.h"

namespace clefkit {
namespace {

void append_tensors(std::vector<std::string>& out, std::size_t layer,
                    std::initializer_list<const char*> names) {
  for (const char* name : names) out.push_back(text_layer_prefix(layer) + name);
}

void append_linear_attention(std::vector<std::string>& out, std::size_t layer) {
  append_tensors(out, layer,
                 {"input_layernorm.weight", "linear_attn.in_proj_qkv.weight",
                  "linear_attn.in_proj_z.weight", "linear_attn.in_proj_a.weight",
                  "linear_attn.in_proj_b.weight", "linear_attn.conv1d.weight", "linear_attn.A_log",
                  "linear_attn.dt_bias", "linear_attn.norm.weight", "linear_attn.out_proj.weight"});
}

void append_full_attention(std::vector<std::string>& out, std::size_t layer) {
  append_tensors(out, layer,
                 {"input_layernorm.weight", "self_attn.q_proj.weight", "self_attn.k_proj.weight",
                  "self_attn.v_proj.weight", "self_attn.q_norm.weight", "self_attn.k_norm.weight",
                  "self_attn.o_proj.weight"});
}

void append_mlp(std::vector<std::string>& out, std::size_t layer) {
  append_tensors(out, layer,
                 {"post_attention_layernorm.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
                  "mlp.down_proj.weight"});
}

// Collects what lies between two full attention mixers into one program.
class Planner {
 public:
  explicit Planner(std::vector<PlannedProgram>& programs) : programs_(programs) {}

  void add_linear_layer(std::size_t layer) {
    if (!has_linear_) first_linear_ = layer;
    has_linear_ = true;
    last_linear_ = layer;
    append_linear_attention(open_.tensors, layer);
    add_mlp(layer);
  }

  void add_mlp(std::size_t layer) {
    append_mlp(open_.tensors, layer);
    open_.layers.push_back(layer);
  }

  void add_attention(std::size_t layer) {
    close("");
    PlannedProgram program{
        fmt::format("attention-{:02}", layer), ProgramKind::kAttention, {layer}, {}};
    append_full_attention(program.tensors, layer);
    programs_.push_back(std::move(program));
  }

  // `mlp_name` names a program without linear layers; empty: after its layer.
  void close(const char* mlp_name) {
    if (open_.layers.empty()) return;
    if (has_linear_) {
      open_.kind = ProgramKind::kRun;
      open_.name = fmt::format("run-{:02}-{:02}", first_linear_, last_linear_);
    } else {
      open_.kind = ProgramKind::kMlp;
      open_.name = *mlp_name != '\0' ? mlp_name : fmt::format("mlp-{:02}", open_.layers.front());
    }
    programs_.push_back(std::move(open_));
    open_ = {};
    has_linear_ = false;
  }

 private:
  std::vector<PlannedProgram>& programs_;
  PlannedProgram open_;
  bool has_linear_ = false;
  std::size_t first_linear_ = 0;
  std::size_t last_linear_ = 0;
};

}  // namespace

std::size_t PlannedProgram::program_count() const {
  return kind == ProgramKind::kAttention ? std::size(kAttentionContexts) : 1;
}

std::string PlannedProgram::program_name(std::size_t context) const {
  return context == 0 ? name : fmt::format("{}@{}", name, context);
}

std::vector<PlannedProgram> plan_programs(const ModelConfig& config, PlanKind kind) {
  std::vector<PlannedProgram> programs;
  Planner planner(programs);
  for (std::size_t layer = 0; layer < config.text.num_hidden_layers; ++layer) {
    if (config.text.layer_types[layer] == LayerType::kLinearAttention) {
      planner.add_linear_layer(layer);
    } else {
      planner.add_attention(layer);
      planner.add_mlp(layer);
    }
    const bool is_last = layer + 1 == config.text.num_hidden_layers;
    if (is_last) planner.close("tail");
    if (kind == PlanKind::kSplit) planner.close("");
  }
  return programs;
}

std::vector<PlannedProgram> plan_vision_programs(const ModelConfig& config) {
  std::vector<PlannedProgram> programs;
  for (std::size_t block = 0; block < config.vision.depth; ++block) {
    PlannedProgram program{fmt::format("vision-{:02}", block), ProgramKind::kVision, {block}, {}};
    for (const char* name :
         {"norm1", "attn.qkv", "attn.proj", "norm2", "mlp.linear_fc1", "mlp.linear_fc2"}) {
      for (const char* kind : {"weight", "bias"}) {
        program.tensors.push_back(fmt::format("{}{}.{}", vision_block_prefix(block), name, kind));
      }
    }
    programs.push_back(std::move(program));
  }
  return programs;
}

std::size_t program_count(const std::vector<PlannedProgram>& programs) {
  std::size_t count = 0;
  for (const PlannedProgram& program : programs) count += program.program_count();
  return count;
}

}  // namespace clefkit
