#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "clefkit/kernels/attention.h"

namespace clefkit {
namespace {

// The weights of `keys_seen` keys for one query head's row, in place of its scores.
void softmax_in_double(std::vector<double>& scores) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (const double score : scores) {
    if (!(score <= maximum)) maximum = score;  // Takes a NaN.
    if (std::isnan(score)) break;
  }
  double sum = 0.0;
  for (double& score : scores) sum += score = std::exp(score - maximum);
  for (double& score : scores) score /= sum;
}

}  // namespace

void attention_reference(const AttentionShape& shape, MatrixView<const float> q,
                         MatrixView<const float> keys, MatrixView<const float> values,
                         std::ptrdiff_t causal_offset, MatrixView<float> out) {
  const std::size_t group = shape.query_heads / shape.kv_heads;
  std::vector<double> weights;
  std::vector<double> sums(shape.head_dim);
  for (std::size_t i = 0; i < q.rows; ++i) {
    const std::size_t keys_seen =
        causal_offset < 0 ? keys.rows : static_cast<std::size_t>(causal_offset) + i + 1;
    for (std::size_t head = 0; head < shape.query_heads; ++head) {
      const auto query = q.row(i).subspan(head * shape.head_dim, shape.head_dim);
      const std::size_t kv_first = head / group * shape.head_dim;
      weights.assign(keys_seen, 0.0);
      for (std::size_t j = 0; j < keys_seen; ++j) {
        const auto key = keys.row(j).subspan(kv_first, shape.head_dim);
        double score = 0.0;
        for (std::size_t d = 0; d < shape.head_dim; ++d) score += double{query[d]} * key[d];
        weights[j] = score * shape.scale;
      }
      softmax_in_double(weights);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t j = 0; j < keys_seen; ++j) {
        const auto value = values.row(j).subspan(kv_first, shape.head_dim);
        for (std::size_t d = 0; d < shape.head_dim; ++d) sums[d] += weights[j] * value[d];
      }
      const auto result = out.row(i).subspan(head * shape.head_dim, shape.head_dim);
      for (std::size_t d = 0; d < shape.head_dim; ++d) result[d] = static_cast<float>(sums[d]);
    }
  }
}

}  // namespace clefkit
