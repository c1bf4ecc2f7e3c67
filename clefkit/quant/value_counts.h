#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "clefkit/base/half.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit {

// A group of weights as its distinct values, ascending, with how often each occurs. BF16 has so
// few values (a group of 65,536 weights holds about 2,600 of them) that palettes are searched here
// and not among the weights. −0 counts as 0.
class ValueCounts {
 public:
  // Number, sum and sum of squares of a run of weights.
  struct Sums {
    double count = 0.0;
    double sum = 0.0;
    double square_sum = 0.0;

    double mean() const { return sum / count; }
    // Sum of squared distances to `point`.
    double squared_error(double point) const {
      return square_sum - 2.0 * point * sum + point * point * count;
    }
    // The same to the mean.
    double squared_error() const { return square_sum - sum * sum / count; }
  };

  void clear();
  // Values come in ascending order; `count` is not 0.
  void append(double value, std::uint32_t count);
  // To be called after the last append(), before anything below.
  void finish();

  std::size_t size() const { return values_.size(); }  // Distinct values.
  double value(std::size_t index) const { return values_[index]; }
  double count(std::size_t index) const { return counts_[index]; }
  double smallest() const { return values_.front(); }
  double largest() const { return values_.back(); }
  double weight_count() const { return prefixes_.back().count - prefixes_.front().count; }

  // Over the distinct values [first, last).
  Sums between(std::size_t first, std::size_t last) const {
    const Sums& from = prefixes_[first];
    const Sums& to = prefixes_[last];
    return {to.count - from.count, to.sum - from.sum, to.square_sum - from.square_sum};
  }

 private:
  std::vector<double> values_;
  std::vector<double> counts_;
  // Entry i: sums from the first value not below 0 up to, not including, value i; negative to the
  // left of it. Starting at 0 keeps the square of an outlier out of the sums of small values.
  std::vector<Sums> prefixes_;
};

// Counts BF16 weights. Holds a table that is reused from call to call: one object per thread.
class WeightCounter {
 public:
  WeightCounter();

  // Throws Error(kCorruptData) with `where`, row (counted from `first_row`) and column for a
  // weight that is no number or beyond ±65504, which no FP16 palette can hold.
  void count(MatrixView<const BFloat16> weights, const std::string& where, std::size_t first_row,
             ValueCounts& out);

 private:
  std::vector<std::uint32_t> counts_;  // By bits; all 0 between calls.
};

}  // namespace clefkit
