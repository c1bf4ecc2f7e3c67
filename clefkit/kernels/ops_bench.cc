// Everything of a Clef-Flash layer that is not a linear layer, at its sizes, on one thread.
// `MAC/s` counts the multiply-adds of the definition's chunked form, causal halves only.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <random>
#include <vector>

#include "clefkit/kernels/attention.h"
#include "clefkit/kernels/delta_rule.h"
#include "clefkit/kernels/elementwise.h"

namespace clefkit {
namespace {

std::vector<float> random_values(std::size_t count, float low = -1.0f, float high = 1.0f) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

void report_rate(benchmark::State& state, const char* name, double per_iteration) {
  state.counters[name] = benchmark::Counter(per_iteration * static_cast<double>(state.iterations()),
                                            benchmark::Counter::kIsRate);
}

void attend(benchmark::State& state, const AttentionShape& shape, std::size_t past,
            std::size_t tokens, bool causal) {
  Executor executor(1);
  const std::size_t query_columns = shape.query_heads * shape.head_dim;
  const std::size_t kv_columns = shape.kv_heads * shape.head_dim;
  const std::size_t rows = past + tokens;
  const auto q = random_values(tokens * query_columns);
  const auto keys = random_values(rows * kv_columns);
  const auto values = random_values(rows * kv_columns);
  std::vector<float> out(q.size());
  for (auto _ : state) {
    const auto function = causal ? causal_attention : full_attention;
    function({executor}, shape, {q.data(), tokens, query_columns}, {keys.data(), rows, kv_columns},
             {values.data(), rows, kv_columns}, {out.data(), tokens, query_columns});
  }
  const double seen =
      static_cast<double>(past) + static_cast<double>(tokens) * (causal ? 0.5 : 1.0);
  report_rate(state, "MAC/s",
              seen * 2.0 * static_cast<double>(tokens) * static_cast<double>(query_columns));
}

void BM_CausalAttention(benchmark::State& state) {
  attend(state, {.query_heads = 16, .kv_heads = 4, .head_dim = 256, .scale = 0.0625f},
         static_cast<std::size_t>(state.range(0)), 512, true);
}
BENCHMARK(BM_CausalAttention)->Arg(0)->Arg(1536)->Arg(15872)->Unit(benchmark::kMillisecond);

void BM_VisionAttention(benchmark::State& state) {
  attend(state, {.query_heads = 16, .kv_heads = 16, .head_dim = 72, .scale = 0.118f}, 0,
         static_cast<std::size_t>(state.range(0)), false);
}
BENCHMARK(BM_VisionAttention)->Arg(1024)->Unit(benchmark::kMillisecond);

void BM_HeadAttention(benchmark::State& state) {
  const auto queries = static_cast<std::size_t>(state.range(0));
  attend(state, {.query_heads = 16, .kv_heads = 16, .head_dim = 64, .scale = 0.125f},
         2048 - queries, queries, false);
}
BENCHMARK(BM_HeadAttention)->Arg(1)->Arg(16)->Arg(255)->Unit(benchmark::kMillisecond);

void BM_DeltaRule(benchmark::State& state) {
  Executor executor(1);
  const auto tokens = static_cast<std::size_t>(state.range(0));
  const DeltaRuleShape shape{
      .key_heads = 16, .value_heads = 32, .key_head_dim = 128, .value_head_dim = 128};
  const std::size_t key_columns = shape.key_heads * shape.key_head_dim;
  const std::size_t value_columns = shape.value_heads * shape.value_head_dim;
  const auto q = random_values(tokens * key_columns, -0.01f, 0.01f);
  const auto k = random_values(tokens * key_columns, -0.1f, 0.1f);
  const auto v = random_values(tokens * value_columns);
  const auto beta = random_values(tokens * shape.value_heads, 0.0f, 1.0f);
  const auto g = random_values(tokens * shape.value_heads, -2.0f, 0.0f);
  std::vector<float> recurrent_state(shape.state_size());
  std::vector<float> out(v.size());
  for (auto _ : state) {
    delta_rule({executor}, shape,
               {.q = {q.data(), tokens, key_columns},
                .k = {k.data(), tokens, key_columns},
                .v = {v.data(), tokens, value_columns},
                .beta = {beta.data(), tokens, shape.value_heads},
                .g = {g.data(), tokens, shape.value_heads}},
               recurrent_state, {out.data(), tokens, value_columns});
  }
  // A token and head: three products with the state, and four triangles of a 64-token chunk.
  report_rate(
      state, "MAC/s",
      static_cast<double>(tokens * shape.value_heads) * (3.0 * 128.0 * 128.0 + 4.0 * 32.0 * 128.0));
}
BENCHMARK(BM_DeltaRule)->Arg(512)->Unit(benchmark::kMillisecond);

void BM_CausalConvSilu(benchmark::State& state) {
  Executor executor(1);
  const auto x = random_values(512 * 8192);
  const auto weight = random_values(8192 * 4);
  std::vector<float> conv_state(3 * 8192);
  std::vector<float> out(x.size());
  for (auto _ : state) {
    causal_conv_silu({executor}, {x.data(), 512, 8192}, {weight.data(), 8192, 4}, conv_state,
                     {out.data(), 512, 8192});
  }
  report_rate(state, "values/s", static_cast<double>(x.size()));
}
BENCHMARK(BM_CausalConvSilu)->Unit(benchmark::kMillisecond);

// `function` works in place on x [512, columns], with y of the same shape beside it.
template <typename Function>
void run_rows(benchmark::State& state, std::size_t columns, const Function& function) {
  Executor executor(1);
  auto x = random_values(512 * columns);
  const auto y = random_values(512 * columns);
  for (auto _ : state) {
    function(ComputeContext{executor}, MatrixView<float>(x.data(), 512, columns),
             MatrixView<const float>(y.data(), 512, columns));
  }
  report_rate(state, "values/s", static_cast<double>(x.size()));
}

void BM_SiluMultiply(benchmark::State& state) { run_rows(state, 12288, silu_multiply); }
BENCHMARK(BM_SiluMultiply)->Unit(benchmark::kMillisecond);

void BM_SigmoidMultiply(benchmark::State& state) { run_rows(state, 4096, sigmoid_multiply); }
BENCHMARK(BM_SigmoidMultiply)->Unit(benchmark::kMillisecond);

void BM_RmsNorm(benchmark::State& state) {
  run_rows(state, 4096, [](const ComputeContext& context, auto x, auto y) {
    rms_norm(context, x, y.row(0), 1e-6f, x);
  });
}
BENCHMARK(BM_RmsNorm)->Unit(benchmark::kMillisecond);

void BM_LayerNorm(benchmark::State& state) {
  run_rows(state, 1152, [](const ComputeContext& context, auto x, auto y) {
    layer_norm(context, x, y.row(0), y.row(1), 1e-6f, x);
  });
}
BENCHMARK(BM_LayerNorm)->Unit(benchmark::kMillisecond);

void BM_L2NormalizeHeads(benchmark::State& state) {
  run_rows(state, 2048, [](const ComputeContext& context, auto x, auto) {
    l2_normalize_heads(context, x, 128, 1e-6f, 1.0f);
  });
}
BENCHMARK(BM_L2NormalizeHeads)->Unit(benchmark::kMillisecond);

void BM_GeluTanh(benchmark::State& state) {
  run_rows(state, 4304, [](const ComputeContext& context, auto x, auto) { gelu_tanh(context, x); });
}
BENCHMARK(BM_GeluTanh)->Unit(benchmark::kMillisecond);

void BM_GeluErf(benchmark::State& state) {
  run_rows(state, 4608, [](const ComputeContext& context, auto x, auto) { gelu_erf(context, x); });
}
BENCHMARK(BM_GeluErf)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clefkit

BENCHMARK_MAIN();
