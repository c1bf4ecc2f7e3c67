#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "clefkit/engine/scheduler.h"

namespace clefkit::server {

// Counts what the server does and writes it as Prometheus text. From any thread.
class Metrics {
 public:
  struct Finished {
    std::string_view dialect{};
    int status = 0;
    double seconds = 0;  // From the request's arrival to its answer.
    // Of it, waiting; nothing for what never waits, such as pages and refusals.
    std::optional<double> queue_seconds{};
  };

  void count(const Finished& finished);

  // Text exposition format 0.0.4.
  std::string text(const SchedulerCounts& counts, std::size_t connections) const;

 private:
  static constexpr std::array kBuckets{0.005, 0.01, 0.025, 0.05, 0.1,  0.25,  0.5,  1.0,
                                       2.5,   5.0,  10.0,  25.0, 50.0, 100.0, 300.0};
  struct Histogram {
    std::array<std::uint64_t, kBuckets.size() + 1> counts{};
    double sum = 0;
    void add(double value);
  };
  static void write(std::string& out, std::string_view name, std::string_view help,
                    const Histogram& histogram);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  Histogram seconds_, queue_seconds_;
};

}  // namespace clefkit::server
