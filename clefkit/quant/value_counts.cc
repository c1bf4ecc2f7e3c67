#include "clefkit/quant/value_counts.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

#include "clefkit/base/error.h"

namespace clefkit {
namespace {

constexpr std::uint32_t kSignBit = 0x8000;
// Magnitudes from here up are beyond FP16, infinite or no numbers.
constexpr std::uint32_t kFirstBadMagnitude = 0x4780;
static_assert(to_float(BFloat16{kFirstBadMagnitude}) > kMaxHalf &&
              to_float(BFloat16{kFirstBadMagnitude - 1}) < kMaxHalf);

double value_of(std::uint32_t bits) {
  return static_cast<double>(to_float(BFloat16{static_cast<std::uint16_t>(bits)}));
}

}  // namespace

void ValueCounts::clear() {
  values_.clear();
  counts_.clear();
  prefixes_.clear();
}

void ValueCounts::append(double value, std::uint32_t count) {
  assert(count != 0 && (values_.empty() || value > values_.back()));
  values_.push_back(value);
  counts_.push_back(count);
}

void ValueCounts::finish() {
  assert(!values_.empty());
  const auto origin = static_cast<std::size_t>(
      std::lower_bound(values_.begin(), values_.end(), 0.0) - values_.begin());
  prefixes_.assign(values_.size() + 1, Sums{});
  for (std::size_t i = origin; i < values_.size(); ++i) {
    const double weighted = counts_[i] * values_[i];
    prefixes_[i + 1] = {prefixes_[i].count + counts_[i], prefixes_[i].sum + weighted,
                        prefixes_[i].square_sum + weighted * values_[i]};
  }
  for (std::size_t i = origin; i-- > 0;) {
    const double weighted = counts_[i] * values_[i];
    prefixes_[i] = {prefixes_[i + 1].count - counts_[i], prefixes_[i + 1].sum - weighted,
                    prefixes_[i + 1].square_sum - weighted * values_[i]};
  }
}

WeightCounter::WeightCounter() : counts_(std::size_t{1} << 16) {}

void WeightCounter::count(MatrixView<const BFloat16> weights, const std::string& where,
                          std::size_t first_row, ValueCounts& out) {
  for (std::size_t row = 0; row < weights.rows; ++row) {
    for (const BFloat16 weight : weights.row(row)) ++counts_[weight.bits];
  }

  const auto take = [&](std::uint32_t bits) { return std::exchange(counts_[bits], 0u); };
  std::uint64_t counted = 0;
  const auto append = [&](std::uint32_t bits, std::uint32_t number) {
    if (number == 0) return;
    counted += number;
    out.append(value_of(bits), number);
  };
  out.clear();
  for (std::uint32_t magnitude = kFirstBadMagnitude - 1; magnitude > 0; --magnitude)
    append(kSignBit | magnitude, take(kSignBit | magnitude));
  append(0, take(0) + take(kSignBit));
  for (std::uint32_t magnitude = 1; magnitude < kFirstBadMagnitude; ++magnitude)
    append(magnitude, take(magnitude));

  if (counted != weights.rows * weights.columns) {
    std::ranges::fill(counts_, 0u);
    for (std::size_t row = 0; row < weights.rows; ++row) {
      const std::span<const BFloat16> values = weights.row(row);
      for (std::size_t column = 0; column < values.size(); ++column) {
        if ((values[column].bits & ~kSignBit) < kFirstBadMagnitude) continue;
        throw_error(ErrorCode::kCorruptData, where, "weight [{}, {}] is {}, expected within ±{}",
                    first_row + row, column, to_float(values[column]), kMaxHalf);
      }
    }
  }
  out.finish();
}

}  // namespace clefkit
