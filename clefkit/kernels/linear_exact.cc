#include "clefkit/kernels/linear_exact.h"

#include <algorithm>
#include <vector>

#include "clefkit/kernels/panel_kernels.h"
#include "clefkit/kernels/scratch_buffer.h"

namespace clefkit {
namespace {

// Tokens that share one sweep over the weights: decoding is then about 3 % of the work.
constexpr std::size_t kMaxSweepTokens = 512;
// A task's channels share a pass over packed x; their sums stay in the level-2 cache.
constexpr std::size_t kTaskChannels = 128;
// About 10 ms at 50 G multiply-adds a second, so that cancelling is prompt.
constexpr std::size_t kMaxTaskProducts = std::size_t{1} << 29;
// Enough tasks for every processor of a desktop machine, unless they would become tiny.
constexpr std::size_t kWantedTasks = 16;
constexpr std::size_t kMinTaskProducts = std::size_t{1} << 20;
// Below this, packing is not worth waking other threads.
constexpr std::size_t kMinParallelPack = std::size_t{1} << 16;
// While x is so small, it is better to read whole rows of weights than to go through x once.
constexpr std::size_t kCachedX = std::size_t{1} << 15;

constexpr std::size_t ceil_divide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// Kept between calls: fresh pages each time would cost more than small products.
float* reserve_floats(ScratchBuffer& buffer, std::size_t count) {
  return reinterpret_cast<float*>(buffer.reserve(count * sizeof(float)));
}

// x, packed for multiply_panel: one part of [columns · tokens] for each kPanelColumns columns.
class PackedX {
 public:
  PackedX(const ComputeContext& context, MatrixView<const float> x, const TokenTiles& tiles,
          float* memory)
      : tiles_(tiles), columns_(x.columns), memory_(memory) {
    const std::size_t parts = ceil_divide(columns_, kPanelColumns);
    if (x.rows * columns_ < kMinParallelPack) {
      for (std::size_t part = 0; part < parts; ++part) pack(x, part);
    } else {
      context.parallel_for(parts, [&](std::size_t part, std::size_t) { pack(x, part); });
    }
  }

  std::size_t columns() const { return columns_; }
  const TokenTiles& tiles() const { return tiles_; }
  const float* part(std::size_t first_column) const {
    return memory_ + first_column * tiles_.tokens;
  }

 private:
  void pack(MatrixView<const float> x, std::size_t part) {
    const std::size_t first_column = part * kPanelColumns;
    const std::size_t columns = std::min(kPanelColumns, columns_ - first_column);
    float* out = memory_ + first_column * tiles_.tokens;
    for (std::size_t tile = 0; tile < tiles_.count; ++tile) {
      const std::size_t first = tiles_.first_token(tile);
      const std::size_t count = tiles_.first_token(tile + 1) - first;
      for (std::size_t i = 0; i < count; ++i) {
        const float* const row = x.row(first + i).data() + first_column;
        for (std::size_t column = 0; column < columns; ++column)
          out[column * count + i] = row[column];
      }
      out += columns * count;
    }
  }

  const TokenTiles& tiles_;
  std::size_t columns_;
  float* memory_;
};

// A rectangle of one layer's y.
struct Task {
  const LinearOutput* output;
  std::size_t first_panel;
  std::size_t end_panel;
  std::size_t first_tile;
  std::size_t end_tile;
};

// How y is cut is only a matter of speed: any cut gives the same bits.
void add_tasks(const LinearOutput& output, const TokenTiles& tiles, std::size_t panel_channels,
               std::vector<Task>& tasks) {
  const Linear& linear = *output.linear;
  const std::size_t panels = ceil_divide(linear.out_features(), panel_channels);
  const std::size_t panel_products = tiles.tokens * panel_channels * linear.in_features();
  const std::size_t wanted =
      std::clamp<std::size_t>(panels * panel_products / kMinTaskProducts, 1, kWantedTasks);
  const std::size_t most_panels = std::clamp<std::size_t>(
      kMaxTaskProducts / panel_products, 1, ceil_divide(kTaskChannels, panel_channels));
  const std::size_t task_panels = std::clamp<std::size_t>(panels / wanted, 1, most_panels);
  const std::size_t cuts = ceil_divide(panels, task_panels);
  // Few channels: cut the tokens too, though each part then decodes the weights for itself.
  const std::size_t parts = std::min(tiles.count, ceil_divide(wanted, cuts));
  for (std::size_t cut = 0; cut < cuts; ++cut) {
    for (std::size_t part = 0; part < parts; ++part) {
      tasks.push_back({.output = &output,
                       .first_panel = panels * cut / cuts,
                       .end_panel = panels * (cut + 1) / cuts,
                       .first_tile = tiles.count * part / parts,
                       .end_tile = tiles.count * (part + 1) / parts});
    }
  }
}

// Multiplies the panels [first_panel, end_panel) of a task and writes their part of y.
class TaskRunner {
 public:
  TaskRunner(const PackedX& x, const Task& task, std::size_t panel_channels, ScratchBuffer& scratch)
      : x_(x),
        task_(task),
        linear_(*task.output->linear),
        panel_channels_(panel_channels),
        first_token_(x.tiles().first_token(task.first_tile)),
        tokens_(x.tiles().first_token(task.end_tile) - first_token_) {
    const std::size_t sweep = panels_per_sweep();
    panel_ = reserve_floats(scratch, panel_channels_ * (kPanelColumns + tokens_ * sweep));
    sums_ = panel_ + panel_channels_ * kPanelColumns;
  }

