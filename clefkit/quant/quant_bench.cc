// Time per group of 16 rows, and the weight error, of every palette method: one thread, CPU time.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "clefkit/quant/palettize.h"

namespace {

using namespace clefkit;

// Gaussian rows, each of its own scale as in trained weights: standard deviations from 0.01 to
// 0.03. On request one weight in 4096 is six times as large.
std::vector<BFloat16> random_weights(std::size_t rows, std::size_t columns, bool with_outliers) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> deviation(0.01f, 0.03f);
  std::vector<BFloat16> weights;
  weights.reserve(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const float row_scale = deviation(random);
    for (std::size_t column = 0; column < columns; ++column) {
      const bool is_outlier = with_outliers && random() % 4096 == 0;
      weights.push_back(to_bfloat16(normal(random) * row_scale * (is_outlier ? 6.0f : 1.0f)));
    }
  }
  return weights;
}

void palettize_groups(benchmark::State& state, PaletteMethod method, std::size_t columns,
                      bool with_outliers) {
  constexpr std::size_t kGroups = 16;
  const std::size_t rows = kGroups * kRowsPerPalette;
  const std::vector<BFloat16> weights = random_weights(rows, columns, with_outliers);
  Executor executor(1);
  PalettizedMatrix result;
  for (auto _ : state) {
    result = palettize_matrix({executor}, {weights.data(), rows, columns}, {.method = method}, "");
    benchmark::DoNotOptimize(result.packed_indices.data());
  }
  state.counters["s_per_group"] = benchmark::Counter(
      kGroups, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["relative_rmse"] = result.relative_rmse;
}

void register_benchmarks() {
  for (const auto method : {PaletteMethod::kOriginal, PaletteMethod::kFast, PaletteMethod::kOptimal,
                            PaletteMethod::kGrid8}) {
    for (const std::size_t columns : {4096, 12288}) {
      for (const bool with_outliers : {false, true}) {
        const std::string name = std::string(to_string(method)) + "/16x" + std::to_string(columns) +
                                 (with_outliers ? "/outliers" : "/gaussian");
        benchmark::RegisterBenchmark(name.c_str(), palettize_groups, method, columns, with_outliers)
            ->Unit(benchmark::kMillisecond)
            ->MinTime(1.0);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_benchmarks();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
