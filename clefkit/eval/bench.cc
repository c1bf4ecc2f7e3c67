#include "clefkit/eval/bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <string>

namespace clefkit {
namespace {

// A state that is certainly longer than `tokens`, to be cut to measure.
Request request_of(std::size_t tokens, std::size_t repeat) {
  Request request = request_from_json(
      Json::object(
          {{"state", ""}, {"questions", Json::object({{"q", Json::object({{"type", "noul"}})}})}}),
      "bench");
  // A different start each time, so that no state is a prefix of an earlier one.
  std::string state = fmt::format("{} ", repeat);
  for (std::size_t i = 0; state.size() < 8 * tokens; ++i) {
    state += fmt::format("Line {}: pump {} reports {} bar. ", i, i % 17, i * 37 % 101);
  }
  request.state = std::move(state);
  return request;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

ProcessMemory process_memory() {
  ProcessMemory memory;
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  constexpr std::uint64_t kUnit = 1;
#else
  constexpr std::uint64_t kUnit = 1024;
#endif
  memory.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * kUnit;
  // Linux only; elsewhere the file is absent and the parts stay 0.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const auto kilobytes = [&] { return std::stoull(line.substr(line.find(':') + 1)) * 1024; };
    if (line.starts_with("RssAnon:")) memory.anonymous_bytes = kilobytes();
    if (line.starts_with("RssFile:")) memory.file_bytes = kilobytes();
  }
  return memory;
}

Json run_bench(Engine& engine, const BenchOptions& options) {
  const std::size_t total = options.token_counts.size() * options.repeats;
  std::size_t done = 0;
  Json lengths = Json::array();
  for (const std::size_t tokens : options.token_counts) {
    std::vector<double> seconds;
    std::map<std::string, std::vector<double>> stages;
    for (std::size_t repeat = 0; repeat < options.repeats; ++repeat) {
      AskOptions ask;
      ask.limits.max_tokens = tokens;
      ask.limits.overflow = RecordLimits::Overflow::kTruncate;
      ask.cancel = options.cancel;
      ask.use_prefix_cache = false;
      StageTimes times;
      ask.times = &times;
      const auto start = std::chrono::steady_clock::now();
      (void)engine.ask(request_of(tokens, repeat), ask);
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      double counted = 0;
      for (const auto& [stage, time] : times.seconds()) {
        stages[std::string(stage)].push_back(time);
        counted += time;
      }
      stages["rest"].push_back(seconds.back() - counted);
      if (options.progress) options.progress(++done, total);
    }
    Json stage_json = Json::object();
    for (const auto& [stage, times] : stages) stage_json.set(stage, median(times));
    const double typical = median(seconds);
    lengths.push_back(Json::object({{"tokens", static_cast<std::uint64_t>(tokens)},
                                    {"seconds", typical},
                                    {"tokens_per_second", static_cast<double>(tokens) / typical},
                                    {"fastest_seconds", *std::ranges::min_element(seconds)},
                                    {"stage_seconds", std::move(stage_json)}}));
  }
  const ProcessMemory memory = process_memory();
  return Json::object({{"backend", engine.backend().name()},
                       {"threads", static_cast<std::uint64_t>(engine.thread_count())},
                       {"repeats", static_cast<std::uint64_t>(options.repeats)},
                       {"lengths", std::move(lengths)},
                       {"memory", Json::object({{"anonymous_bytes", memory.anonymous_bytes},
                                                {"file_bytes", memory.file_bytes},
                                                {"peak_bytes", memory.peak_bytes}})}});
}

}  // namespace clefkit
