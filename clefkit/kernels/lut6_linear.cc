#include "clefkit/kernels/lut6_linear.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/kernels/lut6_activations.h"
#include "clefkit/kernels/lut6_scratch.h"
#include "clefkit/kernels/lut6_tables.h"

namespace clefkit {
namespace {

// Tokens that share one decoding of the weights, which then is 3 % of the time.
constexpr std::size_t kSweepTokens = 512;
// Channels of one task: some 5 ms at 512 tokens and 4,096 columns. Their sums fit the second-level
// cache beside one panel of columns of all activations.
constexpr std::size_t kStripGroups = 4;
constexpr std::size_t kStripChannels = kStripGroups * kLut6GroupRows;
// Of a row's end: up to 20 columns, decoded as 32, and the bytes that decoders read ahead.
constexpr std::size_t kTailBytes = 32;
constexpr std::size_t kColumnsReadAhead = 8;  // At least 4 bytes.

struct Strip {
  const Lut6Output* output;
  std::size_t first_group;
  std::size_t group_count;
};

std::vector<Strip> cut_into_strips(std::span<const Lut6Output> outputs) {
  std::vector<Strip> strips;
  for (const Lut6Output& output : outputs) {
    const std::size_t groups = output.matrix->shape().rows / kLut6GroupRows;
    for (std::size_t first = 0; first < groups; first += kStripGroups) {
      strips.push_back({&output, first, std::min(kStripGroups, groups - first)});
    }
  }
  return strips;
}

// One strip times all tokens of a sweep.
class StripTask {
 public:
  StripTask(const Lut6Kernels& kernels, const Lut6Layout& layout, const Strip& strip,
            std::byte* scratch)
      : kernels_(kernels), layout_(layout), strip_(strip), matrix_(*strip.output->matrix) {
    panel_ = reinterpret_cast<std::int16_t*>(scratch);
    sums_ = reinterpret_cast<float*>(scratch + panel_bytes(kernels));
    for (std::size_t group = 0; group < strip.group_count; ++group) {
      const std::size_t palette =
          (strip.first_group + group) * kLut6GroupRows / matrix_.shape().rows_per_palette;
      tables_[group] = make_lut6_int16_table(matrix_.palette(palette), matrix_.grid_scale(palette));
    }
  }

  static std::size_t scratch_bytes(const Lut6Kernels& kernels, std::size_t tokens) {
    return panel_bytes(kernels) + tokens * kStripChannels * sizeof(float);
  }

  void multiply(const std::int16_t* values, const float* scales) {
    const std::size_t groups_per_panel = kernels_.panel_channels / kLut6GroupRows;
    std::fill_n(sums_, layout_.tokens() * kStripChannels, 0.0f);
    for (std::size_t column = 0; column < layout_.columns(); column += kLut6PanelColumns) {
      for (std::size_t group = 0; group < strip_.group_count; group += groups_per_panel) {
        const std::size_t end = std::min(group + groups_per_panel, strip_.group_count);
        for (std::size_t i = group; i < end; ++i) {
          decode(i, column, panel_ + (i - group) * kLut6GroupRows * 2);
        }
        prefetch_after(end, column);
        for (std::size_t tile = 0; tile < layout_.tile_count(); ++tile) {
          kernels_.multiply_int16({.panel = panel_,
                                   .x = values + layout_.values_offset(column, tile),
                                   .scales = scales + layout_.scales_offset(column, tile),
                                   .sums = sums_of(group, layout_.first_token(tile)),
                                   .tokens = layout_.tile_tokens(tile),
                                   .blocks = layout_.panel_blocks(column)});
        }
      }
    }
  }

  void write(MatrixView<float> y) const {
    const std::size_t first_channel = strip_.first_group * kLut6GroupRows;
    const std::span<const float> bias = strip_.output->bias;
    std::array<float, kStripChannels> scale{}, shift{};
    for (std::size_t i = 0; i < strip_.group_count * kLut6GroupRows; ++i) {
      scale[i] = tables_[i / kLut6GroupRows].scale;
      if (!bias.empty()) shift[i] = bias[first_channel + i];
    }
    const std::size_t panel_channels = kernels_.panel_channels;
    for (std::size_t token = 0; token < layout_.tokens(); ++token) {
      float* const out = y.row(token).data() + first_channel;
      for (std::size_t group = 0; group < strip_.group_count; ++group) {
        const std::size_t channel = group * kLut6GroupRows;
        const float* const sums = sums_of(group, token) + channel % panel_channels;
        for (std::size_t i = 0; i < kLut6GroupRows; ++i) {
          out[channel + i] = sums[i] * scale[channel + i] + shift[channel + i];
        }
      }
    }
  }

 private:
  static std::size_t panel_bytes(const Lut6Kernels& kernels) {
    return kLut6PanelColumns * kernels.panel_channels * sizeof(std::int16_t);
  }

