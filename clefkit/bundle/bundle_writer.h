#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/base/json.h"
#include "clefkit/bundle/manifest.h"

namespace clefkit {

// Writes a bundle so that it either exists whole or not at all. Files gather in `<out>.partial`,
// each written to a temporary name, flushed and renamed; a journal beside it remembers which are
// done; finish() writes the manifest last and renames the directory. A conversion that was killed
// goes on from its journal.
class BundleWriter {
 public:
  // `fingerprint` names source and options: a partial conversion with another one is not resumed.
  // Throws Error(kInvalidArgument) when `out` exists or a partial conversion does not match.
  BundleWriter(std::filesystem::path out, const std::string& fingerprint);
  ~BundleWriter();
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // True when an earlier run left finished files behind.
  bool is_resumed() const { return !finished_.empty(); }

  // Bytes go through the sink; what `write` returns is a note that is kept with the file (what a
  // reader of the finished conversion must know about it) and survives a restart.
  using Sink = std::function<void(std::vector<std::uint8_t>)>;
  using WriteFile = std::function<Json(const Sink&)>;

  // Writes one file, unless an earlier run finished it and its checksum still holds; then only
  // its note is returned. `path` is relative to the bundle.
  Json add_file(const std::string& path, const WriteFile& write);
  Json add_file(const std::string& path, std::string_view text);

  // What an earlier run knew under that name, else what `make` returns; the journal keeps it. For
  // what takes long to find out and stands in no file. No file has the name.
  Json remember(const std::string& name, const std::function<Json()>& make);

  // Where a file lies that was added, until finish().
  std::filesystem::path place_of(const std::string& path) const { return partial_ / path; }

  // Every file so far, in the order of the calls.
  const std::vector<FileRecord>& files() const { return files_; }

  // Completes manifest.files and makes the bundle appear at its name.
  void finish(Manifest manifest);

 private:
  struct Finished {
    FileRecord file;
    Json note;
  };

  // Fills finished_; returns the bytes of the journal's whole lines.
  std::size_t read_journal(const std::string& fingerprint);
  void append_journal(const Json& line);

  std::filesystem::path out_;
  std::filesystem::path partial_;
  std::filesystem::path journal_path_;
  int journal_ = -1;
  std::map<std::string, Finished> finished_;  // By earlier runs, by path.
  std::vector<FileRecord> files_;
};

}  // namespace clefkit
