#include "clefkit/eval/bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <tuple>

#include "clefkit/backend/factory.h"
#include "clefkit/backend/weights.h"
#include "clefkit/base/stopwatch.h"

namespace clefkit {
namespace {

// A state that is certainly longer than `tokens`, to be cut to measure.
Request request_of(std::size_t tokens, std::size_t repeat) {
  Request request = request_from_json(
      Json::object(
          {{"state", ""},
           {"questions",
            Json::object({{"q", Json::object({{"type", "choice"},
                                              {"criteria", Json::object({{"a", Json()},
                                                                         {"b", Json()}})}})}})}}),
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

double seconds_of(const std::function<void()>& work) {
  const Stopwatch stopwatch;
  work();
  return stopwatch.seconds();
}

std::vector<float> noise(std::size_t count) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

// Products and sums of the vision encoder's matrix products, attention included.
double vision_operations(const VisionConfig& config, double patches) {
  const auto size = [](std::size_t value) { return static_cast<double>(value); };
  const double width = size(config.hidden_size), merged = size(config.merged_size());
  const double block = 4 * width * width + 2 * width * size(config.intermediate_size);
  const double attention = 2 * patches * width;
  const double merger = (merged * merged + merged * size(config.out_hidden_size)) / 4;
  return 2 * patches *
         (size(config.patch_values()) * width + size(config.depth) * (block + attention) + merger);
}

// The fastest of a block's linear layers over as many rows.
double linear_peak(const Model& model, const ComputeContext& context, std::size_t rows,
                   std::size_t repeats) {
  const VisionConfig& config = model.config.vision;
  const std::size_t width = config.hidden_size, wide = config.intermediate_size;
  double peak = 0;
  for (const auto& [name, out, in] :
       {std::tuple{"attn.qkv", 3 * width, width}, std::tuple{"mlp.linear_fc1", wide, width},
        std::tuple{"mlp.linear_fc2", width, wide}}) {
    const Linear linear =
        linear_layer_with_bias(model, fmt::format("model.visual.blocks.0.{}", name), out, in);
    const std::vector<float> inputs = noise(rows * in);
    std::vector<float> outputs(rows * out);
    const MatrixView<const float> x(inputs.data(), rows, in);
    const MatrixView<float> y(outputs.data(), rows, out);
    for (std::size_t repeat = 0; repeat <= repeats; ++repeat) {
      const double seconds = seconds_of([&] { linear.apply(context, x, y); });
      peak = std::max(peak, 2.0 * static_cast<double>(rows * out * in) / seconds);
    }
  }
  return peak;
}

Json vision_facts(const Engine& engine, const BenchOptions& options) {
  const Model& model = engine.model();
  const VisionConfig& config = model.config.vision;
  constexpr VisionSegment kPicture{32, 32};
  const std::size_t patches = kPicture.patches(), tokens = patches / 4;
  const auto backend = choose_backend(engine.backend().name(), model, engine.precision()).backend;
  Executor executor(engine.thread_count());
  const ComputeContext context{executor, options.cancel, nullptr};
  const std::vector<float> pixels = noise(patches * config.patch_values());
  std::vector<float> features(tokens * config.out_hidden_size);
  std::vector<double> seconds;
  for (std::size_t repeat = 0; repeat < options.repeats; ++repeat) {
    seconds.push_back(seconds_of([&] {
      backend->encode_vision(context,
                             {.pixels = {pixels.data(), patches, config.patch_values()},
                              .segments = {&kPicture, 1},
                              .features = {features.data(), tokens, config.out_hidden_size}},
                             {});
    }));
  }
  const double typical = median(seconds);
  const double rate = vision_operations(config, static_cast<double>(patches)) / typical;
  const double peak = linear_peak(model, context, patches, options.repeats);
  return Json::object({{"patches", static_cast<std::uint64_t>(patches)},
                       {"seconds", typical},
                       {"gflop_per_second", rate / 1e9},
                       {"linear_gflop_per_second", peak / 1e9},
                       {"part_of_linear", rate / peak}});
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
      ask.use_cache = false;
      StageTimes times;
      ask.times = &times;
      seconds.push_back(seconds_of([&] { (void)engine.ask(request_of(tokens, repeat), ask); }));
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
  return Json::object(
      {{"backend", engine.backend().name()},
       {"backend_reason", engine.backend_reason()},
       {"threads", static_cast<std::uint64_t>(engine.thread_count())},
       {"repeats", static_cast<std::uint64_t>(options.repeats)},
       {"lengths", std::move(lengths)},
       {"vision", engine.model().config.has_vision() ? vision_facts(engine, options) : Json()},
       {"memory", Json::object({{"anonymous_bytes", memory.anonymous_bytes},
                                {"file_bytes", memory.file_bytes},
                                {"peak_bytes", memory.peak_bytes}})}});
}

}  // namespace clefkit
