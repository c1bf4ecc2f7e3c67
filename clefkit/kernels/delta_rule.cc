#include "clefkit/kernels/delta_rule.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "clefkit/kernels/simd_targets.h"
#include "clefkit/kernels/worker_scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/delta_rule.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file anew for each instruction set.
#include <hwy/highway.h>

#include "clefkit/kernels/float_matmul-inl.h"
#include "clefkit/kernels/vector_math-inl.h"

#ifndef CLEFKIT_KERNELS_DELTA_RULE_CC_
#define CLEFKIT_KERNELS_DELTA_RULE_CC_
namespace clefkit {

constexpr std::size_t kSubChunk = 64;  // Tokens.

// One value head over all tokens of a call.
struct DeltaRuleTask {
  MatrixView<const float> q, k, v;  // [tokens, a head's dim]
  MatrixView<const float> beta, g;  // [tokens, 1]
  float* state;                     // [key dim, value dim]
  MatrixView<float> out;            // [tokens, value dim]
};

// Scratch of one task. "Panels" are those of float_matmul-inl.h.
struct DeltaRuleScratch {
  DeltaRuleScratch(float* first, std::size_t key_dim, std::size_t value_dim)
      : padded_key_dim(ScratchCursor::round_up(key_dim)) {
    const std::size_t padded_value_dim = ScratchCursor::round_up(value_dim);
    ScratchCursor cursor(first);
    state = cursor.take(key_dim * padded_value_dim);
    q = cursor.take(kSubChunk * padded_key_dim);
    k = cursor.take(kSubChunk * padded_key_dim);
    k_transposed = cursor.take(key_dim * kSubChunk);
    corrections = cursor.take(kSubChunk * kSubChunk);
    attention = cursor.take(kSubChunk * kSubChunk);
    delta = cursor.take(kSubChunk * padded_value_dim);
    out = cursor.take(kSubChunk * padded_value_dim);
    size = static_cast<std::size_t>(out + kSubChunk * padded_value_dim - first);
  }

