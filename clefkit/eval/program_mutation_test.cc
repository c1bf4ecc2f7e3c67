#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clefkit/backend/ane/simulator_device.h"
#include "clefkit/base/error.h"
#include "clefkit/eval/program_parity.h"
#include "clefkit/mil/parser.h"
#include "clefkit/mil/printer.h"

// What an emitter could get wrong, done to its programs one mistake at a time: the checker or the
// comparison with the CPU must notice each.
namespace clefkit {
namespace {

using mil::Argument;
using mil::Function;
using mil::Statement;
using mil::Value;

// The statement that gives `name`; null when the program has none.
Statement* find_statement(Function& function, std::string_view name) {
  for (Statement& statement : function.statements) {
    for (const mil::Variable& output : statement.outputs) {
      if (output.name == name) return &statement;
    }
  }
  return nullptr;
}

Statement& statement_of(Function& function, std::string_view name) {
  Statement* const found = find_statement(function, name);
  if (found == nullptr) throw std::logic_error("no statement gives " + std::string(name));
  return *found;
}

Argument& argument_of(Statement& statement, std::string_view name) {
  for (auto& [key, argument] : statement.arguments) {
    if (key == name) return argument;
  }
  throw std::logic_error(statement.op + " has no argument " + std::string(name));
}

// A mistake in the program that gives `where`.
struct Mutation {
  const char* description;
  const char* where;
  std::function<void(Function&)> apply;
};
void PrintTo(const Mutation& mutation, std::ostream* out) { *out << mutation.description; }

// Whoever reads `name` reads `instead`: the operations that make the one of the other are missing.
Mutation left_out(const char* description, const char* name, const char* instead) {
  return {description, name, [=](Function& function) {
            for (Statement& statement : function.statements) {
              for (auto& [key, argument] : statement.arguments) {
                if (auto* const one = std::get_if<std::string>(&argument)) {
                  if (*one == name) *one = instead;
                } else if (auto* const several = std::get_if<std::vector<std::string>>(&argument)) {
                  std::ranges::replace(*several, std::string(name), std::string(instead));
                }
              }
            }
          }};
}

Mutation reads(const char* description, const char* name, const char* key, Argument instead) {
  return {description, name,
          [=](Function& function) { argument_of(statement_of(function, name), key) = instead; }};
}

Mutation becomes(const char* description, const char* name, const char* op) {
  return {description, name, [=](Function& function) { statement_of(function, name).op = op; }};
}

// Two of the values that are put together change places.
Mutation reordered(const char* description, const char* name, std::size_t one, std::size_t other) {
  return {description, name, [=](Function& function) {
            auto& values = std::get<std::vector<std::string>>(
                argument_of(statement_of(function, name), "values"));
            std::swap(values.at(one), values.at(other));
          }};
}

Mutation exchanged(const char* description, const char* name, const char* one, const char* other) {
  return {description, name, [=](Function& function) {
            Statement& statement = statement_of(function, name);
            std::swap(argument_of(statement, one), argument_of(statement, other));
          }};
}

// Two statements read each other's `key`.
Mutation crossed(const char* description, const char* name, const char* other, const char* key) {
  return {description, name, [=](Function& function) {
            std::swap(argument_of(statement_of(function, name), key),
                      argument_of(statement_of(function, other), key));
          }};
}

Argument integer(std::int64_t value) { return Value::scalar(mil::DataType::kInt32, value); }

// As an emitter would that had made the mistake: without what only the right program needs.
void remove_unused(Function& function) {
  std::set<std::string> used(function.outputs.begin(), function.outputs.end());
  std::vector<Statement> kept;
  while (!function.statements.empty()) {
    Statement statement = std::move(function.statements.back());
    function.statements.pop_back();
    const bool is_used = std::ranges::any_of(
        statement.outputs, [&](const mil::Variable& output) { return used.contains(output.name); });
    if (!is_used) continue;
    for (const auto& [key, argument] : statement.arguments) {
      if (const auto* const one = std::get_if<std::string>(&argument)) used.insert(*one);
      if (const auto* const several = std::get_if<std::vector<std::string>>(&argument)) {
        used.insert(several->begin(), several->end());
      }
    }
    kept.push_back(std::move(statement));
  }
  std::ranges::reverse(kept);
  function.statements = std::move(kept);
}

// A simulator that is given the mistaken program.
class MutatingDevice final : public ane::Device {
 public:
  MutatingDevice(const Mutation& mutation, bool& was_applied)
      : mutation_(mutation), was_applied_(was_applied) {}

  std::string_view name() const override { return device_.name(); }
  std::unique_ptr<ane::DeviceProgram> open(const ane::ProgramSource& source) override {
    mil::Program program = mil::parse_program(source.mil, source.name);
    Function& function = program.functions.at(0);
    if (find_statement(function, mutation_.where) == nullptr) return device_.open(source);
    mutation_.apply(function);
    remove_unused(function);
    was_applied_ = true;
    ane::ProgramSource mutated = source;
    mutated.mil = mil::to_text(program);
    EXPECT_NE(mutated.mil, source.mil);
    return device_.open(mutated);
  }
  std::unique_ptr<ane::Surface> new_surface(std::uint64_t bytes) override {
    return device_.new_surface(bytes);
  }

