#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "clefkit/base/error.h"
#include "clefkit/server/dialect.h"

namespace server = clefkit::server;

// The first byte picks the dialect, the rest is the body. Whatever is accepted can be answered, and
// whatever is refused can be told, as JSON and as the client's fault.
namespace {

const server::ModelIdentity kModel{.name = "clef-flash", .digest = "d", .version = "v"};

void check_json(const clefkit::http::Response& response) {
  clefkit::parse_json(response.body, "response", {.depth = 80});
}

void refuse(const server::Dialect& dialect, const server::Refusal& refusal) {
  const clefkit::http::Response response = dialect.refuse(refusal, "r");
  check_json(response);
  if (response.status < 400 || response.status >= 500) std::abort();
}

void answer(const server::Dialect& dialect, const server::Call& call) {
  clefkit::Response response;
  for (const clefkit::Question& question : call.request.questions) {
    const std::size_t count = question.options.size();
    response.probabilities.emplace_back(count, 1.0 / static_cast<double>(count));
  }
  response.answers =
      clefkit::answers_to_json(call.request.questions, response.probabilities, call.answers);
  check_json(
      dialect.answer({.call = call, .response = response, .model = kModel, .request_id = "r"}));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<const server::Dialect*, 5> kDialects{
      &server::kSystemOne, &server::kOpenRouter, &server::kWorkersAi, &server::kOpenAiDecisions,
      &server::kVercelGateway};
  if (size == 0) return 0;
  const server::Dialect& dialect = *kDialects[data[0] % kDialects.size()];
  const std::array<std::string, 2> path_arguments{"account", "clef-flash"};
  clefkit::http::Request request;
  request.body.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    answer(dialect, dialect.parse(request, path_arguments, kModel));
  } catch (const server::Refusal& refusal) {
    refuse(dialect, refusal);
  } catch (const clefkit::Error& error) {
    if (error.code() != clefkit::ErrorCode::kInvalidArgument) std::abort();
    refuse(dialect, server::refusal_of(error));
  }
  return 0;
}
