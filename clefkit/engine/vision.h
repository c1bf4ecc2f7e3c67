#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/base/executor.h"
#include "clefkit/base/float_matrix.h"
#include "clefkit/engine/media.h"
#include "clefkit/engine/trace.h"
#include "clefkit/model/config.h"

namespace clefkit {

// Runs the vision encoder over media, packed into calls of the backend's size, one call a step.
class VisionRun {
 public:
  // `trace` is null or is given `vision.<i>.…` (cli.md) of the i-th. Everything but `media`, the
  // span itself, must outlive the run.
  VisionRun(Backend& backend, const VisionConfig& config,
            std::span<const PreparedMedia* const> media, TraceRecorder* trace);
  ~VisionRun();

  bool is_done() const;
  std::size_t remaining_patches() const;
  // Not when done. Throws as Backend::encode_vision does.
  void step(const ComputeContext& context);
  // The features of each item, [tokens, hidden_size], when done.
  std::vector<FloatMatrix> take_features();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace clefkit
