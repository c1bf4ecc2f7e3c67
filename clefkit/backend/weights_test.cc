#include "clefkit/backend/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A model of hand-made tensors; `bytes` is what they view.
struct SmallModel {
  template <typename T>
  void add(const std::string& name, DType dtype, std::vector<std::size_t> shape,
           const std::vector<T>& values) {
    auto& stored =
        bytes.emplace_back(std::make_unique<std::vector<std::uint8_t>>(values.size() * sizeof(T)));
    std::memcpy(stored->data(), values.data(), stored->size());
    model.weights.emplace(name, TensorView{name, dtype, std::move(shape), *stored});
  }

  Model model;
  std::vector<std::unique_ptr<std::vector<std::uint8_t>>> bytes;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorruptData);
    return error.what();
  }
  return "no error";
}

constexpr BFloat16 kOne{0x3F80}, kMinusTwo{0xC000}, kTiny{0x3A00}, kNan{0x7FC0};
constexpr Half kHalfOne{0x3C00}, kHalfMinusTwo{0xC000};

TEST(Weights, ReadsEveryFloatingType) {
  SmallModel small;
  small.add<BFloat16>("b", DType::kBF16, {2}, {kOne, kMinusTwo});
  small.add<Half>("h", DType::kF16, {2}, {kHalfOne, kHalfMinusTwo});
  small.add<float>("f", DType::kF32, {2}, {1.0f, -2.0f});
  for (const char* name : {"b", "h", "f"}) {
    EXPECT_THAT(float_vector(small.model, name, 2), ElementsAre(1.0f, -2.0f)) << name;
    std::vector<float> row(2);
    copy_weight_row(weight_matrix(small.model, name, 1, 2), 0, row);
    EXPECT_THAT(row, ElementsAre(1.0f, -2.0f)) << name;
  }
}

TEST(Weights, AddsOneToNormsInFloat32) {
  SmallModel small;
  small.add<BFloat16>("norm", DType::kBF16, {2}, {kTiny, kMinusTwo});
  // 2^-11 would be lost beside 1 in bfloat16.
  EXPECT_THAT(norm_multiplier(small.model, "norm", 2), ElementsAre(1.00048828125f, -1.0f));
}

TEST(Weights, TakesDimensionsOfOneAsAbsent) {
  SmallModel small;
  small.add<float>("conv", DType::kF32, {2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const WeightMatrix matrix = weight_matrix(small.model, "conv", 2, 3);
  std::vector<float> row(3);
  copy_weight_row(matrix, 1, row);
  EXPECT_THAT(row, ElementsAre(4, 5, 6));
}

TEST(Weights, CutsRowsOfAMatrix) {
  SmallModel small;
  small.add<float>("m", DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const WeightMatrix rows = weight_rows(weight_matrix(small.model, "m", 3, 2), 1, 2);
  EXPECT_EQ(rows_of(rows), 2u);
  EXPECT_EQ(columns_of(rows), 2u);
  std::vector<float> row(2);
  copy_weight_row(rows, 1, row);
  EXPECT_THAT(row, ElementsAre(5, 6));
}

TEST(Weights, RejectsAnotherShape) {
  SmallModel small;
  small.add<float>("m", DType::kF32, {3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(error_of([&] { weight_matrix(small.model, "m", 2, 3); }),
            "m: shape [3, 2], expected [2, 3]");
  EXPECT_EQ(error_of([&] { float_vector(small.model, "m", 6); }), "m: shape [3, 2], expected [6]");
}

TEST(Weights, RejectsIntegers) {
  SmallModel small;
  small.add<std::int64_t>("m", DType::kI64, {1, 2}, {1, 2});
  EXPECT_THAT(error_of([&] { weight_matrix(small.model, "m", 1, 2); }), HasSubstr("type I64"));
  EXPECT_THAT(error_of([&] { float_vector(small.model, "m", 2); }), HasSubstr("type I64"));
}

TEST(Weights, RefusesToReadVectorsThatAreNotFinite) {
  SmallModel small;
  small.add<BFloat16>("v", DType::kBF16, {3}, {kOne, kOne, kNan});
  small.add<BFloat16>("conv", DType::kBF16, {2, 1, 2}, {kOne, kOne, kNan, kOne});
  EXPECT_EQ(error_of([&] { float_vector(small.model, "v", 3); }),
            "v: element [2] is nan, expected finite numbers");
  EXPECT_EQ(error_of([&] {
              float_values(small.model, "conv", std::array<std::size_t, 2>{2, 2});
            }),
            "conv: element [1, 0, 0] is nan, expected finite numbers");
}

TEST(Weights, NamesTheElementThatIsNotFinite) {
  SmallModel small;
  small.add<BFloat16>("a.good", DType::kBF16, {1}, {kOne});
  small.add<BFloat16>("a.bad", DType::kBF16, {2, 2}, {kOne, kOne, kOne, kNan});
  small.add<BFloat16>("b.bad", DType::kBF16, {1}, {kNan});
  const auto check = [&](std::string_view prefix) {
    return error_of([&] {
      check_weights_are_finite(small.model,
                               [&](std::string_view name) { return name.starts_with(prefix); });
    });
  };
  EXPECT_EQ(check("a"), "a.bad: element [1, 1] is nan, expected finite numbers");
  EXPECT_EQ(check("a.good"), "no error");
}

}  // namespace
}  // namespace clefkit
