#include <cmath>
#include <vector>

#include "clefkit/kernels/delta_rule.h"

namespace clefkit {

void delta_rule_reference(const DeltaRuleShape& shape, const DeltaRuleInput& input,
                          std::span<float> state, MatrixView<float> out) {
  const std::size_t key_dim = shape.key_head_dim;
  const std::size_t value_dim = shape.value_head_dim;
  const std::size_t group = shape.value_heads / shape.key_heads;
  std::vector<double> s(key_dim * value_dim);
  std::vector<double> delta(value_dim);
  for (std::size_t head = 0; head < shape.value_heads; ++head) {
    const auto stored = state.subspan(head * s.size(), s.size());
    for (std::size_t i = 0; i < s.size(); ++i) s[i] = stored[i];
    for (std::size_t t = 0; t < out.rows; ++t) {
      const auto q = input.q.row(t).subspan(head / group * key_dim, key_dim);
      const auto k = input.k.row(t).subspan(head / group * key_dim, key_dim);
      const auto v = input.v.row(t).subspan(head * value_dim, value_dim);
      const auto o = out.row(t).subspan(head * value_dim, value_dim);
      const double decay = std::exp(double{input.g.row(t)[head]});
      for (double& element : s) element *= decay;
      for (std::size_t c = 0; c < value_dim; ++c) {
        double recalled = 0.0;
        for (std::size_t r = 0; r < key_dim; ++r) recalled += s[r * value_dim + c] * k[r];
        delta[c] = input.beta.row(t)[head] * (v[c] - recalled);
      }
      for (std::size_t r = 0; r < key_dim; ++r) {
        for (std::size_t c = 0; c < value_dim; ++c) s[r * value_dim + c] += k[r] * delta[c];
      }
      for (std::size_t c = 0; c < value_dim; ++c) {
        double sum = 0.0;
        for (std::size_t r = 0; r < key_dim; ++r) sum += s[r * value_dim + c] * q[r];
        o[c] = static_cast<float>(sum);
      }
    }
    for (std::size_t i = 0; i < s.size(); ++i) stored[i] = static_cast<float>(s[i]);
  }
}

}  // namespace clefkit
