#include "clefkit/programs/vision_block_program.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>

#include "clefkit/mil/parser.h"
#include "clefkit/mil/printer.h"
#include "clefkit/mil/simulator.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/programs/attention.h"
#include "clefkit/programs/test_weights.h"

namespace clefkit {
namespace {

using mil::dim;
using mil::NumericProfile;
using mil::Tensor;

constexpr std::size_t kBlock = 3;

struct Picture {
  std::size_t rows, columns;
  std::size_t patches() const { return rows * columns; }
};

struct Case {
  const char* name;
  std::size_t hidden, heads, inner, patches;
  std::vector<Picture> pictures;  // What they leave of the patches is padding.
  float qkv_scale, linear_scale;
};

// Heads of 12 and of 72; pictures of one, odd and even numbers of blocks.
const Case kSmall{"small", 48, 4, 100, 40, {{2, 6}, {6, 2}, {2, 2}}, 0.5f, 0.25f};
const Case kWideHeads{"wide heads", 144, 2, 300, 48, {{6, 6}, {2, 4}}, 0.25f, 0.15f};
// The release's width. Weights of a trained model's size: 0.02 root mean square, qkv twice that.
const Case kRelease{"release", 1152, 16, 4304, 128, {{6, 10}, {2, 14}, {2, 2}}, 0.07f, 0.035f};
const Case kReleaseOfFew{"release, 16 patches", 1152,  16,    4304, 16,
                         {{2, 4}, {2, 2}},      0.07f, 0.035f};

// One block with random weights and patches, its formula in double, and its program.
class BlockOf {
 public:
  explicit BlockOf(const Case& the_case) : case_(the_case) {
    config_.depth = kBlock + 1;
    config_.hidden_size = case_.hidden;
    config_.num_heads = case_.heads;
    config_.intermediate_size = case_.inner;
    TestNumbers numbers(11);
    const auto add = [&](const std::string& name, std::vector<std::size_t> shape, float scale,
                         float middle = 0) {
      std::size_t count = 1;
      for (const std::size_t size : shape) count *= size;
      std::vector<float> values = numbers.vector(count, scale);
      for (float& value : values) value = to_float(to_half(value + middle));
      weights_.add_fp16(kPrefix + name, std::move(shape), std::move(values));
    };
    const std::size_t hidden = case_.hidden, inner = case_.inner;
    for (const char* norm : {"norm1", "norm2"}) {
      add(std::string(norm) + ".weight", {hidden}, 0.5f, 1);
      add(std::string(norm) + ".bias", {hidden}, 0.3f);
    }
    add("attn.qkv.weight", {3 * hidden, hidden}, case_.qkv_scale);
    add("attn.qkv.bias", {3 * hidden}, 0.5f);
    add("attn.proj.weight", {hidden, hidden}, case_.linear_scale);
    add("attn.proj.bias", {hidden}, 0.2f);
    add("mlp.linear_fc1.weight", {inner, hidden}, case_.linear_scale);
    add("mlp.linear_fc1.bias", {inner}, 0.5f);
    add("mlp.linear_fc2.weight", {hidden, inner}, case_.linear_scale);
    add("mlp.linear_fc2.bias", {hidden}, 0.2f);
    weights_.finish();
    make_inputs(numbers);
  }

  mil::Program program(const Spellings& spellings = {}) const {
    return emit_vision_block(
        config_, kBlock,
        [&](const std::string& name) -> const BlobWeight& { return weights_[name]; },
        {.spellings = spellings, .weight_path = TestWeights::kPath, .patches = dim(case_.patches)});
  }
  mil::WeightFiles files() const { return weights_.files(); }
  const VisionConfig& config() const { return config_; }
  mil::Tensors& inputs() { return inputs_; }
  std::size_t real_patches() const { return real_patches_; }

  std::vector<float> run(const mil::Program& program, NumericProfile profile) const {
    return mil::Simulator(program, weights_.files(), profile).run(inputs_).at("x_out").values;
  }

  struct Errors {
    double largest = 0;  // Of an output, as a part of it or of the root mean square.
    double rms = 0;      // Root mean square, as a part of the outputs'.
    double branch = 0;   // The same of what the block adds to its input.
  };
  // Of real patches.
  Errors errors(const std::vector<float>& found) const {
    if (expected_.empty()) compute();
    double squares = 0, wrong = 0, added = 0;
    std::size_t count = 0;
    for_each_real([&](std::size_t i) {
      squares += expected_[i] * expected_[i];
      wrong += std::pow(found[i] - expected_[i], 2);
      added += std::pow(expected_[i] - inputs_.at("x").values[i], 2);
      ++count;
    });
    Errors errors{0, std::sqrt(wrong / squares), std::sqrt(wrong / added)};
    const double rms = std::sqrt(squares / static_cast<double>(count));
    for_each_real([&](std::size_t i) {
      const double error =
          std::abs(found[i] - expected_[i]) / std::max(rms, std::abs(expected_[i]));
      if (!(error <= errors.largest)) errors.largest = error;  // A NaN is kept.
    });
    return errors;
  }
  Errors errors(NumericProfile profile) const { return errors(run(program(), profile)); }

