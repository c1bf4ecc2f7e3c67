#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/base/json.h"
#include "clefkit/engine/engine.h"

namespace clefkit {

// Memory of this process. Mapped weights count as `file_bytes`. 0 where the system does not say.
struct ProcessMemory {
  std::uint64_t anonymous_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t peak_bytes = 0;  // Both together, at most so far.
};
ProcessMemory process_memory();

struct BenchOptions {
  std::vector<std::size_t> token_counts{512, 2048};
  std::size_t repeats = 3;
  const CancelToken* cancel = nullptr;
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// Answers records of exactly these lengths (one choice of two) and tells how fast: per length
// the median over the repeats of tokens a second and of each part's time. The cache is off. With
// vision, also the vision encoder over one picture of 512×512 (1,024 patches), beside the fastest of
// its linear layers alone.
Json run_bench(Engine& engine, const BenchOptions& options);

}  // namespace clefkit
