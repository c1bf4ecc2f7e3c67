#include "clefkit/server/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "clefkit/base/json.h"
#include "clefkit/server/pages.h"

namespace clefkit::server {
namespace {

using ::testing::ElementsAre;

TEST(MatchRoute, FindsEveryProtocol) {
  EXPECT_EQ(match_route("POST", "/v1/systemone").route->dialect, &kSystemOne);
  EXPECT_EQ(match_route("POST", "/v1/decisions").route->dialect, &kOpenAiDecisions);
  EXPECT_EQ(match_route("POST", "/api/alpha/decisions").route->dialect, &kOpenRouter);
  EXPECT_EQ(match_route("POST", "/v4/ai/decision-model").route->dialect, &kVercelGateway);
  EXPECT_EQ(match_route("GET", "/v1/models/").route->page, Page::kModels);
  EXPECT_EQ(match_route("HEAD", "/healthz").route->page, Page::kHealth);
}

TEST(MatchRoute, TakesTheModelWithItsSlashes) {
  const Match match =
      match_route("POST", "/client/v4/accounts/acc/ai/run/@cf/cloudflare/clef-flash");
  ASSERT_NE(match.route, nullptr);
  EXPECT_EQ(match.route->dialect, &kWorkersAi);
  EXPECT_THAT(match.arguments, ElementsAre("acc", "@cf/cloudflare/clef-flash"));
  EXPECT_EQ(match_route("POST", "/client/v4/accounts/acc/ai/run").route, nullptr);
  EXPECT_EQ(match_route("POST", "/client/v4/accounts//ai/run/m").route, nullptr);
}

TEST(MatchRoute, TellsAWrongMethodFromAWrongPath) {
  const Match wrong_method = match_route("GET", "/v1/systemone");
  EXPECT_EQ(wrong_method.route, nullptr);
  EXPECT_EQ(wrong_method.allowed_methods, "POST");
  EXPECT_EQ(match_route("DELETE", "/healthz").allowed_methods, "GET, HEAD");
  for (const char* path :
       {"/v1", "/v1/systemone/x", "/v1systemone", "//v1/systemone", "/V1/systemone"}) {
    const Match nothing = match_route("POST", path);
    EXPECT_EQ(nothing.route, nullptr) << path;
    EXPECT_EQ(nothing.allowed_methods, "") << path;
  }
}

TEST(OpenApi, ListsWhatIsServedAndNothingElse) {
  const Json document = parse_json(asset("openapi.json"), "openapi.json", {});
  std::set<std::string> described, served;
  for (const auto& [path, operations] : document.find("paths")->members()) {
    for (const auto& [method, operation] : operations.members()) {
      described.insert(method + " " + path);
      EXPECT_NE(operation.find("summary"), nullptr) << path;
      const bool is_open = operation.find("security") != nullptr;
      for (const Route& route : routes()) {
        if (route.pattern != path) continue;
        EXPECT_EQ(route.is_open, is_open) << path;
      }
    }
  }
  for (const Route& route : routes()) {
    std::string pattern(route.pattern);
    for (const auto& [from, to] : {std::pair{"**", "{model}"}, std::pair{"*", "{account}"}}) {
      if (const auto at = pattern.find(from); at != pattern.npos) {
        pattern.replace(at, std::string_view(from).size(), to);
      }
    }
    served.insert((route.method == "GET" ? "get " : "post ") + pattern);
  }
  EXPECT_EQ(described, served);
}

TEST(Pages, OneListSatisfiesBothFamiliesOfClients) {
  const auto page = model_page(Page::kModels, {}, {}, {"clef-flash", "d", "v"});
  ASSERT_TRUE(page);
  const Json body = parse_json(page->body, "body", {});
  EXPECT_EQ(*body.find("models")->items().at(0).find("name"), Json("clef-flash"));
  EXPECT_EQ(*body.find("data")->items().at(0).find("id"), Json("clef-flash"));
  EXPECT_EQ(*body.find("object"), Json("list"));
}

TEST(Pages, ThePlaygroundIsCompiledIn) {
  for (const Page page : {Page::kPlayground, Page::kPlaygroundStyle, Page::kPlaygroundScript}) {
    const auto found = model_page(page, {}, {}, {});
    ASSERT_TRUE(found);
    EXPECT_GT(found->body.size(), 1000u);
    EXPECT_TRUE(http::find_header(found->headers, "content-security-policy"));
  }
}

}  // namespace
}  // namespace clefkit::server
