// Multiply-adds a second of LUT-6 linear layers, beside OpenBLAS on decoded weights. With one
// thread the rate is by that thread's CPU time, so a busy machine disturbs it least.
#include <benchmark/benchmark.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "clefkit/kernels/lut6_linear.h"
#include "clefkit/kernels/lut6_test_matrix.h"

#if defined(CLEFKIT_HAVE_OPENBLAS)
#include <cblas.h>
#endif

namespace clefkit {
namespace {

struct Case {
  std::size_t rows, columns, tokens, threads;
};

const Lut6TestMatrix& matrix_of(const Case& c) {
  static std::map<std::pair<std::size_t, std::size_t>, Lut6TestMatrix> matrices;
  const auto key = std::pair(c.rows, c.columns);
  const auto found = matrices.find(key);
  if (found != matrices.end()) return found->second;
  return matrices.emplace(key, Lut6TestMatrix::random_on_grid({c.rows, c.columns, 16}, 1, 1))
      .first->second;
}

std::vector<float> activations(const Case& c) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> x(c.tokens * c.columns);
  for (float& value : x) value = normal(random);
  return x;
}

void report(benchmark::State& state, const Case& c) {
  state.counters["GMAC"] =
      benchmark::Counter(static_cast<double>(c.rows * c.columns * c.tokens) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
}

void run_lut6(benchmark::State& state, const Lut6Kernels* kernels, Lut6Format format, Case c) {
  const Lut6Matrix matrix = matrix_of(c).view();
  const std::vector<float> x = activations(c);
  std::vector<float> y(c.tokens * c.rows);
  Executor executor(c.threads);
  const Lut6Output output{&matrix, {}, {y.data(), c.tokens, c.rows}};
  for (auto _ : state) {
    lut6_linear({executor}, *kernels, format, {x.data(), c.tokens, c.columns}, {&output, 1});
  }
  report(state, c);
}

#if defined(CLEFKIT_HAVE_OPENBLAS)
void run_openblas(benchmark::State& state, Case c) {
  const Lut6Matrix matrix = matrix_of(c).view();
  std::vector<float> weights(c.rows * c.columns);
  for (std::size_t row = 0; row < c.rows; ++row) {
    matrix.dequantize_row(row, std::span(weights).subspan(row * c.columns, c.columns));
  }
  const std::vector<float> x = activations(c);
  std::vector<float> y(c.tokens * c.rows);
  openblas_set_num_threads(static_cast<int>(c.threads));
  const auto tokens = static_cast<int>(c.tokens), rows = static_cast<int>(c.rows),
             columns = static_cast<int>(c.columns);
  for (auto _ : state) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens, rows, columns, 1.0f, x.data(),
                columns, weights.data(), columns, 0.0f, y.data(), rows);
  }
  report(state, c);
}
#endif

template <typename Run>
void add(const std::string& name, const Case& c, Run run) {
  auto* const bench = benchmark::RegisterBenchmark(
      (name + "/" + std::to_string(c.rows) + "x" + std::to_string(c.columns) +
       "/tokens:" + std::to_string(c.tokens) + "/threads:" + std::to_string(c.threads))
          .c_str(),
      run);
  bench->Unit(benchmark::kMillisecond);
  if (c.threads > 1) bench->UseRealTime();
}

void add_all() {
  for (const std::size_t threads : {1, 2}) {
    for (const auto& [rows, columns] :
         {std::pair<std::size_t, std::size_t>{4096, 4096}, {12288, 4096}, {4096, 12288}}) {
      for (const std::size_t tokens : {1, 128, 256, 512}) {
        const Case c{rows, columns, tokens, threads};
        for (const Lut6Kernels* const kernels : supported_lut6_kernels()) {
          if (kernels == &kLut6ScalarKernels) continue;
          add(std::string("int16 ") + kernels->name, c, [kernels, c](benchmark::State& state) {
            run_lut6(state, kernels, Lut6Format::kInt16, c);
          });
          add(std::string("int8 ") + kernels->name, c, [kernels, c](benchmark::State& state) {
            run_lut6(state, kernels, Lut6Format::kInt8, c);
          });
        }
#if defined(CLEFKIT_HAVE_OPENBLAS)
        add("OpenBLAS sgemm", c, [c](benchmark::State& state) { run_openblas(state, c); });
#endif
      }
    }
  }
}

}  // namespace
}  // namespace clefkit

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  clefkit::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
