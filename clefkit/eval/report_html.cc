#include "clefkit/eval/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "clefkit/base/utf8.h"
#include "clefkit/eval/html.h"
#include "clefkit/questions/answers.h"

namespace clefkit {
namespace {

constexpr std::size_t kShownOptions = 8;
constexpr std::size_t kInstructionsCharacters = 300;
constexpr std::size_t kLevelCharacters = 60;

constexpr std::string_view kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2330; --dim: #667085; --line: #d9dee7; --paper: #fff;
  --mine: #2f6fde; --theirs: #e0902f; --good: #1b8a4b; --bad: #c8372d; --rail: #edf0f5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e7ee; --dim: #98a2b3; --line: #333c4b; --paper: #141922; --rail: #232b38; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .2rem; }
p, .dim { color: var(--dim); } p { margin: .3rem 0; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .6rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  white-space: nowrap; }
th { font-weight: 600; color: var(--dim); } th:first-child, td:first-child, .text { text-align: left; }
.options td { border: 0; padding: 0 .7rem; } .chosen { font-weight: 700; }
.good { color: var(--good); } .bad { color: var(--bad); }
.bar { vertical-align: middle; } .bar .rail { fill: var(--rail); } .bar .mine { fill: var(--mine); }
.bar .theirs { fill: var(--theirs); }
.plot .frame { fill: none; stroke: var(--line); } .plot .ideal { stroke: var(--dim); stroke-dasharray: 4 4; }
.plot polyline { fill: none; stroke: var(--mine); } .plot circle { fill: var(--mine); fill-opacity: .7; }
.plot text { fill: var(--dim); font-size: 11px; }
)";

// The first characters of a text, whole ones.
std::string shortened(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < characters && at < text.size(); ++i) {
    at += std::max<std::size_t>(1, utf8_sequence_length(text.substr(at)));
  }
  return std::string(text.substr(0, at)) + (at < text.size() ? "…" : "");
}

std::string cell(std::string_view content, std::string_view style = {}) {
  return style.empty() ? fmt::format("<td>{}</td>", content)
                       : fmt::format("<td class=\"{}\">{}</td>", style, content);
}

std::string cell(double value) { return cell(fmt::format("{:.4f}", value)); }

std::string header(std::initializer_list<std::string_view> names) {
  std::string out = "<tr>";
  for (const std::string_view name : names) out += fmt::format("<th>{}</th>", name);
  return out + "</tr>\n";
}

std::string table(const std::string& rows, std::string_view style = {}) {
  return fmt::format("<div class=\"scroll\"><table class=\"{}\">\n{}</table></div>\n", style, rows);
}

class Report {
 public:
  Report(const DataSet& set, const Evaluation& evaluation, const Probabilities& found,
         const std::optional<Probabilities>& against, const ReportFacts& facts)
      : set_(set), evaluation_(evaluation), found_(found), against_(against), facts_(facts) {}

