#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clefkit/engine/engine.h"
#include "clefkit/engine/scheduler.h"
#include "clefkit/http/message.h"
#include "clefkit/http/server.h"
#include "clefkit/server/dialect.h"
#include "clefkit/server/key_store.h"
#include "clefkit/server/metrics.h"
#include "clefkit/server/request_log.h"
#include "clefkit/server/routes.h"

namespace clefkit::server {

struct ServiceOptions {
  ModelIdentity model{};
  RecordLimits limits{};
  MediaOptions media{};  // Files are never read for callers.
  SchedulerOptions scheduler{};
  std::vector<std::string> keys{};
  std::string key_file{};
  // Names that the Host header may have, without ports; empty: any. It keeps a web page from
  // reaching a server on loopback under a name of its own.
  std::vector<std::string> allowed_hosts{};
  // Each question is asked alone, under a neutral id, over the shared prefix: answers then do not
  // depend on ids, on their order, or on each other.
  bool isolate = false;
  std::optional<std::chrono::milliseconds> time_limit{};  // Of one request.
};

// Answers requests of all dialects with one engine. handle() and refuse() are called on the
// transport's thread; everything that takes time happens on the scheduler's.
class Service {
 public:
  // The engine must outlive the service and is its alone. Throws Error as KeyStore does.
  Service(Engine& engine, ServiceOptions options, RequestLog& log);

  void handle(http::Request request, std::shared_ptr<http::Exchange> exchange);
  // Of a request whose body has not been read: what handle() would refuse it for, if anything, by
  // its host, its path or its key.
  std::optional<http::Response> admit(const http::Request& request);
  // What the transport refuses, in the words of the path's protocol.
  http::Response refuse(const http::Request& request, int status, std::string_view message);

  // From then on: not ready, no new work.
  void begin_stop() { is_stopping_ = true; }
  // What is not answered yet is: that it was stopped.
  void give_up() { scheduler_.cancel_all(); }
  void set_connection_count(std::function<std::size_t()> count) { connections_ = std::move(count); }

 private:
  struct Visit;

  void check_host(const http::Request& request) const;
  void check_key(const http::Request& request);
  void check_admission(const http::Request& request, const Match& match);
  void route(const std::shared_ptr<Visit>& visit);
  http::Response page(Page page, const http::Request& request,
                      std::span<const std::string> arguments) const;
  void submit(const std::shared_ptr<Visit>& visit, const Dialect& dialect,
              std::vector<std::string> arguments);
  Job::Work read_call(Visit& visit, const Dialect& dialect,
                      const std::vector<std::string>& arguments) const;
  void finish(Visit& visit, const Dialect& dialect, Job::Result result);
  void answer(Visit& visit, http::Response response);
  // With its id; counted and in the log.
  http::Response settled(Visit& visit, http::Response response);
  void refuse_visit(Visit& visit, const Dialect& dialect, const Refusal& refusal);
  std::string next_request_id();

  Engine& engine_;
  const ServiceOptions options_;
  RequestLog& log_;
  KeyStore keys_;
  Metrics metrics_;
  std::atomic<bool> is_stopping_ = false;
  std::function<std::size_t()> connections_;
  std::string id_prefix_;
  std::atomic<std::uint64_t> next_id_ = 1;
  Scheduler scheduler_;  // Last: its threads use all of the above.
};

}  // namespace clefkit::server
