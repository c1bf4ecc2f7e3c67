#include "clefkit/kernels/lut6_linear.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/kernels/lut6_activations.h"
#include "clefkit/kernels/lut6_tables.h"
#include "clefkit/kernels/scratch_buffer.h"

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

// Groups of one output that are computed alike; with kInt8 they need not be neighbours.
struct Strip {
  const Lut6Output* output;
  std::array<std::size_t, kStripGroups> groups;
  std::size_t group_count;
};

struct Strips {
  std::vector<Strip> int16;
  std::vector<Strip> int8;
};

std::size_t palette_of(const Lut6Matrix& matrix, std::size_t group) {
  return group * kLut6GroupRows / matrix.shape().rows_per_palette;
}

bool is_on_grid(const Lut6Matrix& matrix, std::size_t group) {
  const std::size_t palette = palette_of(matrix, group);
  return make_lut6_int8_table(matrix.palette(palette), matrix.grid_scale(palette)).has_value();
}

Strips cut_into_strips(Lut6Format format, std::span<const Lut6Output> outputs) {
  Strips strips;
  for (const Lut6Output& output : outputs) {
    assert(lut6_linear_supports(output.matrix->shape()));
    Strip int16{&output, {}, 0}, int8{&output, {}, 0};
    const auto flush = [](Strip& strip, std::vector<Strip>& to) {
      if (strip.group_count != 0) to.push_back(strip);
      strip.group_count = 0;
    };
    for (std::size_t group = 0; group < output.matrix->shape().rows / kLut6GroupRows; ++group) {
      const bool as_int8 = format == Lut6Format::kInt8 && is_on_grid(*output.matrix, group);
      Strip& strip = as_int8 ? int8 : int16;
      strip.groups[strip.group_count++] = group;
      if (strip.group_count == kStripGroups) flush(strip, as_int8 ? strips.int8 : strips.int16);
    }
    flush(int16, strips.int16);
    flush(int8, strips.int8);
  }
  return strips;
}

template <typename Value>
const Lut6Arithmetic<Value>& arithmetic_of(const Lut6Kernels& kernels) {
  if constexpr (sizeof(Value) == 1) {
    return kernels.int8;
  } else {
    return kernels.int16;
  }
}

template <typename Value>
Lut6Table<Value> table_of(const Lut6Matrix& matrix, std::size_t group) {
  const std::size_t palette = palette_of(matrix, group);
  if constexpr (sizeof(Value) == 1) {
    return *make_lut6_int8_table(matrix.palette(palette), matrix.grid_scale(palette));
  } else {
    return make_lut6_int16_table(matrix.palette(palette), matrix.grid_scale(palette));
  }
}

// One strip times all tokens of a sweep.
template <typename Value>
class StripTask {
 public:
  StripTask(const Lut6Kernels& kernels, const Lut6Packed<Value>& x, const Strip& strip,
            std::byte* scratch)
      : arithmetic_(arithmetic_of<Value>(kernels)),
        panel_channels_(kernels.panel_channels),
        x_(x),
        strip_(strip),
        matrix_(*strip.output->matrix),
        panel_(reinterpret_cast<Value*>(scratch)),
        sums_(reinterpret_cast<float*>(scratch + panel_bytes(kernels))) {
    const std::span<const float> bias = strip.output->bias;
    for (std::size_t i = 0; i < strip.group_count; ++i) {
      tables_[i] = table_of<Value>(matrix_, strip.groups[i]);
      const std::size_t channel = strip.groups[i] * kLut6GroupRows;
      if (!bias.empty()) std::copy_n(&bias[channel], kLut6GroupRows, shifts_[i].begin());
    }
  }

  static std::size_t scratch_bytes(const Lut6Kernels& kernels, std::size_t tokens) {
    return panel_bytes(kernels) + tokens * kStripChannels * sizeof(float);
  }

