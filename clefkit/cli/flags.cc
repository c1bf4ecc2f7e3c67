#include "clefkit/cli/flags.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "clefkit/cli/output.h"
#include "clefkit/cli/question_flags.h"
#include "clefkit/questions/request.h"

namespace clefkit::cli {
namespace {

// A state's repeated key keeps the last value, as in the reference.
Json parse_state(std::string_view text, const std::string& where) {
  return parse_json(text, where,
                    {.bytes = kInputLimitBytes,
                     .duplicates = DuplicateKeys::kLastWins,
                     .error = ErrorCode::kInvalidArgument});
}

const std::map<std::string, Precision>& precisions() {
  static const std::map<std::string, Precision> kPrecisions{
      {"exact", Precision::kExact}, {"high", Precision::kHigh}, {"fast", Precision::kFast}};
  return kPrecisions;
}

}  // namespace

std::string precision_name(Precision precision) {
  return std::ranges::find(precisions(), precision,
                           &std::pair<const std::string, Precision>::second)
      ->first;
}

CLI::IsMember is_backend() {
  return CLI::IsMember({"auto", "ane", "cpu", "simulator", "simulator:ideal", "simulator:m1",
                        "simulator:h15g", "simulator:m5", "simulator:strict"});
}

CLI::IsMember is_precision() { return CLI::IsMember({"exact", "high", "fast"}); }

void EngineFlags::add_to(CLI::App& app) {
  app.add_option(
         "--backend", backend,
         "What computes. auto takes the Neural Engine where `clefkit doctor` has found it to be "
         "right, else the CPU. simulator runs the layers of text and vision as the Neural Engine's "
         "programs, with its arithmetic as far as that is known: slowly, for small models. "
         "Of which machine, a colon says: simulator:ideal, :m1, :h15g (M3 Ultra), :m5, or "
         ":strict, where whatever a machine could get wrong is an error")
      ->check(is_backend())
      ->capture_default_str();
  app.add_option("--threads", threads, "Number of threads (default: all processors)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1024}));
  app.add_option(
         "--precision", precision,
         "exact: float32 arithmetic (a checkpoint's default); high: 16-bit integer kernels "
         "(a bundle's default); fast: 8-bit ones, coarser: only after `verify --accept-fast`")
      ->check(is_precision());
  app.add_option("--chunk", chunk_tokens, "Tokens a prefill step (default: the backend's choice)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20));
}

void EngineFlags::add_cache_to(CLI::App& app) {
  app.add_option("--cache", cache_mb,
                 "Megabytes for what earlier requests computed: one about the same state or the "
                 "same pictures goes on from there (0 keeps none)")
      ->check(CLI::Range(std::size_t{0}, std::size_t{1} << 24))
      ->capture_default_str();
}

EngineOptions EngineFlags::options(const ModelFlags& model) const {
  EngineOptions options;
  options.threads = threads;
  options.backend = backend;
  options.cache_bytes = cache_mb << 20;
  options.chunk_tokens = chunk_tokens;
  options.pretokenizer = model.pretokenizer_choice();
  if (!precision.empty()) options.precision = precisions().at(precision);
  return options;
}

void LimitFlags::add_to(CLI::App& app) {
  app.add_option("--max-tokens", max_tokens, "Longest record, prompt and questions included")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 20))
      ->capture_default_str();
  app.add_flag("--truncate", truncate,
               "Cut the end of a state that does not fit (by default that is an error); the answer "
               "then says how many tokens were dropped");
}

RecordLimits LimitFlags::limits() const {
  RecordLimits limits;
  limits.max_tokens = max_tokens;
  limits.overflow = truncate ? RecordLimits::Overflow::kTruncate : RecordLimits::Overflow::kRefuse;
  limits.overflow_name = "--truncate";
  return limits;
}

void MediaFlags::add_to(CLI::App& app) {
  app.add_option("--media-profile", profile,
                 "Limits of pictures and clips. ane: pictures of at most 262,144 pixels, clips of "
                 "at most 64 frames, two a second, of 65,536 pixels; release: the release's own, "
                 "which read more and take longer")
      ->check(CLI::IsMember({"ane", "release"}))
      ->capture_default_str();
  app.add_option("--exif", exif,
                 "Whether a photo is turned upright as its EXIF data say, or, as the reference "
                 "does, read as it is stored")
      ->check(CLI::IsMember({"apply", "ignore"}))
      ->capture_default_str();
  app.add_option(
         "--resize", resize,
         "Whose bicubic resizing is reproduced to the byte (default: pillow for the profile "
         "ane, torchvision for release)")
      ->check(CLI::IsMember({"torchvision", "pillow"}));
}

MediaOptions MediaFlags::options() const {
  MediaOptions options;
  options.profile = profile == "release" ? MediaProfile::kRelease : MediaProfile::kAne;
  options.exif = exif == "ignore" ? ExifOrientation::kIgnore : ExifOrientation::kApply;
  if (resize == "pillow") options.resize = ResizeRecipe::kPillow;
  if (resize == "torchvision") options.resize = ResizeRecipe::kTorchvision;
  return options;
}

MediaOptions MediaFlags::options_with_files(const std::string& request_path) const {
  MediaOptions options = this->options();
  options.allow_files = true;
  if (!request_path.empty() && request_path != "-") {
    options.base_directory = std::filesystem::path(request_path).parent_path();
  }
  return options;
}

void AnswerFlags::add_to(CLI::App& app) {
  app.add_option("--confidence", confidence,
                 "How a choice's or score's confidence is computed: typesafe, top (largest "
                 "probability), purity or entropy")
      ->check(CLI::IsMember({"typesafe", "top", "purity", "entropy"}))
      ->capture_default_str();
  app.add_option("--round", round_digits, "Round every number to N decimals")
      ->check(CLI::Range(0, 15));
}

AnswerOptions AnswerFlags::options() const {
  return {.confidence = confidence_rule(confidence).value(), .round_digits = round_digits};
}

void RequestFlags::add_questions_to(CLI::App& app) {
  app_ = &app;
  app.add_option("--questions", questions_path,
                 "JSON file of questions: {\"id\": {\"type\": \"noul|choice|score\", "
                 "\"instructions\": …, \"criteria\": …}}");
  noul_ = app.add_option("--noul", nouls_, "Yes/no question: \"ID=INSTRUCTIONS\"");
  choice_ = app.add_option("--choice", choices_,
                           "Choice: \"ID=OPTION,OPTION,…\" or \"ID: INSTRUCTIONS=OPTION: "
                           "DESCRIPTION|OPTION|…\"");
  score_ = app.add_option("--score", scores_,
                          "Score, lowest level first: \"ID=LEVEL,LEVEL,…\" or \"ID: "
                          "INSTRUCTIONS=LEVEL|LEVEL|…\"");
  for (CLI::Option* option : {noul_, choice_, score_}) option->allow_extra_args(false);
}

void RequestFlags::add_to(CLI::App& app) {
  auto* const request = app.add_option(
      "--request", request_path, "JSON file of a whole System One body, or - for standard input");
  auto* const text = app.add_option("--state", state, "The state, a text (- for standard input)");
  auto* const file = app.add_option("--state-file", state_path, "The state, a file of text");
  auto* const json =
      app.add_option("--state-json", state_json, "The state, JSON; @FILE reads it from a file");
  for (auto* option : {request, text, file, json}) {
    for (auto* other : {request, text, file, json}) {
      if (option != other) option->excludes(other);
    }
  }
  add_questions_to(app);
  auto* const image = app.add_option(
      "--image", images, "A picture the questions are about: JPEG, PNG, WebP or GIF; repeatable");
  auto* const video =
      app.add_option("--video", videos, "A clip the questions are about; repeatable");
  for (auto* option : {image, video}) option->allow_extra_args(false);
  for (auto* option : {app.get_option("--questions"), noul_, choice_, score_, image, video}) {
    request->excludes(option);
  }
}

Json RequestFlags::state_value() const {
  if (state) return *state == "-" ? Json(read_stdin(kInputLimitBytes)) : Json(*state);
  if (!state_path.empty()) return read_input(state_path, kInputLimitBytes);
  if (state_json) {
    if (*state_json == "-") return parse_state(read_stdin(kInputLimitBytes), "standard input");
    if (state_json->starts_with('@')) {
      const std::string path = state_json->substr(1);
      return parse_state(read_input(path, kInputLimitBytes), path);
    }
    return parse_state(*state_json, "--state-json");
  }
  // A picture may be all there is to say.
  if (stdin_is_terminal() && !(images.empty() && videos.empty())) return Json("");
  if (stdin_is_terminal()) {
    throw Error(
        ErrorCode::kInvalidArgument, "--state",
        "no state given, expected --state, --state-file, --state-json, --request or text on "
        "standard input");
  }
  return read_stdin(kInputLimitBytes);
}

Json RequestFlags::questions() const {
  Json all = Json::object();
  const auto add = [&](Json::Member member) {
    if (all.find(member.first) != nullptr) {
      throw_error(ErrorCode::kInvalidArgument, "questions." + member.first,
                  "asked twice, expected each id once");
    }
    all.members().push_back(std::move(member));
  };
  if (!questions_path.empty()) {
    Json file = parse_json(read_input(questions_path, kInputLimitBytes), questions_path,
                           {.error = ErrorCode::kInvalidArgument});
    if (!file.is_object()) {
      throw_error(ErrorCode::kInvalidArgument, questions_path,
                  "found {}, expected an object of questions by id", file.kind_name());
    }
    // A whole request is taken for its questions.
    const Json* const inner = file.find("questions");
    const bool is_request =
        inner != nullptr && inner->is_object() && inner->find("type") == nullptr;
    for (const char* key : {"images", "videos"}) {
      if (is_request && file.find(key) != nullptr) {
        throw_error(ErrorCode::kInvalidArgument, questions_path,
                    "a request with {}, expected questions alone (--request takes a whole request)",
                    key);
      }
    }
    Json::Object members = is_request ? inner->members() : file.members();
    for (Json::Member& member : members) add(std::move(member));
  }
  // Questions keep the order in which their flags stand.
  std::map<const CLI::Option*, std::size_t> seen;
  for (const CLI::Option* option : app_->parse_order()) {
    if (option == noul_) add(parse_noul_flag(nouls_.at(seen[option]++)));
    if (option == choice_) add(parse_choice_flag(choices_.at(seen[option]++)));
    if (option == score_) add(parse_score_flag(scores_.at(seen[option]++)));
  }
  if (all.members().empty()) {
    throw Error(ErrorCode::kInvalidArgument, "questions",
                "none given, expected --questions, --noul, --choice, --score or --request");
  }
  return all;
}

Request RequestFlags::request() const {
  if (!request_path.empty()) {
    const std::string where = request_path == "-" ? "standard input" : request_path;
    return parse_request(read_input(request_path, kInputLimitBytes), where);
  }
  // Questions first: a mistake in them should not wait for standard input.
  (void)questions();
  return request_with_state(state_value());
}

Request RequestFlags::request_with_state(Json value) const {
  Json body = Json::object({{"state", std::move(value)}, {"questions", questions()}});
  const auto add_files = [&](const char* key, const std::vector<std::string>& paths) {
    if (paths.empty()) return;
    Json files = Json::array();
    // Relative to where the command was given, not to a request's file.
    for (const std::string& path : paths) {
      files.push_back("file:" + std::filesystem::absolute(path).string());
    }
    body.set(key, std::move(files));
  };
  add_files("images", images);
  add_files("videos", videos);
  return request_from_json(std::move(body), "request");
}

}  // namespace clefkit::cli
