#include "clefkit/backend/ane/probes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

#include "clefkit/base/half.h"
#include "clefkit/mil/bit_packing.h"
#include "clefkit/mil/printer.h"
#include "clefkit/mil/weight_blob.h"
#include "clefkit/programs/program_builder.h"

namespace clefkit::ane {
namespace {

using Values = std::vector<float>;
using Name = ProgramBuilder::Name;

constexpr std::size_t kChannels = 64, kWidth = 128;
// A few roundings to 11 bits.
constexpr double kTolerance = 4e-3;

float rounded(double value) { return to_float(to_half(static_cast<float>(value))); }

// Numbers between -limit and limit that look random and are the same everywhere.
Values numbers(std::size_t count, double limit) {
  constexpr auto kMost = static_cast<double>(std::minstd_rand::max());
  std::minstd_rand random(7);
  Values values(count);
  for (float& value : values) {
    value = rounded(limit * (2.0 * static_cast<double>(random()) / kMost - 1));
  }
  return values;
}

mil::Shape shape_of(std::size_t channels, std::size_t width) {
  return {1, static_cast<std::int64_t>(channels), 1, static_cast<std::int64_t>(width)};
}

// The weights of a probe in a blob file, one after the other.
class Blob {
 public:
  explicit Blob(std::uint32_t records)
      : writer_([this](Bytes bytes) { file_.insert(file_.end(), bytes.begin(), bytes.end()); },
                records) {}

  std::uint64_t add_fp16(const Values& values) {
    std::vector<Half> halves;
    for (const float value : values) halves.push_back(to_half(value));
    return writer_.add(
        mil::BlobDataType::kFloat16,
        {reinterpret_cast<const std::uint8_t*>(halves.data()), halves.size() * sizeof(Half)},
        halves.size());
  }
  std::uint64_t add_indices(const std::vector<std::uint8_t>& indices) {
    return writer_.add(mil::BlobDataType::kUInt6, mil::pack_bits(indices, 6), indices.size());
  }
  std::vector<std::uint8_t> finish() {
    writer_.finish();
    return std::move(file_);
  }

