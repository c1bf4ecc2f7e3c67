#include "clefkit/backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/model/checkpoint.h"
#include "clefkit/safetensors/safetensors_file.h"

namespace clefkit::cpu {
namespace {

const std::string kGolden = CLEFKIT_SOURCE_DIR "/tests/golden";

// Layer outputs of the reference for its own embeddings; see tests/golden/README.md for the
// tolerance.
void expect_reference_layers(const std::string& checkpoint, const std::string& trace) {
  SCOPED_TRACE(checkpoint + "/" + trace);
  const Model model = open_checkpoint(kGolden + "/checkpoints/" + checkpoint);
  const SafetensorsFile file(kGolden + "/cases/" + checkpoint + "/" + trace + ".safetensors");
  const TensorView* embeddings = file.find("embeddings");
  ASSERT_NE(embeddings, nullptr);
  const std::size_t tokens = embeddings->shape[0], width = embeddings->shape[1];

  std::array<std::vector<std::int32_t>, 3> positions;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    positions[axis].resize(tokens);
    std::iota(positions[axis].begin(), positions[axis].end(), 0);
    if (const TensorView* given = file.find("position_ids")) {
      for (std::size_t i = 0; i < tokens; ++i) {
        positions[axis][i] = static_cast<std::int32_t>(
            load_le<std::int64_t>(given->bytes.data() + 8 * (axis * tokens + i)));
      }
    }
  }

  CpuBackend backend(model, Precision::kExact);
  Executor executor(2);
  const auto sequence = backend.new_sequence(tokens);
  std::vector<float> hidden(embeddings->float_values().begin(), embeddings->float_values().end());
  std::size_t compared = 0;
  backend.prefill({executor}, *sequence,
                  {.hidden = {hidden.data(), tokens, width},
                   .temporal = positions[0],
                   .height = positions[1],
                   .width = positions[2]},
                  {.layer_output = [&](std::size_t layer, MatrixView<const float> output) {
                    const TensorView* expected = file.find(fmt::format("layers.{}.output", layer));
                    if (expected == nullptr) return;
                    ++compared;
                    double square_sum = 0, largest = 0;
                    for (std::size_t i = 0; i < tokens * width; ++i) {
                      const double value = expected->float_values()[i];
                      square_sum += value * value;
                      largest = std::max(largest, std::abs(output.data[i] - value));
                    }
                    const double rms = std::sqrt(square_sum / static_cast<double>(tokens * width));
                    EXPECT_LE(largest / rms, 5e-4) << "layer " << layer;
                  }});
  EXPECT_EQ(compared, model.config.text.num_hidden_layers);
}

TEST(CpuBackend, AgreesWithTheReferenceLayerByLayer) {
  expect_reference_layers("micro", "ticket");
  expect_reference_layers("micro", "length_449");
  expect_reference_layers("tied", "bool_state");
}

TEST(CpuBackend, TurnsByAllThreePositionsOfAVideo) {
  expect_reference_layers("micro", "video_odd");
}

TEST(CpuBackend, RunsThousandsOfTokensInOneCall) {
  const Model model = open_checkpoint(kGolden + "/checkpoints/micro");
  CpuBackend backend(model, Precision::kExact);
  Executor executor(2);
  const std::size_t tokens = 1500, width = model.config.text.hidden_size;
  std::vector<float> hidden(tokens * width, 0.25f);
  std::vector<std::int32_t> positions(tokens);
  std::iota(positions.begin(), positions.end(), 0);
  const auto sequence = backend.new_sequence(tokens);
  backend.prefill({executor}, *sequence,
                  {.hidden = {hidden.data(), tokens, width},
                   .temporal = positions,
                   .height = positions,
                   .width = positions},
                  {});
  EXPECT_EQ(sequence->tokens(), tokens);
}

// A model of which one element was overwritten: tensors are mapped read-only, so the bytes are
// copied first.
class DamagedModel {
 public:
  DamagedModel(const std::string& tensor, std::size_t element, float value)
      : model_(open_checkpoint(kGolden + "/checkpoints/micro")) {
    auto& view = std::get<TensorView>(model_.weights.at(tensor));
    bytes_.assign(view.bytes.begin(), view.bytes.end());
    const BFloat16 stored = to_bfloat16(value);
    std::memcpy(bytes_.data() + element * sizeof stored, &stored, sizeof stored);
    view.bytes = bytes_;
  }

  // What making a backend, or a prefill of a few tokens, throws.
  std::string error() const {
    Executor executor(1);
    const std::size_t width = model_.config.text.hidden_size;
    std::vector<float> hidden(5 * width, 1.0f);
    const std::vector<std::int32_t> positions{0, 1, 2, 3, 4};
    try {
      CpuBackend backend(model_, Precision::kExact);
      const auto sequence = backend.new_sequence(5);
      backend.prefill({executor}, *sequence,
                      {.hidden = {hidden.data(), 5, width},
                       .temporal = positions,
                       .height = positions,
                       .width = positions},
                      {});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
      return error.what();
    }
    return "no error";
  }

 private:
  Model model_;
  std::vector<std::uint8_t> bytes_;
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const std::string kLayers = "model.language_model.layers.";

TEST(CpuBackend, NamesTheWeightThatIsNotFinite) {
  const std::string down = kLayers + "1.mlp.down_proj.weight";  // [64, 160]
  EXPECT_EQ(DamagedModel(down, 3 * 160 + 7, kNan).error(),
            down + ": element [3, 7] is nan, expected finite numbers");
  const std::string norm = kLayers + "2.input_layernorm.weight";
  EXPECT_EQ(DamagedModel(norm, 63, kInfinity).error(),
            norm + ": element [63] is inf, expected finite numbers");
  const std::string a_log = kLayers + "0.linear_attn.A_log";
  EXPECT_EQ(DamagedModel(a_log, 2, kNan).error(),
            a_log + ": element [2] is nan, expected finite numbers");
  const std::string key = kLayers + "3.self_attn.k_proj.weight";
  EXPECT_EQ(DamagedModel(key, 64, kNan).error(),
            key + ": element [1, 0] is nan, expected finite numbers");
}

TEST(CpuBackend, NamesTheLayerWhoseValuesOverflow) {
  // Gate and up then grow together, and their product leaves the range.
  EXPECT_EQ(DamagedModel(kLayers + "1.post_attention_layernorm.weight", 0, 3e38f).error(),
            "layers.1: values overflow float32, expected finite numbers");
}

}  // namespace
}  // namespace clefkit::cpu
