#include "clefkit/server/service.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <mutex>
#include <new>
#include <random>
#include <utility>

#include "clefkit/base/stopwatch.h"
#include "clefkit/http/content_coding.h"
#include "clefkit/questions/json_members.h"
#include "clefkit/server/pages.h"

namespace clefkit::server {
namespace {

// What a question is called when it is asked alone.
constexpr char kNeutralId[] = "question";
constexpr double kLongestRetrySeconds = 60;
// For log and metrics, as nginx has it: nobody is there to read a status.
constexpr int kClientGone = 499;

// "127.0.0.1:8080" to "127.0.0.1", "[::1]:8080" to "::1"; nothing when no number is the port.
std::string_view host_name(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == host.npos) return {};
  const std::string_view name =
      bracket > 0 ? host.substr(1, bracket - 1) : host.substr(0, host.find(':'));
  const std::string_view port = host.substr(bracket > 0 ? bracket + 1 : name.size());
  const bool is_port =
      port.starts_with(':') && port.find_first_not_of("0123456789", 1) == port.npos;
  return port.empty() || is_port ? name : std::string_view();
}

// "http://localhost:8080" to "localhost:8080"; nothing of "null".
std::string_view host_of_origin(std::string_view origin) {
  const std::size_t scheme = origin.find("://");
  return scheme == origin.npos ? std::string_view() : origin.substr(scheme + 3);
}

Refusal::Kind kind_of_status(int status) {
  switch (status) {
    case 413:
      return Refusal::Kind::kBodyTooLarge;
    case 503:
      return Refusal::Kind::kBusy;
    case 500:
      return Refusal::Kind::kInternal;
    default:
      return Refusal::Kind::kNotJson;
  }
}

// The body without its Content-Encoding.
std::string decoded_body(http::Request& request, std::size_t max_bytes) {
  // A header that comes twice means the same as one with both values.
  std::string coding;
  for (const auto& [name, value] : request.headers) {
    if (!http::equal_ignoring_case(name, "content-encoding")) continue;
    coding += (coding.empty() ? "" : ", ") + value;
  }
  try {
    return http::decode_content(coding, std::move(request.body), max_bytes);
  } catch (const Error& error) {
    const auto as = [&](Refusal::Kind kind) {
      return Refusal(kind, error.where(), error.message());
    };
    switch (error.code()) {
      case ErrorCode::kTooLarge:
        throw as(Refusal::Kind::kBodyTooLarge);
      case ErrorCode::kUnsupported:
        throw as(Refusal::Kind::kMediaType);
      default:
        throw as(Refusal::Kind::kNotJson);
    }
  }
}

// The caller's own deadline, in milliseconds from now.
std::optional<std::chrono::milliseconds> deadline_of(const http::Request& request) {
  const auto text = request.header("x-deadline-ms");
  if (!text) return std::nullopt;
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value == 0) {
    throw Refusal(Refusal::Kind::kInvalid, "x-deadline-ms",
                  fmt::format("{}, expected milliseconds from 1 to {}", in_quotes(*text), kMost));
  }
  return std::chrono::milliseconds(value);
}

Refusal refusal_of(std::exception_ptr error, bool past_deadline) {
  try {
    std::rethrow_exception(error);
  } catch (const Refusal& refusal) {
    return refusal;
  } catch (const Error& failure) {
    if (failure.code() == ErrorCode::kCancelled) {
      return past_deadline
                 ? Refusal(Refusal::Kind::kDeadline, "", "the deadline passed before the answer")
                 : Refusal(Refusal::Kind::kStopping, "", "stopped before the answer was there");
    }
    return server::refusal_of(failure);
  } catch (const std::bad_alloc&) {
    return Refusal(Refusal::Kind::kInternal, "", "out of memory");
  } catch (const std::exception& failure) {
    return Refusal(Refusal::Kind::kInternal, "", failure.what());
  }
}

