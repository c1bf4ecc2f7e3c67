#include "clefkit/eval/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/eval/tensor_errors.h"

namespace clefkit {
namespace {

Request request() {
  return parse_request(R"({"state": "x", "questions": {
      "n": {"type": "noul"},
      "c": {"type": "choice", "criteria": {"red": null, "blue": null, "green": null}}}})",
                       "test");
}

TEST(Drift, CountsEveryProbabilityAndNamesChangedAnswers) {
  const std::vector<Request> requests{request()};
  const Drift drift = compare_probabilities(requests, {{{0.6, 0.4}, {0.3, 0.4, 0.3}}},
                                            {{{0.5, 0.5}, {0.5, 0.3, 0.2}}});
  EXPECT_EQ(drift.questions, 2u);
  EXPECT_EQ(drift.probabilities, 5u);
  EXPECT_DOUBLE_EQ(drift.largest, 0.2);
  EXPECT_NEAR(drift.mean, (0.1 + 0.1 + 0.2 + 0.1 + 0.1) / 5, 1e-12);
  ASSERT_EQ(drift.changed.size(), 1u);
  EXPECT_EQ(drift.changed[0].question, "c");
  EXPECT_EQ(drift.changed[0].chosen, "blue");
  EXPECT_EQ(drift.changed[0].chosen_against, "red");
  EXPECT_NEAR(drift.changed[0].margin, 0.2, 1e-12);
  EXPECT_EQ(drift.agreeing(), 1u);
  EXPECT_EQ(drift.changed_beyond(0.1), 1u);
  EXPECT_EQ(drift.changed_beyond(0.3), 0u);
}

TEST(Drift, ATieGoesToTheFirstOption) {
  const std::vector<Request> requests{request()};
  const Probabilities tied{{{0.5, 0.5}, {0.4, 0.4, 0.2}}};
  const Probabilities first{{{0.6, 0.4}, {0.5, 0.3, 0.2}}};
  EXPECT_TRUE(compare_probabilities(requests, tied, first).changed.empty());
}

TEST(TensorErrors, MeasuresAgainstTheOtherModel) {
  const std::vector<std::uint16_t> ones{0x3F80, 0x3F80, 0x3F80, 0x3F80};
  const std::vector<std::uint16_t> other{0x3F80, 0x3F80, 0x3F80, 0x3F00};  // The last is 0.5.
  const auto model_of = [](const std::vector<std::uint16_t>& bits) {
    Model model;
    const Bytes bytes{reinterpret_cast<const std::uint8_t*>(bits.data()), bits.size() * 2};
    model.weights.emplace("w", TensorView{"w", DType::kBF16, {2, 2}, bytes});
    return model;
  };
  const Model model = model_of(other), against = model_of(ones);
  Executor executor(1);
  const auto errors = tensor_errors(model, against, {executor});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].stored, "BF16");
  EXPECT_DOUBLE_EQ(errors[0].max_abs_error, 0.5);
  EXPECT_DOUBLE_EQ(errors[0].relative_rmse, 0.25);  // sqrt(0.25 / 4)
}

}  // namespace
}  // namespace clefkit
