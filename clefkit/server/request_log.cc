#include "clefkit/server/request_log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "clefkit/base/json.h"

namespace clefkit::server {
namespace {

// A path may hold anything, and the log is read in terminals.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 200)) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

}  // namespace

struct RequestLog::State {
  Format format;
  spdlog::logger logger{"requests", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

RequestLog::RequestLog(Format format) : state_(std::make_unique<State>()) {
  state_->format = format;
  state_->logger.set_level(format == Format::kOff ? spdlog::level::off : spdlog::level::info);
  state_->logger.set_pattern(format == Format::kJson ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})"
                                                     : "%Y-%m-%dT%H:%M:%S.%eZ %v",
                             spdlog::pattern_time_type::utc);
}

RequestLog::~RequestLog() = default;

void RequestLog::add(const Entry& entry) {
  if (state_->format == Format::kOff) return;
  if (state_->format == Format::kText) {
    state_->logger.info("{} {} {} {} {} {:.3f} s, {:.3f} s waiting, {} tokens, {} reused{}{}",
                        entry.request_id, entry.dialect, entry.method, printable(entry.path),
                        entry.status, entry.seconds, entry.queue_seconds, entry.input_tokens,
                        entry.reused_tokens, entry.error.empty() ? "" : ": ",
                        printable(entry.error));
    return;
  }
  Json line = Json::object({{"request_id", entry.request_id},
                            {"dialect", entry.dialect},
                            {"method", entry.method},
                            {"path", printable(entry.path)},
                            {"status", entry.status},
                            {"seconds", entry.seconds},
                            {"queue_seconds", entry.queue_seconds},
                            {"input_tokens", std::uint64_t{entry.input_tokens}},
                            {"reused_tokens", std::uint64_t{entry.reused_tokens}}});
  if (!entry.error.empty()) line.set("error", printable(entry.error));
  const std::string text = to_string(line);
  state_->logger.info("{}", std::string_view(text).substr(1, text.size() - 2));
}

void RequestLog::note(std::string_view text) {
  if (state_->format == Format::kOff) return;
  if (state_->format == Format::kText) {
    state_->logger.info("{}", text);
    return;
  }
  std::string quoted;
  append_json_string(quoted, text);
  state_->logger.info("\"note\":{}", quoted);
}

}  // namespace clefkit::server
