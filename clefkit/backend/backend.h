#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "clefkit/base/executor.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit {

// What a sequence leaves behind in the text layers: conv and recurrent state of the linear
// attention layers, the KV cache of the full attention layers. Made and understood by one backend.
class SequenceState {
 public:
  virtual ~SequenceState() = default;
  virtual std::size_t tokens() const = 0;
  virtual std::size_t size_bytes() const = 0;
  // An independent copy with room for `capacity_tokens`, at least tokens().
  virtual std::unique_ptr<SequenceState> clone(std::size_t capacity_tokens) const = 0;
};

// The next rows of a sequence.
struct TextChunk {
  // [tokens, hidden_size]: embeddings (media placed) in, the last layer's output out.
  MatrixView<float> hidden;
  // mRoPE positions of these tokens; the three spans are equal for text (model.md 3).
  std::span<const std::int32_t> temporal, height, width;
};

// For tracing and measuring: what the text layers make of a chunk. Both may be empty, and then cost
// nothing.
struct TextObserver {
  // After each layer, its output for the whole chunk, [tokens, hidden_size].
  std::function<void(std::size_t layer, MatrixView<const float> hidden)> layer_output{};
  // The input of a layer's down-projection, SiLU(gate) · up, [tokens, intermediate_size], before
  // the layer's output. May come in several calls, each with the next of the chunk's tokens. Only
  // the CPU backend has it to show: programs keep it to themselves.
  std::function<void(std::size_t layer, MatrixView<const float> rows)> mlp_activations{};
};

// The patches of one picture, or of one frame pair of a video: they attend to each other only.
struct VisionSegment {
  std::size_t rows = 0, columns = 0;  // Of patches; multiples of the merge size.
  std::size_t patches() const { return rows * columns; }
};

// What one vision call reads and writes (model.md 4), segments one after the other.
struct VisionBatch {
  MatrixView<const float> pixels;  // [patches, patch_values], four of a 2×2 block in succession.
  std::span<const VisionSegment> segments;
  MatrixView<float> features;  // [patches / 4, hidden_size of the text layers]
};

// For tracing: what becomes of a batch's patches, [patches, vision hidden_size]. Both may be empty.
struct VisionObserver {
  std::function<void(MatrixView<const float> rows)> patch_embeddings;  // Without positions.
  std::function<void(std::size_t block, MatrixView<const float> rows)> block_output;
};

// Runs the transformer layers of text and vision, nothing else: embedding lookup, final norm and
// decision head are the engine's. Knows no prompts and no questions. Every implementation passes
// backend_suite.h.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // Whether the processor has little to do while it computes, so that the engine does what follows
  // a chunk at the same time as the next one.
  virtual bool leaves_processor_free() const { return false; }
  // The number of tokens a prefill call is best given.
  virtual std::size_t chunk_tokens() const = 0;
  virtual std::unique_ptr<SequenceState> new_sequence(std::size_t capacity_tokens) const = 0;
  // Appends a chunk of 1 … capacity tokens to the sequence. Throws Error(kCancelled) as the
  // context says; the state is then unusable.
  virtual void prefill(const ComputeContext& context, SequenceState& state, const TextChunk& chunk,
                       const TextObserver& observer) = 0;
  // The number of patches a vision call is best given; segments are packed up to it
  // (vision_packing.h).
  virtual std::size_t vision_patches() const = 0;
  // Throws Error: kUnsupported when the model has no vision encoder, kCancelled.
  virtual void encode_vision(const ComputeContext& context, const VisionBatch& batch,
                             const VisionObserver& observer) = 0;
};

}  // namespace clefkit
