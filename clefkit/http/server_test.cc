#include "clefkit/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "clefkit/base/error_of.h"
#include "clefkit/base/stopwatch.h"

namespace clefkit::http {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A connection that speaks bytes, so that a test can say anything.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{10, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // False when the peer is gone.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      const ::ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  // One response with its body.
  std::string response() {
    while (true) {
      const std::size_t head = buffer_.find("\r\n\r\n");
      if (head != buffer_.npos) {
        const std::size_t length = buffer_.find("Content-Length: ");
        const std::size_t body =
            length < head ? std::strtoul(buffer_.c_str() + length + 16, nullptr, 10) : 0;
        if (buffer_.size() >= head + 4 + body) {
          std::string whole = buffer_.substr(0, head + 4 + body);
          buffer_.erase(0, whole.size());
          return whole;
        }
      }
      if (!receive()) return buffer_;
    }
  }
  // All that comes until the peer closes.
  std::string rest() {
    while (receive()) {
    }
    return buffer_;
  }

 private:
  bool receive() {
    char bytes[4096];
    const ::ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  int socket_;
  bool connected_ = false;
  std::string buffer_;
};

Response text(std::string body) {
  return {.content_type = "text/plain", .body = std::move(body), .headers = {}};
}

// Echoes what it understood.
void echo(Request request, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond(text(request.method + " " + request.path + " " + request.query + " " +
                         std::to_string(request.body.size())));
}

Response refuse_plainly(const Request&, int status, std::string_view message) {
  Response response = text(std::string(message));
  response.status = status;
  return response;
}

class Running {
 public:
  explicit Running(ServerOptions options = {}, Handler handler = echo)
      : Running(std::move(options), {.handle = std::move(handler), .refuse = refuse_plainly}) {}
  Running(ServerOptions options, Callbacks callbacks)
      : server_(with_free_port(std::move(options)), std::move(callbacks)) {
    server_.listen();
    thread_ = std::thread([this] { server_.run(); });
  }
  ~Running() {
    server_.stop();
    thread_.join();
  }
  Server& operator*() { return server_; }
  std::uint16_t port() const { return server_.port(); }

 private:
  static ServerOptions with_free_port(ServerOptions options) {
    options.port = 0;
    return options;
  }
  Server server_;
  std::thread thread_;
};

// Keeps the exchange of the one request that comes, for the test to answer.
class KeptExchange {
 public:
  Handler handler() {
    return [this](const Request&, std::shared_ptr<Exchange> exchange) {
      arrived_.set_value(std::move(exchange));
    };
  }
  // Waits for it. Once.
  std::shared_ptr<Exchange> get() { return arrived_.get_future().get(); }

 private:
  std::promise<std::shared_ptr<Exchange>> arrived_;
};

constexpr char kGet[] = "GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(Server, AnswersOneRequestAfterTheOtherOnAConnection) {
  Running server;
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(kGet));
    EXPECT_THAT(client.response(), EndsWith("GET /a b c=d 0"));
  }
  ASSERT_TRUE(client.send(std::string(kGet) + kGet));  // Pipelined.
  EXPECT_THAT(client.response(), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client.response(), EndsWith("GET /a b c=d 0"));
}

TEST(Server, ReadsBodiesOfEveryForm) {
  Running server;
  Client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_THAT(client.response(), EndsWith("POST /  5"));
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(client.response(), EndsWith("POST /  5"));
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.response(), StartsWith("HTTP/1.1 100 Continue"));
  client.send("hello");
  EXPECT_THAT(client.response(), EndsWith("POST /  5"));
  client.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.rest(), EndsWith("\r\n\r\n"));
}

TEST(Server, ClosesWhenAskedAndAfterHttp10) {
  Running server;
  Client close_asked(server.port()), old(server.port());
  close_asked.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(close_asked.rest(), EndsWith("GET /  0"));
  old.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.rest(), EndsWith("GET /  0"));
}