 private:
  std::vector<std::uint8_t> file_;
  mil::WeightBlobWriter writer_;
};

// Programs of elementwise operations only were refused somewhere: every probe begins with a
// convolution, here one that changes nothing.
Name unchanged(ProgramBuilder& builder, const Name& x) {
  std::vector<double> identity(kChannels * kChannels, 0.0);
  for (std::size_t i = 0; i < kChannels; ++i) identity[i * kChannels + i] = 1;
  const auto size = static_cast<std::int64_t>(kChannels);
  const mil::Value weight({mil::DataType::kFloat16, {size, size, 1, 1}}, std::move(identity));
  return builder.conv(x, builder.constant(weight, "identity"), "unchanged");
}

// One input x [1, 64, 1, 128] of numbers up to `limit`, one output y.
struct OneToOne {
  std::string name;
  std::string instead_of{};
  double limit = 4;
  std::function<Name(ProgramBuilder&, const Name& x)> write;
  mil::Shape shape = shape_of(kChannels, kWidth);
  // y's value at a place in row-major order.
  std::function<double(const Values& x, std::size_t place)> expected;
  Spellings spellings{};
  double tolerance = kTolerance;
};

Probe probe_of(const OneToOne& facts) {
  ProgramBuilder builder(mil::kWeightPath, facts.spellings);
  const Name x = builder.input("x", shape_of(kChannels, kWidth));
  const Name same = unchanged(builder, x);
  const Name y = facts.write(builder, same);
  builder.output(y, "y");
  Probe probe{
      .name = facts.name,
      .instead_of = facts.instead_of,
      .mil = mil::to_text(std::move(builder).finish()),
      .inputs = {{"x", shape_of(kChannels, kWidth), numbers(kChannels * kWidth, facts.limit)}},
      .outputs = {{"y", facts.shape, {}}},
      .tolerance = facts.tolerance};
  Values& values = probe.outputs[0].values;
  values.resize(static_cast<std::size_t>(mil::element_count(facts.shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = rounded(facts.expected(probe.inputs[0].values, i));
  }
  return probe;
}

// The same, spelled the second way.
OneToOne second_way(OneToOne first, bool Spellings::*flag) {
  first.instead_of = std::move(first.name);
  first.name = std::ranges::find(kSecondSpellings, flag, &SecondSpelling::flag)->name;
  first.spellings.*flag = true;
  return first;
}

std::size_t channel(std::size_t place) { return place / kWidth; }
std::size_t column(std::size_t place) { return place % kWidth; }
float at(const Values& x, std::size_t channel, std::size_t column) {
  return x[channel * kWidth + column];
}

// y = f(x), element by element.
OneToOne elementwise(std::string name, const std::function<double(double)>& function,
                     std::function<Name(ProgramBuilder&, const Name&)> write) {
  return {
      .name = std::move(name),
      .write = std::move(write),
      .expected = [function](const Values& x, std::size_t place) { return function(x[place]); }};
}

double silu(double x) { return x / (1 + std::exp(-x)); }

std::vector<OneToOne> elementwise_probes() {
  std::vector<OneToOne> probes;
  const auto unary = [&](const char* op, const std::function<double(double)>& function) {
    probes.push_back(elementwise(op, function, [op](ProgramBuilder& builder, const Name& x) {
      return builder.unary(op, x, op);
    }));
  };
  unary("exp", [](double x) { return std::exp(x); });
  unary("tanh", [](double x) { return std::tanh(x); });
  unary("abs", [](double x) { return std::abs(x); });
  unary("relu", [](double x) { return std::max(x, 0.0); });
  const auto with_scalar = [&](const char* op, double scalar,
                               const std::function<double(double)>& function) {
    probes.push_back(
        elementwise(op, function, [op, scalar](ProgramBuilder& builder, const Name& x) {
          const Name y = builder.scalar(scalar, "scalar");
          return builder.binary(op, x, y, op);
        }));
  };
  with_scalar("add", 0.75, [](double x) { return x + 0.75; });
  with_scalar("sub", 0.75, [](double x) { return x - 0.75; });
  with_scalar("mul", 0.75, [](double x) { return x * 0.75; });
  with_scalar("minimum", 0.5, [](double x) { return std::min(x, 0.5); });
  with_scalar("maximum", 0.5, [](double x) { return std::max(x, 0.5); });
  with_scalar("real_div", 3, [](double x) { return x / 3; });

  probes.push_back(elementwise("silu by tanh", silu, [](ProgramBuilder& builder, const Name& x) {
    return builder.silu(x, "silu");
  }));
  probes.push_back(second_way(probes.back(), &Spellings::silu));
  probes.push_back(elementwise(
      "sigmoid by exp", [](double x) { return 1 / (1 + std::exp(-x)); },
      [](ProgramBuilder& builder, const Name& x) { return builder.sigmoid(x, "sigmoid"); }));
  probes.push_back(elementwise(
      "softplus by exp", [](double x) { return std::log1p(std::exp(x)); },
      [](ProgramBuilder& builder, const Name& x) { return builder.softplus(x, "softplus"); }));
  // Of 1 + |x|, which a norm's sum of squares is like.
  const auto inverse_root = [](double x) { return 1 / std::sqrt(1 + std::abs(x)); };
  const auto one_and_more = [](ProgramBuilder& builder, const Name& x) {
    const Name one = builder.scalar(1, "one");
    const Name magnitude = builder.unary("abs", x, "magnitude");
    return builder.binary("add", magnitude, one, "one_and_more");
  };
  probes.push_back(
      elementwise("inverse root by pow", inverse_root, [=](ProgramBuilder& builder, const Name& x) {
        const Name sum = one_and_more(builder, x);
        return builder.inverse_root(sum, "inverse_root");
      }));
  probes.push_back(second_way(probes.back(), &Spellings::root_by_division));
  return probes;
}

std::vector<OneToOne> reduction_probes() {
  std::vector<OneToOne> probes;
  const auto mean = [](const Values& x, std::size_t place) {
    double sum = 0;
    for (std::size_t c = 0; c < kChannels; ++c) sum += at(x, c, place);
    return sum / kChannels;
  };
  const auto channel_mean = [](ProgramBuilder& builder, const Name& x) {
    return builder.channel_mean(x, 4, "mean");
  };
  probes.push_back({.name = "mean by convolution",
                    .write = channel_mean,
                    .shape = shape_of(1, kWidth),
                    .expected = mean});
  probes.push_back(second_way(probes.back(), &Spellings::reduce_mean));
  probes.push_back({.name = "reduce_max",
                    .write = [](ProgramBuilder& builder,
                                const Name& x) { return builder.channel_maximum(x, "max"); },
                    .shape = shape_of(1, kWidth),
                    .expected =
                        [](const Values& x, std::size_t place) {
                          double most = at(x, 0, place);
                          for (std::size_t c = 1; c < kChannels; ++c) {
                            most = std::max<double>(most, at(x, c, place));
                          }
                          return most;
                        }});
  probes.push_back(second_way(probes.back(), &Spellings::maximum_by_halves));
  probes.push_back({.name = "softmax",
                    .write = [](ProgramBuilder& builder,
                                const Name& x) { return builder.softmax(x, "softmax"); },
                    .expected =
                        [](const Values& x, std::size_t place) {
                          double sum = 0;
                          for (std::size_t s = 0; s < kWidth; ++s) {
                            sum += std::exp(at(x, channel(place), s));
                          }
                          return std::exp(x[place]) / sum;
                        },
                    .tolerance = 2e-4});
  probes.push_back(second_way(probes.back(), &Spellings::softmax_by_exp));
  return probes;
}

std::vector<OneToOne> layout_probes() {
  std::vector<OneToOne> probes;
  // The second half of the channels before the first.
  probes.push_back({.name = "split and concat",
                    .write =
                        [](ProgramBuilder& builder, const Name& x) {
                          const std::vector<Name> parts = builder.split(x, 1, 2, "halves");
                          return builder.concat({parts[1], parts[0]}, 1, "swapped");
                        },
                    .expected =
                        [](const Values& x, std::size_t place) {
                          return double{
                              at(x, (channel(place) + kChannels / 2) % kChannels, column(place))};
                        },
                    .tolerance = 0});
  probes.push_back(second_way(probes.back(), &Spellings::concat_by_sum));
  // Channels as 8 heads of 8, the heads' order within changed.
  probes.push_back({.name = "reshape and transpose",
                    .write =
                        [](ProgramBuilder& builder, const Name& x) {
                          const Name heads = builder.reshape(x, {1, 8, 8, 128}, "heads");
                          const Name turned = builder.transpose(heads, {0, 2, 1, 3}, "turned");
                          return builder.reshape(turned, shape_of(kChannels, kWidth), "flat");
                        },
                    .expected =
                        [](const Values& x, std::size_t place) {
                          const std::size_t c = channel(place);
                          return double{at(x, c % 8 * 8 + c / 8, column(place))};
                        },
                    .tolerance = 0});
  probes.push_back(
      {.name = "tile",
       .write =
           [](ProgramBuilder& builder, const Name& x) {
             const Name heads = builder.reshape(x, {2, 1, kChannels / 2, 1, kWidth}, "heads");
             const Name tiled = builder.repeat(heads, 1, 3, "tiled");
             return builder.reshape(tiled, shape_of(3 * kChannels, kWidth), "flat");
           },
       .shape = shape_of(3 * kChannels, kWidth),
       // Each half of the channels three times.
       .expected =
           [](const Values& x, std::size_t place) {
             constexpr std::size_t kHalf = kChannels / 2;
             const std::size_t half = channel(place) / (3 * kHalf);
             return double{at(x, half * kHalf + channel(place) % kHalf, column(place))};
           },
       .tolerance = 0});
  probes.push_back(second_way(probes.back(), &Spellings::tile_by_product));
  return probes;
}

// x is [64, 128] as one matrix; the product of it and itself in three ways.
std::vector<OneToOne> matmul_probes() {
  std::vector<OneToOne> probes;
  const auto rows = [](ProgramBuilder& builder, const Name& x) {
    return builder.reshape(x, {1, 1, kChannels, kWidth}, "rows");
  };
  probes.push_back({.name = "matmul of a transposed right side",
                    .limit = 1,
                    .write =
                        [=](ProgramBuilder& builder, const Name& x) {
                          const Name left = rows(builder, x);
                          const Name half = builder.scalar(0.5, "half");
                          const Name right = builder.binary("mul", left, half, "right");
                          return builder.matmul_transposed_y(left, right, "product");
                        },
                    .shape = {1, 1, kChannels, kChannels},
                    .expected =
                        [](const Values& x, std::size_t place) {
                          const std::size_t i = place / kChannels, k = place % kChannels;
                          double sum = 0;
                          for (std::size_t s = 0; s < kWidth; ++s) {
                            sum += 0.5 * at(x, i, s) * at(x, k, s);
                          }
                          return sum;
                        }});
  probes.push_back({.name = "matmul of a transposed left side",
                    .limit = 1,
                    .write =
                        [=](ProgramBuilder& builder, const Name& x) {
                          const Name left = rows(builder, x);
                          const Name half = builder.scalar(0.5, "half");
                          const Name right = builder.binary("mul", left, half, "right");
                          return builder.matmul_transposed_x(left, right, "product");
                        },
                    .shape = {1, 1, kWidth, kWidth},
                    .expected =
                        [](const Values& x, std::size_t place) {
                          const std::size_t i = place / kWidth, k = place % kWidth;
                          double sum = 0;
                          for (std::size_t c = 0; c < kChannels; ++c) {
                            sum += 0.5 * at(x, c, i) * at(x, c, k);
                          }
                          return sum;
                        }});
  probes.push_back({.name = "matmul",
                    .limit = 1,
                    .write =
                        [=](ProgramBuilder& builder, const Name& x) {
                          const Name left = rows(builder, x);
                          const Name right = builder.transpose(left, {0, 1, 3, 2}, "right");
                          return builder.matmul(left, right, "product");
                        },
                    .shape = {1, 1, kChannels, kChannels},
                    .expected =
                        [](const Values& x, std::size_t place) {
                          const std::size_t i = place / kChannels, k = place % kChannels;
                          double sum = 0;
                          for (std::size_t s = 0; s < kWidth; ++s)
                            sum += double{at(x, i, s)} * at(x, k, s);
                          return sum;
                        }});
  return probes;
}

// [rows, columns] times [columns, 128].
Values product(const Values& weights, std::size_t rows, std::size_t columns, const Values& x) {
  Values result(rows * kWidth);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t s = 0; s < kWidth; ++s) {
      double sum = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        sum += double{weights[row * columns + c]} * at(x, c, s);
      }
      result[row * kWidth + s] = rounded(sum);
    }
  }
  return result;
}

Probe linear_probe(const char* name, const BlobWeight& weight, std::vector<std::uint8_t> file,
                   const Values& dense) {
  const std::size_t rows = weight.shape[0], columns = weight.shape[1];
  ProgramBuilder builder(mil::kWeightPath);
  const Name x = builder.input("x", shape_of(columns, kWidth));
  const Name y = builder.linear(x, weight, "linear");
  builder.output(y, "y");
  const Values values = numbers(columns * kWidth, 1);
  return {.name = name,
          .mil = mil::to_text(std::move(builder).finish()),
          .weights = std::move(file),
          .inputs = {{"x", shape_of(columns, kWidth), values}},
          .outputs = {{"y", shape_of(rows, kWidth), product(dense, rows, columns, values)}},
          .tolerance = kTolerance};
}

Probe dense_probe() {
  constexpr std::size_t kRows = 32;
  const Values dense = numbers(kRows * kChannels, 0.25);
  Blob blob(1);
  const std::uint64_t offset = blob.add_fp16(dense);
  return linear_probe("convolution with FP16 weights",
                      {.name = "weight",
                       .blob = mil::kWeightPath,
                       .kind = BlobWeight::Kind::kFp16,
                       .shape = {kRows, kChannels},
                       .offset = offset},
                      blob.finish(), dense);
}

// A table of 64 entries for 16 rows, as the spec's 32 by 64 example.
Probe palettized_probe() {
  constexpr std::size_t kRows = 32, kRowsPerTable = 16, kEntries = 64;
  const Values tables = numbers(kRows / kRowsPerTable * kEntries, 0.25);
  std::vector<std::uint8_t> indices(kRows * kChannels);
  Values dense(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = static_cast<std::uint8_t>(i * 37 % kEntries);
    dense[i] = tables[i / kChannels / kRowsPerTable * kEntries + indices[i]];
  }
  Blob blob(2);
  const std::uint64_t offset = blob.add_indices(indices);
  const std::uint64_t palette_offset = blob.add_fp16(tables);
  return linear_probe("convolution with 6-bit weights, a table for 16 channels",
                      {.name = "weight",
                       .blob = mil::kWeightPath,
                       .kind = BlobWeight::Kind::kLut6,
                       .shape = {kRows, kChannels},
                       .offset = offset,
                       .palette_offset = palette_offset},
                      blob.finish(), dense);
}

// Several ports of different sizes, of rows that a device may pad, in no alphabetical order.
Probe port_probe() {
  constexpr std::size_t kNarrow = 40;
  ProgramBuilder builder(mil::kWeightPath);
  const mil::Shape wide_shape = shape_of(kChannels, kWidth), narrow_shape = shape_of(3, kNarrow);
  const Name wide = builder.input("m_wide", wide_shape);
  const Name narrow = builder.input("a_narrow", narrow_shape);
  const Name same = unchanged(builder, wide);
  const Name two = builder.scalar(2, "two");
  const Name twice = builder.binary("mul", narrow, two, "twice");
  builder.output(twice, "z_twice");
  builder.output(same, "b_same");
  const Values wide_values = numbers(kChannels * kWidth, 4),
               narrow_values = numbers(3 * kNarrow, 4);
  Values doubled = narrow_values;
  for (float& value : doubled) value *= 2;
  return {
      .name = "ports and strides",
      .mil = mil::to_text(std::move(builder).finish()),
      .inputs = {{"m_wide", wide_shape, wide_values}, {"a_narrow", narrow_shape, narrow_values}},
      .outputs = {{"z_twice", narrow_shape, doubled}, {"b_same", wide_shape, wide_values}},
      .tolerance = 0};
}

std::vector<Half> to_halves(const Values& values) {
  std::vector<Half> halves;
  for (const float value : values) halves.push_back(to_half(value));
  return halves;
}

void compare(const ProbePort& expected, const std::vector<Half>& actual, double tolerance,
             ProbeResult& result) {
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double difference = std::abs(double{to_float(actual[i])} - expected.values[i]) /
                              std::max(1.0, std::abs(double{expected.values[i]}));
    if (!(difference > result.difference)) continue;
    result.difference = difference;
    if (difference <= tolerance) continue;
    result.outcome = ProbeResult::Outcome::kWrong;
    result.problem = fmt::format("{}[{}] is {}, expected {} within {}", expected.name, i,
                                 to_float(actual[i]), expected.values[i], tolerance);
  }
}

}  // namespace

