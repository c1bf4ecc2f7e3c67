#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "clefkit/http/message.h"

namespace clefkit::http {

struct ServerOptions {
  std::string host = "127.0.0.1";  // A name or an address.
  std::uint16_t port = 8080;       // 0: any that is free.
  // PEM files, both or none: HTTPS alone is then spoken.
  std::string tls_certificate_file{}, tls_key_file{};

  std::size_t max_header_bytes = 16 << 10;
  std::size_t max_body_bytes = std::size_t{64} << 20;
  // Of all requests that are read or answered at one time; beyond it they get 503.
  std::size_t max_bodies_bytes = std::size_t{1} << 30;
  std::size_t max_connections = 4096;

  // Each covers its part of a request as a whole, however its bytes trickle in.
  std::chrono::milliseconds header_deadline{10'000};  // From the first byte; TLS handshake too.
  std::chrono::milliseconds body_deadline{60'000};
  std::chrono::milliseconds write_deadline{30'000};
  std::chrono::milliseconds idle_deadline{75'000};   // Between requests of a connection.
  std::chrono::milliseconds drain_deadline{30'000};  // After stop().
};

// An answer that is owed to a client. May outlive the server; nothing is then sent.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Sends the answer: once, from any thread. An exchange that nobody answers any more, because all
  // owners let go of it, sends 500.
  virtual void respond(Response response) = 0;
  // `gone` is called on the server's thread when the client has left before its answer was there,
  // within 100 ms of it. Set it once, from any thread.
  virtual void on_disconnect(std::function<void()> gone) = 0;
};

// Called on the server's thread, which it must not hold up: anything that takes longer than a
// millisecond belongs elsewhere.
using Handler = std::function<void(Request request, std::shared_ptr<Exchange> exchange)>;

// What the transport itself refuses, so that the body can be in the protocol of the path: 400, 408,
// 413, 431, 500, 503. `request` has no body, and only what could be read of the rest.
using Refuser =
    std::function<Response(const Request& request, int status, std::string_view message)>;

// Called when a request's header has been read and its body has not: a response refuses it there
// and then, so that nobody fills memory who may not ask. `request` has no body.
using Admitter = std::function<std::optional<Response>(const Request& request)>;

struct Callbacks {
  Handler handle{};
  Refuser refuse{};
  Admitter admit{};  // None: all are admitted.
  // The drain deadline has passed: what is still computed for should end and be answered now. A
  // moment later the connections are closed. On the server's thread.
  std::function<void()> give_up{};
};

// An HTTP/1.1 server on one thread. It bounds time, bytes and connections; it knows no protocol.
class Server {
 public:
  // Takes the port, but no connections yet. Throws Error: kInvalidArgument (host, certificate,
  // key), kUnavailable (the port is taken).
  Server(ServerOptions options, Callbacks callbacks);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  // From then on connections are taken; run() serves them. Throws Error(kUnavailable).
  void listen();
  std::size_t connections() const;
  // Serves until stop() was called and what was running has been answered, or the drain deadline
  // has passed and 2 s more, in which give_up() may have been heard.
  void run();
  // From any thread: listens no more, closes idle connections, refuses requests that have not
  // arrived whole, answers the others. A connection that nobody has taken yet is refused, not
  // reset.
  void stop();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace clefkit::http