// Each question alone.
std::vector<std::vector<Question>> isolated(const std::vector<Question>& questions) {
  std::vector<std::vector<Question>> lists;
  for (Question question : questions) {
    // Without instructions the model reads the id in their place.
    if (!question.instructions) question.instructions = Json(question.id);
    question.id = kNeutralId;
    lists.push_back({std::move(question)});
  }
  return lists;
}

// The responses to isolated questions as one.
Response joined(const Call& call, std::vector<Response> responses) {
  Response all = std::move(responses.front());
  for (Response& response : std::span(responses).subspan(1)) {
    all.probabilities.push_back(std::move(response.probabilities.front()));
    all.input_tokens += response.input_tokens;
    all.reused_tokens += response.reused_tokens;
    all.dropped_state_tokens = std::max(all.dropped_state_tokens, response.dropped_state_tokens);
    all.encode_seconds += response.encode_seconds;
    all.prefill_seconds += response.prefill_seconds;
    all.head_seconds += response.head_seconds;
  }
  all.answers = answers_to_json(call.request.questions, all.probabilities, call.answers);
  return all;
}

}  // namespace

// A request from its arrival to its answer.
struct Service::Visit {
  http::Request request;
  std::shared_ptr<http::Exchange> exchange;
  std::string id;
  Stopwatch stopwatch;
  std::string_view dialect = "page";
  std::optional<Job::Clock::time_point> deadline;
  Call call;  // Written by the preparing thread, read by the computing one.
  std::optional<double> queue_seconds;  // Nothing: it never was in the queue.
  std::size_t input_tokens = 0, reused_tokens = 0;
  std::string error;
  std::atomic<bool> is_gone = false;  // The client hung up.
};

Service::Service(Engine& engine, ServiceOptions options, RequestLog& log)
    : engine_(engine),
      options_(std::move(options)),
      log_(log),
      keys_(options_.keys, options_.key_file),
      id_prefix_(fmt::format("{:08x}", std::random_device()())),
      scheduler_(engine, options_.scheduler) {}

std::string Service::next_request_id() {
  return fmt::format("req_{}{:08x}", id_prefix_, next_id_.fetch_add(1));
}

void Service::check_host(const http::Request& request) const {
  if (options_.allowed_hosts.empty()) return;
  const auto is_ours = [&](std::string_view host) {
    const std::string_view name = host_name(host);
    return std::ranges::any_of(options_.allowed_hosts, [&](const std::string& allowed) {
      return http::equal_ignoring_case(allowed, name);
    });
  };
  if (!is_ours(request.header("host").value_or(""))) {
    throw Refusal(Refusal::Kind::kForbidden, "host",
                  "this server answers under its own names only (see --allow-host)");
  }
  // A browser sends a simple POST for any page; that the page cannot read the answer is not enough.
  const auto origin = request.header("origin");
  if (origin && !is_ours(host_of_origin(*origin))) {
    throw Refusal(Refusal::Kind::kForbidden, "origin",
                  "this server takes no requests from other sites' pages (see --allow-host)");
  }
}

void Service::check_key(const http::Request& request) {
  if (!keys_.asks_for_key()) return;
  const auto key = key_of(request.header("authorization"), request.header("x-auth-key"));
  if (!key) {
    throw Refusal(Refusal::Kind::kUnauthorized, "",
                  "no key, expected the header Authorization: Bearer KEY");
  }
  if (keys_.accepts(*key)) return;
  if (!keys_.problem().empty()) log_.note(keys_.problem());
  throw Refusal(Refusal::Kind::kUnauthorized, "", "this key is not known here");
}

// Who may ask, and whether there is what it asks for.
void Service::check_admission(const http::Request& request, const Match& match) {
  check_host(request);
  // What exists is nobody else's business.
  if (match.route == nullptr || !match.route->is_open) check_key(request);
  if (match.route != nullptr) return;
  if (match.allowed_methods.empty()) {
    throw Refusal(Refusal::Kind::kNotFound, "", "no such path; /openapi.json lists what there is");
  }
  Refusal refusal(Refusal::Kind::kMethodNotAllowed, "",
                  fmt::format("{}, expected {}", request.method, match.allowed_methods));
  refusal.allowed_methods = match.allowed_methods;
  throw refusal;
}

