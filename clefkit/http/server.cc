#include "clefkit/http/server.h"

#include <poll.h>

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <ctime>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "clefkit/base/error.h"
#include "clefkit/base/trimmed.h"

namespace clefkit::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// How often a waiting connection is looked at for its client being gone.
constexpr auto kDisconnectPoll = 40ms;
constexpr char kStopping[] = "the server is stopping";
// After an early refusal: time for a client that is still sending to read it.
constexpr auto kLingerDeadline = 2'000ms;
// What is read of a connection before it is understood: a header, a part of a body, or a chunk's
// size line or the trailer, neither of which the parser takes in parts.
constexpr std::size_t kBufferBytes = 64 << 10;

bool is_gone(int socket) {
#ifdef POLLRDHUP
  constexpr short kHangUp = POLLRDHUP;
#else
  constexpr short kHangUp = POLLHUP;
#endif
  pollfd watched{socket, kHangUp, 0};
  return ::poll(&watched, 1, 0) > 0 && (watched.revents & (kHangUp | POLLHUP | POLLERR)) != 0;
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

std::string_view text_of(beast::string_view text) { return {text.data(), text.size()}; }

// A target that names its host as well, as proxies are sent: "http://a:8080/b" is "/b" of host
// "a:8080", whatever the Host header says (RFC 9112, 3.2.2).
struct Target {
  std::string path;
  std::optional<std::string_view> host;
};
Target split_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equal_ignoring_case(target.substr(0, scheme.size()), scheme)) continue;
    target.remove_prefix(scheme.size());
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    const std::string_view path = target.substr(end);
    return {fmt::format("{}{}", path.starts_with('/') ? "" : "/", path), target.substr(0, end)};
  }
  return {std::string(target), {}};
}

// Reads the request without its body. False when its target is no path that can be decoded.
bool read_head(const wire::request_header<>& head, Request& request) {
  request = {};
  request.method = std::string(text_of(head.method_string()));
  const auto [target, host] = split_target(text_of(head.target()));
  const std::size_t question = target.find('?');
  for (const auto& field : head) {
    std::string_view value = text_of(field.value());
    if (host && field.name() == wire::field::host) value = *host;
    request.headers.emplace_back(std::string(text_of(field.name_string())), std::string(value));
  }
  const auto path = percent_decode(target.substr(0, question));
  if (!path || !path->starts_with('/')) return false;
  request.path = *path;
  if (question != target.npos) request.query = std::string(target.substr(question + 1));
  return true;
}

// Lets answers through to the server's thread for as long as there is one.
class Gate {
 public:
  explicit Gate(asio::io_context& io) : io_(&io) {}
  template <typename Function>
  void post(Function&& function) {
    const std::lock_guard lock(mutex_);
    if (io_ != nullptr) asio::post(*io_, std::forward<Function>(function));
  }
  void close() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }

 private:
  std::mutex mutex_;
  asio::io_context* io_;
};

// What RFC 9112 asks a server to refuse with 400; empty: nothing.
std::string_view broken_rule(const wire::request_parser<wire::string_body>& parser) {
  const auto& head = parser.get().base();
  const auto hosts = head.count(wire::field::host);
  if (hosts > 1) return "two Host headers";
  if (hosts == 0 && parser.get().version() >= 11) return "no Host header";
  if (parser.chunked() && parser.get().version() < 11) return "Transfer-Encoding in HTTP/1.0";
  if (parser.chunked() && head.count(wire::field::content_length) > 0) {
    return "both Content-Length and Transfer-Encoding";
  }
  return {};
}

// Carries an answer, which may come from any thread and after the server's end, to its session.
class PendingExchange final : public Exchange {
 public:
  explicit PendingExchange(std::shared_ptr<Gate> gate)
      : gate_(std::move(gate)), wait_(std::make_shared<Wait>()) {}
  ~PendingExchange() override {
    if (!answered_.exchange(true)) {
      deliver({.status = 500, .content_type = "text/plain", .body = "no answer\n", .headers = {}});
    }
  }

  void respond(Response response) override {
    if (!answered_.exchange(true)) deliver(std::move(response));
  }