 private:
  static constexpr char kPrefix[] = "model.visual.blocks.3.";

  template <typename Function>
  void for_each_real(Function&& function) const {
    for (std::size_t i = 0; i < case_.hidden * case_.patches; ++i) {
      if (i % case_.patches < real_patches_) function(i);
    }
  }

  void make_inputs(TestNumbers& numbers) {
    const std::size_t half = config_.head_dim() / 2, patches = case_.patches;
    Tensor x{{1, dim(case_.hidden), 1, dim(patches)}, numbers.vector(case_.hidden * patches, 3.0f)};
    // One channel far above the others, as trained models have.
    for (std::size_t patch = 0; patch < patches; ++patch) x.values[5 * patches + patch] += 40;
    Tensor cos = mil::zeros({1, dim(half), 1, dim(patches)}), sin = cos;
    Tensor mask{{1, 1, dim(patches), dim(patches)},
                std::vector<float>(patches * patches, kMaskedScore)};
    cosines_.assign(half * patches, 1);
    sines_.assign(half * patches, 0);
    const auto see_each_other = [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row) {
        std::fill_n(mask.values.begin() + static_cast<std::ptrdiff_t>(row * patches + begin),
                    end - begin, 0.0f);
      }
    };
    std::size_t patch = 0;
    for (const Picture& picture : case_.pictures) {
      see_each_other(patch, patch + picture.patches());
      for (std::size_t i = 0; i < picture.patches(); ++i, ++patch) {
        segment_of_.push_back(&picture);
        const std::size_t block = i / 4, across = picture.columns / 2;
        const std::size_t row = block / across * 2 + i % 4 / 2;
        const std::size_t column = block % across * 2 + i % 2;
        for (std::size_t j = 0; j < half; ++j) {
          const std::size_t axis = half / 2;
          const double frequency =
              std::pow(10000.0, -2.0 * static_cast<double>(j % axis) / static_cast<double>(half));
          const double angle = static_cast<double>(j < axis ? row : column) * frequency;
          cosines_[j * patches + patch] = std::cos(angle);
          sines_[j * patches + patch] = std::sin(angle);
        }
      }
    }
    real_patches_ = patch;
    see_each_other(patch, patches);
    for (std::size_t channel = 0; channel < case_.hidden; ++channel) {
      std::fill_n(x.values.begin() + static_cast<std::ptrdiff_t>(channel * patches + patch),
                  patches - patch, 0.0f);
    }
    const auto half_of = [](double value) { return to_float(to_half(static_cast<float>(value))); };
    std::ranges::transform(cosines_, cos.values.begin(), half_of);
    std::ranges::transform(sines_, sin.values.begin(), half_of);
    for (float& value : x.values) value = half_of(value);
    inputs_ = {{"x", x}, {"cos", cos}, {"sin", sin}, {"mask", mask}};
  }

  using Rows = std::vector<std::vector<double>>;

  const std::vector<float>& weight(const std::string& name) const {
    return weights_.values(kPrefix + name);
  }

  Rows normed(const Rows& x, const std::string& name) const {
    Rows out = x;
    for (auto& row : out) {
      const auto count = static_cast<double>(row.size());
      double mean = 0, variance = 0;
      for (const double value : row) mean += value / count;
      for (const double value : row) variance += (value - mean) * (value - mean) / count;
      for (std::size_t c = 0; c < row.size(); ++c) {
        row[c] = (row[c] - mean) / std::sqrt(variance + 1e-6) * weight(name + ".weight")[c] +
                 weight(name + ".bias")[c];
      }
    }
    return out;
  }

  Rows linear(const Rows& x, const std::string& name) const {
    const std::vector<float>& matrix = weight(name + ".weight");
    const std::vector<float>& bias = weight(name + ".bias");
    Rows out(x.size(), std::vector<double>(bias.begin(), bias.end()));
    for (std::size_t row = 0; row < x.size(); ++row) {
      for (std::size_t o = 0; o < bias.size(); ++o) {
        for (std::size_t i = 0; i < x[row].size(); ++i) {
          out[row][o] += x[row][i] * matrix[o * x[row].size() + i];
        }
      }
    }
    return out;
  }

