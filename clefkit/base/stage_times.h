#pragma once

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace clefkit {

// Seconds by stage of a computation, in the order in which stages first ran. Used by one thread:
// the one that calls the computing functions.
class StageTimes {
 public:
  const std::vector<std::pair<std::string_view, double>>& seconds() const { return seconds_; }
  double of(std::string_view stage) const;

 private:
  friend class StageTimer;
  std::vector<std::pair<std::string_view, double>> seconds_;
  bool is_running_ = false;
};

// Adds the time of its life to a stage. Within another timer it counts nothing, so that times add
// up; with null it does nothing. `stage` is a literal.
class StageTimer {
 public:
  StageTimer(StageTimes* times, std::string_view stage);
  ~StageTimer();
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageTimes* times_;
  std::string_view stage_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace clefkit
