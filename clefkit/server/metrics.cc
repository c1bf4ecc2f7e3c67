#include "clefkit/server/metrics.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace clefkit::server {
namespace {

// Bytes in memory; 0 where the system does not tell.
std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void write_header(std::string& out, std::string_view name, std::string_view type,
                  std::string_view help) {
  out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <typename Value>
void write_one(std::string& out, std::string_view name, std::string_view type,
               std::string_view help, Value value) {
  write_header(out, name, type, help);
  out += fmt::format("{} {}\n", name, value);
}

}  // namespace

void Metrics::Histogram::add(double value) {
  const auto place = std::ranges::lower_bound(kBuckets, value);
  ++counts[static_cast<std::size_t>(place - kBuckets.begin())];
  sum += value;
}

void Metrics::write(std::string& out, std::string_view name, std::string_view help,
                    const Histogram& histogram) {
  write_header(out, name, "histogram", help);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < kBuckets.size(); ++i) {
    below += histogram.counts[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, kBuckets[i], below);
  }
  below += histogram.counts.back();
  out += fmt::format("{}_bucket{{le=\"+Inf\"}} {}\n{}_sum {}\n{}_count {}\n", name, below, name,
                     histogram.sum, name, below);
}

void Metrics::count(const Finished& finished) {
  const std::lock_guard lock(mutex_);
  ++requests_[{std::string(finished.dialect), finished.status}];
  seconds_.add(finished.seconds);
  if (finished.queue_seconds) queue_seconds_.add(*finished.queue_seconds);
}

std::string Metrics::text(const SchedulerCounts& counts, std::size_t connections) const {
  std::string out;
  const std::lock_guard lock(mutex_);
  write_header(out, "clefkit_requests_total", "counter", "Answered requests by route and status.");
  for (const auto& [labels, number] : requests_) {
    out += fmt::format("clefkit_requests_total{{dialect=\"{}\",status=\"{}\"}} {}\n", labels.first,
                       labels.second, number);
  }
  write(out, "clefkit_request_seconds", "From a request's arrival to its answer.", seconds_);
  write(out, "clefkit_queue_seconds", "From a request's arrival to its first step.",
        queue_seconds_);
  write_one(out, "clefkit_jobs", "gauge", "Requests that wait or run.", counts.jobs);
  write_one(out, "clefkit_connections", "gauge", "Open connections.", connections);
  write_one(out, "clefkit_input_tokens_total", "counter", "Tokens of answered requests.",
            counts.input_tokens);
  write_one(out, "clefkit_reused_tokens_total", "counter",
            "Of these, taken from an earlier request's prefix.", counts.reused_tokens);
  write_one(out, "clefkit_cancelled_total", "counter",
            "Requests whose client left or whose deadline passed.", counts.cancelled);
  write_one(out, "clefkit_cache_bytes", "gauge", "Memory of kept prefixes and picture features.",
            counts.cache_bytes);
  write_one(out, "clefkit_cache_entries", "gauge", "Kept prefixes and picture features.",
            counts.cache_entries);
  write_header(out, "clefkit_stage_seconds_total", "counter", "Computing time by stage.");
  for (const auto& [stage, seconds] : counts.stage_seconds) {
    out += fmt::format("clefkit_stage_seconds_total{{stage=\"{}\"}} {}\n", stage, seconds);
  }
  write_one(out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
  return out;
}

}  // namespace clefkit::server
