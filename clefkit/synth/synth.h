#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "clefkit/base/executor.h"
#include "clefkit/synth/presets.h"

namespace clefkit {

struct SynthOptions {
  // A preset's texts, or any. An empty head_config_json takes default_head_config_json().
  ConfigTexts config;
  // Copied; empty writes a tokenizer of single bytes with the added tokens that `config` names.
  std::filesystem::path tokenizer;
  std::uint64_t seed = 0;
  // The directory to make; absent or empty before.
  std::filesystem::path output;
  std::uint64_t shard_bytes = 5'000'000'000;
  // Called now and then, from the calling thread, with bytes of weights.
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
};

// Writes a checkpoint with random weights in the release's layout; holds about 40 MB of them at a
// time. The bytes depend on configuration, tokenizer and seed alone. All is written into
// `<output>.partial`, which is renamed at the end and removed on an error. Throws Error:
// kInvalidArgument for options that do not fit each other, kUnavailable when the disk is full,
// kCancelled, and as parse_model_config.
void write_synthetic_checkpoint(const ComputeContext& context, const SynthOptions& options);

}  // namespace clefkit