  void on_disconnect(std::function<void()> gone) override {
    const std::lock_guard lock(wait_->mutex);
    wait_->gone = std::move(gone);
  }

  // What the session waits on; exchange and session outlive each other.
  struct Wait {
    // Both on the server's thread only.
    asio::steady_timer* timer = nullptr;
    std::optional<Response> response;
    std::mutex mutex;
    std::function<void()> gone;
  };
  const std::shared_ptr<Wait>& wait() const { return wait_; }

 private:
  void deliver(Response response) {
    gate_->post([wait = wait_, answer = std::move(response)]() mutable {
      wait->response = std::move(answer);
      if (wait->timer != nullptr) wait->timer->cancel();
    });
  }

  std::shared_ptr<Gate> gate_;
  std::shared_ptr<Wait> wait_;
  std::atomic<bool> answered_ = false;
};

}  // namespace

struct Server::State {
  State(ServerOptions the_options, Callbacks the_callbacks)
      : options(std::move(the_options)), callbacks(std::move(the_callbacks)) {}
  ~State() { gate->close(); }

  void bind();
  void listen();
  void check(error_code error, const char* what) const;
  void load_certificate();
  asio::awaitable<void> accept_loop();
  void take(tcp::socket socket);
  asio::awaitable<void> plain_session(tcp::socket socket);
  asio::awaitable<void> tls_session(tcp::socket socket);
  void begin_stop();
  void end_drain();
  void session_ended();

  const ServerOptions options;
  const Callbacks callbacks;
  // Every open connection, to be closed by begin_stop(). Sessions take themselves out, the last of
  // them when `io` is destroyed.
  struct Open {
    tcp::socket& socket;
    bool is_reading = true;  // Nobody computes for it yet.
  };
  std::list<Open> open;
  std::size_t bodies_bytes = 0;
  asio::io_context io{1};
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>(io);
  std::optional<asio::ssl::context> tls;
  tcp::acceptor acceptor{io};
  std::uint16_t port = 0;
  asio::steady_timer drain{io};
  bool stopping = false;
  std::atomic<std::size_t> connections = 0;
};

