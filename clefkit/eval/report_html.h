#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clefkit/eval/evaluation.h"

namespace clefkit {

// What a report says of how its figures came about.
struct ReportFacts {
  std::string model;                    // "clef-nano, exact on cpu"
  std::string against{};                // The same, or the file of recorded answers.
  std::vector<std::string> problems{};  // Bounds that were not kept.
};

// One page that holds all of itself: no scripts, nothing fetched. Tables, the calibration plot, and
// a bar for every probability; of sets with more than kMostShownQuestions questions, those that
// were not answered as expected or otherwise than by what is compared with, as many at most.
std::string report_html(const DataSet& set, const Evaluation& evaluation,
                        const Probabilities& found, const std::optional<Probabilities>& against,
                        const ReportFacts& facts);

inline constexpr std::size_t kMostShownQuestions = 300;

}  // namespace clefkit