  Rows attended(const Rows& qkv) const {
    const std::size_t hidden = case_.hidden, head_dim = config_.head_dim(), half = head_dim / 2;
    Rows turned = qkv;
    for (std::size_t patch = 0; patch < qkv.size(); ++patch) {
      for (std::size_t first = 0; first < 2 * hidden; first += head_dim) {
        for (std::size_t j = 0; j < half; ++j) {
          const double cos = cosines_[j * case_.patches + patch];
          const double sin = sines_[j * case_.patches + patch];
          const double a = qkv[patch][first + j], b = qkv[patch][first + half + j];
          turned[patch][first + j] = a * cos - b * sin;
          turned[patch][first + half + j] = b * cos + a * sin;
        }
      }
    }
    Rows out(qkv.size(), std::vector<double>(hidden));
    for (std::size_t patch = 0; patch < qkv.size(); ++patch) {
      for (std::size_t first = 0; first < hidden; first += head_dim) {
        std::vector<double> shares(qkv.size());
        double sum = 0;
        for (std::size_t other = 0; other < qkv.size(); ++other) {
          if (segment_of_[other] != segment_of_[patch]) continue;
          double score = 0;
          for (std::size_t j = first; j < first + head_dim; ++j) {
            score += turned[patch][j] * turned[other][hidden + j];
          }
          shares[other] = std::exp(score / std::sqrt(static_cast<double>(head_dim)));
          sum += shares[other];
        }
        for (std::size_t other = 0; other < qkv.size(); ++other) {
          for (std::size_t j = first; j < first + head_dim; ++j) {
            out[patch][j] += shares[other] / sum * qkv[other][2 * hidden + j];
          }
        }
      }
    }
    return out;
  }

  void compute() const {
    const std::size_t patches = case_.patches;
    Rows x(real_patches_, std::vector<double>(case_.hidden));
    for_each_real([&](std::size_t i) { x[i % patches][i / patches] = inputs_.at("x").values[i]; });
    const auto add = [&](const Rows& branch) {
      for (std::size_t row = 0; row < x.size(); ++row) {
        for (std::size_t c = 0; c < x[row].size(); ++c) x[row][c] += branch[row][c];
      }
    };
    add(linear(attended(linear(normed(x, "norm1"), "attn.qkv")), "attn.proj"));
    Rows inner = linear(normed(x, "norm2"), "mlp.linear_fc1");
    for (auto& row : inner) {
      for (double& value : row) {
        const double u =
            std::sqrt(2 / std::numbers::pi) * (value + 0.044715 * value * value * value);
        value *= 0.5 * (1 + std::tanh(u));
      }
    }
    add(linear(inner, "mlp.linear_fc2"));
    expected_.assign(case_.hidden * patches, 0);
    for_each_real([&](std::size_t i) { expected_[i] = x[i % patches][i / patches]; });
  }

