#include "clefkit/cli/drift_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "clefkit/cli/terminal_text.h"

namespace clefkit::cli {

std::string drift_text(const Drift& drift, double margin, std::size_t shown) {
  std::string text = fmt::format(
      "answers: {} of {} chosen answers agree ({} changed with a margin above {}), probabilities "
      "differ by {:.5f} at most and {:.5f} in the mean\n",
      drift.agreeing(), drift.questions, drift.changed_beyond(margin), margin, drift.largest,
      drift.mean);
  for (std::size_t i = 0; i < std::min(shown, drift.changed.size()); ++i) {
    const ChangedAnswer& answer = drift.changed[i];
    text += fmt::format("  request {}, {}: {} instead of {} (margin {:.4f})\n", answer.request + 1,
                        printable(answer.question), printable(answer.chosen),
                        printable(answer.chosen_against), answer.margin);
  }
  if (drift.changed.size() > shown) {
    text += fmt::format("  … and {} more (--json has all)\n", drift.changed.size() - shown);
  }
  return text;
}

}  // namespace clefkit::cli