std::optional<http::Response> Service::admit(const http::Request& request) {
  const Match match = match_route(request.method, request.path);
  try {
    check_admission(request, match);
    return std::nullopt;
  } catch (const Refusal& refusal) {
    Visit visit;
    visit.request.method = request.method;
    visit.request.path = request.path;
    visit.id = next_request_id();
    if (match.route != nullptr && match.route->dialect != nullptr) {
      visit.dialect = match.route->dialect->name;
    }
    return settled(visit, dialect_near(request.path).refuse(refusal, visit.id));
  }
}

void Service::handle(http::Request request, std::shared_ptr<http::Exchange> exchange) {
  auto visit = std::make_shared<Visit>();
  visit->request = std::move(request);
  visit->exchange = std::move(exchange);
  visit->id = next_request_id();
  const Dialect& dialect = dialect_near(visit->request.path);
  try {
    route(visit);
  } catch (...) {
    refuse_visit(*visit, dialect, refusal_of(std::current_exception(), false));
  }
}

void Service::route(const std::shared_ptr<Visit>& visit) {
  const http::Request& request = visit->request;
  Match match = match_route(request.method, request.path);
  if (match.route != nullptr && match.route->dialect != nullptr) {
    visit->dialect = match.route->dialect->name;
  }
  check_admission(request, match);
  if (match.route->dialect == nullptr) {
    return answer(*visit, page(match.route->page, request, match.arguments));
  }
  submit(visit, *match.route->dialect, std::move(match.arguments));
}

http::Response Service::page(Page page, const http::Request& request,
                             std::span<const std::string> arguments) const {
  if (auto found = model_page(page, request, arguments, options_.model)) return std::move(*found);
  if (page == Page::kMetrics) {
    return {.content_type = "text/plain; version=0.0.4",
            .body = metrics_.text(scheduler_.counts(), connections_ ? connections_() : 0),
            .headers = {}};
  }
  if (page == Page::kReady) {
    const bool is_full = scheduler_.counts().jobs >= options_.scheduler.max_jobs;
    if (is_stopping_ || is_full) {
      return {.status = 503,
              .body = is_stopping_ ? R"({"status":"stopping"})" : R"({"status":"full"})",
              .headers = {}};
    }
  }
  return {.body = R"({"status":"ok"})", .headers = {}};
}

void Service::submit(const std::shared_ptr<Visit>& visit, const Dialect& dialect,
                     std::vector<std::string> arguments) {
  if (is_stopping_) throw Refusal(Refusal::Kind::kStopping, "", "the server is stopping");
  if (visit->request.body.size() > dialect.max_body_bytes) {
    throw Refusal(Refusal::Kind::kBodyTooLarge, "",
                  fmt::format("a body of {} bytes, expected at most {}", visit->request.body.size(),
                              dialect.max_body_bytes));
  }
  std::optional<std::chrono::milliseconds> time = deadline_of(visit->request);
  if (options_.time_limit)
    time = std::min(time.value_or(*options_.time_limit), *options_.time_limit);
  if (time) visit->deadline = Job::Clock::now() + *time;

  Job job;
  job.deadline = visit->deadline;
  job.options.limits = options_.limits;
  job.options.media = options_.media;
  job.options.media.allow_files = false;
  job.read = [this, visit, &dialect, path_arguments = std::move(arguments)](AskOptions& ask) {
    Job::Work work = read_call(*visit, dialect, path_arguments);
    ask.answers = visit->call.answers;
    ask.limits.overflow = visit->call.overflow;
    ask.limits.overflow_name = visit->call.overflow_name;
    return work;
  };
  job.done = [this, visit, &dialect](Job::Result result) {
    finish(*visit, dialect, std::move(result));
  };
  const auto ticket = scheduler_.submit(std::move(job));
  if (!ticket) {
    Refusal busy(Refusal::Kind::kBusy, "",
                 fmt::format("{} requests wait already", options_.scheduler.max_jobs));
    busy.retry_after_seconds =
        std::clamp(scheduler_.expected_wait_seconds() / 2, 0.05, kLongestRetrySeconds);
    throw busy;
  }
  visit->exchange->on_disconnect([this, ticket, gone = std::weak_ptr(visit)] {
    if (const auto waiting = gone.lock()) waiting->is_gone = true;
    scheduler_.cancel(*ticket);
  });
}