  // Sums lie panel by panel: rows of y, 16 KiB apart, would cost an address translation each.
  float* sums_of(std::size_t group, std::size_t token) const {
    const std::size_t panel = group * kLut6GroupRows / kernels_.panel_channels;
    return sums_ + (panel * layout_.tokens() + token) * kernels_.panel_channels;
  }

  const std::uint8_t* packed_at(std::size_t group, std::size_t column) const {
    const std::size_t row = (strip_.first_group + group) * kLut6GroupRows;
    return matrix_.packed_indices().data() + row * matrix_.shape().bytes_per_row() + column / 4 * 3;
  }

  void decode(std::size_t group, std::size_t column, std::int16_t* out) const {
    const std::size_t row_bytes = matrix_.shape().bytes_per_row();
    const std::int16_t* const table = tables_[group].entries.data();
    const std::size_t left = matrix_.shape().columns - column;
    const std::size_t columns = std::min(left, kLut6PanelColumns);
    // The last columns of a row are decoded from a copy: the mapped file may end behind them.
    const std::size_t direct = left >= columns + kColumnsReadAhead
                                   ? columns
                                   : (std::max(left, kColumnsReadAhead) - kColumnsReadAhead) /
                                         kLut6DecodeColumns * kLut6DecodeColumns;
    if (direct != 0) {
      kernels_.decode_int16({packed_at(group, column), row_bytes, direct}, table, out);
    }
    if (direct == columns) return;
    const std::size_t tail_columns = columns - direct;
    std::array<std::uint8_t, kLut6GroupRows * kTailBytes> tail{};
    for (std::size_t row = 0; row < kLut6GroupRows; ++row) {
      std::memcpy(&tail[row * kTailBytes], packed_at(group, column + direct) + row * row_bytes,
                  tail_columns / 4 * 3);
    }
    kernels_.decode_int16({tail.data(), kTailBytes, align_up(tail_columns, kLut6DecodeColumns)},
                          table, out + direct * kernels_.panel_channels);
  }

  // Rows of indices are far apart and read a few lines at a time, which no hardware foresees.
  void prefetch_after(std::size_t group, std::size_t column) const {
    if (group == strip_.group_count) {
      group = 0;
      column += kLut6PanelColumns;
    }
    const std::size_t columns = matrix_.shape().columns;
    if (column >= columns) return;
    const std::size_t bytes = std::min(kLut6PanelColumns, columns - column) / 4 * 3;
    const std::size_t end =
        std::min(group + kernels_.panel_channels / kLut6GroupRows, strip_.group_count);
    for (std::size_t row = 0; row < (end - group) * kLut6GroupRows; ++row) {
      const std::uint8_t* const packed =
          packed_at(group, column) + row * matrix_.shape().bytes_per_row();
      for (std::size_t i = 0; i < bytes; i += 64) __builtin_prefetch(packed + i, 0, 2);
    }
  }

  const Lut6Kernels& kernels_;
  const Lut6Layout& layout_;
  const Strip& strip_;
  const Lut6Matrix& matrix_;
  std::array<Lut6Int16Table, kStripGroups> tables_;
  std::int16_t* panel_;
  float* sums_;
};

}  // namespace

bool lut6_linear_supports(const Lut6Matrix::Shape& shape) {
  return shape.rows_per_palette % kLut6GroupRows == 0;
}

void lut6_linear(const ComputeContext& context, const Lut6Kernels& kernels,
                 MatrixView<const float> x, std::span<const Lut6Output> outputs) {
  static thread_local ScratchBuffer packed_scratch, worker_scratch;
  const std::vector<Strip> strips = cut_into_strips(outputs);
  for (std::size_t first = 0; first < x.rows; first += kSweepTokens) {
    const std::size_t tokens = std::min(kSweepTokens, x.rows - first);
    const Lut6Layout layout(tokens, x.columns, kLut6Int16BlockColumns);
    const std::size_t value_bytes = align_up(layout.value_count() * sizeof(std::int16_t), 64);
    std::byte* const packed =
        packed_scratch.reserve(value_bytes + layout.scale_count() * sizeof(float));
    auto* const values = reinterpret_cast<std::int16_t*>(packed);
    auto* const scales = reinterpret_cast<float*>(packed + value_bytes);
    pack_activations(context, x.rows_from(first, tokens), layout, values, scales);

    const std::size_t worker_bytes = align_up(StripTask::scratch_bytes(kernels, tokens), 4096);
    std::byte* const workers =
        worker_scratch.reserve(worker_bytes * context.executor.thread_count());
    context.parallel_for(strips.size(), [&](std::size_t index, std::size_t worker) {
      const Strip& strip = strips[index];
      assert(lut6_linear_supports(strip.output->matrix->shape()));
      StripTask task(kernels, layout, strip, workers + worker * worker_bytes);
      task.multiply(values, scales);
      task.write(strip.output->y.rows_from(first, tokens));
    });
  }
}

}  // namespace clefkit
