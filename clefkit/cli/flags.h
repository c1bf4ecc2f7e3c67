#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/cli/model_flags.h"
#include "clefkit/engine/engine.h"

namespace clefkit::cli {

inline constexpr std::uint64_t kInputLimitBytes = std::uint64_t{256} << 20;

// What --backend and --precision take.
CLI::IsMember is_backend();
CLI::IsMember is_precision();
// The name by which --precision takes it.
std::string precision_name(Precision precision);

// How the engine computes: --backend, --threads, --precision, --chunk.
struct EngineFlags {
  std::string backend = "auto";
  std::size_t threads = 0;
  std::string precision;
  std::size_t chunk_tokens = 0;
  std::size_t cache_mb = 512;

  void add_to(CLI::App& app);
  void add_cache_to(CLI::App& app);
  EngineOptions options(const ModelFlags& model) const;
};

// How long a record may be: --max-tokens, --truncate.
struct LimitFlags {
  std::size_t max_tokens = 16384;
  bool truncate = false;

  void add_to(CLI::App& app);
  RecordLimits limits() const;
};

// How pictures and clips are prepared: --media-profile, --exif, --resize.
struct MediaFlags {
  std::string profile = "ane";
  std::string exif = "apply";
  std::string resize;

  void add_to(CLI::App& app);
  // How media are prepared; no files are read.
  MediaOptions options() const;
  // The same, and `file:` paths are read; relative ones are relative to the file `request_path`,
  // unless it is empty.
  MediaOptions options_with_files(const std::string& request_path) const;
};

// How answers are expressed: --confidence, --round.
struct AnswerFlags {
  std::string confidence = "typesafe";
  std::optional<int> round_digits;

  void add_to(CLI::App& app);
  AnswerOptions options() const;
};

// What is asked: a whole body by --request, or the same thing built from flags.
struct RequestFlags {
  std::string request_path;
  std::optional<std::string> state, state_json;
  std::string state_path, questions_path;
  std::vector<std::string> images, videos;  // Paths of files.

  void add_to(CLI::App& app);
  // The questions alone, for many states.
  void add_questions_to(CLI::App& app);

  // The request. Reads standard input for the state when nothing else names one.
  Request request() const;
  // The same with this state in place of the flags'.
  Request request_with_state(Json state) const;

 private:
  Json questions() const;
  Json state_value() const;

  CLI::App* app_ = nullptr;
  CLI::Option* noul_ = nullptr;
  CLI::Option* choice_ = nullptr;
  CLI::Option* score_ = nullptr;
  std::vector<std::string> nouls_, choices_, scores_;
};

}  // namespace clefkit::cli
