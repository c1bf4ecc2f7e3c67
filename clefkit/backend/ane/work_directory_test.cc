#include "clefkit/backend/ane/work_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"

namespace clefkit::ane {
namespace {

namespace fs = std::filesystem;

class WorkDirectoryTest : public testing::Test {
 protected:
  WorkDirectoryTest() {
    std::string pattern = (fs::temp_directory_path() / "clefkit-work-XXXXXX").string();
    parent_ = ::mkdtemp(pattern.data());
  }
  ~WorkDirectoryTest() override { fs::remove_all(parent_); }

  // A process that makes the directory, and a file in it, and is killed.
  void leave_behind(const fs::path& path) {
    const pid_t child = ::fork();
    if (child == 0) {
      WorkDirectory work(path);
      work.make();
      write_file(path / "model.mil", "left");
      ::raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_TRUE(fs::exists(path / "model.mil"));
  }

  fs::path parent_;
};

TEST_F(WorkDirectoryTest, GoesWithItsOwner) {
  const fs::path path = parent_ / "deep" / "program";
  {
    WorkDirectory work(path);
    EXPECT_FALSE(fs::exists(path));
    work.make();
    work.make();
    write_file(path / "model.mil", "text");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(WorkDirectoryTest, OfAnotherIsLeftAlone) {
  const fs::path path = parent_ / "program";
  std::optional<WorkDirectory> first;
  first.emplace(path).make();
  {
    WorkDirectory second(path);
    second.make();
  }
  remove_abandoned_work(parent_);
  EXPECT_TRUE(fs::exists(path));
  first.reset();
  EXPECT_FALSE(fs::exists(path));
  // The system's own, without an owner's file.
  fs::create_directory(path);
  {
    WorkDirectory third(path);
    third.make();
  }
  remove_abandoned_work(parent_);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(WorkDirectoryTest, OfAProcessThatIsNoMoreIsTakenOver) {
  const fs::path path = parent_ / "program";
  leave_behind(path);
  {
    WorkDirectory work(path);
    work.make();
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(WorkDirectoryTest, AbandonedOnesAreRemoved) {
  leave_behind(parent_ / "one");
  leave_behind(parent_ / "two");
  write_file(parent_ / "file", "not a directory");
  remove_abandoned_work(parent_);
  EXPECT_FALSE(fs::exists(parent_ / "one"));
  EXPECT_FALSE(fs::exists(parent_ / "two"));
  EXPECT_TRUE(fs::exists(parent_ / "file"));
  remove_abandoned_work(parent_ / "nothing");
}

TEST_F(WorkDirectoryTest, SaysWhatIsInItsWay) {
  write_file(parent_ / "file", "not a directory");
  WorkDirectory work(parent_ / "file" / "program");
  EXPECT_THROW(work.make(), Error);
}

}  // namespace
}  // namespace clefkit::ane
