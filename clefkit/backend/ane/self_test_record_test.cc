#include "clefkit/backend/ane/self_test_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>

#include "clefkit/base/file_io.h"
#include "clefkit/programs/text_program.h"

namespace clefkit::ane {
namespace {

using testing::HasSubstr;

const AppleFacts kMac{.chip = "h16g", .system = "Version 26.1 (Build 25B78)"};
SelfTestRecord passed() {
  return {.system = kMac.system,
          .chip = kMac.chip,
          .model = "clef-flash",
          .program_revision = kTextProgramRevision,
          .passed = true};
}

TEST(ObjectionToEngine, IsNoneAfterAPassedTestOnThisMachine) {
  EXPECT_EQ(objection_to_engine(kMac, passed(), "clef-flash"), "");
}

TEST(ObjectionToEngine, IsTheMachinesOwnFirst) {
  EXPECT_EQ(objection_to_engine({.problem = "this is not a Mac"}, passed(), "clef-flash"),
            "this is not a Mac");
}

TEST(ObjectionToEngine, IsThatNothingWasTested) {
  EXPECT_THAT(objection_to_engine(kMac, std::nullopt, "clef-flash"), HasSubstr("not been tested"));
}

TEST(ObjectionToEngine, IsThatSomethingElseWasTested) {
  using Change = std::function<void(SelfTestRecord&)>;
  for (const Change& change : {Change([](auto& record) { record.system = "Version 26.2"; }),
                               Change([](auto& record) { record.chip = "h17s"; }),
                               Change([](auto& record) { record.model = "clef"; }),
                               Change([](auto& record) { ++record.program_revision; })}) {
    SelfTestRecord record = passed();
    change(record);
    EXPECT_THAT(objection_to_engine(kMac, record, "clef-flash"), HasSubstr("another system"));
  }
}

TEST(FoundSpellings, AreTheRecordsWhereItIsAboutThisMachine) {
  SelfTestRecord record = passed();
  record.spellings = {.concat_by_sum = true};
  EXPECT_EQ(found_spellings(kMac, record, "clef-flash"), record.spellings);
  EXPECT_EQ(found_spellings(kMac, record, "clef"), Spellings{});
  EXPECT_EQ(found_spellings(kMac, std::nullopt, "clef-flash"), Spellings{});
}

TEST(ObjectionToEngine, IsThatTheTestFailed) {
  SelfTestRecord record = passed();
  record.passed = false;
  record.problem = "softmax is wrong";
  EXPECT_THAT(objection_to_engine(kMac, record, "clef-flash"), HasSubstr("softmax is wrong"));
}

class SelfTestRecordFile : public testing::Test {
 protected:
  SelfTestRecordFile() { ::setenv("CLEFKIT_STATE_DIRECTORY", directory_.c_str(), 1); }
  ~SelfTestRecordFile() override { std::filesystem::remove_all(directory_); }
  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / fmt::format("clefkit_record_{}", ::getpid());
};

TEST_F(SelfTestRecordFile, IsReadAsItWasWritten) {
  const auto path = self_test_record_path("my model/../x");
  EXPECT_EQ(path, directory_ / "neural-engine-my_model_.._x.json");
  EXPECT_FALSE(read_self_test_record(path));
  SelfTestRecord record = passed();
  record.problem = "none";
  write_self_test_record(record, path);
  const auto read = read_self_test_record(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->system, record.system);
  EXPECT_EQ(read->chip, record.chip);
  EXPECT_EQ(read->model, record.model);
  EXPECT_EQ(read->program_revision, record.program_revision);
  EXPECT_EQ(read->problem, record.problem);
  EXPECT_TRUE(read->passed);
}

TEST_F(SelfTestRecordFile, CountsAsAbsentWhenItSaysNothing) {
  const auto path = self_test_record_path("m");
  std::filesystem::create_directories(directory_);
  for (const char* text :
       {"", "[]", "{", "{}", R"({"passed": true})", R"({"passed": 1, "program_revision": 1})"}) {
    write_file(path, text);
    EXPECT_FALSE(read_self_test_record(path)) << text;
  }
}

}  // namespace
}  // namespace clefkit::ane
