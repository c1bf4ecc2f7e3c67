#include "clefkit/backend/ane/program_backend.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "clefkit/backend/ane/backend_runs.h"
#include "clefkit/backend/ane/fake_device.h"
#include "clefkit/backend/ane/golden_model.h"
#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/backend/cpu/cpu_backend.h"
#include "clefkit/backend/factory.h"
#include "clefkit/base/error.h"
#include "clefkit/base/error_of.h"

namespace clefkit::ane {
namespace {

using mil::NumericProfile;

std::unique_ptr<Backend> simulator(const Model& model, NumericProfile profile, PlanKind plan) {
  return std::make_unique<ProgramBackend>(
      model, std::make_unique<SimulatorDevice>(profile), ProgramForm{.plan = plan},
      std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
}

class ProgramBackendTest : public testing::TestWithParam<std::string> {
 protected:
  const Model model_ = open_golden(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Golden, ProgramBackendTest, testing::Values("micro", "tied"),
                         [](const auto& test) { return test.param; });

// Lengths on both sides of a call's 128 tokens, and the state handed from one to the next. The
// bounds are what FP16 costs random weights and inputs over all layers, found by leaving the
// rounding out: the formulas alone are then within 0.0042.
TEST_P(ProgramBackendTest, ComputesWhatTheCpuComputes) {
  const std::vector<std::size_t> pieces{1, 130, 2};
  cpu::CpuBackend cpu(model_, Precision::kExact);
  const Layers expected = layers_of(cpu, model_, pieces);
  ASSERT_EQ(expected.size(), model_.config.text.num_hidden_layers);
  // The deeper model takes seconds a profile.
  const bool is_small = model_.config.text.num_hidden_layers <= 4;
  for (const auto& [profile, tolerance] :
       {std::pair(NumericProfile::kIdeal, 0.02), std::pair(NumericProfile::kStrict, 0.02),
        std::pair(NumericProfile::kM5, 0.02), std::pair(NumericProfile::kH15g, 0.03)}) {
    if (!is_small && profile != NumericProfile::kIdeal) continue;
    const auto backend = simulator(model_, profile, PlanKind::kSplit);
    const Layers layers = layers_of(*backend, model_, pieces);
    ASSERT_EQ(layers.size(), expected.size());
    for (const auto& [layer, rows] : expected) {
      EXPECT_LT(relative_error(layers.at(layer), rows), tolerance)
          << to_string(profile) << " layer " << layer;
    }
  }
}

TEST_P(ProgramBackendTest, TheGroupedPlanComputesTheSameBits) {
  const std::vector<std::size_t> pieces{130, 3};
  const auto split = simulator(model_, NumericProfile::kIdeal, PlanKind::kSplit);
  const auto grouped = simulator(model_, NumericProfile::kIdeal, PlanKind::kGrouped);
  const Layers all = layers_of(*split, model_, pieces);
  const Layers visible = layers_of(*grouped, model_, pieces);
  EXPECT_LT(visible.size(), all.size());
  ASSERT_TRUE(visible.contains(model_.config.text.num_hidden_layers - 1));
  for (const auto& [layer, rows] : visible) EXPECT_EQ(rows, all.at(layer)) << layer;
}

TEST_P(ProgramBackendTest, AClonedSequenceGoesItsOwnWay) {
  const auto backend = simulator(model_, NumericProfile::kIdeal, PlanKind::kSplit);
  Executor executor(1);
  const std::size_t hidden_size = model_.config.text.hidden_size;
  const auto append = [&](SequenceState& sequence, float value) {
    std::vector<float> rows(5 * hidden_size, value);
    rows[0] = 1;
    const std::vector<std::int32_t> positions(5, 0);
    backend->prefill({executor}, sequence,
                     {.hidden = {rows.data(), 5, hidden_size},
                      .temporal = positions,
                      .height = positions,
                      .width = positions},
                     {});
    return rows;
  };
  const auto sequence = backend->new_sequence(5);
  append(*sequence, 0.5f);
  EXPECT_GT(sequence->size_bytes(), 0u);
  const auto one = sequence->clone(10), two = sequence->clone(10), three = sequence->clone(15);
  const auto expected = append(*one, -0.25f);
  append(*three, 0.75f);
  append(*three, 0.75f);
  EXPECT_EQ(append(*two, -0.25f), expected);
  EXPECT_THROW(append(*one, 0), Error);
}

// Two sequences in turns: what lies in a program's ports may be the other one's, or an older part
// of its own.
TEST_P(ProgramBackendTest, SequencesTakeTurnsWithoutMixing) {
  const auto alone = simulator(model_, NumericProfile::kIdeal, PlanKind::kGrouped);
  const auto shared = simulator(model_, NumericProfile::kIdeal, PlanKind::kGrouped);
  Executor executor(1);
  const std::size_t hidden_size = model_.config.text.hidden_size;
  const auto append = [&](Backend& backend, SequenceState& sequence, std::size_t count,
                          unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> rows(count * hidden_size);
    for (float& value : rows) value = normal(random);
    std::vector<std::int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(sequence.tokens()));
    backend.prefill({executor}, sequence,
                    {.hidden = {rows.data(), count, hidden_size},
                     .temporal = positions,
                     .height = positions,
                     .width = positions},
                    {});
    return rows;
  };
  const auto one = shared->new_sequence(200), two = shared->new_sequence(200);
  std::vector<std::vector<float>> ones, twos;
  for (unsigned i = 0; i < 3; ++i) {
    ones.push_back(append(*shared, *one, 40, i));
    twos.push_back(append(*shared, *two, 9, 10 + i));
  }
  const auto expected_one = alone->new_sequence(200), expected_two = alone->new_sequence(200);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(append(*alone, *expected_one, 40, i), ones[i]) << i;
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(append(*alone, *expected_two, 9, 10 + i), twos[i]) << i;
}

// Everything that devices were seen to do and that can be put right: the same bits come out.
TEST_P(ProgramBackendTest, ComputesTheSameOnADeviceWithEveryQuirk) {
  const std::vector<std::size_t> pieces{130, 3};
  const auto plain = simulator(model_, NumericProfile::kIdeal, PlanKind::kGrouped);
  auto device = std::make_unique<FakeDevice>(Faults{.max_programs = 2,
                                                    .failing_loads = 1,
                                                    .has_stale_cache = false,
                                                    .pads_rows = true,
                                                    .reverses_ports = true,
                                                    .adds_output_suffix = true,
                                                    .checks_surfaces = true});
  const std::shared_ptr<FakeState> state = device->state();
  ProgramBackend backend(model_, std::move(device), ProgramForm{PlanKind::kGrouped},
                         std::make_unique<cpu::CpuBackend>(model_, Precision::kExact));
  EXPECT_EQ(layers_of(backend, model_, pieces), layers_of(*plain, model_, pieces));
  EXPECT_EQ(state->most_loaded, 2u);
  EXPECT_GT(state->loads, 3u);
}

// A device without an operation computes the model all the same when programs are spelled without.
TEST(ProgramBackend, DoesWithoutEachDoubtfulOperation) {
  const Model model = open_golden("micro");
  const std::vector<std::size_t> pieces{5};
  const std::size_t last = model.config.text.num_hidden_layers - 1;
  const std::vector<VisionSegment> picture{{4, 6}};
  cpu::CpuBackend cpu(model, Precision::kExact);
  const std::vector<float> expected = layers_of(cpu, model, pieces).at(last);
  const std::vector<float> features = features_of(cpu, model.config.vision, picture);
  for (const auto& [operation, flag] : {std::pair("concat", &Spellings::concat_by_sum),
                                        std::pair("tile", &Spellings::tile_by_product),
                                        std::pair("reduce_max", &Spellings::maximum_by_halves),
                                        std::pair("softmax", &Spellings::softmax_by_exp),
                                        std::pair("pow", &Spellings::root_by_division)}) {
    const auto backend_with = [&](const Spellings& spellings) {
      return ProgramBackend(model,
                            std::make_unique<FakeDevice>(Faults{.rejected_operation = operation}),
                            ProgramForm{.spellings = spellings},
                            std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
    };
    ProgramBackend refused = backend_with({});
    EXPECT_THROW(layers_of(refused, model, pieces), Error) << operation;
    Spellings spellings;
    spellings.*flag = true;
    ProgramBackend backend = backend_with(spellings);
    // As the first spelling's bounds.
    EXPECT_LT(relative_error(layers_of(backend, model, pieces).at(last), expected), 0.02)
        << operation;
    EXPECT_LT(relative_error(features_of(backend, model.config.vision, picture), features), 4e-3)
        << operation;
  }
}

// The longest sequence however its end is cut: what the caches have no place for is computed with
// the tokens that follow. Of random keys and values, as if 16,200 tokens had been computed.
TEST(ProgramBackend, FillsTheLongestContextWhereverItIsCut) {
  const Model model = open_golden("micro");
  const Model one = one_layer(model, 3);
  constexpr std::size_t kCapacity = 16'384, kPast = 16'200;
  const std::size_t hidden_size = one.config.text.hidden_size;
  const auto backend = simulator(one, NumericProfile::kIdeal, PlanKind::kSplit);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<Half> cached(kPast * one.config.text.kv_dim());
  for (Half& value : cached) value = to_half(normal(random));
  std::vector<float> rows((kCapacity - kPast) * hidden_size);
  for (float& value : rows) value = normal(random);
  Executor executor(1);
  // Rows [first, first + count) of those that are new.
  const auto append = [&](SequenceState& sequence, std::size_t first, std::size_t count) {
    const auto at = rows.begin() + static_cast<std::ptrdiff_t>(first * hidden_size);
    std::vector<float> hidden(at, at + static_cast<std::ptrdiff_t>(count * hidden_size));
    std::vector<std::int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(kPast + first));
    backend->prefill({executor}, sequence,
                     {.hidden = {hidden.data(), count, hidden_size},
                      .temporal = positions,
                      .height = positions,
                      .width = positions},
                     {});
    return hidden;
  };
  const auto started = [&] {
    auto sequence = backend->new_sequence(kCapacity);
    auto& programs = dynamic_cast<ProgramSequence&>(*sequence);
    programs.append(kPast);
    programs.kv_cache(0).keys = programs.kv_cache(0).values = cached;
    return sequence;
  };
  const auto whole = started();
  append(*whole, 0, 56);  // Up to 16,256: the last call finds places for all that came before.
  const std::vector<float> expected = append(*whole, 56, 128);

  const auto cut = started();
  append(*cut, 0, 56);
  std::vector<float> found = append(*cut, 56, 44);
  const auto other = cut->clone(kCapacity);
  append(*cut, 100, 1);
  for (const std::size_t count : {30u, 54u}) {
    const std::vector<float> more = append(*other, other->tokens() - kPast, count);
    found.insert(found.end(), more.begin(), more.end());
  }
  EXPECT_LT(relative_error(found, expected), 1e-3);
  EXPECT_EQ(other->tokens(), kCapacity);
  const auto keys_of = [](SequenceState& sequence) {
    return dynamic_cast<ProgramSequence&>(sequence).kv_cache(0).keys;
  };
  EXPECT_EQ(keys_of(*other), keys_of(*whole));

  const auto too_long = backend->new_sequence(kCapacity + 1);
  const Error error = error_of([&] { append(*too_long, 0, 1); });
  EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  EXPECT_STREQ(error.what(), "record: 16385 tokens, expected at most 16384 on this backend");
}

TEST(ProgramBackend, AnswersNothingWhenAResultOverflows) {
  const Model model = open_golden("micro");
  ProgramBackend backend(model, std::make_unique<FakeDevice>(Faults{.overflows = true}),
                         ProgramForm{PlanKind::kGrouped},
                         std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
  try {
    layers_of(backend, model, {3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOverflow);
    EXPECT_EQ(error.where(), "run-00-02");
  }
}

// A picture must lie within one call of 1,024 patches; the CPU knows no such limit.
TEST(ProgramBackend, EncodesPicturesThatNoProgramTakesAsTheCpuDoes) {
  const Model model = open_golden("micro");
  const VisionConfig& config = model.config.vision;
  auto device = std::make_unique<FakeDevice>(Faults{});
  const std::shared_ptr<FakeState> state = device->state();
  ProgramBackend backend(model, std::move(device), ProgramForm{PlanKind::kGrouped},
                         std::make_unique<cpu::CpuBackend>(model, Precision::kExact));
  cpu::CpuBackend cpu(model, Precision::kExact);
  EXPECT_EQ(backend.vision_patches(), 1024u);

  for (const std::vector<VisionSegment>& pictures :
       {std::vector<VisionSegment>{{2, 514}}, {{2, 2}, {34, 32}, {2, 4}}}) {
    EXPECT_EQ(features_of(backend, config, pictures), features_of(cpu, config, pictures));
  }
  EXPECT_EQ(state->calls, 0u);

  const std::vector<VisionSegment> largest{{32, 32}};
  const std::vector<float> by_programs = features_of(backend, config, largest);
  EXPECT_EQ(state->calls, config.depth);
  const std::vector<float> by_cpu = features_of(cpu, config, largest);
  EXPECT_NE(by_programs, by_cpu);
  EXPECT_LT(relative_error(by_programs, by_cpu), 4e-3);
}

TEST(ProgramBackend, RefusesPicturesOfAModelWithoutVisionAsTheCpuDoes) {
  Model model = open_golden("micro");
  const VisionConfig vision = std::exchange(model.config.vision, {});
  const auto backend = simulator(model, NumericProfile::kIdeal, PlanKind::kGrouped);
  try {
    features_of(*backend, vision, {{2, 2}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
}

TEST(ProgramBackend, HasANameForEachMachine) {
  const Model model = open_golden("micro");
  EXPECT_EQ(choose_backend("simulator", model, Precision::kExact).backend->name(),
            "simulator:ideal");
  EXPECT_EQ(choose_backend("simulator:h15g", model, Precision::kExact).backend->name(),
            "simulator:h15g");
  EXPECT_THROW(choose_backend("simulator:m9", model, Precision::kExact), Error);
}

}  // namespace
}  // namespace clefkit::ane
