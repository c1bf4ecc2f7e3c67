#include "clefkit/backend/ane/self_test_record.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/json.h"
#include "clefkit/programs/text_program.h"

namespace clefkit::ane {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxRecordBytes = 64 << 10;

fs::path variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

fs::path state_directory() {
  if (const fs::path named = variable("CLEFKIT_STATE_DIRECTORY"); !named.empty()) return named;
#ifdef __APPLE__
  return variable("HOME") / "Library" / "Application Support" / "clefkit";
#else
  const fs::path state = variable("XDG_STATE_HOME");
  return (state.empty() ? variable("HOME") / ".local" / "state" : state) / "clefkit";
#endif
}

std::string text_of(const Json& json, const char* key) {
  const Json* const value = json.find(key);
  return value != nullptr && value->is_string() ? value->string() : std::string();
}

std::optional<std::vector<std::string>> texts_of(const Json& json, const char* key) {
  const Json* const value = json.find(key);
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& item : value->items()) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(item.string());
  }
  return texts;
}

bool is_about(const SelfTestRecord& record, const AppleFacts& facts, const std::string& model) {
  return record.system == facts.system && record.chip == facts.chip && record.model == model &&
         record.program_revision == kTextProgramRevision;
}

}  // namespace

fs::path self_test_record_path(const std::string& model) {
  std::string name = model;
  std::ranges::replace_if(
      name,
      [](char c) {
        const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '-' || c == '.';
        return !is_plain;
      },
      '_');
  return state_directory() / fmt::format("neural-engine-{}.json", name);
}

std::optional<SelfTestRecord> read_self_test_record(const fs::path& path) {
  try {
    const Json json = parse_json(read_file(path, kMaxRecordBytes), path.string(), {});
    if (!json.is_object()) return std::nullopt;
    SelfTestRecord record{.system = text_of(json, "system"),
                          .chip = text_of(json, "chip"),
                          .model = text_of(json, "model"),
                          .problem = text_of(json, "problem")};
    const Json* const revision = json.find("program_revision");
    const Json* const passed = json.find("passed");
    if (revision == nullptr || passed == nullptr || !passed->is_bool()) return std::nullopt;
    record.program_revision = static_cast<int>(revision->as_int64().value_or(0));
    record.passed = passed->boolean();
    const auto names = texts_of(json, "second_spellings");
    const auto spellings = names ? spellings_of(*names) : std::nullopt;
    if (!spellings) return std::nullopt;
    record.spellings = *spellings;
    return record;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void write_self_test_record(const SelfTestRecord& record, const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) {
    throw_error(ErrorCode::kUnavailable, path.parent_path().string(), "{}, expected a directory",
                error.message());
  }
  Json second = Json::array();
  for (std::string& name : names_of(record.spellings)) second.push_back(std::move(name));
  write_file(path, to_string(Json::object({{"system", record.system},
                                           {"chip", record.chip},
                                           {"model", record.model},
                                           {"program_revision", record.program_revision},
                                           {"second_spellings", std::move(second)},
                                           {"passed", record.passed},
                                           {"problem", record.problem}})) +
                       "\n");
}

std::string objection_to_engine(const AppleFacts& facts,
                                const std::optional<SelfTestRecord>& record,
                                const std::string& model) {
  if (!facts.problem.empty()) return facts.problem;
  constexpr char kAdvice[] = "run `clefkit doctor -m MODEL` to test it";
  if (!record) {
    return fmt::format("its Neural Engine has not been tested with this model: {}", kAdvice);
  }
  if (!is_about(*record, facts, model)) {
    return fmt::format(
        "its Neural Engine was tested with another system, chip, model or version of clefkit: {}",
        kAdvice);
  }
  if (!record->passed) return "its Neural Engine failed the self-test: " + record->problem;
  return {};
}

Spellings found_spellings(const AppleFacts& facts, const std::optional<SelfTestRecord>& record,
                          const std::string& model) {
  return record && is_about(*record, facts, model) ? record->spellings : Spellings{};
}

}  // namespace clefkit::ane