  std::string page() {
    out_ = fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n<title>clefkit eval: {}</title>\n"
        "<style>{}</style>\n</head>\n<body>\n",
        html_escape(set_.source), kStyle);
    opening();
    if (against_) drift();
    if (evaluation_.whole.expectations.count > 0) quality();
    if (!evaluation_.groups.empty()) groups();
    confusions();
    questions();
    return std::move(out_) + "</body>\n</html>\n";
  }

 private:
  void opening() {
    out_ += fmt::format("<h1>{}</h1>\n<p>{} requests with {} questions, answered by {}",
                        html_escape(set_.source), evaluation_.requests, evaluation_.questions,
                        html_escape(facts_.model));
    out_ += facts_.against.empty()
                ? "</p>\n"
                : fmt::format(", compared with {}</p>\n", html_escape(facts_.against));
    for (const std::string& problem : facts_.problems) {
      out_ += fmt::format("<p class=\"bad\">{}</p>\n", html_escape(problem));
    }
  }

  void drift() {
    const Drift& drift = *evaluation_.drift;
    const Expectations& met = evaluation_.whole.expectations;
    out_ += "<h2>Agreement</h2>\n";
    std::string rows = "<tr><td>chosen answers that agree</td>" +
                       cell(fmt::format("{} of {}", drift.agreeing(), drift.questions)) + "</tr>\n";
    rows += "<tr><td>largest difference of a probability</td>" + cell(drift.largest) + "</tr>\n";
    rows += "<tr><td>mean difference</td>" + cell(drift.mean) + "</tr>\n";
    if (met.count > 0) {
      for (const auto& [name, count] : {std::pair{"expectations met by the model", met.met},
                                        std::pair{"by what it is compared with", met.met_against},
                                        std::pair{"by both", met.met_by_both}}) {
        rows += fmt::format("<tr><td>{}</td><td>{} of {}</td></tr>\n", name, count, met.count);
      }
    }
    out_ += table(rows);
  }

  static std::string figures(const Summary& summary) {
    const Metrics& metrics = summary.metrics;
    return cell(fmt::format("{}", metrics.count)) + cell(metrics.accuracy) +
           cell(summary.majority) + cell(metrics.chance) + cell(summary.macro_f1) +
           cell(metrics.brier) + cell(metrics.log_loss) + cell(metrics.calibration_error) +
           (metrics.score_error ? cell(*metrics.score_error) : cell("", ""));
  }

  void quality() {
    out_ += "<h2>Quality</h2>\n";
    std::string rows = header({"", "n", "accuracy", "majority", "chance", "macro-F1", "Brier",
                               "log loss", "ECE", "score MAE"});
    const auto add = [&](const Summary& summary) {
      rows += fmt::format("<tr><td>{}</td>{}</tr>\n", summary.name, figures(summary));
    };
    add(evaluation_.whole);
    for (const Summary& type : evaluation_.types) add(type);
    out_ += table(rows);
    const Expectations& unlisted = evaluation_.unlisted;
    if (unlisted.count > 0) {
      out_ += fmt::format(
          "<p>Not counted here: {} expectations on skills that the model does not list, {} of them "
          "met.</p>\n",
          unlisted.count, unlisted.met);
    }
    out_ +=
        "<h2>Calibration</h2>\n<p>How often answers were right, over the probability they were "
        "given. On the dashed line both are the same.</p>\n";
    out_ += html_calibration_plot(evaluation_.whole.metrics.bins);
  }

  void groups() {
    out_ += "<h2>Skills and questions</h2>\n";
    std::string rows = header({"", "type", "n", "accuracy", "majority", "chance", "macro-F1",
                               "Brier", "log loss", "ECE", "score MAE", ""});
    for (const QuestionGroup& group : evaluation_.groups) {
      rows += fmt::format("<tr><td>{}</td>{}{}{}</tr>\n", html_escape(group.summary.name),
                          cell(group.type, "text"), figures(group.summary),
                          cell(group.is_listed ? "" : "not listed", "text"));
    }
    out_ += table(rows);
  }

  void confusions() {
    std::string all;
    for (const QuestionGroup& group : evaluation_.groups) {
      // Of a single class there is nothing to confuse.
      if (group.confusions.size() < 2) continue;
      std::string rows = "<tr><th>expected</th>";
      for (const ClassCounts& each : group.classes) {
        rows += fmt::format("<th>{}</th>", html_escape(each.id));
      }
      rows += "<th>F1</th></tr>\n";
      for (std::size_t i = 0; i < group.classes.size(); ++i) {
        rows += fmt::format("<tr><td>{}</td>", html_escape(group.classes[i].id));
        for (std::size_t k = 0; k < group.classes.size(); ++k) {
          const std::size_t count = group.confusions[i][k];
          rows += cell(fmt::format("{}", count), i == k ? "good" : count > 0 ? "bad" : "dim");
        }
        rows += cell(group.classes[i].f1()) + "</tr>\n";
      }
      all += fmt::format("<h3>{}</h3>\n{}", html_escape(group.summary.name), table(rows));
    }
    if (all.empty()) return;
    out_ += "<h2>Confusion</h2>\n<p>Rows: what was expected; columns: what was chosen.</p>\n" + all;
  }

  bool is_remarkable(std::size_t request, std::size_t question) const {
    const std::size_t chosen = most_likely(found_[request][question]);
    const auto& expected = set_.cases[request].expected[question];
    return (expected && chosen != *expected) ||
           (against_ && chosen != most_likely((*against_)[request][question]));
  }

  void questions() {
    const bool shows_all = evaluation_.questions <= kMostShownQuestions;
    std::size_t left = kMostShownQuestions;
    out_ += shows_all ? "<h2>Questions</h2>\n"
                      : "<h2>Questions that were missed or answered differently</h2>\n";
    if (against_) {
      out_ += fmt::format("<p>{} the model, {} what it is compared with</p>\n", html_bar(1, "mine"),
                          html_bar(1, "theirs"));
    }
    for (std::size_t r = 0; r < set_.requests.size(); ++r) {
      bool has_heading = false;
      for (std::size_t q = 0; q < set_.requests[r].questions.size(); ++q) {
        if (!shows_all && !is_remarkable(r, q)) continue;
        if (left-- == 0) {
          out_ += fmt::format("<p>More than {} such questions are not shown.</p>\n",
                              kMostShownQuestions);
          return;
        }
        if (!std::exchange(has_heading, true)) heading(set_.cases[r]);
        question(r, q);
      }
    }
  }

  void heading(const Case& entry) {
    out_ += entry.name.empty() ? fmt::format("<h3>line {}</h3>\n", entry.line)
                               : fmt::format("<h3>{} <span class=\"dim\">line {}</span></h3>\n",
                                             html_escape(entry.name), entry.line);
  }

  void question(std::size_t request, std::size_t index) {
    const Question& asked = set_.requests[request].questions[index];
    const std::vector<double>& mine = found_[request][index];
    const std::vector<double>* const theirs = against_ ? &(*against_)[request][index] : nullptr;
    const std::optional<std::size_t>& expected = set_.cases[request].expected[index];
    out_ += fmt::format("<p><b>{}</b> ({}){}", html_escape(asked.id), to_string(asked.type),
                        verdict(request, index));
    if (asked.instructions) {
      out_ += ": " + html_escape(shortened(asked.instructions->is_string()
                                               ? asked.instructions->string()
                                               : to_string(*asked.instructions),
                                           kInstructionsCharacters));
    }
    out_ += "</p>\n";
    std::string rows;
    const std::vector<std::size_t> shown = shown_options(mine, theirs, expected);
    for (const std::size_t option : shown) {
      rows += fmt::format("<tr><td>{}{}</td>", html_escape(name_of(asked, option)),
                          expected == option ? " <span class=\"good\">✓</span>" : "");
      const auto add = [&](const std::vector<double>& probabilities, std::string_view style) {
        rows += cell(html_bar(probabilities[option], style)) +
                cell(fmt::format("{:.4f}", probabilities[option]),
                     most_likely(probabilities) == option ? "chosen" : "");
      };
      add(mine, "mine");
      if (theirs != nullptr) add(*theirs, "theirs");
      rows += "</tr>\n";
    }
    if (shown.size() < mine.size()) {
      rows += fmt::format("<tr><td class=\"dim\">and {} others</td></tr>\n",
                          mine.size() - shown.size());
    }
    out_ += table(rows, "options");
  }

  // An option's id; of a score, whose are numbers, the level's text too.
  static std::string name_of(const Question& asked, std::size_t option) {
    const std::string& id = asked.options[option].id;
    if (option >= asked.legend.size() || !asked.legend[option].is_string()) return id;
    return fmt::format("{} {}", id, shortened(asked.legend[option].string(), kLevelCharacters));
  }

  std::string verdict(std::size_t request, std::size_t index) const {
    const std::size_t chosen = most_likely(found_[request][index]);
    const auto& expected = set_.cases[request].expected[index];
    std::string text;
    if (expected) {
      text += chosen == *expected ? " <span class=\"good\">as expected</span>"
                                  : " <span class=\"bad\">not as expected</span>";
    }
    if (against_ && chosen != most_likely((*against_)[request][index])) {
      text += fmt::format("{} <span class=\"bad\">answers differ</span>", expected ? "," : "");
    }
    return text;
  }

  // The likeliest, and those that are of interest all the same, in the question's order.
  static std::vector<std::size_t> shown_options(const std::vector<double>& mine,
                                                const std::vector<double>* theirs,
                                                const std::optional<std::size_t>& expected) {
    std::vector<std::size_t> order(mine.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return mine[i]; });
    order.resize(std::min(order.size(), kShownOptions));
    if (expected) order.push_back(*expected);
    if (theirs != nullptr) order.push_back(most_likely(*theirs));
    std::ranges::sort(order);
    order.erase(std::unique(order.begin(), order.end()), order.end());
    return order;
  }

  const DataSet& set_;
  const Evaluation& evaluation_;
  const Probabilities& found_;
  const std::optional<Probabilities>& against_;
  const ReportFacts& facts_;
  std::string out_;
};

}  // namespace

std::string report_html(const DataSet& set, const Evaluation& evaluation,
                        const Probabilities& found, const std::optional<Probabilities>& against,
                        const ReportFacts& facts) {
  return Report(set, evaluation, found, against, facts).page();
}

}  // namespace clefkit
