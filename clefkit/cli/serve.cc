#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "clefkit/base/trimmed.h"
#include "clefkit/bundle/open_model.h"
#include "clefkit/cli/command.h"
#include "clefkit/cli/flags.h"
#include "clefkit/cli/output.h"
#include "clefkit/http/server.h"
#include "clefkit/server/key_store.h"
#include "clefkit/server/service.h"

namespace clefkit::cli {
namespace {

// A short request waits for the steps of others, so they are shorter than the CPU backend would
// have them. Measured on two Zen 3 cores: linear layers 1.4 % slower than with 512 tokens a step
// (with 128: 7.6 %).
constexpr std::size_t kChunkTokens = 256;
constexpr std::size_t kSpareDescriptors = 64;  // For model files, decoders, logs.

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

// As many connections as descriptors allow; the soft limit is often far below the hard one.
std::size_t raise_descriptor_limit(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted + kSpareDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto allowed = static_cast<std::size_t>(limit.rlim_cur);
  return std::min(wanted,
                  allowed > 2 * kSpareDescriptors ? allowed - kSpareDescriptors : allowed / 2);
}

// Calls `stop` at the first SIGINT or SIGTERM and ends the process at the second. The signals must
// be blocked in every thread before any thread starts.
class StopOnSignal {
 public:
  static sigset_t signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGUSR2}) ::sigaddset(&set, signal);
    return set;
  }
  static void block() {
    const sigset_t set = signals();
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  }

  explicit StopOnSignal(std::function<void()> stop)
      : thread_([this, stop = std::move(stop)] {
          const sigset_t set = signals();
          for (int count = 0; !is_over_;) {
            int signal = 0;
            // Anybody may send SIGUSR2; it means something from the destructor alone.
            if (::sigwait(&set, &signal) != 0 || signal == SIGUSR2) continue;
            if (++count == 2) ::_exit(kInterrupted);
            stop();
          }
        }) {}
  ~StopOnSignal() {
    is_over_ = true;
    ::pthread_kill(thread_.native_handle(), SIGUSR2);
    thread_.join();
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

// Ends the server when a signal says so, or, while the model is still being loaded and nobody has
// been taken, the process. Called by the signals' thread.
class Stopping {
 public:
  void began(server::Service& service, http::Server& transport) {
    const std::lock_guard lock(mutex_);
    service_ = &service;
    transport_ = &transport;
  }
  void ended() {
    const std::lock_guard lock(mutex_);
    service_ = nullptr;
    is_over_ = true;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    if (service_ == nullptr) {
      fmt::print(stderr, "clefkit: stopped before it was ready\n");
      ::_exit(kInterrupted);
    }
    fmt::print(stderr, "clefkit: stopping: what was begun is answered first\n");
    service_->begin_stop();
    transport_->stop();
  }

 private:
  std::mutex mutex_;
  server::Service* service_ = nullptr;
  http::Server* transport_ = nullptr;
  bool is_over_ = false;
};

struct ServeCommand {
  ModelFlags model;
  EngineFlags engine;
  LimitFlags limits;
  MediaFlags media;
  http::ServerOptions http;
  unsigned chosen_port = http.port;
  std::size_t queue = 32;
  std::string key_file;
  std::vector<std::string> allowed_hosts;
  bool without_key = false;
  bool isolate = false;
  std::string log = "text";
  std::size_t time_limit_seconds = 0;

  int run() {
    server::ServiceOptions options = service_options();
    check_exposure(server::KeyStore(options.keys, options.key_file));
    StopOnSignal::block();
    // What can be wrong with keys, certificate and port is told before the model is loaded; but a
    // port that another server has taken and does not listen on yet, only afterwards.
    server::Service* answering = nullptr;
    http.port = static_cast<std::uint16_t>(chosen_port);
    http.max_connections = raise_descriptor_limit(http.max_connections);
    http::Server transport(
        http, {.handle =
                   [&](http::Request request, std::shared_ptr<http::Exchange> exchange) {
                     answering->handle(std::move(request), std::move(exchange));
                   },
               .refuse =
                   [&](const http::Request& request, int status, std::string_view message) {
                     return answering->refuse(request, status, message);
                   },
               .admit = [&](const http::Request& request) { return answering->admit(request); },
               .give_up = [&] { answering->give_up(); }});
    Stopping stopping;
    const StopOnSignal stop_on_signal([&] { stopping.stop(); });
    fmt::print(stderr, "clefkit: loading {}{}\n", model.directory(),
               model.is_in_box() ? ", the model in the box" : "");
    EngineOptions engine_options = engine.options(model);
    if (engine_options.chunk_tokens == 0) engine_options.chunk_tokens = kChunkTokens;
    Engine engine_instance(open_model(model.directory()), engine_options);
    fmt::print(stderr, "clefkit: computing by {}{}\n", engine_instance.backend().name(),
               as_reason(engine_instance.backend_reason()));
    warm_up(engine_instance);
    options.model = {.name = engine_instance.model().name,
                     .digest = model_digest(model.directory()),
                     .version = CLEFKIT_VERSION,
                     .max_tokens = limits.max_tokens,
                     .has_vision = engine_instance.model().config.has_vision(),
                     .size_bytes = model_size_bytes(model.directory())};
    server::RequestLog request_log(log_format());
    server::Service service(engine_instance, std::move(options), request_log);
    answering = &service;
    service.set_connection_count([&] { return transport.connections(); });
    transport.listen();
    stopping.began(service, transport);
    // Scripts wait for this line.
    fmt::print(stderr, "listening on {}\n", address(transport.port()));
    transport.run();
    stopping.ended();
    return kDone;
  }

  server::ServiceOptions service_options() const {
    server::ServiceOptions options;
    options.limits = limits.limits();
    options.media = media.options();
    options.scheduler.max_jobs = queue;
    options.scheduler.max_run_tokens = limits.max_tokens * 3 / 2;
    options.key_file = key_file;
    if (const char* keys = std::getenv("CLEFKIT_API_KEYS")) {
      for (std::string_view rest = keys; !rest.empty();) {
        const std::size_t end = rest.find(',');
        options.keys.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
      }
      std::erase_if(options.keys, [](const std::string& key) { return trimmed(key).empty(); });
      if (options.keys.empty() && *keys != '\0') {
        throw_error(ErrorCode::kInvalidArgument, "CLEFKIT_API_KEYS",
                    "no key in it, expected KEY,KEY… or nothing");
      }
    }
    for (const std::string& name : allowed_hosts) {
      if (name.empty() || (name.find(':') != name.npos && name.find(':') == name.rfind(':'))) {
        throw_error(ErrorCode::kInvalidArgument, "--allow-host",
                    "\"{}\", expected a name without a port", name);
      }
    }
    options.allowed_hosts = allowed_hosts;
    if (is_loopback(http.host)) {
      for (const char* name : {"localhost", "127.0.0.1", "::1"})
        options.allowed_hosts.push_back(name);
      options.allowed_hosts.push_back(http.host);
    }
    options.isolate = isolate;
    if (time_limit_seconds > 0) options.time_limit = std::chrono::seconds(time_limit_seconds);
    return options;
  }

  void check_exposure(const server::KeyStore& keys) const {
    if (is_loopback(http.host) || keys.asks_for_key() || without_key) return;
    throw_error(ErrorCode::kInvalidArgument, "--host",
                "{} can be reached from other machines, expected --key-file or CLEFKIT_API_KEYS "
                "with it, or --without-key if everybody there may ask",
                http.host);
  }

  server::RequestLog::Format log_format() const {
    if (log == "off") return server::RequestLog::Format::kOff;
    return log == "json" ? server::RequestLog::Format::kJson : server::RequestLog::Format::kText;
  }

  // The first request would otherwise pay for page faults and buffers.
  void warm_up(Engine& engine_instance) const {
    AskOptions options;
    options.use_cache = false;
    options.limits.max_tokens = std::size_t{1} << 20;
    engine_instance.ask(
        parse_request(R"({"state":"","questions":{"q":{"type":"noul"}}})", "warm-up"), options);
  }

  std::string address(std::uint16_t port) const {
    const std::string host =
        http.host.find(':') == http.host.npos ? http.host : "[" + http.host + "]";
    return fmt::format("{}://{}:{}", http.tls_certificate_file.empty() ? "http" : "https", host,
                       port);
  }
};

}  // namespace

