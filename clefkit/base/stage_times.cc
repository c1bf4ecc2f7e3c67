#include "clefkit/base/stage_times.h"

#include <algorithm>

namespace clefkit {

double StageTimes::of(std::string_view stage) const {
  const auto found =
      std::ranges::find(seconds_, stage, &std::pair<std::string_view, double>::first);
  return found == seconds_.end() ? 0.0 : found->second;
}

StageTimer::StageTimer(StageTimes* times, std::string_view stage)
    : times_(times != nullptr && !times->is_running_ ? times : nullptr), stage_(stage) {
  if (times_ == nullptr) return;
  times_->is_running_ = true;
  start_ = std::chrono::steady_clock::now();
}

StageTimer::~StageTimer() {
  if (times_ == nullptr) return;
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  times_->is_running_ = false;
  const auto found =
      std::ranges::find(times_->seconds_, stage_, &std::pair<std::string_view, double>::first);
  if (found == times_->seconds_.end()) {
    times_->seconds_.emplace_back(stage_, elapsed);
  } else {
    found->second += elapsed;
  }
}

}  // namespace clefkit