TEST(Server, RefusesWhatIsTooLargeSoThatTheClientReadsIt) {
  Running server({.max_header_bytes = 1024, .max_body_bytes = 1000});
  {
    Client client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n");
    client.send(std::string(1001, 'x'));
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 413 Payload Too Large\r\n"));
  }
  {
    // Sends all of it before it reads: a server that closed at once would reset the connection.
    Client client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 500; ++i) client.send("400\r\n" + std::string(1024, 'x') + "\r\n");
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 413 Payload Too Large\r\n"));
  }
  {
    Client client(server.port());
    client.send(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 413"));
  }
  {
    Client client(server.port());
    client.send("GET / HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 100; ++i) client.send("X-Header: " + std::string(100, 'x') + "\r\n");
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 431"));
  }
}

TEST(Server, RefusesWhatIsNotHttp) {
  Running server;
  for (const char* text :
       {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: "
        "chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",
        "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    Client client(server.port());
    client.send(text);
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 400")) << text;
  }
}

TEST(Server, TakesHostAndPathOfATargetThatNamesBoth) {
  Running server({}, [](const Request& request, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond(
        text(fmt::format("{} {} {}", request.path, request.query, *request.header("host"))));
  });
  Client client(server.port());
  client.send("GET http://a:80/b?c HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.response(), EndsWith("\r\n\r\n/b c a:80"));
  client.send("GET HTTPS://a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.response(), EndsWith("\r\n\r\n/  a"));
  client.send("GET http://a?c HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.response(), EndsWith("\r\n\r\n/ c a"));
}

TEST(Server, RefusesTransferCodingsItDoesNotKnow) {
  Running server;
  for (const char* coding : {"zstd, chunked", "gzip", "identity"}) {
    Client client(server.port());
    client.send(fmt::format("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {}\r\n\r\n0\r\n\r\n",
                            coding));
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 501")) << coding;
  }
}

TEST(Server, CutsSlowClientsAtTheirDeadlinesAndAnswersOthersMeanwhile) {
  Running server({.header_deadline = 300ms, .body_deadline = 300ms, .idle_deadline = 300ms});
  Client silent(server.port()), slow_header(server.port()), slow_body(server.port());
  slow_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n");
  std::atomic<bool> stop = false;
  std::thread dripping([&] {
    while (!stop) {
      slow_header.send("G");
      slow_body.send("x");
      std::this_thread::sleep_for(20ms);
    }
  });
  Client quick(server.port());
  const Stopwatch stopwatch;
  quick.send(kGet);
  EXPECT_THAT(quick.response(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(silent.rest(), "");
  slow_header.rest();
  slow_body.rest();
  EXPECT_LT(stopwatch.seconds(), 5.0);  // Not the 10 s of their own patience.
  stop = true;
  dripping.join();
}

TEST(Server, TellsThatTheClientLeft) {
  std::promise<void> gone;
  std::vector<std::shared_ptr<Exchange>> kept;
  std::promise<void> arrived;
  Running server({}, [&](const Request&, std::shared_ptr<Exchange> exchange) {
    exchange->on_disconnect([&] { gone.set_value(); });
    kept.push_back(std::move(exchange));
    arrived.set_value();
  });
  Client client(server.port());
  client.send(kGet);
  arrived.get_future().wait();
  const Stopwatch stopwatch;
  client.close();
  ASSERT_EQ(gone.get_future().wait_for(5s), std::future_status::ready);
  kept.front()->respond(text("to nobody"));
}

TEST(Server, AnswersFromAnotherThreadAndOnceOnly) {
  std::vector<std::thread> threads;
  Running server({}, [&](const Request&, const std::shared_ptr<Exchange>& exchange) {
    threads.emplace_back([exchange] {
      std::this_thread::sleep_for(30ms);
      exchange->respond(text("first"));
      exchange->respond(text("second"));
    });
  });
  Client client(server.port());
  client.send(kGet);
  EXPECT_THAT(client.response(), EndsWith("first"));
  client.send(kGet);
  EXPECT_THAT(client.response(), EndsWith("first"));
  for (std::thread& thread : threads) thread.join();
}

TEST(Server, AnExchangeThatIsDroppedIsAnsweredWith500) {
  Running server({}, [](const Request&, const std::shared_ptr<Exchange>&) {});
  Client client(server.port());
  client.send(kGet);
  EXPECT_THAT(client.response(), StartsWith("HTTP/1.1 500"));
}

TEST(Server, FinishesWhatRunsWhenItStops) {
  KeptExchange kept;
  Server server({.port = 0}, {.handle = kept.handler(), .refuse = refuse_plainly});
  server.listen();
  std::thread thread([&] { server.run(); });
  Client idle(server.port()), busy(server.port());
  busy.send(kGet);
  const std::shared_ptr<Exchange> exchange = kept.get();
  server.stop();
  EXPECT_EQ(idle.rest(), "");
  EXPECT_FALSE(Client(server.port()).connected());
  exchange->respond(text("done"));
  EXPECT_THAT(busy.rest(), EndsWith("done"));
  thread.join();
}

TEST(Server, RefusesWhatHasNotArrivedWholeWhenItStops) {
  std::atomic<int> asked = 0;
  std::optional<Running> server(std::in_place, ServerOptions{},
                                [&](const Request&, const std::shared_ptr<Exchange>& exchange) {
                                  ++asked;
                                  exchange->respond(text("done"));
                                });
  Client half_body(server->port()), half_header(server->port()), idle(server->port());
  half_body.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
  half_header.send("POST / HTTP/1.1\r\nHo");
  while ((**server).connections() < 3) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(50ms);  // So that the server has read what there is.
  (**server).stop();
  EXPECT_THAT(half_body.rest(), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(half_header.rest(), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(idle.rest(), "");
  half_body.close();
  half_header.close();
  const Stopwatch stopwatch;
  server.reset();
  EXPECT_LT(stopwatch.seconds(), 5.0);  // Not the 60 s of a body's deadline.
  EXPECT_EQ(asked, 0);
}

TEST(Server, StopsAtTheDrainDeadlineWhateverRuns) {
  KeptExchange kept;
  Server server({.port = 0, .drain_deadline = 100ms},
                {.handle = kept.handler(), .refuse = refuse_plainly});
  server.listen();
  std::thread thread([&] { server.run(); });
  Client client(server.port());
  client.send(kGet);
  const std::shared_ptr<Exchange> exchange = kept.get();
  server.stop();
  thread.join();
}

// Whoever computes is told, and what it then answers arrives.
TEST(Server, SendsWhatIsAnsweredWhenTheDrainDeadlineHasPassed) {
  KeptExchange kept;
  std::shared_ptr<Exchange> exchange;
  Server server({.port = 0, .drain_deadline = 100ms},
                {.handle = kept.handler(), .refuse = refuse_plainly, .give_up = [&] {
                   exchange->respond(refuse_plainly({}, 503, "given up"));
                 }});
  server.listen();
  std::thread thread([&] { server.run(); });
  Client client(server.port());
  client.send(kGet);
  exchange = kept.get();
  server.stop();
  const std::string answer = client.rest();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, EndsWith("given up"));
  thread.join();
}

// Bytes that keep coming: there is always one more read to do.
TEST(Server, RefusesAnUploadAtFullSpeedWhenItStops) {
  Running server({.max_body_bytes = std::size_t{1} << 30, .body_deadline = 30s});
  Client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n");
  std::atomic<bool> is_over = false;
  std::thread sender([&] {
    const std::string bytes(1 << 20, 'x');
    for (int i = 0; i < 900 && !is_over && client.send(bytes); ++i) continue;
  });
  std::this_thread::sleep_for(20ms);
  const Stopwatch stopwatch;
  (*server).stop();
  EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 503"));
  EXPECT_LT(stopwatch.seconds(), 5.0);
  is_over = true;
  sender.join();
}

TEST(Server, RefusesWhoConnectedAndWasNotTakenWhenItStops) {
  Server server({.port = 0}, {.handle = echo, .refuse = refuse_plainly});
  server.listen();
  Client first(server.port()), second(server.port()), silent(server.port());
  first.send(kGet);
  second.send(kGet);
  server.stop();
  std::thread thread([&] { server.run(); });
  EXPECT_THAT(first.rest(), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(second.rest(), StartsWith("HTTP/1.1 503"));
  EXPECT_EQ(silent.rest(), "");
  first.close();
  second.close();
  thread.join();
}

TEST(Server, AsksWhetherToReadABody) {
  std::atomic<int> asked = 0;
  Running server({}, {.handle =
                          [&](const Request& request, const std::shared_ptr<Exchange>& exchange) {
                            ++asked;
                            echo(request, exchange);
                          },
                      .refuse = refuse_plainly,
                      .admit = [](const Request& request) -> std::optional<Response> {
                        if (request.header("authorization")) return std::nullopt;
                        Response response = text("who are you");
                        response.status = 401;
                        return response;
                      }});
  {
    Client client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n");
    const std::string answer = client.rest();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401"));
    EXPECT_THAT(answer, EndsWith("who are you"));
  }
  EXPECT_EQ(asked, 0);
  Client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: me\r\nContent-Length: 2\r\n\r\nab");
  EXPECT_THAT(client.response(), EndsWith("POST /  2"));
  client.send(kGet);  // No body: the handler decides.
  EXPECT_THAT(client.response(), EndsWith("GET /a b c=d 0"));
}

// What the parser takes as a whole is bounded too.
TEST(Server, RefusesEndlessChunkHeadsAndTrailers) {
  Running server({.max_body_bytes = std::size_t{1} << 30});
  for (const auto& [begin, more] : {std::pair<std::string, std::string>{"5;a=", "xxxxxxxxxxxxxxxx"},
                                    {"5;a=\"", "xxxxxxxxxxxxxxxx"},
                                    {"0", "0000000000000000"},
                                    {"0\r\nX: ", "xxxxxxxxxxxxxxxx"},
                                    {"0\r\n", "X-Name: value\r\n"}}) {
    Client client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + begin);
    std::string block;
    while (block.size() < (1 << 16)) block += more;
    std::size_t sent = 0;
    for (; sent < 64 && client.send(block); ++sent) continue;  // 4 MB, read or thrown away.
    EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 400")) << begin;
  }
  // Such as fit are fine.
  Client client(server.port());
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: "
      "y\r\n\r\n");
  EXPECT_THAT(client.response(), EndsWith("POST /  5"));
}

TEST(Server, TakesWhatOldAndSloppyClientsSend) {
  Running server;
  Client client(server.port());
  client.send(std::string("\r\n") + kGet);
  EXPECT_THAT(client.response(), EndsWith("GET /a b c=d 0"));
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_THAT(client.response(), StartsWith("HTTP/1.1 100"));
  client.send("ab");
  EXPECT_THAT(client.response(), EndsWith("POST /  2"));
  Client old(server.port());
  old.send("POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nab");
  EXPECT_THAT(old.rest(), StartsWith("HTTP/1.0 200"));
  Client chunked(server.port());
  chunked.send("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_THAT(chunked.rest(), StartsWith("HTTP/1.1 400"));
}

TEST(Server, CapsConnectionsAndBodies) {
  {
    Running server({.max_connections = 2});
    Client first(server.port()), second(server.port());
    first.send(kGet);
    second.send(kGet);
    first.response();
    second.response();
    EXPECT_EQ((*server).connections(), 2u);
    EXPECT_EQ(Client(server.port()).rest(), "");
    first.send(kGet);
    EXPECT_THAT(first.response(), StartsWith("HTTP/1.1 200"));
  }
  Running server({.max_bodies_bytes = 1000});
  Client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n" +
              std::string(2000, 'x'));
  EXPECT_THAT(client.rest(), StartsWith("HTTP/1.1 503"));
}

TEST(Server, RefusesAnAddressOrCertificateThatIsNone) {
  const auto code_of = [](ServerOptions options) {
    options.port = 0;
    return error_of([&] { Server(options, {.handle = echo, .refuse = refuse_plainly}); }).code();
  };
  EXPECT_EQ(code_of({.host = "no.such.host.invalid"}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of({.host = "192.0.2.1"}), ErrorCode::kUnavailable);
  EXPECT_EQ(code_of({.tls_certificate_file = "/nonexistent", .tls_key_file = "/nonexistent"}),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of({.tls_certificate_file = "/nonexistent"}), ErrorCode::kInvalidArgument);
  Running taken;
  EXPECT_EQ(error_of([&] {
              Server({.port = taken.port()}, {.handle = echo, .refuse = refuse_plainly});
            }).code(),
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace clefkit::http
