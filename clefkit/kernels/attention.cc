#include "clefkit/kernels/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "clefkit/kernels/row_blocks.h"
#include "clefkit/kernels/simd_targets.h"
#include "clefkit/kernels/worker_scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/attention.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file anew for each instruction set.
#include <hwy/highway.h>

#include "clefkit/kernels/float_matmul-inl.h"
#include "clefkit/kernels/vector_math-inl.h"

#ifndef CLEFKIT_KERNELS_ATTENTION_CC_
#define CLEFKIT_KERNELS_ATTENTION_CC_
namespace clefkit {

// Keys taken at a time. Blocks start at multiples of it from the first key, wherever a call's
// queries start, so that a query's sums are the same however the sequence was cut into calls.
constexpr std::size_t kKeyBlock = 32;
// Query rows (tokens × the query heads of one key/value head) of one task, about.
constexpr std::size_t kQueryRows = 128;

// One task: `tokens` consecutive rows of q, and the query heads that share one key/value head.
// Its "query rows" are token-major: row r is head r % group of token r / group.
struct AttentionTask {
  const float* q;       // First token, first head of the group.
  const float* keys;    // First key of the sequence, this head.
  const float* values;  // The same for values.
  float* out;
  std::size_t q_stride, keys_stride, values_stride, out_stride;
  std::size_t tokens, group, head_dim;
  std::size_t keys_seen_by_first;  // Each later token sees `keys_step` more.
  std::size_t keys_step;           // 1 for causal attention, 0 without a mask.
  float scale;
};

// Scratch of one task; query rows and head dims are rounded up to whole panels.
struct AttentionScratch {
  AttentionScratch(float* first, std::size_t query_rows, std::size_t head_dim)
      : padded_rows(ScratchCursor::round_up(query_rows)),
        padded_dim(ScratchCursor::round_up(head_dim)) {
    ScratchCursor cursor(first);
    queries = cursor.take(padded_rows * head_dim);
    scores = cursor.take(kKeyBlock * padded_rows);
    keys = cursor.take(kKeyBlock * head_dim);
    values = cursor.take(kKeyBlock * padded_dim);
    sums = cursor.take(padded_rows * padded_dim);
    maxima = cursor.take(padded_rows);
    totals = cursor.take(padded_rows);
    corrections = cursor.take(padded_rows);
    size = static_cast<std::size_t>(corrections + padded_rows - first);
  }

  std::size_t padded_rows, padded_dim;
  float* queries;      // Panels of Qᵀ · scale: [head_dim, rows].
  float* scores;       // [kKeyBlock, padded_rows], then the weights in their place.
  float* keys;         // A block of K: [kKeyBlock, head_dim].
  float* values;       // Panels of a block of V: [kKeyBlock, head_dim].
  float* sums;         // [rows, padded_dim]: Σ weight · value so far.
  float* maxima;       // [rows]: largest score so far.
  float* totals;       // [rows]: Σ weight so far.
  float* corrections;  // [rows]: what the sums so far shrink by as the maximum grows.
  std::size_t size;    // Floats.
};

}  // namespace clefkit
#endif  // CLEFKIT_KERNELS_ATTENTION_CC_

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {

// Scores of one block become weights relative to the new maxima. Scores are held key by key, so
// that a lane is a query row and nothing crosses lanes.
HWY_NOINLINE void softmax_block(const AttentionScratch& scratch, std::size_t rows,
                                std::size_t keys) {
  const FloatTag d;
  for (std::size_t row = 0; row < rows; row += hn::Lanes(d)) {
    float* const column = scratch.scores + row;
    const auto old_maximum = hn::Load(d, scratch.maxima + row);
    // A NaN that Max drops still makes its own weight NaN, and so the row's total and sums.
    auto maximum = old_maximum;
    for (std::size_t key = 0; key < keys; ++key) {
      maximum = hn::Max(maximum, hn::Load(d, column + key * scratch.padded_rows));
    }
    auto total = hn::Zero(d);
    for (std::size_t key = 0; key < keys; ++key) {
      float* const score = column + key * scratch.padded_rows;
      const auto weight = exp_or_zero(d, hn::Sub(hn::Load(d, score), maximum));
      hn::Store(weight, d, score);
      total = hn::Add(total, weight);
    }
    const auto correction = exp_or_zero(d, hn::Sub(old_maximum, maximum));
    hn::Store(maximum, d, scratch.maxima + row);
    hn::Store(correction, d, scratch.corrections + row);
    hn::Store(hn::MulAdd(hn::Load(d, scratch.totals + row), correction, total), d,
              scratch.totals + row);
  }
}

HWY_NOINLINE void scale_sums(const AttentionScratch& scratch, std::size_t rows,
                             std::size_t head_dim) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float correction = scratch.corrections[row];
    if (correction == 1.0f) continue;
    float* const sums = scratch.sums + row * scratch.padded_dim;
    const auto scale = [correction](FloatVector v)
                           HWY_ATTR { return hn::Mul(v, hn::Set(FloatTag(), correction)); };
    map_values(head_dim, scale, sums, sums);
  }
}

