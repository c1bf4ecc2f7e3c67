// The linear layer beside OpenBLAS's sgemm, whose weights are float32 already.
//   linear_bench --benchmark_filter='4096x12288/tokens:512'
// Columns: GMAC/s by wall time, and by the processor time of one thread where threads = 1.
#include <benchmark/benchmark.h>
#ifdef CLEFKIT_HAVE_OPENBLAS
#define FORCE_OPENBLAS_COMPLEX_STRUCT  // Else C's complex numbers, which clang warns of.
#include <cblas.h>
#endif

#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "clefkit/kernels/linear.h"

namespace clefkit {
namespace {

struct Shape {
  std::size_t out_features;
  std::size_t in_features;
};

// Made once per shape, all forms of one matrix's size; the values do not matter for speed.
struct Weights {
  explicit Weights(Shape shape)
      : bfloat16s(shape.out_features * shape.in_features),
        packed(shape.out_features * shape.in_features / 4 * 3),
        palettes(shape.out_features / kRowsPerPalette * Lut6Matrix::kPaletteSize) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
    for (BFloat16& value : bfloat16s) value = to_bfloat16(uniform(random));
    for (std::uint8_t& byte : packed) byte = static_cast<std::uint8_t>(random());
    for (Half& entry : palettes) entry = to_half(uniform(random));
  }

  static constexpr std::size_t kRowsPerPalette = 16;
  std::vector<BFloat16> bfloat16s;
  std::vector<std::uint8_t> packed;
  std::vector<Half> palettes;
};

Weights& weights_of(Shape shape) {
  static std::unique_ptr<Weights> weights;
  static Shape last{};
  if (shape.out_features != last.out_features || shape.in_features != last.in_features) {
    weights.reset();
    weights = std::make_unique<Weights>(shape);
    last = shape;
  }
  return *weights;
}

struct Problem {
  explicit Problem(const benchmark::State& state)
      : threads(static_cast<std::size_t>(state.range(0))),
        tokens(static_cast<std::size_t>(state.range(1))),
        x(tokens * static_cast<std::size_t>(state.range(3)), 0.5f),
        y(tokens * static_cast<std::size_t>(state.range(2))),
        shape{static_cast<std::size_t>(state.range(2)), static_cast<std::size_t>(state.range(3))} {}

  void report(benchmark::State& state) const {
    const double products = static_cast<double>(tokens * shape.out_features * shape.in_features);
    state.counters["GMAC/s"] = benchmark::Counter(
        products * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
  }

  std::size_t threads;
  std::size_t tokens;
  std::vector<float> x;
  std::vector<float> y;
  Shape shape;
};

void run(benchmark::State& state, const Problem& problem, const Linear& linear,
         std::vector<float>& y) {
  Executor executor(problem.threads);
  const MatrixView<const float> x(problem.x.data(), problem.tokens, problem.shape.in_features);
  for (auto _ : state)
    linear.apply({executor}, x, {y.data(), problem.tokens, problem.shape.out_features});
  problem.report(state);
}

void bfloat16(benchmark::State& state) {
  Problem problem(state);
  const Weights& weights = weights_of(problem.shape);
  const Linear linear(MatrixView<const BFloat16>(
      weights.bfloat16s.data(), problem.shape.out_features, problem.shape.in_features));
  run(state, problem, linear, problem.y);
}

void lut6_exact(benchmark::State& state) {
  Problem problem(state);
  const Weights& weights = weights_of(problem.shape);
  const Linear linear(Lut6Matrix({.rows = problem.shape.out_features,
                                  .columns = problem.shape.in_features,
                                  .rows_per_palette = Weights::kRowsPerPalette},
                                 weights.packed, weights.palettes));
  run(state, problem, linear, problem.y);
}

#ifdef CLEFKIT_HAVE_OPENBLAS
void sgemm(benchmark::State& state) {
  Problem problem(state);
  const std::vector<BFloat16>& stored = weights_of(problem.shape).bfloat16s;
  std::vector<float> weights(stored.size());
  for (std::size_t i = 0; i < stored.size(); ++i) weights[i] = to_float(stored[i]);
  const int tokens = static_cast<int>(problem.tokens);
  const int outs = static_cast<int>(problem.shape.out_features);
  const int ins = static_cast<int>(problem.shape.in_features);
  openblas_set_num_threads(static_cast<int>(problem.threads));
  for (auto _ : state) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens, outs, ins, 1.0f, problem.x.data(),
                ins, weights.data(), ins, 0.0f, problem.y.data(), outs);
  }
  problem.report(state);
}
#endif

void register_all() {
  constexpr Shape kShapes[] = {{4096, 4096}, {12288, 4096}, {4096, 12288}, {1024, 4096}};
  for (const Shape shape : kShapes) {
    for (const int tokens : {1, 8, 128, 512}) {
      for (const int threads : {1, 2}) {
        const auto add = [&](const char* name, auto function) {
          auto* const bench = benchmark::RegisterBenchmark(name, function);
          bench->ArgNames({"threads", "tokens", "out", "in"})
              ->Args({threads, tokens, static_cast<std::int64_t>(shape.out_features),
                      static_cast<std::int64_t>(shape.in_features)})
              ->Unit(benchmark::kMillisecond);
          // With one thread the processor's time counts, which other programs disturb less.
          if (threads > 1) bench->UseRealTime();
        };
        add("bfloat16", bfloat16);
        add("lut6_exact", lut6_exact);
#ifdef CLEFKIT_HAVE_OPENBLAS
        add("sgemm", sgemm);
#endif
      }
    }
  }
}

}  // namespace
}  // namespace clefkit

int main(int argc, char** argv) {
  clefkit::register_all();
  benchmark::Initialize(&argc, argv);
#ifdef CLEFKIT_HAVE_OPENBLAS
  std::cout << openblas_get_config() << ", core " << openblas_get_corename() << '\n';
#endif
  benchmark::RunSpecifiedBenchmarks();
}
