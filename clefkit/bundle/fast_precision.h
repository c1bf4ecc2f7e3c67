#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace clefkit {

// What `verify` measured of a bundle's int8 arithmetic against its int16 arithmetic. `fast` is
// offered where this was measured on enough questions and stayed small, and nowhere else.
struct FastPrecision {
  std::uint64_t questions = 0;
  double mean_drift = 0;                    // Of all probabilities.
  double largest_drift = 0;                 //
  std::uint64_t changed_beyond_margin = 0;  // Chosen answers with a margin above kFastMargin.
};

inline constexpr std::uint64_t kFastMinQuestions = 20;
inline constexpr double kFastMaxMeanDrift = 0.003;
inline constexpr double kFastMargin = 0.02;

bool is_accurate_enough(const FastPrecision& measured);

// Keeps the measurement beside the manifest, for the bundle that the manifest describes. It is no
// part of the bundle: the manifest does not name it.
void write_fast_precision(const std::filesystem::path& bundle, const FastPrecision& measured);
// Nothing when there is none, or it was measured on another bundle. Throws Error(kCorruptData).
std::optional<FastPrecision> read_fast_precision(const std::filesystem::path& bundle);
void remove_fast_precision(const std::filesystem::path& bundle);

}  // namespace clefkit
