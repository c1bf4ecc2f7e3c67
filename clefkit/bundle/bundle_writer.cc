#include "clefkit/bundle/bundle_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/sha256.h"
#include "clefkit/bundle/background_sink.h"

namespace clefkit {
namespace {

namespace fs = std::filesystem;

// Enough for the largest tensor of a 27B model to be written while the next is made.
constexpr std::size_t kWaitingBytes = std::size_t{256} << 20;

[[noreturn]] void fail(const fs::path& path, std::string_view doing, int reason) {
  throw_error(ErrorCode::kUnavailable, path.string(), "cannot {}: {}", doing,
              std::strerror(reason));
}

// A line of the journal, or nothing when the kill cut it short.
struct JournalLine {
  FileRecord file;
  Json note;
};

std::optional<JournalLine> parse_journal_line(std::string_view line) {
  try {
    const Json json = parse_json(line, "journal", {});
    const Json* const path = json.find("path");
    const Json* const bytes = json.find("bytes");
    const Json* const sha256 = json.find("sha256");
    const Json* const note = json.find("note");
    if (path == nullptr || !path->is_string() || bytes == nullptr || !bytes->as_uint64() ||
        sha256 == nullptr || !sha256->is_string() || note == nullptr) {
      return std::nullopt;
    }
    return JournalLine{{path->string(), *bytes->as_uint64(), sha256->string()}, *note};
  } catch (const Error&) {
    return std::nullopt;
  }
}

// "a/" and "a" are the same directory.
fs::path without_slash(const fs::path& out) {
  const fs::path normal = out.lexically_normal();
  const fs::path named = normal.has_filename() ? normal : normal.parent_path();
  if (named.empty() || !named.has_filename() || named.filename() == "." ||
      named.filename() == "..") {
    throw_error(ErrorCode::kInvalidArgument, "output", "\"{}\", expected the name of a new bundle",
                out.string());
  }
  return named;
}

}  // namespace

BundleWriter::BundleWriter(fs::path out, const std::string& fingerprint)
    : out_(without_slash(out)),
      partial_(out_.string() + ".partial"),
      journal_path_(out_.string() + ".partial.journal") {
  std::error_code error;
  if (fs::exists(fs::symlink_status(out_, error))) {
    throw Error(ErrorCode::kInvalidArgument, out_.string(),
                "already exists, expected the name of a new bundle");
  }
  if (fs::exists(fs::symlink_status(partial_, error)) &&
      (!fs::is_directory(fs::symlink_status(partial_, error)) ||
       !fs::exists(journal_path_, error))) {
    throw_error(ErrorCode::kInvalidArgument, partial_.string(),
                "exists and is no unfinished conversion ({} is missing), expected nothing there",
                journal_path_.string());
  }
  // The journal first: a kill in between leaves a journal without files, which can be gone on with.
  if (const fs::path parent = out_.parent_path(); !parent.empty()) {
    fs::create_directories(parent, error);
    if (error) fail(parent, "create the directory", error.value());
  }
  journal_ = ::open(journal_path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (journal_ < 0) fail(journal_path_, "create the journal", errno);
  if (::flock(journal_, LOCK_EX | LOCK_NB) != 0) {
    throw Error(ErrorCode::kInvalidArgument, partial_.string(),
                "another conversion is writing this bundle");
  }
  fs::create_directories(partial_, error);
  if (error) fail(partial_, "create the directory", error.value());
  const std::size_t valid_bytes = read_journal(fingerprint);
  // A line that a kill cut short must not run into the next one.
  if (::ftruncate(journal_, static_cast<::off_t>(valid_bytes)) != 0) {
    fail(journal_path_, "shorten the journal", errno);
  }
  if (valid_bytes == 0) append_journal(Json::object({{"fingerprint", fingerprint}}));
}

BundleWriter::~BundleWriter() {
  if (journal_ >= 0) ::close(journal_);
}

std::size_t BundleWriter::read_journal(const std::string& fingerprint) {
  const std::string text = read_file(journal_path_, std::uint64_t{64} << 20);
  const std::string first_line = to_string(Json::object({{"fingerprint", fingerprint}}));
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (at == 0 && line != first_line) {
      throw_error(ErrorCode::kInvalidArgument, partial_.string(),
                  "holds a conversion of another checkpoint or with other options, expected the "
                  "same; finish that one, or remove {} and {}",
                  partial_.string(), journal_path_.string());
    }
    if (auto parsed = at == 0 ? std::nullopt : parse_journal_line(line)) {
      finished_[parsed->file.path] = {parsed->file, std::move(parsed->note)};
    }
  }
  return at;
}

void BundleWriter::append_journal(const Json& line) {
  const std::string text = to_string(line) + "\n";
  if (::write(journal_, text.data(), text.size()) != static_cast<::ssize_t>(text.size()) ||
      ::fsync(journal_) != 0) {
    fail(journal_path_, "write", errno);
  }
}

Json BundleWriter::add_file(const std::string& path, const WriteFile& write) {
  const fs::path target = partial_ / path;
  if (const auto earlier = finished_.find(path); earlier != finished_.end()) {
    const FileRecord& file = earlier->second.file;
    std::error_code error;
    if (fs::file_size(target, error) == file.bytes && !error &&
        sha256_of_file(target) == file.sha256) {
      files_.push_back(file);
      return earlier->second.note;
    }
  }
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) fail(target.parent_path(), "create the directory", error.value());

  AtomicFile file(target);
  Sha256 hash;
  Json note;
  {
    BackgroundSink background(
        [&](Bytes bytes) {
          file.write(bytes);
          hash.update(bytes);
        },
        kWaitingBytes);
    note = write([&](std::vector<std::uint8_t> buffer) { background.push(std::move(buffer)); });
    background.finish();
  }
  const std::uint64_t bytes = file.size_bytes();
  file.commit();
  files_.push_back({path, bytes, hash.finish()});
  append_journal(Json::object(
      {{"path", path}, {"bytes", bytes}, {"sha256", files_.back().sha256}, {"note", note}}));
  return note;
}

Json BundleWriter::add_file(const std::string& path, std::string_view text) {
  return add_file(path, [&](const Sink& sink) {
    const Bytes bytes = as_bytes(text);
    sink({bytes.begin(), bytes.end()});
    return Json();
  });
}

Json BundleWriter::remember(const std::string& name, const std::function<Json()>& make) {
  if (const auto earlier = finished_.find(name); earlier != finished_.end()) {
    return earlier->second.note;
  }
  Json note = make();
  append_journal(
      Json::object({{"path", name}, {"bytes", std::uint64_t{0}}, {"sha256", ""}, {"note", note}}));
  return note;
}

void BundleWriter::finish(Manifest manifest) {
  manifest.files = files_;
  write_file(partial_ / kManifestFile, to_pretty_string(manifest_to_json(manifest)) + "\n");
  // What an earlier run with a bug or a person left there is not part of the bundle.
  for (const auto& entry : fs::recursive_directory_iterator(partial_)) {
    if (entry.path().extension() == ".tmp") fs::remove(entry.path());
  }
  if (::rename(partial_.c_str(), out_.c_str()) != 0) fail(out_, "finish the bundle", errno);
  ::close(std::exchange(journal_, -1));
  fs::remove(journal_path_);
}

}  // namespace clefkit