  std::size_t padded_key_dim;
  float* state;         // Panels [key dim, value dim].
  float* q;             // [kSubChunk, padded key dim]
  float* k;             // The same.
  float* k_transposed;  // Panels [key dim, kSubChunk].
  float* corrections;   // [kSubChunk, kSubChunk]: −A of model.md 2.2, strictly lower.
  float* attention;     // [kSubChunk, kSubChunk]: (Q Kᵀ) ⊙ D, lower with its diagonal.
  float* delta;         // Panels [kSubChunk, value dim]: V'.
  float* out;           // Panels [kSubChunk, value dim].
  std::size_t size;     // Floats.
};

}  // namespace clefkit
#endif  // CLEFKIT_KERNELS_DELTA_RULE_CC_

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {

// One sub-chunk of one head. With S the state before it, the method is
//   V' = (I + A)⁻¹ diag(β) (V − diag(e^G) K S),
//   O  = diag(e^G) Q S + ((Q Kᵀ) ⊙ D) V',
//   S ← e^{G_last} S + Kᵀ diag(e^{G_last − G}) V':
// model.md's form with W S folded into the right-hand side, which saves one of its two solves.
class SubChunk {
 public:
  SubChunk(const DeltaRuleTask& task, const DeltaRuleScratch& scratch, std::size_t first)
      : task_(task),
        scratch_(scratch),
        first_(first),
        tokens_(std::min(kSubChunk, task.out.rows - first)),
        key_dim_(task.k.columns),
        value_dim_(task.v.columns),
        state_{scratch.state, key_dim_ * panel_width()},
        delta_{scratch.delta, kSubChunk * panel_width()} {
    double sum = 0.0;
    for (std::size_t i = 0; i < tokens_; ++i) log_decay_[i] = sum += task.g.row(first + i)[0];
  }

  void run() {
    load_inputs();
    make_triangles();
    make_right_hand_side();
    solve();
    make_output();
    update_state();
  }

 private:
  void load_inputs() {
    for (std::size_t i = 0; i < tokens_; ++i) {
      std::copy_n(task_.q.row(first_ + i).data(), key_dim_,
                  scratch_.q + i * scratch_.padded_key_dim);
      std::copy_n(task_.k.row(first_ + i).data(), key_dim_,
                  scratch_.k + i * scratch_.padded_key_dim);
    }
    pack_transposed_panels(scratch_.k, scratch_.padded_key_dim, tokens_, key_dim_,
                           scratch_.k_transposed, key_dim_ * panel_width());
  }

  // K Kᵀ and Q Kᵀ up to the diagonal's tiles, then −β and D over them row by row.
  void make_triangles() {
    const RightPanels keys{scratch_.k_transposed, key_dim_ * panel_width()};
    for (std::size_t i = 0; i < tokens_; i += kTileRows) {
      const std::size_t rows = std::min(kTileRows, tokens_ - i);
      multiply<Update::kReplace>(rows_of(scratch_.k, i), rows, key_dim_, keys, i + rows,
                                 {scratch_.corrections + i * kSubChunk, kSubChunk, panel_width()});
      multiply<Update::kReplace>(rows_of(scratch_.q, i), rows, key_dim_, keys, i + rows,
                                 {scratch_.attention + i * kSubChunk, kSubChunk, panel_width()});
    }
    HWY_ALIGN float decays[kSubChunk];
    for (std::size_t i = 0; i < tokens_; ++i) {
      // Only j ≤ i, where the exponent is at most zero. The difference is taken in double: G may be
      // thousands where it is near zero.
      for (std::size_t j = 0; j <= i; ++j) {
        decays[j] = static_cast<float>(log_decay_[i] - log_decay_[j]);
      }
      const auto exponential = [](FloatVector x) HWY_ATTR { return exp_or_zero(FloatTag(), x); };
      map_values(i + 1, exponential, decays, decays);
      float* const attention = scratch_.attention + i * kSubChunk;
      const auto product = [](FloatVector x, FloatVector y) HWY_ATTR { return hn::Mul(x, y); };
      map_values(i + 1, product, attention, attention, decays);
      const float minus_beta = -task_.beta.row(first_ + i)[0];
      float* const corrections = scratch_.corrections + i * kSubChunk;
      const auto correction = [minus_beta](FloatVector x, FloatVector y) HWY_ATTR {
        return hn::Mul(hn::Mul(x, y), hn::Set(FloatTag(), minus_beta));
      };
      map_values(i, correction, corrections, corrections, decays);
    }
  }

  // delta = diag(β) (V − diag(e^G) K S)
  void make_right_hand_side() {
    multiply<Update::kReplace>(rows_of(scratch_.k, 0), tokens_, key_dim_, state_, value_dim_,
                               result(scratch_.delta));
    for (std::size_t i = 0; i < tokens_; ++i) {
      const float beta = task_.beta.row(first_ + i)[0];
      const auto gain = static_cast<float>(std::exp(log_decay_[i]));
      const auto difference = [beta, gain](FloatVector recalled, FloatVector value) HWY_ATTR {
        const FloatTag d;
        return hn::Mul(hn::Set(d, beta), hn::NegMulAdd(hn::Set(d, gain), recalled, value));
      };
      const float* const value = task_.v.row(first_ + i).data();
      for_each_panel([&](std::size_t panel, std::size_t first, std::size_t count) {
        float* const row = scratch_.delta + panel * delta_.panel_step + i * panel_width();
        map_values(count, difference, row, row, value + first);
      });
    }
  }

  // Forward substitution by blocks of rows: earlier blocks by a product, the block itself row by
  // row.
  void solve() {
    const std::size_t width = panel_width();
    for (std::size_t block = 0; block < tokens_; block += kTileRows) {
      const std::size_t rows = std::min(kTileRows, tokens_ - block);
      multiply<Update::kAdd>({scratch_.corrections + block * kSubChunk, kSubChunk, 1}, rows, block,
                             delta_, value_dim_, result(scratch_.delta + block * width));
      for_each_panel([&](std::size_t panel, std::size_t, std::size_t count) {
        float* const to = scratch_.delta + panel * delta_.panel_step + block * width;
        for (std::size_t i = 1; i < rows; ++i) {
          for (std::size_t j = 0; j < i; ++j) {
            const float factor = scratch_.corrections[(block + i) * kSubChunk + block + j];
            const auto add = [factor](FloatVector sum, FloatVector row) HWY_ATTR {
              return hn::MulAdd(hn::Set(FloatTag(), factor), row, sum);
            };
            map_values(count, add, to + i * width, to + i * width, to + j * width);
          }
        }
      });
    }
  }

  void make_output() {
    for (std::size_t i = 0; i < tokens_; ++i) {
      scale_values(scratch_.q + i * scratch_.padded_key_dim, key_dim_,
                   static_cast<float>(std::exp(log_decay_[i])));
    }
    multiply<Update::kReplace>(rows_of(scratch_.q, 0), tokens_, key_dim_, state_, value_dim_,
                               result(scratch_.out));
    for (std::size_t i = 0; i < tokens_; i += kTileRows) {
      // The tile's rows end at its last row's diagonal; what lies above the others' must be zero.
      const std::size_t rows = std::min(kTileRows, tokens_ - i);
      float* const attention = scratch_.attention + i * kSubChunk;
      for (std::size_t row = 0; row < rows; ++row) {
        std::fill(attention + row * kSubChunk + i + row + 1, attention + row * kSubChunk + i + rows,
                  0.0f);
      }
      multiply<Update::kAdd>({attention, kSubChunk, 1}, rows, i + rows, delta_, value_dim_,
                             result(scratch_.out + i * panel_width()));
    }
    for_each_panel([&](std::size_t panel, std::size_t first, std::size_t count) {
      const float* const from = scratch_.out + panel * delta_.panel_step;
      for (std::size_t i = 0; i < tokens_; ++i) {
        std::copy_n(from + i * panel_width(), count, task_.out.row(first_ + i).data() + first);
      }
    });
  }

  void update_state() {
    const std::size_t last = tokens_ - 1;
    for (std::size_t i = 0; i < tokens_; ++i) {
      const auto factor = static_cast<float>(std::exp(log_decay_[last] - log_decay_[i]));
      for_each_panel([&](std::size_t panel, std::size_t, std::size_t count) {
        scale_values(scratch_.delta + panel * delta_.panel_step + i * panel_width(), count, factor);
      });
    }
    const auto kept = static_cast<float>(std::exp(log_decay_[last]));
    for_each_panel([&](std::size_t panel, std::size_t, std::size_t) {
      scale_values(scratch_.state + panel * state_.panel_step, state_.panel_step, kept);
    });
    multiply<Update::kAdd>({scratch_.k, 1, scratch_.padded_key_dim}, key_dim_, tokens_, delta_,
                           value_dim_, {scratch_.state, panel_width(), state_.panel_step});
  }

  LeftOperand rows_of(const float* matrix, std::size_t row) const {
    return {matrix + row * scratch_.padded_key_dim, scratch_.padded_key_dim, 1};
  }

  Result result(float* panels) const { return {panels, panel_width(), delta_.panel_step}; }

  // body(panel, first column, columns) for the panels over the value dim.
  template <typename Body>
  HWY_INLINE void for_each_panel(const Body& body) const {
    const std::size_t width = panel_width();
    for (std::size_t first = 0; first < value_dim_; first += width) {
      body(first / width, first, std::min(width, value_dim_ - first));
    }
  }

  static HWY_INLINE void scale_values(float* values, std::size_t count, float factor) {
    const auto scale = [factor](FloatVector v)
                           HWY_ATTR { return hn::Mul(v, hn::Set(FloatTag(), factor)); };
    map_values(count, scale, values, values);
  }

  const DeltaRuleTask& task_;
  const DeltaRuleScratch& scratch_;
  std::size_t first_, tokens_;
  std::size_t key_dim_, value_dim_;
  RightPanels state_, delta_;
  double log_decay_[kSubChunk] = {};  // G: Σ g from the sub-chunk's first token.
};

void run_delta_rule(const DeltaRuleTask& task, float* scratch_memory) {
  const std::size_t key_dim = task.k.columns;
  const std::size_t value_dim = task.v.columns;
  const DeltaRuleScratch scratch(scratch_memory, key_dim, value_dim);
  const std::size_t panel_step = key_dim * panel_width();
  pack_panels(task.state, value_dim, key_dim, value_dim, scratch.state, panel_step);
  for (std::size_t first = 0; first < task.out.rows; first += kSubChunk) {
    SubChunk(task, scratch, first).run();
  }
  unpack_panels(scratch.state, panel_step, key_dim, value_dim, task.state, value_dim);
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {

HWY_EXPORT(run_delta_rule);

void delta_rule(const ComputeContext& context, const DeltaRuleShape& shape,
                const DeltaRuleInput& input, std::span<float> state, MatrixView<float> out) {
  const StageTimer timer(context.times, "delta rule");
  const std::size_t key_dim = shape.key_head_dim;
  const std::size_t value_dim = shape.value_head_dim;
  assert(shape.value_heads % shape.key_heads == 0 && state.size() == shape.state_size());
  assert(input.q.columns == shape.key_heads * key_dim && input.k.columns == input.q.columns);
  assert(input.v.columns == shape.value_heads * value_dim && out.columns == input.v.columns);
  if (out.rows == 0) return;
  const std::size_t group = shape.value_heads / shape.key_heads;
  WorkerScratch scratch(context.executor.thread_count(),
                        DeltaRuleScratch(nullptr, key_dim, value_dim).size);
  context.parallel_for(shape.value_heads, [&](std::size_t head, std::size_t worker) {
    const DeltaRuleTask task{
        .q = input.q.columns_from(head / group * key_dim, key_dim),
        .k = input.k.columns_from(head / group * key_dim, key_dim),
        .v = input.v.columns_from(head * value_dim, value_dim),
        .beta = input.beta.columns_from(head, 1),
        .g = input.g.columns_from(head, 1),
        .state = state.data() + head * key_dim * value_dim,
        .out = out.columns_from(head * value_dim, value_dim),
    };
    HWY_DYNAMIC_DISPATCH(run_delta_rule)(task, scratch.of(worker));
  });
}

}  // namespace clefkit
#endif  // HWY_ONCE