  // Writes the strip's channels of all of y's tokens. A tile's results go out as soon as they are
  // whole: its sums are still near, and the next tile's products hide the writing.
  void run(MatrixView<float> y) {
    const Lut6Layout& layout = x_.layout;
    const std::size_t groups_per_panel = panel_channels_ / kLut6GroupRows;
    for (std::size_t column = 0; column < layout.columns(); column += kLut6PanelColumns) {
      const bool is_last = column + kLut6PanelColumns >= layout.columns();
      for (std::size_t first = 0; first < strip_.group_count; first += groups_per_panel) {
        const std::size_t end = std::min(first + groups_per_panel, strip_.group_count);
        for (std::size_t i = first; i < end; ++i) {
          decode(i, column, panel_ + (i - first) * kLut6GroupRows * kLut6Depth<Value>);
        }
        prefetch_after(end, column);
        for (std::size_t tile = 0; tile < layout.tile_count(); ++tile) {
          const std::size_t scales = layout.scales_offset(column, tile);
          const std::size_t token = layout.first_token(tile), tokens = layout.tile_tokens(tile);
          float* const sums = sums_of(first, token);
          if (column == 0) std::fill_n(sums, tokens * panel_channels_, 0.0f);
          arithmetic_.multiply({.panel = panel_,
                                .x = x_.values + layout.values_offset(column, tile),
                                .scales = x_.scales + scales,
                                .offsets = x_.offsets == nullptr ? nullptr : x_.offsets + scales,
                                .sums = sums,
                                .tokens = tokens,
                                .blocks = layout.panel_blocks(column)});
          if (is_last) write(sums, first, end, y.rows_from(token, tokens));
        }
      }
    }
  }

 private:
  static std::size_t panel_bytes(const Lut6Kernels& kernels) {
    return kLut6PanelColumns * kernels.panel_channels * sizeof(Value);
  }

  // Groups [first, end) of a panel, of the tokens that are y's rows: y = sums · scale + shift.
  void write(const float* sums, std::size_t first, std::size_t end, MatrixView<float> y) const {
    for (std::size_t token = 0; token < y.rows; ++token) {
      float* const row = y.row(token).data();
      for (std::size_t i = first; i < end; ++i) {
        write_group(sums + token * panel_channels_ + (i - first) * kLut6GroupRows, tables_[i].scale,
                    shifts_[i].data(), row + strip_.groups[i] * kLut6GroupRows);
      }
    }
  }

  static void write_group(const float* __restrict sums, float scale, const float* __restrict shift,
                          float* __restrict y) {
    for (std::size_t j = 0; j < kLut6GroupRows; ++j) y[j] = sums[j] * scale + shift[j];
  }

  // Sums lie panel by panel: rows of y, 16 KiB apart, would cost an address translation each.
  float* sums_of(std::size_t i, std::size_t token) const {
    const std::size_t panel = i * kLut6GroupRows / panel_channels_;
    return sums_ + (panel * x_.layout.tokens() + token) * panel_channels_;
  }

  // Group i of the strip.
  const std::uint8_t* packed_at(std::size_t i, std::size_t column) const {
    return matrix_.packed_row(strip_.groups[i] * kLut6GroupRows).data() + column / 4 * 3;
  }

  void decode(std::size_t i, std::size_t column, Value* out) const {
    const std::size_t row_bytes = matrix_.shape().bytes_per_row();
    const Value* const table = tables_[i].entries.data();
    const std::size_t left = matrix_.shape().columns - column;
    const std::size_t columns = std::min(left, kLut6PanelColumns);
    // The last columns of a row are decoded from a copy: the mapped file may end behind them.
    const std::size_t direct = left >= columns + kColumnsReadAhead
                                   ? columns
                                   : (std::max(left, kColumnsReadAhead) - kColumnsReadAhead) /
                                         kLut6DecodeColumns * kLut6DecodeColumns;
    if (direct != 0) {
      arithmetic_.decode({packed_at(i, column), row_bytes, direct}, table, out);
    }
    if (direct == columns) return;
    const std::size_t tail_columns = columns - direct;
    std::array<std::uint8_t, kLut6GroupRows * kTailBytes> tail{};
    for (std::size_t row = 0; row < kLut6GroupRows; ++row) {
      std::memcpy(&tail[row * kTailBytes], packed_at(i, column + direct) + row * row_bytes,
                  tail_columns / 4 * 3);
    }
    arithmetic_.decode({tail.data(), kTailBytes, align_up(tail_columns, kLut6DecodeColumns)}, table,
                       out + direct * panel_channels_);
  }

