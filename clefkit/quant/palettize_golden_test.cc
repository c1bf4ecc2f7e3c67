// Tables, indices and packed bytes of the reference implementation (tests/golden/lut6).
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/quant/palettize.h"

namespace clefkit {
namespace {

const std::string kFolder = CLEFKIT_SOURCE_DIR "/tests/golden/lut6/";

// The tensors of a trusted safetensors file: quant/ may not use safetensors/.
class GoldenVectors {
 public:
  GoldenVectors()
      : file_(read_file(kFolder + "vectors.safetensors", 1 << 20)),
        errors_(parse_json(read_file(kFolder + "vectors.json", 1 << 20), "vectors.json", {})) {
    const Bytes bytes = as_bytes(file_);
    const auto header_bytes = static_cast<std::size_t>(load_le<std::uint64_t>(bytes.data()));
    const Json header = parse_json(as_text(bytes.subspan(8, header_bytes)), "header", {});
    for (const auto& [name, entry] : header.members()) {
      const Json::Array& offsets = entry.find("data_offsets")->items();
      const auto begin = static_cast<std::size_t>(*offsets[0].as_uint64());
      const auto end = static_cast<std::size_t>(*offsets[1].as_uint64());
      tensors_[name] = bytes.subspan(8 + header_bytes + begin, end - begin);
    }
  }

  template <typename T>
  std::vector<T> read(const std::string& name) const {
    const Bytes bytes = tensors_.at(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  double error(const std::string& name, std::string_view key) const {
    return *errors_.find(name)->find(key)->as_double();
  }

  std::vector<std::string> cases() const {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : tensors_) {
      if (name.ends_with(".weight")) names.push_back(name.substr(0, name.rfind('.')));
    }
    return names;
  }

 private:
  std::string file_;
  Json errors_;
  std::map<std::string, Bytes> tensors_;
};

const GoldenVectors& golden() {
  static const GoldenVectors vectors;
  return vectors;
}

struct Case {
  std::string weights;
  PaletteMethod method;
  std::string name() const { return weights + "." + std::string(to_string(method)); }
};

// Worked out in rational arithmetic: a mean exactly half-way between two FP16 values, and two
// splits of exactly equal cost. The reference's rounding errors decide there, so only the errors
// can be compared.
bool has_exact_tie(const std::string& name) {
  return name == "gaussian.optimal" || name == "large.optimal";
}

class GoldenPalettes : public testing::TestWithParam<Case> {};

TEST_P(GoldenPalettes, HaveTheSameTableIndicesAndBytes) {
  const std::string name = GetParam().name();
  const auto weights = golden().read<BFloat16>(GetParam().weights + ".weight");
  const std::size_t columns = weights.size() / kRowsPerPalette;
  GroupPalettizer palettizer({.method = GetParam().method});
  std::vector<std::uint8_t> packed(weights.size() / 4 * 3);
  const PalettizedGroup group =
      palettizer.palettize({weights.data(), kRowsPerPalette, columns}, name, 0, packed);

  if (!has_exact_tie(name)) {
    EXPECT_EQ(std::vector<Half>(group.palette.begin(), group.palette.end()),
              golden().read<Half>(name + ".table"));
    EXPECT_EQ(packed, golden().read<std::uint8_t>(name + ".packed"));
  }
  const double expected_error = golden().error(name, "sse_decoded");
  EXPECT_NEAR(group.squared_error, expected_error, 1e-9 * expected_error);
}

TEST_P(GoldenPalettes, HaveTheSameErrorBeforeRounding) {
  const auto weights = golden().read<BFloat16>(GetParam().weights + ".weight");
  ValueCounts values;
  WeightCounter().count({weights.data(), 1, weights.size()}, "", 0, values);
  PaletteValues palette;
  switch (GetParam().method) {
    case PaletteMethod::kOriginal:
      palette = original_palette(values, 40);
      break;
    case PaletteMethod::kOptimal:
      palette = optimal_palette(values);
      break;
    default:
      palette = grid8_palette(values).values;
  }
  const double expected = golden().error(GetParam().name(), "sse_before_rounding");
  // Where every weight is an entry the reference is a rounding error away from 0.
  EXPECT_NEAR(squared_error(values, palette), expected, 1e-9 * expected + 1e-24);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::string& weights : golden().cases()) {
    for (const auto method :
         {PaletteMethod::kOriginal, PaletteMethod::kOptimal, PaletteMethod::kGrid8})
      cases.push_back({weights, method});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Vectors, GoldenPalettes, testing::ValuesIn(all_cases()),
                         [](const testing::TestParamInfo<Case>& parameter) {
                           return parameter.param.weights + "_" +
                                  std::string(to_string(parameter.param.method));
                         });

}  // namespace
}  // namespace clefkit