 private:
  const Mutation& mutation_;
  bool& was_applied_;
  ane::SimulatorDevice device_{mil::NumericProfile::kIdeal};
};

// Of the golden checkpoint `micro`, which has one of each.
enum class Part { kLinearAttention, kFullAttention, kVision };

// Keys that are alike, without which the higher powers of the delta rule's inverse vanish. They
// bring single tokens that magnify every rounding: one of 148 makes nine tenths of a layer's error.
constexpr std::size_t kRepeats = 4;
constexpr double kTolerance = 2 * kProgramTolerance;

enum class Noticed {
  kNowhere,
  kByTheChecker,
  kInTheResults,  // Too far from the CPU's, or not finite.
};
void PrintTo(Noticed noticed, std::ostream* out) {
  *out << std::vector{"nowhere", "by the checker",
                      "in the results"}[static_cast<std::size_t>(noticed)];
}

Noticed noticed(Part part, const Mutation& mutation) {
  const Model model = ane::open_golden("micro");
  bool was_applied = false;
  auto device = std::make_unique<MutatingDevice>(mutation, was_applied);
  ProgramErrors errors;
  try {
    switch (part) {
      case Part::kLinearAttention:
        errors = text_program_errors(ane::one_layer(model, 0), std::move(device), kRepeats);
        break;
      case Part::kFullAttention:
        errors = text_program_errors(ane::one_layer(model, 3), std::move(device), kRepeats);
        break;
      case Part::kVision:
        errors = vision_program_errors(model, std::move(device));
    }
  } catch (const Error& error) {
    // SimulatorDevice compiles what the checker takes.
    if (error.code() == ErrorCode::kUnsupported) return Noticed::kByTheChecker;
    EXPECT_EQ(error.code(), ErrorCode::kOverflow) << error.what();
    return Noticed::kInTheResults;
  }
  EXPECT_TRUE(was_applied);
  const bool is_near =
      std::ranges::all_of(errors, [](const auto& output) { return output.second < kTolerance; });
  return is_near ? Noticed::kNowhere : Noticed::kInTheResults;
}

class LinearAttentionMutation : public testing::TestWithParam<Mutation> {};
class FullAttentionMutation : public testing::TestWithParam<Mutation> {};
class VisionMutation : public testing::TestWithParam<Mutation> {};
class MutationForTheChecker : public testing::TestWithParam<Mutation> {};

TEST_P(LinearAttentionMutation, IsSeenInTheResults) {
  EXPECT_EQ(noticed(Part::kLinearAttention, GetParam()), Noticed::kInTheResults);
}
TEST_P(FullAttentionMutation, IsSeenInTheResults) {
  EXPECT_EQ(noticed(Part::kFullAttention, GetParam()), Noticed::kInTheResults);
}
TEST_P(VisionMutation, IsSeenInTheResults) {
  EXPECT_EQ(noticed(Part::kVision, GetParam()), Noticed::kInTheResults);
}
TEST_P(MutationForTheChecker, IsRefused) {
  const std::string_view where = GetParam().where;
  const Part part = where.starts_with("full_")     ? Part::kFullAttention
                    : where.starts_with("vision_") ? Part::kVision
                                                   : Part::kLinearAttention;
  EXPECT_EQ(noticed(part, GetParam()), Noticed::kByTheChecker);
}

// All tests of this file rest on it.
TEST(Mutation, ThatChangesNothingIsNotNoticed) {
  const Mutation none =
      exchanged("a sum's terms the other way round", "linear_00_a_biased", "x", "y");
  EXPECT_EQ(noticed(Part::kLinearAttention, none), Noticed::kNowhere);
}

INSTANTIATE_TEST_SUITE_P(
    Each, LinearAttentionMutation,
    testing::Values(
        left_out("norm without its gain", "linear_00_norm", "linear_00_norm_normed"),
        reordered("convolution: the tokens before come after", "linear_00_with_past", 0, 1),
        left_out("convolution without SiLU", "linear_00_mixed", "linear_00_convolved"),
        crossed("queries and keys exchanged", "linear_00_q", "linear_00_k", "x"),
        left_out("no dt_bias", "linear_00_a_biased", "linear_00_a"),
        left_out("softplus of negative numbers only", "linear_00_softplus",
                 "linear_00_softplus_log"),
        reads("A_log not exponentiated", "linear_00_decay", "y", "layers_0_linear_attn_A_log"),
        reads("decay without its sign", "linear_00_g", "y", "valid"),
        left_out("beta without its sigmoid", "linear_00_sigmoid", "linear_00_b"),
        left_out("padding is written into the state", "linear_00_beta", "linear_00_sigmoid"),
        left_out("queries not scaled", "linear_00_q_2", "linear_00_q_1"),
        left_out("keys not normalized", "linear_00_k_3", "linear_00_split_1"),
        left_out("not triangular", "linear_00_rule_a_decays", "linear_00_rule_decays"),
        left_out("an inverse of two factors", "linear_00_rule_inverse_1", "linear_00_rule_inverse"),
        becomes("an inverse with the wrong sign", "linear_00_rule_one_less_a", "add"),
        left_out("queries see later tokens", "linear_00_rule_qk_decays", "linear_00_rule_decays"),
        reads("keys decayed since the start, not until the end", "linear_00_rule_k_until_end", "y",
              "linear_00_rule_since_start_1"),
        left_out("a state that is not decayed", "linear_00_rule_kept", "linear_00_rule_state"),
        becomes("what is known already is added", "linear_00_rule_new_5", "add"),
        left_out("a sub-chunk reads the keys of the one before", "linear_00_rule_k_at_3",
                 "linear_00_rule_k_at_2"),
        exchanged("a state written transposed", "linear_00_rule_written_1", "x", "y"),
        reordered("sub-chunks in the wrong order", "linear_00_rule_o_all", 3, 4),
        left_out("no weights of the output's norm", "linear_00_o_weighted", "linear_00_o_norm"),
        left_out("no gate", "linear_00_o_gated", "linear_00_o_together"),
        left_out("a gate by sigmoid", "linear_00_gate", "linear_00_gate_gate"),
        left_out("no residual", "linear_00_x", "linear_00_out"),
        reads("MLP: the residual is the layer's input", "x_out", "x", "x"),
        crossed("MLP: gate and up exchanged", "mlp_00_silu_half", "mlp_00_inner", "y"),
        left_out("MLP without SiLU", "mlp_00_silu", "mlp_00_gate"),
        left_out("MLP of the rows as they are", "mlp_00_norm", "linear_00_x")));

INSTANTIATE_TEST_SUITE_P(
    Each, FullAttentionMutation,
    testing::Values(
        crossed("queries and gate exchanged", "full_00_q_norm_normed_abs", "full_00_gate_minus",
                "x"),
        left_out("queries without their norm's gain", "full_00_q_norm", "full_00_q_norm_normed"),
        left_out("keys without their norm", "full_00_k_norm", "full_00_k_by_head"),
        becomes("turned the other way", "full_00_q_first", "add"),
        crossed("cosine and sine exchanged", "full_00_q_sin", "full_00_q_cos", "y"),
        reordered("halves of the turned part exchanged", "full_00_k", 0, 1),
        left_out("keys not turned", "full_00_k", "full_00_k_norm"),
        left_out("queries not scaled", "full_00_q_scaled", "full_00_q"),
        reordered("the cache behind the new keys", "full_00_k_all", 0, 1),
        reordered("the cache behind the new values", "full_00_v_all", 0, 1),
        reads("softmax over the queries", "full_00_probabilities", "axis", integer(2)),
        left_out("probabilities scaled up only", "full_00_attended", "full_00_attended_scaled"),
        left_out("no gate", "full_00_gated", "full_00_attended_by_head"),
        left_out("a gate without its sigmoid", "full_00_gate", "full_00_query_gate_1"),
        Mutation{"no residual", "full_00_o", [](Function& function) {
                   argument_of(statement_of(function, "x_out"), "x") = "full_00_o";
                 }}));

INSTANTIATE_TEST_SUITE_P(
    Each, VisionMutation,
    testing::Values(
        left_out("norm without its bias", "vision_00_norm1", "vision_00_norm1_weighted"),
        left_out("norm without its weights", "vision_00_norm2_weighted", "vision_00_norm2_normed"),
        left_out("queries not turned", "vision_00_q", "vision_00_q_by_head"),
        becomes("keys turned the other way", "vision_00_k_second", "sub"),
        left_out("queries not scaled", "vision_00_q_scaled", "vision_00_q"),
        left_out("probabilities scaled up only", "vision_00_attended", "vision_00_attended_scaled"),
        left_out("a projection without its bias", "vision_00_proj", "vision_00_proj_product"),
        left_out("no GELU", "vision_00_gelu", "vision_00_fc1"),
        left_out("no residual", "vision_00_x", "vision_00_proj")));

INSTANTIATE_TEST_SUITE_P(
    Each, MutationForTheChecker,
    testing::Values(
        reads("the past along the wrong axis", "linear_00_with_past", "axis", integer(1)),
        reads("a convolution of the wrong groups", "linear_00_convolved", "groups", integer(2)),
        reads("a result before it is there", "linear_00_z", "x", "linear_00_o_gated"),
        reads("a result that is nowhere", "linear_00_z", "x", "linear_01_norm"),
        left_out("no mask", "full_00_scores_masked", "full_00_scores"),
        left_out("pictures see each other", "vision_00_scores_masked", "vision_00_scores"),
        becomes("an operation that is not one", "linear_00_g", "multiply"),
        reads("a product of matrices that do not fit", "full_00_scores", "transpose_x",
              Value::boolean(false))));

}  // namespace
}  // namespace clefkit
