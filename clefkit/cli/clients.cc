#include "clefkit/cli/command.h"
#include "clefkit/cli/output.h"

namespace clefkit::cli {
namespace {

struct Client {
  const char* name;
  const char* line;  // {} is the server's address.
};

constexpr Client kClients[] = {
    {"curl",
     "curl {}/v1/systemone -H 'Content-Type: application/json' -d "
     "'{{\"state\":\"My card was charged twice.\",\"questions\":{{\"refund\":{{\"type\":\"noul\","
     "\"instructions\":\"Does the customer want money back?\"}}}}}}'"},
    {"TypeSafe, Python and JavaScript", "export TYPESAFE_BASE_URL={} TYPESAFE_API_KEY=local"},
    {"openai, Python and JavaScript", "export OPENAI_BASE_URL={}/v1 OPENAI_API_KEY=local"},
    {"ollama, Python", "export OLLAMA_HOST={}"},
    {"ollama, JavaScript", "new Ollama({{ host: \"{}\" }})"},
    {"cloudflare, JavaScript",
     "export CLOUDFLARE_BASE_URL={}/client/v4 CLOUDFLARE_API_TOKEN=local"},
    {"cloudflare, Python", "Cloudflare(base_url=\"{}/client/v4\", api_token=\"local\")"},
    {"@openrouter/sdk", "new OpenRouter({{ serverURL: \"{}/api/v1\", apiKey: \"local\" }})"},
    {"@openrouter/ai-sdk-provider",
     "createOpenRouter({{ baseURL: \"{}/api/v1\", apiKey: \"local\" }})"},
    {"ai, its gateway", "createGateway({{ baseURL: \"{}/v4/ai\", apiKey: \"local\" }})"},
};

struct ClientsCommand {
  std::string url = "http://127.0.0.1:8080";

  int run() const {
    std::string base = url;
    while (base.ends_with('/')) base.pop_back();
    std::string text;
    for (const Client& client : kClients) {
      text += fmt::format("# {}\n", client.name);
      text += fmt::format(fmt::runtime(client.line), base) + "\n";
    }
    write_out(text);
    return kDone;
  }
};

}  // namespace

void add_clients_command(CommandLine& line) {
  auto command = std::make_shared<ClientsCommand>();
  CLI::App& app =
      *line.app.add_subcommand("clients", "Print what each SDK needs to speak to a server of ours");
  app.add_option("url", command->url, "The server's address")->capture_default_str();
  app.footer("Example:\n  clefkit clients http://127.0.0.1:8080");
  app.callback([command, &line] { line.run = [command] { return command->run(); }; });
}

}  // namespace clefkit::cli