void add_serve_command(CommandLine& line) {
  auto command = std::make_shared<ServeCommand>();
  CLI::App& app = *line.app.add_subcommand(
      "serve", "Answer decision requests over HTTP, in the six protocols that clients speak");
  command->model.add_to(app);
  app.add_option("--host", command->http.host, "Address to listen on")->capture_default_str();
  app.add_option("--port", command->chosen_port, "Port; 0 takes any that is free")
      ->check(CLI::Range(0U, 65'535U))
      ->capture_default_str();
  app.add_option("--key-file", command->key_file,
                 "Keys that callers must show as Authorization: Bearer KEY, one a line; read again "
                 "when it changes. CLEFKIT_API_KEYS=KEY,KEY… does the same")
      ->check(CLI::ExistingFile);
  app.add_flag("--without-key", command->without_key,
               "Listen beyond this machine although no key is asked for");
  app.add_option(
      "--allow-host", command->allowed_hosts,
      "Further names for the Host header (default: on loopback its own names, else any)");
  app.add_option("--tls-cert", command->http.tls_certificate_file, "PEM file: certificate chain")
      ->check(CLI::ExistingFile);
  app.add_option("--tls-key", command->http.tls_key_file, "PEM file: its private key")
      ->check(CLI::ExistingFile);
  app.add_option("--queue", command->queue,
                 "Requests that wait or run; more get 429 and when to come back")
      ->check(CLI::Range(std::size_t{1}, std::size_t{100'000}))
      ->capture_default_str();
  app.add_flag("--isolate", command->isolate,
               "Ask each question alone and under a neutral id: answers then depend neither on ids "
               "nor on the other questions, and differ from the release's joint ones");
  app.add_option(
         "--time-limit", command->time_limit_seconds,
         "Longest time of a request in seconds (default: none; callers may set their own by "
         "the header X-Deadline-Ms)")
      ->check(CLI::Range(std::size_t{0}, std::size_t{31'536'000}));
  app.add_option("--log", command->log, "Request log on standard error, without contents")
      ->check(CLI::IsMember({"text", "json", "off"}))
      ->capture_default_str();
  command->limits.add_to(app);
  command->media.add_to(app);
  command->engine.add_to(app);
  command->engine.add_cache_to(app);
  app.footer(
      "Examples:\n"
      "  clefkit serve -m MODEL\n"
      "  clefkit serve -m MODEL --host 0.0.0.0 --key-file keys.txt --tls-cert c.pem --tls-key "
      "k.pem\n"
      "  clefkit serve -m MODEL --port 11434   # where Ollama's clients look\n"
      "Then open http://127.0.0.1:8080/ in a browser; `clefkit clients` prints what to put into "
      "each SDK.");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