namespace {

// One connection: requests one after the other.
template <typename Stream>
class Session {
 public:
  Session(Server::State& server, Stream& stream)
      : server_(server),
        stream_(stream),
        place_(server.open.insert(server.open.end(), {socket()})) {}
  ~Session() {
    release_body();
    server_.open.erase(place_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  asio::awaitable<void> run() {
    // Who connected before the stop gets to say what it wants, and 503.
    for (bool is_first = true; is_first || !server_.stopping || buffer_.size() > 0;
         is_first = false) {
      if (buffer_.size() == 0 && !co_await wait_for_bytes()) break;
      skip_empty_line();
      const bool keep = co_await exchange();
      release_body();
      place_->is_reading = true;
      if (!keep) break;
    }
  }

 private:
  using Parser = wire::request_parser<wire::string_body>;

  tcp::socket& socket() { return beast::get_lowest_layer(stream_).socket(); }
  void set_deadline(std::chrono::milliseconds time) {
    beast::get_lowest_layer(stream_).expires_after(time);
  }

  asio::awaitable<bool> wait_for_bytes() {
    set_deadline(server_.stopping ? kLingerDeadline : server_.options.idle_deadline);
    error_code error;
    const std::size_t bytes =
        co_await stream_.async_read_some(buffer_.prepare(4096), redirect(error));
    buffer_.commit(bytes);
    co_return !error && bytes > 0;
  }

  // Some clients send one behind a body (RFC 9112, 2.2).
  void skip_empty_line() {
    const auto bytes = buffer_.cdata();
    if (std::string_view(static_cast<const char*>(bytes.data()), bytes.size())
            .starts_with("\r\n")) {
      buffer_.consume(2);
    }
  }

  // Reads a request and answers it. False: this was the connection's last.
  asio::awaitable<bool> exchange() {
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(server_.options.max_header_bytes));
    parser.body_limit(server_.options.max_body_bytes);
    request_ = {};
    if (server_.stopping) co_return co_await refuse(503, kStopping);
    set_deadline(server_.options.header_deadline);
    error_code error;
    co_await wire::async_read_header(stream_, buffer_, parser, redirect(error));
    const bool has_path = read_head(parser.get().base(), request_);
    if (error) co_return co_await refuse_unread(error, kHeaderTooLarge);
    if (!has_path) co_return co_await refuse(400, "the target is no path");
    if (const std::string_view rule = broken_rule(parser); !rule.empty()) {
      co_return co_await refuse(400, rule);
    }
    if (const auto coding = request_.header("transfer-encoding");
        coding && !equal_ignoring_case(trimmed(*coding), "chunked")) {
      co_return co_await refuse(501, "a Transfer-Encoding other than chunked");
    }
    set_deadline(server_.options.body_deadline);
    if (!parser.is_done() && server_.callbacks.admit) {
      if (std::optional<Response> refusal = server_.callbacks.admit(request_)) {
        co_return co_await refuse(std::move(*refusal));
      }
    }
    if (!parser.is_done() && wants_continue(parser.get().version())) {
      if (!co_await send_continue()) co_return false;
    }
    while (!parser.is_done()) {
      if (server_.stopping) co_return co_await refuse(503, kStopping);
      co_await wire::async_read_some(stream_, buffer_, parser, redirect(error));
      if (error) co_return co_await refuse_unread(error, kFramingTooLarge);
      if (!reserve_body(parser.get().body().size())) {
        co_return co_await refuse(503, "too many large requests at one time");
      }
    }
    const unsigned version = parser.get().version();
    const bool keep = parser.get().keep_alive() && !server_.stopping;
    request_.body = std::move(parser.get().body());
    place_->is_reading = false;
    co_return co_await answer(version, keep);
  }

  asio::awaitable<bool> answer(unsigned version, bool keep) {
    const bool is_head = request_.method == "HEAD";
    auto exchange = std::make_shared<PendingExchange>(server_.gate);
    const std::shared_ptr<PendingExchange::Wait> wait = exchange->wait();
    server_.callbacks.handle(std::move(request_), std::move(exchange));
    asio::steady_timer timer(server_.io);
    wait->timer = &timer;
    bool is_here = true;
    while (!wait->response && is_here) {
      timer.expires_after(kDisconnectPoll);
      error_code ignored;
      co_await timer.async_wait(redirect(ignored));
      is_here = wait->response || !is_gone(socket().native_handle());
    }
    wait->timer = nullptr;
    if (!is_here) {
      const std::lock_guard lock(wait->mutex);
      if (wait->gone) wait->gone();
      co_return false;
    }
    keep = keep && !server_.stopping;
    const bool is_sent = co_await send(*wait->response, version, keep, is_head);
    co_return is_sent&& keep;
  }

  asio::awaitable<bool> send(const Response& response, unsigned version, bool keep, bool is_head) {
    wire::response<wire::string_body> out(wire::int_to_status(0), version);
    out.result(static_cast<unsigned>(response.status));
    out.set(wire::field::date, http_date());
    if (!response.content_type.empty()) out.set(wire::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) out.set(name, value);
    out.keep_alive(keep);
    out.content_length(response.body.size());
    if (!is_head) out.body() = response.body;
    set_deadline(server_.options.write_deadline);
    error_code error;
    if (is_head) {
      wire::response_serializer<wire::string_body> serializer(out);
      co_await wire::async_write_header(stream_, serializer, redirect(error));
    } else {
      co_await wire::async_write(stream_, out, redirect(error));
    }
    co_return !error;
  }

  bool wants_continue(unsigned version) const {
    return version >= 11 &&
           equal_ignoring_case(trimmed(request_.header("expect").value_or("")), "100-continue");
  }

  asio::awaitable<bool> send_continue() {
    wire::response<wire::empty_body> out(wire::status::continue_, 11);
    error_code error;
    co_await wire::async_write(stream_, out, redirect(error));
    co_return !error;
  }

  // What is too large when the buffer is full.
  struct Oversize {
    int status;
    const char* what;
    std::size_t bytes;  // 0: max_header_bytes.
  };
  static constexpr Oversize kHeaderTooLarge{431, "the header", 0};
  static constexpr Oversize kFramingTooLarge{400, "a chunk's size line or the trailer",
                                             kBufferBytes};

  // What a failed read means to the client, if anything.
  asio::awaitable<bool> refuse_unread(error_code error, const Oversize& oversize) {
    int status = 400;
    if (server_.stopping && error == asio::error::operation_aborted) {
      status = 503;
      message_ = kStopping;
    } else if (error == wire::error::body_limit) {
      status = 413;
      message_ = fmt::format("the body is larger than {} bytes", server_.options.max_body_bytes);
    } else if (error == wire::error::header_limit || error == wire::error::buffer_overflow) {
      status = oversize.status;
      message_ =
          fmt::format("{} is larger than {} bytes", oversize.what,
                      oversize.bytes == 0 ? server_.options.max_header_bytes : oversize.bytes);
    } else if (error == beast::error::timeout || error == wire::error::end_of_stream ||
               error == wire::error::partial_message ||
               error.category() != wire::make_error_code(wire::error::bad_method).category()) {
      // After its deadline the stream is closed: nothing can be said any more.
      co_return false;
    } else {
      message_ = fmt::format("this is not HTTP/1.1: {}", error.message());
    }
    co_return co_await refuse(status, message_);
  }

  // Refuses what was not read to its end and closes, but reads on for a moment: a client that is
  // still sending would otherwise see a reset in place of the answer.
  asio::awaitable<bool> refuse(int status, std::string_view message) {
    return refuse(server_.callbacks.refuse(request_, status, message));
  }
  asio::awaitable<bool> refuse(Response response) {
    refusal_ = std::move(response);
    return linger();
  }
  asio::awaitable<bool> linger() {
    place_->is_reading = false;
    const bool is_head = request_.method == "HEAD";
    const bool is_sent = co_await send(refusal_, 11, false, is_head);
    if (!is_sent) co_return false;
    error_code error;
    socket().shutdown(tcp::socket::shutdown_send, error);
    set_deadline(kLingerDeadline);
    std::vector<char> ignored(64 << 10);
    while (!error) {
      co_await stream_.async_read_some(asio::buffer(ignored), redirect(error));
    }
    co_return false;
  }

  bool reserve_body(std::size_t bytes) {
    server_.bodies_bytes += bytes - body_bytes_;
    body_bytes_ = bytes;
    return server_.bodies_bytes <= server_.options.max_bodies_bytes;
  }
  void release_body() { reserve_body(0); }

  static auto redirect(error_code& error) {
    return asio::redirect_error(asio::use_awaitable, error);
  }

  Server::State& server_;
  Stream& stream_;
  std::list<Server::State::Open>::iterator place_;
  beast::flat_buffer buffer_{kBufferBytes};
  std::size_t body_bytes_ = 0;
  // Here and not among the coroutines' parameters: g++ 12 destroys some temporaries of those twice.
  Request request_;      // That is being read.
  std::string message_;  // Why it is refused.
  Response refusal_;
};

}  // namespace

void Server::State::load_certificate() {
  if (options.tls_certificate_file.empty() && options.tls_key_file.empty()) return;
  if (options.tls_certificate_file.empty() || options.tls_key_file.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "tls", "expected both a certificate and a key");
  }
  tls.emplace(asio::ssl::context::tls_server);
  tls->set_options(asio::ssl::context::no_sslv2 | asio::ssl::context::no_sslv3 |
                   asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                   asio::ssl::context::no_compression);
  error_code error;
  // Nobody is asked for a pass phrase: a server starts by itself.
  tls->set_password_callback([](std::size_t, asio::ssl::context::password_purpose) { return ""; });
  tls->use_certificate_chain_file(options.tls_certificate_file, error);
  if (error) {
    throw_error(ErrorCode::kInvalidArgument, options.tls_certificate_file,
                "{}, expected a PEM file with a certificate chain", error.message());
  }
  tls->use_private_key_file(options.tls_key_file, asio::ssl::context::pem, error);
  if (error) {
    throw_error(ErrorCode::kInvalidArgument, options.tls_key_file,
                "{}, expected a PEM file with the certificate's private key, not encrypted",
                error.message());
  }
  if (::SSL_CTX_check_private_key(tls->native_handle()) != 1) {
    throw_error(ErrorCode::kInvalidArgument, options.tls_key_file,
                "a key of another kind than the certificate's, expected the one that belongs to {}",
                options.tls_certificate_file);
  }
}