// What the answer is written from stays with the visit; the rest is the job's.
Job::Work Service::read_call(Visit& visit, const Dialect& dialect,
                             const std::vector<std::string>& arguments) const {
  visit.request.body = decoded_body(visit.request, dialect.max_body_bytes);
  visit.call = dialect.parse(visit.request, arguments, options_.model);
  visit.request.body = {};
  Request& request = visit.call.request;
  Job::Work work;
  work.request.model = request.model;
  work.request.state = std::exchange(request.state, Json());
  work.request.state_place = request.state_place;
  work.request.images = std::exchange(request.images, {});
  work.request.videos = std::exchange(request.videos, {});
  work.request.media_kwargs = std::exchange(request.media_kwargs, {});
  if (options_.isolate) {
    work.question_lists = isolated(request.questions);
  } else {
    work.question_lists = {request.questions};
  }
  return work;
}

void Service::finish(Visit& visit, const Dialect& dialect, Job::Result result) {
  visit.queue_seconds = result.queue_seconds;
  try {
    if (result.error) std::rethrow_exception(result.error);
    const Response response = options_.isolate ? joined(visit.call, std::move(result.responses))
                                               : std::move(result.responses.front());
    visit.input_tokens = response.input_tokens;
    visit.reused_tokens = response.reused_tokens;
    answer(visit, dialect.answer({.call = visit.call,
                                  .response = response,
                                  .model = options_.model,
                                  .request_id = visit.id,
                                  .queue_seconds = result.queue_seconds}));
  } catch (...) {
    const bool is_late = visit.deadline && Job::Clock::now() >= *visit.deadline;
    refuse_visit(visit, dialect, refusal_of(std::current_exception(), is_late));
  }
}

void Service::refuse_visit(Visit& visit, const Dialect& dialect, const Refusal& refusal) {
  if (refusal.kind == Refusal::Kind::kInternal) visit.error = refusal.message();
  answer(visit, dialect.refuse(refusal, visit.id));
}

void Service::answer(Visit& visit, http::Response response) {
  visit.exchange->respond(settled(visit, std::move(response)));
}

http::Response Service::settled(Visit& visit, http::Response response) {
  if (!http::find_header(response.headers, "x-request-id")) {
    response.headers.emplace_back("x-request-id", visit.id);
  }
  const int status = visit.is_gone ? kClientGone : response.status;
  const double seconds = visit.stopwatch.seconds();
  metrics_.count({visit.dialect, status, seconds, visit.queue_seconds});
  log_.add({.request_id = visit.id,
            .dialect = visit.dialect,
            .method = visit.request.method,
            .path = visit.request.path,
            .status = status,
            .seconds = seconds,
            .queue_seconds = visit.queue_seconds.value_or(0),
            .input_tokens = visit.input_tokens,
            .reused_tokens = visit.reused_tokens,
            .error = visit.error});
  return response;
}

http::Response Service::refuse(const http::Request& request, int status, std::string_view message) {
  Refusal refusal(kind_of_status(status), "", std::string(message));
  if (refusal.kind == Refusal::Kind::kBusy) {
    if (is_stopping_) refusal.kind = Refusal::Kind::kStopping;
    refusal.retry_after_seconds = 1;
  }
  http::Response response = dialect_near(request.path).refuse(refusal, next_request_id());
  response.status = status;
  metrics_.count({.dialect = "transport", .status = status});
  return response;
}

}  // namespace clefkit::server
