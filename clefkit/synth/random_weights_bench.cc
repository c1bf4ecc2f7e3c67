#include <benchmark/benchmark.h>

#include "clefkit/synth/random_weights.h"

namespace clefkit {
namespace {

void fill(benchmark::State& state) {
  const QuantileTable table({Distribution::Kind::kNormal, 0, 1});
  std::vector<BFloat16> values(std::size_t{1} << 18);
  std::uint64_t block = 0;
  for (auto step : state) {
    fill_block(table, 1, "tensor", block++, values);
    benchmark::DoNotOptimize(values.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * values.size() * 2));
}
BENCHMARK(fill);

}  // namespace
}  // namespace clefkit

BENCHMARK_MAIN();
