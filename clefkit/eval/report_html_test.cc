#include "clefkit/eval/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clefkit/eval/html.h"

namespace clefkit {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string report_of(const DataSet& set, const Probabilities& found,
                      const std::optional<Probabilities>& against = std::nullopt,
                      const ReportFacts& facts = {.model = "m"}) {
  return report_html(set, evaluate(set, found, against, std::nullopt), found, against, facts);
}

TEST(Html, EscapesMarkupAndControls) {
  EXPECT_EQ(html_escape("a <b c=\"d\" e='f'> & g\x01\n"),
            "a &lt;b c=&quot;d&quot; e=&#39;f&#39;&gt; &amp; g  ");
  EXPECT_EQ(html_escape("é✓"), "é✓");
}

TEST(Html, PlotsBinsWhereTheyBelong) {
  const std::vector<ReliabilityBin> bins{{.count = 4, .confidence = 0.5, .accuracy = 0.75}, {}};
  const std::string plot = html_calibration_plot(bins);
  // 34 + 0.5·260 and 10 + 0.25·260
  EXPECT_THAT(plot, HasSubstr("<circle cx=\"164.0\" cy=\"75.0\""));
  EXPECT_EQ(plot.find("<circle"), plot.rfind("<circle"));
}

TEST(ReportHtml, NeedsNothingFromElsewhere) {
  const DataSet set = parse_data_set(
      R"({"name": "n", "state": 1, "questions": {"q": {"type": "noul"}, "c": {"type": "choice", "criteria": {"x": null, "y": null}}}, "expected": {"q": true, "c": "y"}})",
      "set.jsonl");
  const Probabilities found{{{0.75, 0.25}, {0.8, 0.2}}}, against{{{0.7, 0.3}, {0.4, 0.6}}};
  const std::string page =
      report_of(set, found, against, {.model = "m", .against = "r", .problems = {"too far"}});
  for (const char* reference : {"http", "src=", "<script", "<link", "url(", "@import", "href"}) {
    EXPECT_THAT(page, Not(HasSubstr(reference))) << reference;
  }
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  for (const char* part : {"1 of 2", "0.4000", "too far", "as expected", "not as expected",
                           "answers differ", "<circle", "0.7500", "0.3000"}) {
    EXPECT_THAT(page, HasSubstr(part)) << part;
  }
}

TEST(ReportHtml, EscapesWhatTheSetSays) {
  const DataSet set = parse_data_set(
      R"({"name": "<n&>", "state": 1, "questions": {"<q \"1\">": {"type": "choice", "instructions": "<i>?", "criteria": {"<a>": null, "<b>": null}}}, "expected": {"<q \"1\">": "<a>"}, "skills": {"<q \"1\">": "<skill>"}})",
      "<set>.jsonl");
  const Probabilities found{{{0.1, 0.9}}};
  const std::string page =
      report_of(set, found, found, {.model = "<m>", .against = "<r>", .problems = {"<p>!"}});
  for (const char* raw :
       {"<n&", "<q ", "<i>?", "<a>", "<b><", "<skill>", "<set>", "<m>", "<r>", "<p>!"}) {
    EXPECT_THAT(page, Not(HasSubstr(raw))) << raw;
  }
  EXPECT_THAT(page, HasSubstr("&lt;q &quot;1&quot;&gt;"));
}

TEST(ReportHtml, ShowsOfLargeSetsWhatIsRemarkable) {
  std::string lines;
  Probabilities found;
  for (std::size_t i = 0; i < kMostShownQuestions + 1; ++i) {
    lines += fmt::format(
        R"({{"name": "request {}", "state": 1, "questions": {{"q": {{"type": "noul"}}}}, "expected": {{"q": true}}}})"
        "\n",
        i);
    found.push_back({{0.9, 0.1}});
  }
  found[7] = {{0.1, 0.9}};
  const std::string page = report_of(parse_data_set(lines, "set"), found);
  EXPECT_THAT(page, HasSubstr("request 7 "));
  EXPECT_THAT(page, Not(HasSubstr("request 8 ")));

  for (auto& answers : found) answers = {{0.1, 0.9}};
  const std::string all_wrong = report_of(parse_data_set(lines, "set"), found);
  EXPECT_THAT(all_wrong, HasSubstr("request 299 "));
  EXPECT_THAT(all_wrong, Not(HasSubstr("request 300 ")));
  EXPECT_THAT(all_wrong, HasSubstr("are not shown"));
}

TEST(ReportHtml, NamesAScoresLevels) {
  const DataSet set = parse_data_set(
      R"({"state": 1, "questions": {"q": {"type": "score", "criteria": ["calm", "<angry>"]}}, "expected": {"q": 1}})",
      "set");
  const std::string page = report_of(set, {{{0.25, 0.75}}});
  EXPECT_THAT(page, HasSubstr("0 calm"));
  EXPECT_THAT(page, HasSubstr("1 &lt;angry&gt;"));
}

TEST(ReportHtml, HasNoTablesOfQualityWhereNothingIsExpected) {
  const DataSet set =
      parse_data_set(R"({"state": 1, "questions": {"q": {"type": "noul"}}})", "set");
  const Probabilities found{{{0.9, 0.1}}};
  const std::string page = report_of(set, found, found);
  EXPECT_THAT(page, Not(HasSubstr("Quality")));
  EXPECT_THAT(page, HasSubstr("Agreement"));
}

}  // namespace
}  // namespace clefkit
