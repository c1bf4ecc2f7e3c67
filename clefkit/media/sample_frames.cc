#include <algorithm>
#include <cmath>

#include "clefkit/base/error.h"
#include "clefkit/media/processor.h"

namespace clefkit {
namespace {

// What exact times differ by in doubles, and those of containers that round to a millisecond.
constexpr double kTimeErrors[]{1e-9, 0.0005 + 1e-9};
// The reference's guess where no rate is known.
constexpr double kUnknownRate = 24;

void check_times(std::span<const double> seconds) {
  if (seconds.empty()) {
    throw_error(ErrorCode::kInvalidArgument, "", "a clip of 0 frames, expected at least 1");
  }
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double before = i == 0 ? 0 : seconds[i - 1];
    if (!std::isfinite(seconds[i]) || seconds[i] < before) {
      throw_error(ErrorCode::kInvalidArgument, "",
                  "frame {} at {} s, expected ascending times from 0 on", i, seconds[i]);
    }
  }
}

// Frames a second, counted. A whole rate or one of television (30000/1001) that explains the last
// time but for a container's rounding is taken for what it was before: the prompt's times come
// from it, and their rounding to a tenth is sensitive to it.
double frame_rate(std::span<const double> seconds) {
  const double steps = static_cast<double>(seconds.size() - 1);
  const double duration = seconds.back() - seconds.front();
  if (!(duration > 0)) return kUnknownRate;
  const double counted = steps / duration;
  for (const double error : kTimeErrors) {
    for (const double unit : {1.0, 1000.0 / 1001.0}) {
      const double customary = std::nearbyint(counted / unit) * unit;
      if (std::fabs(steps / customary - duration) <= error) return customary;
    }
  }
  return counted;
}

std::size_t frame_count(std::size_t frames, double rate, const ProcessorSettings& settings) {
  if (settings.num_frames) return *settings.num_frames;
  const double wanted = static_cast<double>(frames) / rate * settings.fps;
  const auto most = static_cast<double>(std::min(settings.max_frames, frames));
  const auto fewest = static_cast<double>(settings.min_frames);
  return static_cast<std::size_t>(std::min(std::max(std::trunc(wanted), fewest), most));
}

// `count` values at equal steps from 0 to `last`.
double equal_step(double last, std::size_t count, std::size_t i) {
  if (i == 0) return 0;
  if (i + 1 == count) return last;
  return static_cast<double>(i) * (last / static_cast<double>(count - 1));
}

// The frame nearest to `time`; of two as near, the earlier.
std::size_t nearest_frame(std::span<const double> seconds, double time) {
  // Less than any clock's step: decimal times that tie on paper do so here.
  constexpr double kTie = 1e-9;
  const auto after = std::ranges::lower_bound(seconds, time);
  if (after == seconds.begin()) return 0;
  auto nearest = after - 1;
  if (after != seconds.end() && *after - time < time - *nearest - kTie) nearest = after;
  // Of frames at the same time, the first.
  return static_cast<std::size_t>(std::ranges::lower_bound(seconds, *nearest) - seconds.begin());
}

}  // namespace

ChosenFrames sample_frames(std::span<const double> seconds, const ProcessorSettings& settings) {
  check_times(seconds);
  const double rate = frame_rate(seconds);
  const std::size_t count = frame_count(seconds.size(), rate, settings);
  ChosenFrames chosen;
  for (std::size_t i = 0; i < count; ++i) {
    if (settings.profile == MediaProfile::kRelease) {
      const double step = equal_step(static_cast<double>(seconds.size() - 1), count, i);
      chosen.indices.push_back(static_cast<std::size_t>(std::nearbyint(step)));
      chosen.seconds.push_back(static_cast<double>(chosen.indices.back()) / rate);
    } else {
      const double time = seconds.front() + equal_step(seconds.back() - seconds.front(), count, i);
      chosen.indices.push_back(nearest_frame(seconds, time));
      chosen.seconds.push_back(seconds[chosen.indices.back()] - seconds.front());
    }
  }
  return chosen;
}

}  // namespace clefkit
