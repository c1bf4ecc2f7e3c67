#include "clefkit/eval/self_test.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "clefkit/backend/ane/open_device.h"
#include "clefkit/base/error.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/engine/engine.h"
#include "clefkit/eval/bench.h"

namespace clefkit {
namespace {

constexpr std::size_t kTokensPerCall = 128;

// Each kind of question, and a state of more than one call.
constexpr char kRequest[] = R"({
  "state": {
    "ticket": 48213,
    "customer": "On Tuesday I ordered two lamps for the hall. The first one came with a broken shade, the second one has not come at all, and yesterday my card was charged for a third one that I never asked for. I have written twice and nobody has answered. Please send the missing lamp before Friday, since we move in on Saturday, and give me back what was charged by mistake.",
    "orders": [{"item": "lamp", "state": "delivered"}, {"item": "lamp", "state": "in transit"}]
  },
  "questions": {
    "refund": {"type": "noul", "instructions": "Does the customer ask for money back?"},
    "team": {"type": "choice", "instructions": "Who should answer?",
             "criteria": {"sales": "Offers and new orders", "billing": "Payments and invoices",
                          "logistics": "Parcels that are late, lost or damaged"}},
    "urgency": {"type": "score", "criteria": ["can wait", "this week", "today"]}
  }
})";

double relative_error(const TraceTensor& actual, const TraceTensor& expected) {
  const auto& values = std::get<std::vector<float>>(actual.values);
  const auto& references = std::get<std::vector<float>>(expected.values);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < references.size(); ++i) {
    error += std::pow(double{values[i]} - references[i], 2);
    size += std::pow(double{references[i]}, 2);
  }
  return size == 0 ? 0 : std::sqrt(error / size);
}

void compare_answers(const Response& actual, const Response& expected, Parity& parity) {
  for (std::size_t i = 0; i < expected.probabilities.size(); ++i) {
    const std::vector<double>& ours = actual.probabilities[i];
    const std::vector<double>& theirs = expected.probabilities[i];
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      parity.probability_difference =
          std::max(parity.probability_difference, std::abs(ours[k] - theirs[k]));
    }
    if (most_likely(ours) != most_likely(theirs)) parity.same_answers = false;
  }
}

// The layers that a trace has, first to last.
std::vector<std::pair<std::size_t, std::string>> layer_outputs(const Trace& trace,
                                                               std::size_t layers) {
  std::vector<std::pair<std::size_t, std::string>> names;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string name = fmt::format("layers.{}.output", layer);
    if (trace.contains(name)) names.emplace_back(layer, name);
  }
  return names;
}

Parity measure_parity(const SelfTestOptions& options, const Spellings& spellings,
                      std::string& model_name) {
  const Request request = parse_request(kRequest, "self-test");
  AskOptions ask;
  ask.cancel = options.cancel;
  ask.use_cache = false;
  Engine cpu(open_model(options.model), {.precision = Precision::kExact, .backend = "cpu"});
  model_name = cpu.model().name;
  const Trace expected = cpu.trace(request, ask, "layers.");
  const Response expected_response = cpu.ask(request, ask);

  Engine engine(open_model(options.model), {.backend = options.backend, .spellings = spellings});
  Parity parity;
  const Trace actual = engine.trace(request, ask, "layers.");
  for (const auto& [layer, name] :
       layer_outputs(actual, cpu.model().config.text.num_hidden_layers)) {
    parity.layers.push_back({name, relative_error(actual.at(name), expected.at(name))});
  }
  const Response first = engine.ask(request, ask), second = engine.ask(request, ask);
  compare_answers(first, expected_response, parity);
  parity.tokens = first.input_tokens;
  parity.first_seconds = first.prefill_seconds;
  const std::size_t calls = (second.input_tokens + kTokensPerCall - 1) / kTokensPerCall;
  parity.seconds_per_call = second.prefill_seconds / static_cast<double>(calls);
  const ProcessMemory memory = process_memory();
  parity.resident_bytes = memory.anonymous_bytes + memory.file_bytes;
  return parity;
}

std::string problem_of(const Parity& parity) {
  if (parity.probability_difference > kMostProbabilityDifference) {
    return fmt::format("a probability is {:.4f} from the CPU's, expected at most {}",
                       parity.probability_difference, kMostProbabilityDifference);
  }
  return {};
}

}  // namespace

SelfTest run_self_test(const SelfTestOptions& options) {
  const std::unique_ptr<ane::Device> device = ane::open_device(options.backend);
  if (device == nullptr) {
    throw_error(ErrorCode::kInvalidArgument, "backend", "{}, expected ane or simulator",
                options.backend);
  }
  SelfTest test{.device = std::string(device->name())};
  const std::vector<ane::Probe> probes = ane::all_probes();
  const std::size_t steps = probes.size() + (options.model.empty() ? 0 : 1);
  const auto tell = [&](std::size_t done, std::string_view what) {
    if (options.cancel != nullptr) options.cancel->throw_if_cancelled();
    if (options.progress) options.progress(done, steps, what);
  };
  for (const ane::Probe& probe : probes) {
    tell(test.probes.size(), probe.name);
    test.probes.push_back(run_probe(*device, probe));
  }
  const ane::FoundSpellings found = ane::find_spellings(test.probes);
  test.spellings = found.spellings;
  test.problem = found.problem;
  if (options.model.empty()) return test;
  tell(probes.size(), "the model's programs");
  try {
    test.parity = measure_parity(options, test.spellings, test.model);
    if (test.passed()) test.problem = problem_of(test.parity);
  } catch (const Error& error) {
    // Of the device; what is wrong with the model was wrong on the CPU before.
    const bool is_the_devices = !test.model.empty() && error.code() != ErrorCode::kCancelled;
    if (!is_the_devices) throw;
    if (test.passed()) test.problem = error.what();
  }
  return test;
}

Json self_test_to_json(const SelfTest& test) {
  Json probes = Json::array();
  for (const ane::ProbeResult& probe : test.probes) {
    probes.push_back(Json::object({{"name", probe.name},
                                   {"instead_of", probe.instead_of},
                                   {"outcome", to_string(probe.outcome)},
                                   {"largest_difference", probe.difference},
                                   {"problem", probe.problem}}));
  }
  Json second = Json::array();
  for (std::string& name : names_of(test.spellings)) second.push_back(std::move(name));
  Json parity;
  if (!test.model.empty()) {
    Json layers = Json::array();
    for (const Parity::Layer& layer : test.parity.layers) {
      layers.push_back(Json::object({{"name", layer.name}, {"relative_error", layer.error}}));
    }
    parity = Json::object({{"model", test.model},
                           {"tokens", std::uint64_t{test.parity.tokens}},
                           {"layers", std::move(layers)},
                           {"largest_probability_difference", test.parity.probability_difference},
                           {"same_answers", test.parity.same_answers},
                           {"first_seconds", test.parity.first_seconds},
                           {"seconds_per_128_tokens", test.parity.seconds_per_call},
                           {"resident_bytes", test.parity.resident_bytes}});
  }
  return Json::object({{"device", test.device},
                       {"passed", test.passed()},
                       {"problem", test.problem},
                       {"probes", std::move(probes)},
                       {"second_spellings", std::move(second)},
                       {"parity", std::move(parity)}});
}

}  // namespace clefkit