// Keys [first, first + keys) that a query row may not see get a score of −∞, a weight of zero.
HWY_INLINE void mask_scores(const AttentionTask& task, const AttentionScratch& scratch,
                            std::size_t first, std::size_t keys) {
  if (task.keys_step == 0) return;
  for (std::size_t key = 0; key < keys; ++key) {
    if (first + key < task.keys_seen_by_first) continue;
    const std::size_t blind_tokens = first + key - task.keys_seen_by_first + 1;
    std::fill_n(scratch.scores + key * scratch.padded_rows, blind_tokens * task.group,
                -std::numeric_limits<float>::infinity());
  }
}

// Query rows as columns of panels, zeros in the padding.
HWY_INLINE void pack_queries(const AttentionTask& task, const AttentionScratch& scratch) {
  const std::size_t width = panel_width();
  const std::size_t rows = task.tokens * task.group;
  std::fill_n(scratch.queries, scratch.padded_rows * task.head_dim, 0.0f);
  for (std::size_t row = 0; row < rows; ++row) {
    const float* const from =
        task.q + row / task.group * task.q_stride + row % task.group * task.head_dim;
    float* const to = scratch.queries + row / width * width * task.head_dim + row % width;
    for (std::size_t k = 0; k < task.head_dim; ++k) to[k * width] = from[k] * task.scale;
  }
}

void attend(const AttentionTask& task, float* scratch_memory) {
  const std::size_t rows = task.tokens * task.group;
  const AttentionScratch scratch(scratch_memory, rows, task.head_dim);
  const std::size_t width = panel_width();
  std::fill_n(scratch.maxima, scratch.padded_rows, -std::numeric_limits<float>::infinity());
  std::fill_n(scratch.totals, scratch.padded_rows, 0.0f);
  pack_queries(task, scratch);

  const std::size_t all_keys = task.keys_seen_by_first + (task.tokens - 1) * task.keys_step;
  for (std::size_t first = 0; first < all_keys; first += kKeyBlock) {
    const std::size_t keys = std::min(kKeyBlock, all_keys - first);
    // Rows of the cache lie a power of two apart and would evict each other: a copy is cheaper.
    for (std::size_t key = 0; key < keys; ++key) {
      std::copy_n(task.keys + (first + key) * task.keys_stride, task.head_dim,
                  scratch.keys + key * task.head_dim);
    }
    multiply<Update::kReplace>({scratch.keys, task.head_dim, 1}, keys, task.head_dim,
                               {scratch.queries, width * task.head_dim}, rows,
                               {scratch.scores, scratch.padded_rows, width});
    mask_scores(task, scratch, first, keys);
    softmax_block(scratch, rows, keys);
    pack_panels(task.values + first * task.values_stride, task.values_stride, keys, task.head_dim,
                scratch.values, width * kKeyBlock);
    const LeftOperand weights{scratch.scores, 1, scratch.padded_rows};
    const RightPanels values{scratch.values, width * kKeyBlock};
    const Result sums{scratch.sums, scratch.padded_dim, width};
    if (first == 0) {
      multiply<Update::kReplace>(weights, rows, keys, values, task.head_dim, sums);
    } else {
      scale_sums(scratch, rows, task.head_dim);
      multiply<Update::kAdd>(weights, rows, keys, values, task.head_dim, sums);
    }
  }

  for (std::size_t row = 0; row < rows; ++row) {
    const float factor = 1.0f / scratch.totals[row];
    const auto scale = [factor](FloatVector v)
                           HWY_ATTR { return hn::Mul(v, hn::Set(FloatTag(), factor)); };
    float* const to =
        task.out + row / task.group * task.out_stride + row % task.group * task.head_dim;
    map_values(task.head_dim, scale, to, scratch.sums + row * scratch.padded_dim);
  }
}