void Server::State::check(error_code error, const char* what) const {
  if (!error) return;
  throw_error(ErrorCode::kUnavailable, fmt::format("{}:{}", options.host, options.port),
              "cannot {}: {}", what, error.message());
}

void Server::State::bind() {
  error_code error;
  tcp::resolver::results_type found;
  if (!options.host.empty()) {
    found = tcp::resolver(io).resolve(options.host, std::to_string(options.port), error);
  }
  if (error || found.empty()) {
    throw_error(ErrorCode::kInvalidArgument, fmt::format("host \"{}\"", options.host),
                "{}, expected a name or an address of this machine",
                error ? error.message() : "nothing has that name");
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  check(error, "open a socket");
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  check(error, "set a socket's options");
  acceptor.bind(endpoint, error);
  check(error, "listen there");
  port = acceptor.local_endpoint().port();
}

void Server::State::listen() {
  error_code error;
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  check(error, "listen there");
}

asio::awaitable<void> Server::State::accept_loop() {
  while (!stopping) {
    error_code error;
    tcp::socket socket(io);
    co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
    if (stopping) break;
    if (error) {
      // Out of descriptors, most likely: connections must end before others can begin.
      asio::steady_timer pause(io, 50ms);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    take(std::move(socket));
  }
}

void Server::State::take(tcp::socket socket) {
  if (connections >= options.max_connections) return;  // Closes it.
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  ++connections;
  const auto ended = [this](std::exception_ptr) { session_ended(); };
  if (tls) {
    asio::co_spawn(io, tls_session(std::move(socket)), ended);
  } else {
    asio::co_spawn(io, plain_session(std::move(socket)), ended);
  }
}

asio::awaitable<void> Server::State::plain_session(tcp::socket socket) {
  PlainStream stream(std::move(socket));
  co_await Session<PlainStream>(*this, stream).run();
  error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
}

asio::awaitable<void> Server::State::tls_session(tcp::socket socket) {
  TlsStream stream(std::move(socket), *tls);
  Session<TlsStream> session(*this, stream);
  error_code error;
  beast::get_lowest_layer(stream).expires_after(options.header_deadline);
  co_await stream.async_handshake(asio::ssl::stream_base::server,
                                  asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return;
  co_await session.run();
  beast::get_lowest_layer(stream).expires_after(kLingerDeadline);
  co_await stream.async_shutdown(asio::redirect_error(asio::use_awaitable, error));
}

void Server::State::session_ended() {
  --connections;
  if (stopping && connections == 0) drain.cancel();
}

void Server::State::begin_stop() {
  if (stopping) return;
  stopping = true;
  error_code ignored;
  for (Open& connection : open) {
    if (connection.is_reading) connection.socket.cancel(ignored);
  }
  // Closing would reset those that wait to be taken.
  acceptor.non_blocking(true, ignored);
  for (error_code none_left; !none_left;) {
    tcp::socket socket(io);
    acceptor.accept(socket, none_left);
    if (!none_left) take(std::move(socket));
  }
  acceptor.close(ignored);
  if (connections == 0) return;
  drain.expires_after(options.drain_deadline);
  drain.async_wait([this](error_code cancelled) {
    if (!cancelled) end_drain();
  });
}

void Server::State::end_drain() {
  if (callbacks.give_up) callbacks.give_up();
  drain.expires_after(kLingerDeadline);
  drain.async_wait([this](error_code cancelled) {
    if (!cancelled) io.stop();
  });
}

Server::Server(ServerOptions options, Callbacks callbacks)
    : state_(std::make_unique<State>(std::move(options), std::move(callbacks))) {
  state_->load_certificate();
  state_->bind();
}

void Server::listen() { state_->listen(); }

Server::~Server() = default;

std::uint16_t Server::port() const { return state_->port; }
std::size_t Server::connections() const { return state_->connections; }

void Server::run() {
  asio::co_spawn(state_->io, state_->accept_loop(), asio::detached);
  state_->io.run();
}

void Server::stop() {
  asio::post(state_->io, [this] { state_->begin_stop(); });
}

}  // namespace clefkit::http