  const Case& case_;
  VisionConfig config_;
  TestWeights weights_;
  mil::Tensors inputs_;
  std::vector<double> cosines_, sines_;
  std::vector<const Picture*> segment_of_;
  std::size_t real_patches_ = 0;
  mutable std::vector<double> expected_;
};

TEST(VisionBlock, HoldsForTheCheckerAndAsText) {
  for (const Case* the_case : {&kSmall, &kWideHeads}) {
    const BlockOf block(*the_case);
    for (const bool reduce_mean : {false, true}) {
      const mil::Program made = block.program({.reduce_mean = reduce_mean});
      EXPECT_THAT(mil::check_program(made, block.files()), testing::IsEmpty());
      const std::string text = mil::to_text(made);
      EXPECT_EQ(mil::to_text(mil::parse_program(text, "vision")), text);
      EXPECT_EQ(mil::to_text(block.program({.reduce_mean = reduce_mean})), text);
    }
  }
}

// The release's own program, of 1,024 patches.
TEST(VisionBlock, OfTheReleaseHoldsForTheChecker) {
  Case release = kRelease;
  release.patches = kVisionPatches;
  const BlockOf block(release);
  const mil::Program made = block.program();
  EXPECT_THAT(mil::check_program(made, block.files()), testing::IsEmpty());
  EXPECT_EQ(made.functions[0].inputs[0].type.shape, (mil::Shape{1, 1152, 1, 1024}));
  EXPECT_EQ(made.functions[0].inputs[1].type.shape, (mil::Shape{1, 36, 1, 1024}));
}

TEST(VisionBlock, UsesTheWeightsThatThePlanNames) {
  const BlockOf block(kSmall);
  ModelConfig config;
  config.vision = block.config();
  const PlannedProgram planned = plan_vision_programs(config).at(kBlock);
  std::vector<std::string> used;
  emit_vision_block(
      config.vision, kBlock,
      [&](const std::string& name) -> const BlobWeight& {
        if (std::ranges::find(used, name) == used.end()) used.push_back(name);
        static BlobWeight weight;
        weight = {name, "b", BlobWeight::Kind::kFp16, {}, 64, 0};
        const bool is_bias = name.ends_with("bias"), is_norm = name.find(".norm") != name.npos;
        const bool is_qkv = name.find("qkv") != name.npos, is_fc1 = name.find("fc1") != name.npos;
        weight.shape = {is_qkv ? 3 * kSmall.hidden : is_fc1 ? kSmall.inner : kSmall.hidden};
        if (!is_bias && !is_norm) {
          weight.shape.push_back(name.find("fc2") != name.npos ? kSmall.inner : kSmall.hidden);
        }
        return weight;
      },
      {});
  EXPECT_THAT(used, testing::UnorderedElementsAreArray(planned.tensors));
}

// Single outputs are off by four or five times what all are in the mean: which ones is chance.
TEST(VisionBlock, IsTheFormula) {
  for (const Case* the_case : {&kSmall, &kWideHeads}) {
    const BlockOf block(*the_case);
    for (const NumericProfile profile :
         {NumericProfile::kIdeal, NumericProfile::kStrict, NumericProfile::kM5}) {
      const auto errors = block.errors(profile);
      EXPECT_LT(errors.largest, 2e-3) << the_case->name << " " << to_string(profile);
      EXPECT_LT(errors.branch, 1e-3) << the_case->name << " " << to_string(profile);
    }
    const auto other_spelling =
        block.errors(block.run(block.program({.reduce_mean = true}), NumericProfile::kStrict));
    EXPECT_LT(other_spelling.largest, 3e-3) << the_case->name;
    EXPECT_LT(block.errors(NumericProfile::kH15g).rms, 2e-3) << the_case->name;
    EXPECT_LT(block.errors(NumericProfile::kM1).rms, 2e-3) << the_case->name;
  }
}

TEST(VisionBlock, IsTheFormulaAtTheReleasesWidth) {
  const BlockOf block(kRelease);
  const auto errors = block.errors(NumericProfile::kStrict);
  std::printf("release, 128 patches, strict: largest %.2e, rms %.2e, of the branch %.2e\n",
              errors.largest, errors.rms, errors.branch);
  EXPECT_LT(errors.rms, 3e-3);
  EXPECT_LT(errors.branch, 3e-3);
}

TEST(VisionBlock, IsNearTheFormulaOnEveryMachine) {
  const BlockOf block(kReleaseOfFew);
  for (const NumericProfile profile :
       {NumericProfile::kIdeal, NumericProfile::kM5, NumericProfile::kM1, NumericProfile::kH15g}) {
    const auto errors = block.errors(profile);
    std::printf("%s, %s: largest %.2e, rms %.2e, of the branch %.2e\n", kReleaseOfFew.name,
                std::string(to_string(profile)).c_str(), errors.largest, errors.rms, errors.branch);
    EXPECT_LT(errors.branch, 3e-3) << to_string(profile);
  }
}

// What pictures say does not depend on what lies behind them, bit for bit.
TEST(VisionBlock, PaddingChangesNoPicture) {
  BlockOf block(kSmall);
  const mil::Program made = block.program();
  for (const NumericProfile profile :
       {NumericProfile::kStrict, NumericProfile::kM1, NumericProfile::kH15g}) {
    const std::vector<float> before = block.run(made, profile);
    mil::Tensors changed = block.inputs();
    TestNumbers numbers(5);
    for (std::size_t i = 0; i < changed.at("x").values.size(); ++i) {
      if (i % kSmall.patches >= block.real_patches()) {
        changed.at("x").values[i] = to_float(to_half(100 * numbers.next()));
      }
    }
    const auto after = mil::Simulator(made, block.files(), profile).run(changed).at("x_out").values;
    std::size_t padding_that_changed = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_TRUE(std::isfinite(before[i]) && std::isfinite(after[i]));
      if (i % kSmall.patches < block.real_patches()) {
        EXPECT_EQ(after[i], before[i]);
      } else {
        padding_that_changed += after[i] != before[i];
      }
    }
    EXPECT_GT(padding_that_changed, 0u);
  }
}

// Nothing reaches 2^15 except the mask on scores, whatever the size of the patches.
TEST(VisionBlock, StaysFarBelowWhatAMachineCanHold) {
  BlockOf block(kSmall);
  const mil::Program made = block.program();
  for (const float scale : {1000.0f, 1.0f, 0.001f, 0.0f}) {
    mil::Tensors inputs = block.inputs();
    for (float& value : inputs.at("x").values) value = to_float(to_half(value * scale / 4));
    mil::Simulator simulator(made, block.files(), NumericProfile::kStrict);
    double largest = 0;
    simulator.watch([&](const mil::Statement& statement, const Tensor& result) {
      if (statement.op != "conv" && statement.op != "matmul") return;
      for (const float value : result.values) largest = std::max<double>(largest, std::abs(value));
    });
    EXPECT_NO_THROW(simulator.run(inputs)) << scale;
    EXPECT_LT(largest, 32768) << scale;
  }
}

}  // namespace
}  // namespace clefkit
