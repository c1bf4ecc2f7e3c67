// Time per group of 16 rows, and the weight error, of every palette method: one thread, CPU time.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "clefkit/quant/palettize.h"

namespace {

using namespace clefkit;

// Standard deviation 0.02, as trained weights have; one weight in 4096 six times as large on
// request.
std::vector<BFloat16> random_weights(std::size_t count, bool with_outliers) {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<BFloat16> weights(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_outlier = with_outliers && i % 4096 == 4095;
    weights[i] = to_bfloat16(normal(random) * (is_outlier ? 6.0f : 1.0f));
  }
  return weights;
}

void palettize_groups(benchmark::State& state, PaletteMethod method, std::size_t columns,
                      bool with_outliers) {
  constexpr std::size_t kGroups = 16;
  const std::size_t rows = kGroups * kRowsPerPalette;
  const std::vector<BFloat16> weights = random_weights(rows * columns, with_outliers);
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