  void run() const {
    const std::size_t sweep = panels_per_sweep();
    for (std::size_t first = task_.first_panel; first < task_.end_panel; first += sweep) {
      const std::size_t end = std::min(first + sweep, task_.end_panel);
      multiply(first, end);
      write(first, end);
    }
  }

 private:
  std::size_t panels_per_sweep() const {
    return tokens_ * x_.columns() <= kCachedX ? 1 : task_.end_panel - task_.first_panel;
  }

  PanelPlace place(std::size_t panel, std::size_t first_column) const {
    return {.first_channel = panel * panel_channels_,
            .first_column = first_column,
            .columns = std::min(kPanelColumns, x_.columns() - first_column)};
  }

  std::size_t channels(std::size_t panel) const {
    return std::min(panel_channels_, linear_.out_features() - panel * panel_channels_);
  }

  void multiply(std::size_t first_panel, std::size_t end_panel) const {
    for (std::size_t column = 0; column < x_.columns(); column += kPanelColumns) {
      for (std::size_t panel = first_panel; panel < end_panel; ++panel) {
        const PanelPlace here = place(panel, column);
        decode_panel(linear_.weight(), here, panel_);
        prefetch_next(panel, first_panel, end_panel, column);
        multiply_panel(x_.tiles(),
                       {.panel = panel_,
                        .x = x_.part(column),
                        .sums = sums_ + (panel - first_panel) * tokens_ * panel_channels_,
                        .columns = here.columns,
                        .first_tile = task_.first_tile,
                        .end_tile = task_.end_tile,
                        .accumulate = column == 0 ? Accumulate::kStart : Accumulate::kAdd});
      }
    }
  }

  void prefetch_next(std::size_t panel, std::size_t first_panel, std::size_t end_panel,
                     std::size_t column) const {
    std::size_t next = panel + 1;
    if (next == end_panel) {
      next = first_panel;
      column += kPanelColumns;
      if (column >= x_.columns()) return;
    }
    prefetch_panel(linear_.weight(), place(next, column), channels(next));
  }

  // From [panel][token][channel] to rows of y.
  void write(std::size_t first_panel, std::size_t end_panel) const {
    const std::span<const float> bias = linear_.bias();
    for (std::size_t token = 0; token < tokens_; ++token) {
      float* const row = task_.output->y.row(first_token_ + token).data();
      for (std::size_t panel = first_panel; panel < end_panel; ++panel) {
        const std::size_t first = panel * panel_channels_;
        const std::size_t count = channels(panel);
        const float* const sums =
            sums_ + ((panel - first_panel) * tokens_ + token) * panel_channels_;
        if (bias.empty()) {
          std::copy_n(sums, count, row + first);
        } else {
          for (std::size_t i = 0; i < count; ++i) row[first + i] = sums[i] + bias[first + i];
        }
      }
    }
  }

  const PackedX& x_;
  const Task& task_;
  const Linear& linear_;
  std::size_t panel_channels_;
  std::size_t first_token_;
  std::size_t tokens_;
  float* panel_ = nullptr;
  float* sums_ = nullptr;
};

}  // namespace

void apply_linears_exact(const ComputeContext& context, MatrixView<const float> x,
                         std::span<const LinearOutput> outputs) {
  if (x.rows == 0 || outputs.empty()) return;
  const FloatTileShape shape = float_tile_shape();
  const std::size_t sweeps = ceil_divide(x.rows, kMaxSweepTokens);
  for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
    const std::size_t first = x.rows * sweep / sweeps;
    const std::size_t tokens = x.rows * (sweep + 1) / sweeps - first;
    const TokenTiles tiles(tokens, shape.max_tokens);

    thread_local ScratchBuffer packed_memory;
    const PackedX packed(context, x.rows_from(first, tokens), tiles,
                         reserve_floats(packed_memory, tokens * x.columns));
    std::vector<LinearOutput> parts;
    for (const LinearOutput& output : outputs)
      parts.push_back({output.linear, output.y.rows_from(first, tokens)});
    std::vector<Task> tasks;
    for (const LinearOutput& part : parts) add_tasks(part, tiles, shape.channels, tasks);
    context.parallel_for(tasks.size(), [&](std::size_t index, std::size_t) {
      thread_local ScratchBuffer task_memory;
      TaskRunner(packed, tasks[index], shape.channels, task_memory).run();
    });
  }
}

}  // namespace clefkit