std::vector<Probe> all_probes() {
  std::vector<Probe> probes;
  probes.push_back(port_probe());
  probes.push_back(dense_probe());
  probes.push_back(palettized_probe());
  for (const auto& list :
       {elementwise_probes(), reduction_probes(), layout_probes(), matmul_probes()}) {
    for (const OneToOne& facts : list) probes.push_back(probe_of(facts));
  }
  return probes;
}

std::string_view to_string(ProbeResult::Outcome outcome) {
  switch (outcome) {
    case ProbeResult::Outcome::kRight:
      return "right";
    case ProbeResult::Outcome::kWrong:
      return "wrong";
    case ProbeResult::Outcome::kRefused:
      return "refused";
    case ProbeResult::Outcome::kFailed:
      break;
  }
  return "failed";
}

ProbeResult run_probe(Device& device, const Probe& probe, const ProgramSetOptions& options) {
  ProbeResult result{.name = probe.name, .instead_of = probe.instead_of};
  try {
    ProgramSet programs(device, options);
    LoadedProgram& program = programs.get({0, 0}, [&] {
      return ProgramSource{probe.name, probe.mil, probe.weights};
    });
    for (const ProbePort& port : probe.inputs) {
      program.input(port.name).write(to_halves(port.values));
    }
    programs.evaluate(program);
    for (const ProbePort& port : probe.outputs) {
      std::vector<Half> values(port.values.size());
      program.output(port.name).read(values);
      compare(port, values, probe.tolerance, result);
    }
  } catch (const Error& error) {
    result.outcome = error.code() == ErrorCode::kUnsupported ? ProbeResult::Outcome::kRefused
                                                             : ProbeResult::Outcome::kFailed;
    result.problem = error.message();
  }
  return result;
}

FoundSpellings find_spellings(const std::vector<ProbeResult>& results) {
  const auto is_right = [](const ProbeResult& result) {
    return result.outcome == ProbeResult::Outcome::kRight;
  };
  FoundSpellings found;
  for (const ProbeResult& first : results) {
    if (!first.is_first_way() || is_right(first)) continue;
    const auto second = std::ranges::find(results, first.name, &ProbeResult::instead_of);
    if (second != results.end() && is_right(*second)) {
      const auto* const spelling =
          std::ranges::find(kSecondSpellings, second->name, &SecondSpelling::name);
      found.spellings.*spelling->flag = true;
    } else if (found.problem.empty()) {
      found.problem =
          fmt::format("{} is {}: {}", first.name, to_string(first.outcome), first.problem);
    }
  }
  return found;
}

}  // namespace clefkit::ane
