#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <vector>

#include "clefkit/backend/ane/backend_runs.h"
#include "clefkit/backend/ane/golden_model.h"
#include "clefkit/backend/ane/program_backend.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/model/tensor_plan.h"
#include "clefkit/synth/presets.h"
#include "clefkit/synth/random_weights.h"

// Programs of the release's width, each kind on its own: minutes in the simulator (label `slow`).
namespace clefkit::ane {
namespace {

// One text layer of Clef-Flash's sizes and one block of its vision encoder, with the random weights
// of `clefkit synth`; nothing that backends do not look at.
class WideModel {
 public:
  explicit WideModel(LayerType type) {
    const ConfigTexts texts = preset_config("clef-flash");
    model_.config = parse_model_config(texts.config_json, texts.head_config_json);
    model_.config.text.num_hidden_layers = 1;
    model_.config.text.layer_types = {type};
    model_.config.vision.depth = 1;
    for (const PlannedTensor& planned : plan_tensors(model_.config)) {
      const bool is_of_backends = planned.file == TensorFile::kBackbone &&
                                  planned.name.find("embed_tokens") == planned.name.npos &&
                                  planned.name.find("lm_head") == planned.name.npos;
      if (is_of_backends) add(planned);
    }
  }
  const Model& get() const { return model_; }

 private:
  void add(const PlannedTensor& planned) {
    constexpr std::size_t kBlock = std::size_t{1} << 16;
    std::vector<BFloat16>& values = values_.emplace_back(planned.element_count());
    const TensorInfo info{planned.name, DType::kBF16, planned.shape};
    const QuantileTable table(distribution_of(info, model_.config));
    for (std::size_t first = 0; first < values.size(); first += kBlock) {
      fill_block(table, 1, planned.name, first / kBlock,
                 std::span(values).subspan(first, std::min(kBlock, values.size() - first)));
    }
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    model_.weights.emplace(
        planned.name,
        TensorView{
            planned.name, DType::kBF16, planned.shape, {bytes, values.size() * sizeof(BFloat16)}});
  }

  Model model_{};
  std::deque<std::vector<BFloat16>> values_;
};

std::unique_ptr<Backend> backend_of(const Model& model) {
  return std::make_unique<ProgramBackend>(
      model, std::make_unique<SimulatorDevice>(mil::NumericProfile::kIdeal),
      ProgramForm{.plan = PlanKind::kSplit},
      std::make_unique<cpu::CpuBackend>(model, Precision::kExact),
      ProgramSetOptions{.call_deadline = std::chrono::hours(24)});
}

// 2e-3 is what the project asks of each output.
TEST(ProgramWidth, OfTheReleaseIsWhatTheCpuComputes) {
  for (const LayerType type : {LayerType::kLinearAttention, LayerType::kFullAttention}) {
    const WideModel wide(type);
    const std::vector<std::size_t> pieces{128, 20};  // The second with the state of the first.
    cpu::CpuBackend cpu(wide.get(), Precision::kExact);
    const double error =
        relative_error(layers_of(*backend_of(wide.get()), wide.get(), pieces).at(0),
                       layers_of(cpu, wide.get(), pieces).at(0));
    std::printf("a %s layer: relative error %.2e\n",
                type == LayerType::kLinearAttention ? "linear attention" : "full attention", error);
    EXPECT_LT(error, 2e-3);
  }
}

// A picture of 128 patches through one block, embedding and merger around it.
TEST(ProgramWidth, OfTheReleasesVisionIsWhatTheCpuComputes) {
  const WideModel wide(LayerType::kFullAttention);
  const VisionConfig& config = wide.get().config.vision;
  const std::vector<VisionSegment> picture{{8, 16}};
  cpu::CpuBackend cpu(wide.get(), Precision::kExact);
  const double error = relative_error(features_of(*backend_of(wide.get()), config, picture),
                                      features_of(cpu, config, picture));
  std::printf("a vision block: relative error of the features %.2e\n", error);
  EXPECT_LT(error, 2e-3);
}

}  // namespace
}  // namespace clefkit::ane
