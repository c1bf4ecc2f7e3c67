#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

#include "clefkit/backend/ane/apple/apple_device.h"
#include "clefkit/backend/ane/self_test_record.h"
#include "clefkit/base/companion_program.h"
#include "clefkit/base/file_io.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/eval/self_test.h"
#include "clefkit/kernels/instruction_set.h"
#include "clefkit/media/media_decoder.h"
#include "clefkit/programs/text_program.h"

namespace clefkit::cli {
namespace {

constexpr char kEngine[] = "ane";

Json backend_entry(const char* name, const std::string& problem, const std::string& note) {
  return Json::object(
      {{"name", name}, {"available", problem.empty()}, {"problem", problem}, {"note", note}});
}

// Of this machine, and nothing by which it or its owner could be recognized.
Json machine_facts(const ane::AppleFacts& facts) {
  utsname system{};
  ::uname(&system);
  const long pages = ::sysconf(_SC_PHYS_PAGES), page_bytes = ::sysconf(_SC_PAGESIZE);
  const std::uint64_t memory =
      pages > 0 && page_bytes > 0
          ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes)
          : 0;
  return Json::object(
      {{"system",
        facts.system.empty() ? fmt::format("{} {}", system.sysname, system.release) : facts.system},
       {"architecture", static_cast<const char*>(system.machine)},
       {"processors", std::uint64_t{std::thread::hardware_concurrency()}},
       {"memory_bytes", memory}});
}

std::string media_problem() {
  try {
    find_media_decoder();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

struct DoctorCommand {
  ModelFlags model;
  std::string backend;
  std::string report = "clefkit-doctor.json";
  bool as_json = false;
  bool quiet = false;

  int run() const {
    const InterruptScope interruptible;
    const ane::AppleFacts facts = ane::apple_facts();
    Json body = Json::object({{"clefkit", CLEFKIT_VERSION},
                              {"program_revision", kTextProgramRevision},
                              {"machine", machine_facts(facts)}});
    body.set(
        "backends",
        Json::array({backend_entry("cpu", "", fmt::format("kernels for {}", instruction_set())),
                     backend_entry(kEngine, facts.problem, engine_note(facts)),
                     backend_entry("simulator", "", "for small models")}));
    body.set("media",
             Json::object({{"available", media_problem().empty()}, {"problem", media_problem()}}));
    const std::string tested = !backend.empty()        ? backend
                               : facts.problem.empty() ? std::string(kEngine)
                                                       : std::string();
    bool passed = true;
    if (!tested.empty()) {
      const SelfTest test = self_test(tested);
      passed = test.passed();
      if (test.device == kEngine && !test.model.empty()) keep(test, facts);
      body.set("self_test", self_test_to_json(test));
    }
    if (!model.model.empty()) {
      const std::string name = open_files(model.directory()).name;
      const std::string objection = ane::objection_to_engine(
          facts, ane::read_self_test_record(ane::self_test_record_path(name)), name);
      body.set("auto", Json::object({{"model", name},
                                     {"backend", objection.empty() ? kEngine : "cpu"},
                                     {"reason", objection}}));
    }
    if (!report.empty()) write_file(report, to_string(body) + "\n");
    write_out(as_json ? to_string(body) + "\n" : view(body));
    if (!report.empty() && !quiet) {
      fmt::print(stderr, "clefkit: {} has all of this, to send with a question\n", report);
    }
    return passed ? kDone : kCheckFailed;
  }

  SelfTest self_test(const std::string& tested) const {
    Progress progress("testing", "steps", quiet);
    return run_self_test(
        {.backend = tested,
         .model = model.model,
         .cancel = &interrupt_token(),
         .progress = [&](std::size_t done, std::size_t total, std::string_view what) {
           progress.update(static_cast<double>(done), static_cast<double>(total), what);
         }});
  }

  static void keep(const SelfTest& test, const ane::AppleFacts& facts) {
    ane::write_self_test_record({.system = facts.system,
                                 .chip = facts.chip,
                                 .model = test.model,
                                 .program_revision = kTextProgramRevision,
                                 .spellings = test.spellings,
                                 .passed = test.passed(),
                                 .problem = test.problem},
                                ane::self_test_record_path(test.model));
  }

  static std::string engine_note(const ane::AppleFacts& facts) {
    if (facts.chip.empty()) return {};
    return facts.cores == 0 ? facts.chip : fmt::format("{}, {} cores", facts.chip, facts.cores);
  }

  static std::string view(const Json& body) {
    const auto text = [](const Json& object, const char* key) {
      return object.find(key)->string();
    };
    const Json& machine = *body.find("machine");
    std::string out =
        fmt::format("clefkit {} on {}, {}: {} processors, {:.1f} GB of memory\n\n",
                    text(body, "clefkit"), text(machine, "system"), text(machine, "architecture"),
                    machine.find("processors")->as_uint64().value_or(0),
                    machine.find("memory_bytes")->as_double().value_or(0) / 1e9);
    for (const Json& entry : body.find("backends")->items()) {
      const bool works = entry.find("available")->boolean();
      out += fmt::format("  {:<10} {:<4} {}\n", text(entry, "name"), works ? "yes" : "no",
                         works ? text(entry, "note") : text(entry, "problem"));
    }
    const Json& media = *body.find("media");
    const bool has_media = media.find("available")->boolean();
    out += fmt::format("  {:<10} {:<4} {}\n", "media", has_media ? "yes" : "no",
                       has_media ? "pictures and clips are decoded in a process of their own"
                                 : text(media, "problem"));
    if (const Json* const test = body.find("self_test")) out += self_test_view(*test);
    if (const Json* const choice = body.find("auto")) {
      const std::string reason = text(*choice, "reason");
      out += fmt::format("\nfor {}, --backend auto takes {}{}\n", text(*choice, "model"),
                         text(*choice, "backend"), as_reason(reason));
    }
    return out;
  }

  static std::string self_test_view(const Json& test) {
    std::string out = fmt::format("\nself-test of {}:\n", test.find("device")->string());
    std::size_t right = 0, first_ways = 0;
    for (const Json& probe : test.find("probes")->items()) {
      const bool is_right = probe.find("outcome")->string() == "right";
      const std::string& first = probe.find("instead_of")->string();
      first_ways += first.empty() ? 1 : 0;
      right += is_right && first.empty() ? 1 : 0;
      if (is_right) continue;
      out += fmt::format("  {}{} is {}: {}\n", probe.find("name")->string(),
                         first.empty() ? first : fmt::format(" (in place of {})", first),
                         probe.find("outcome")->string(), probe.find("problem")->string());
    }
    out += fmt::format("  {} of the {} operations of our programs compute what they should\n",
                       right, first_ways);
    std::string second;
    for (const Json& name : test.find("second_spellings")->items()) {
      second += (second.empty() ? "" : ", ") + name.string();
    }
    if (!second.empty()) {
      out +=
          fmt::format("  programs are spelled another way to do without the others: {}\n", second);
    }
    if (const Json& parity = *test.find("parity"); parity.is_object()) {
      const auto number = [&](const char* key) {
        return parity.find(key)->as_double().value_or(0);
      };
      const std::vector<Json>& layers = parity.find("layers")->items();
      if (!layers.empty()) {
        out += fmt::format("  after the last of {} programs' layers {:.2f} % off the CPU's\n",
                           layers.size(),
                           100 * layers.back().find("relative_error")->as_double().value_or(0));
      }
      out += fmt::format(
          "  {}, {:.0f} tokens: probabilities within {:.4f} of the CPU's, {}; {:.3f} s the first "
          "time, then {:.4f} s for 128 tokens; {:.0f} MB resident\n",
          parity.find("model")->string(), number("tokens"),
          number("largest_probability_difference"),
          parity.find("same_answers")->boolean() ? "the same answers" : "not the same answers",
          number("first_seconds"), number("seconds_per_128_tokens"),
          number("resident_bytes") / 1e6);
    }
    const bool passed = test.find("passed")->boolean();
    return out +
           (passed ? "  passed\n" : fmt::format("  failed: {}\n", test.find("problem")->string()));
  }
};

}  // namespace

void add_doctor_command(CommandLine& line) {
  auto command = std::make_shared<DoctorCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "doctor", "What this machine can do, backend by backend; tests its Neural Engine");
  command->model.add_to(app);
  app.add_option("--backend", command->backend,
                 "What is tested (default: the Neural Engine, where there is one): ane, or the "
                 "simulator of one, as for other commands")
      ->check(CLI::IsMember({"ane", "simulator", "simulator:ideal", "simulator:m1",
                             "simulator:h15g", "simulator:m5", "simulator:strict"}));
  app.add_option("--report", command->report,
                 "The file to write: facts about this machine and the test, no paths; empty: none")
      ->capture_default_str();
  app.add_flag("--json", command->as_json, "Print what the report has");
  app.add_flag("--quiet", command->quiet, "No progress on standard error");
  app.footer(
      "The self-test runs a tiny program for each operation that our programs contain and "
      "compares\n"
      "the results with expected ones; with a model it also answers a short request and compares\n"
      "every layer and probability with the CPU's. On a Mac its result decides what --backend "
      "auto\n"
      "takes from then on, until the system, the chip, the model or clefkit's programs change.\n"
      "Exit code 1: it failed.\n"
      "Examples:\n"
      "  clefkit doctor\n"
      "  clefkit doctor -m MODEL\n"
      "  clefkit doctor -m SMALL_MODEL --backend simulator:h15g");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
