#include "clefkit/cli/eval_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "clefkit/cli/drift_text.h"
#include "clefkit/cli/terminal_text.h"

namespace clefkit::cli {
namespace {

constexpr std::size_t kShownGroups = 60;
constexpr std::size_t kShownAnswers = 10;

std::string row(const Summary& summary, std::size_t width) {
  const Metrics& metrics = summary.metrics;
  std::string text = fmt::format(
      "  {} {:>6} {:>9.3f} {:>9.3f} {:>7.3f} {:>9.3f} {:>7.3f} {:>9.3f} {:>6.3f}",
      fitted(summary.name, width), metrics.count, metrics.accuracy, summary.majority,
      metrics.chance, summary.macro_f1, metrics.brier, metrics.log_loss, metrics.calibration_error);
  return text + (metrics.score_error ? fmt::format(" {:>10.3f}", *metrics.score_error) : "");
}

std::string quality_text(const Evaluation& evaluation) {
  std::size_t width = 8;
  for (const QuestionGroup& group : evaluation.groups) {
    width = std::max(width, std::min(kWidestName, width_of(printable(group.summary.name))));
  }
  std::string text = fmt::format("  {} {:>6} {:>9} {:>9} {:>7} {:>9} {:>7} {:>9} {:>6} {:>10}\n",
                                 fitted("", width), "n", "accuracy", "majority", "chance",
                                 "macro-F1", "Brier", "log loss", "ECE", "score MAE");
  text += row(evaluation.whole, width) + "\n";
  for (const Summary& type : evaluation.types) text += row(type, width) + "\n";
  text += "\n";
  for (std::size_t i = 0; i < std::min(kShownGroups, evaluation.groups.size()); ++i) {
    const QuestionGroup& group = evaluation.groups[i];
    text += row(group.summary, width) + (group.is_listed ? "\n" : "  not listed\n");
  }
  if (evaluation.groups.size() > kShownGroups) {
    text +=
        fmt::format("  … and {} more (--json has all)\n", evaluation.groups.size() - kShownGroups);
  }
  return text + "\n";
}

std::string expectations_text(const Expectations& counts, bool is_compared, std::string_view of) {
  std::string text = fmt::format("expectations{}: {} of {} met", of, counts.met, counts.count);
  if (is_compared) {
    text += fmt::format(", {} by what it is compared with, {} by both", counts.met_against,
                        counts.met_by_both);
  }
  return text + "\n";
}

std::string misses_text(const Evaluation& evaluation) {
  std::string text;
  for (std::size_t i = 0; i < std::min(kShownAnswers, evaluation.missed.size()); ++i) {
    const MissedExpectation& miss = evaluation.missed[i];
    text += fmt::format("  line {}{}, {}: {}, expected {} ({:.4f})\n", miss.line,
                        miss.name.empty() ? "" : " (" + printable(miss.name) + ")",
                        printable(miss.question), printable(miss.chosen), printable(miss.expected),
                        miss.probability);
  }
  if (evaluation.missed.size() > kShownAnswers) {
    text +=
        fmt::format("  … and {} more (--json has all)\n", evaluation.missed.size() - kShownAnswers);
  }
  return text;
}

}  // namespace

std::string eval_view(const Evaluation& evaluation, double margin) {
  const bool is_compared = evaluation.drift.has_value();
  std::string text;
  if (!evaluation.groups.empty()) {
    text += quality_text(evaluation);
    text += expectations_text(evaluation.whole.expectations, is_compared, "");
    if (evaluation.unlisted.count > 0) {
      text += expectations_text(evaluation.unlisted, is_compared, " on skills not listed");
    }
    text += misses_text(evaluation);
  }
  if (is_compared) text += drift_text(*evaluation.drift, margin, kShownAnswers);
  return text;
}

}  // namespace clefkit::cli
