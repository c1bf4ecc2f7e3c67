#include <benchmark/benchmark.h>

#include <string>

#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/text/tokenizer.h"

namespace clefkit {
namespace {

const std::string& release_json() {
  static const std::string json = read_file(CLEFKIT_RELEASE_TOKENIZER, 64 << 20);
  return json;
}

void encode(benchmark::State& state, const std::string& text) {
  static const Tokenizer tokenizer(release_json(), "tokenizer.json");
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.encode(text));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

std::string repeat(std::string_view unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer(release_json(), "tokenizer.json"));
}
BENCHMARK(load)->Unit(benchmark::kMillisecond);

void english(benchmark::State& state) {
  encode(state, read_file(CLEFKIT_SOURCE_DIR "/LICENSE", 1 << 20));
}
BENCHMARK(english);

// The texts of the golden cases: every script, symbols and added tokens.
void many_scripts(benchmark::State& state) {
  const Json cases = parse_json(
      read_file(CLEFKIT_SOURCE_DIR "/tests/golden/tokenizer/cases.json", 1 << 20), "cases", {});
  std::string text;
  for (const Json& entry : cases.items()) text += entry.find("text")->string();
  encode(state, text);
}
BENCHMARK(many_scripts);

void one_letter(benchmark::State& state) { encode(state, repeat("a", 1 << 20)); }
BENCHMARK(one_letter)->Unit(benchmark::kMillisecond);

void one_ideograph(benchmark::State& state) { encode(state, repeat("一", 1 << 20)); }
BENCHMARK(one_ideograph)->Unit(benchmark::kMillisecond);

void unordered_marks(benchmark::State& state) { encode(state, repeat("\u0301\u0323", 1 << 20)); }
BENCHMARK(unordered_marks)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace clefkit

BENCHMARK_MAIN();