  // Rows of indices are far apart and read a few lines at a time, which no hardware foresees.
  void prefetch_after(std::size_t i, std::size_t column) const {
    if (i == strip_.group_count) {
      i = 0;
      column += kLut6PanelColumns;
    }
    const std::size_t columns = matrix_.shape().columns;
    if (column >= columns) return;
    const std::size_t bytes = std::min(kLut6PanelColumns, columns - column) / 4 * 3;
    const std::size_t end = std::min(i + panel_channels_ / kLut6GroupRows, strip_.group_count);
    for (; i < end; ++i) {
      for (std::size_t row = 0; row < kLut6GroupRows; ++row) {
        const std::uint8_t* const packed =
            packed_at(i, column) + row * matrix_.shape().bytes_per_row();
        for (std::size_t byte = 0; byte < bytes; byte += 64) {
          __builtin_prefetch(packed + byte, 0, 2);
        }
      }
    }
  }

  const Lut6Arithmetic<Value>& arithmetic_;
  std::size_t panel_channels_;
  const Lut6Packed<Value>& x_;
  const Strip& strip_;
  const Lut6Matrix& matrix_;
  std::array<Lut6Table<Value>, kStripGroups> tables_;
  std::array<std::array<float, kLut6GroupRows>, kStripGroups> shifts_{};
  Value* panel_;
  float* sums_;
};

// Memory of the calling thread, kept for its next call.
struct Scratch {
  ScratchBuffer int16, int8, workers;
};

template <typename Value>
Lut6Packed<Value> pack(const ComputeContext& context, MatrixView<const float> x,
                       ScratchBuffer& scratch) {
  const Lut6Layout layout(x.rows, x.columns, kLut6BlockColumns<Value>);
  const std::size_t value_bytes = align_up(layout.value_count() * sizeof(Value), 64);
  const std::size_t scale_bytes = align_up(layout.scale_count() * sizeof(float), 64);
  std::byte* const memory = scratch.reserve(value_bytes + 2 * scale_bytes);
  Lut6Packed<Value> packed{layout, reinterpret_cast<Value*>(memory),
                           reinterpret_cast<float*>(memory + value_bytes), nullptr};
  if constexpr (sizeof(Value) == 1) {
    packed.offsets = reinterpret_cast<std::int32_t*>(memory + value_bytes + scale_bytes);
  }
  pack_activations(context, x, packed);
  return packed;
}

struct Sweep {
  const Lut6Kernels& kernels;
  MatrixView<const float> x;
  std::size_t first_token;  // of x in the whole input, and so in y
};

template <typename Value>
void run(const ComputeContext& context, const Sweep& sweep, const std::vector<Strip>& strips,
         ScratchBuffer& packed_scratch, ScratchBuffer& worker_scratch) {
  if (strips.empty()) return;
  const Lut6Packed<Value> packed = pack<Value>(context, sweep.x, packed_scratch);
  const std::size_t worker_bytes =
      align_up(StripTask<Value>::scratch_bytes(sweep.kernels, sweep.x.rows), 4096);
  std::byte* const workers = worker_scratch.reserve(worker_bytes * context.executor.thread_count());
  context.parallel_for(strips.size(), [&](std::size_t index, std::size_t worker) {
    StripTask<Value> task(sweep.kernels, packed, strips[index], workers + worker * worker_bytes);
    task.run(strips[index].output->y.rows_from(sweep.first_token, sweep.x.rows));
  });
}

}  // namespace

bool lut6_linear_supports(const Lut6Matrix::Shape& shape) {
  return shape.rows_per_palette % kLut6GroupRows == 0;
}

void lut6_linear(const ComputeContext& context, const Lut6Kernels& kernels, Lut6Format format,
                 MatrixView<const float> x, std::span<const Lut6Output> outputs) {
  static thread_local Scratch scratch;
  const Strips strips = cut_into_strips(format, outputs);
  for (std::size_t first = 0; first < x.rows; first += kSweepTokens) {
    const Sweep sweep{kernels, x.rows_from(first, std::min(kSweepTokens, x.rows - first)), first};
    run<std::int16_t>(context, sweep, strips.int16, scratch.int16, scratch.workers);
    run<std::int8_t>(context, sweep, strips.int8, scratch.int8, scratch.workers);
  }
}

}  // namespace clefkit