void rotate_head(float* x, const float* cosines, const float* sines, std::size_t half) {
  const FloatTag d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= half; i += lanes) {
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + half + i);
    const auto cosine = hn::LoadU(d, cosines + i);
    const auto sine = hn::LoadU(d, sines + i);
    hn::StoreU(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, x + i);
    hn::StoreU(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, x + half + i);
  }
  for (; i < half; ++i) {
    const float a = x[i];
    const float b = x[half + i];
    x[i] = a * cosines[i] - b * sines[i];
    x[half + i] = b * cosines[i] + a * sines[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {

HWY_EXPORT(attend);
HWY_EXPORT(rotate_head);

namespace {

void attention(const ComputeContext& context, const AttentionShape& shape,
               MatrixView<const float> q, MatrixView<const float> keys,
               MatrixView<const float> values, std::size_t keys_seen_by_first,
               std::size_t keys_step, MatrixView<float> out) {
  assert(shape.query_heads % shape.kv_heads == 0);
  assert(q.columns == shape.query_heads * shape.head_dim && out.columns == q.columns);
  assert(keys.columns == shape.kv_heads * shape.head_dim && values.columns == keys.columns);
  assert(out.rows == q.rows && values.rows == keys.rows && keys.rows > 0);
  const std::size_t group = shape.query_heads / shape.kv_heads;
  const std::size_t tokens_per_task = std::max<std::size_t>(1, kQueryRows / group);
  const std::size_t token_blocks = (q.rows + tokens_per_task - 1) / tokens_per_task;
  WorkerScratch scratch(context.executor.thread_count(),
                        AttentionScratch(nullptr, tokens_per_task * group, shape.head_dim).size);
  // Consecutive tasks share a key/value head, whose keys then stay in the cache.
  context.parallel_for(shape.kv_heads * token_blocks, [&](std::size_t index, std::size_t worker) {
    const std::size_t head = index / token_blocks;
    const std::size_t first = index % token_blocks * tokens_per_task;
    const AttentionTask task{
        .q = q.row(first).data() + head * group * shape.head_dim,
        .keys = keys.data + head * shape.head_dim,
        .values = values.data + head * shape.head_dim,
        .out = out.row(first).data() + head * group * shape.head_dim,
        .q_stride = q.stride,
        .keys_stride = keys.stride,
        .values_stride = values.stride,
        .out_stride = out.stride,
        .tokens = std::min(tokens_per_task, q.rows - first),
        .group = group,
        .head_dim = shape.head_dim,
        .keys_seen_by_first = keys_seen_by_first + first * keys_step,
        .keys_step = keys_step,
        .scale = shape.scale,
    };
    HWY_DYNAMIC_DISPATCH(attend)(task, scratch.of(worker));
  });
}

}  // namespace

void causal_attention(const ComputeContext& context, const AttentionShape& shape,
                      MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, MatrixView<float> out) {
  const StageTimer timer(context.times, "attention");
  if (q.rows == 0) return;
  assert(keys.rows >= q.rows);
  attention(context, shape, q, keys, values, keys.rows - q.rows + 1, 1, out);
}

void full_attention(const ComputeContext& context, const AttentionShape& shape,
                    MatrixView<const float> q, MatrixView<const float> keys,
                    MatrixView<const float> values, MatrixView<float> out) {
  const StageTimer timer(context.times, "attention");
  if (q.rows == 0) return;
  attention(context, shape, q, keys, values, keys.rows, 0, out);
}

void apply_rotary(const ComputeContext& context, MatrixView<float> x, std::size_t heads,
                  std::size_t head_dim, MatrixView<const float> cosines,
                  MatrixView<const float> sines) {
  const StageTimer timer(context.times, "attention");
  assert(x.columns == heads * head_dim && 2 * cosines.columns <= head_dim);
  assert(cosines.rows == x.rows && sines.rows == x.rows && sines.columns == cosines.columns);
  for_each_row(context, x.rows, x.columns, [&](std::size_t row) {
    for (std::size_t head = 0; head < heads; ++head) {
      HWY_DYNAMIC_DISPATCH(rotate_head)
      (x.row(row).data() + head * head_dim, cosines.row(row).data(), sines.row(row).data(),
       cosines.columns);
    }
  });
}

}  // namespace clefkit
#endif  // HWY_ONCE
