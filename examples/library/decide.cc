// decide MODEL TEXT: one yes/no question about a text.
#include <clefkit/bundle/open_model.h>
#include <clefkit/engine/engine.h>
#include <fmt/format.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) {
    fmt::print(stderr, "usage: decide MODEL TEXT\n");
    return 2;
  }
  clefkit::Engine engine(clefkit::open_model(argv[1]), {});
  clefkit::Request request = clefkit::parse_request(
      R"({"state": null, "questions": {
            "refund": {"type": "noul", "instructions": "Does the customer want money back?"}}})",
      "request");
  request.state = argv[2];
  const clefkit::Response response = engine.ask(request, {});
  fmt::print("refund {:.4f}\n", response.probabilities[0][0]);
  return 0;
} catch (const clefkit::Error& error) {
  fmt::print(stderr, "decide: {}\n", error.what());
  return 1;
}
