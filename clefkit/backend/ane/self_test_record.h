#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "clefkit/backend/ane/apple/apple_device.h"
#include "clefkit/programs/spellings.h"

// What `clefkit doctor` found out about a model on this machine's Neural Engine, kept so that
// `--backend auto` knows.
namespace clefkit::ane {

struct SelfTestRecord {
  // What it holds for: another system or chip, programs of another revision, another model make it
  // worthless.
  std::string system{}, chip{}, model{};
  int program_revision = 0;
  Spellings spellings{};  // With which it was tested.
  bool passed = false;
  std::string problem{};  // Why not.
};

// Where the model's record is: in $CLEFKIT_STATE_DIRECTORY, else where the system wants such files.
std::filesystem::path self_test_record_path(const std::string& model);

// Nothing when there is none, or one that cannot be read: then it is as if nothing had been tested.
std::optional<SelfTestRecord> read_self_test_record(const std::filesystem::path& path);
// Throws Error(kUnavailable).
void write_self_test_record(const SelfTestRecord& record, const std::filesystem::path& path);

// Why `auto` does not take the Neural Engine for this model; empty: it does.
std::string objection_to_engine(const AppleFacts& facts,
                                const std::optional<SelfTestRecord>& record,
                                const std::string& model);

// How the record says that programs must be spelled here; the first ways where it says nothing.
Spellings found_spellings(const AppleFacts& facts, const std::optional<SelfTestRecord>& record,
                          const std::string& model);

}  // namespace clefkit::ane
