#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace clefkit::server {

// Writes a line a request on standard error: what was asked for by whom is not in it, nor is any
// answer. From any thread.
class RequestLog {
 public:
  enum class Format { kText, kJson, kOff };

  struct Entry {
    std::string_view request_id{};
    std::string_view dialect{};
    std::string_view method{}, path{};
    int status = 0;
    double seconds = 0, queue_seconds = 0;
    std::size_t input_tokens = 0, reused_tokens = 0;
    std::string_view error{};  // For defects and broken models alone: they concern who runs this.
  };

  explicit RequestLog(Format format);
  ~RequestLog();

  void add(const Entry& entry);
  // Something about the server as a whole.
  void note(std::string_view text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace clefkit::server
