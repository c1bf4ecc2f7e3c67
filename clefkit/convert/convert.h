#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "clefkit/base/executor.h"
#include "clefkit/bundle/manifest.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/model/text_scales.h"
#include "clefkit/quant/palettize.h"

namespace clefkit {

// Where the scales of the programs come from. convert/ cannot run a model; who can, does it when
// called, once, after everything that could be refused at once was looked at.
struct ScaleCalibration {
  std::function<TextScales()> measure{};  // None: every factor is 1.
  std::string sha256{};  // Of what is measured on, as the scales will name it: part of the options.
};

struct ConvertOptions {
  PaletteMethod palette = PaletteMethod::kOptimal;
  std::size_t rounds = 40;              // Of Lloyd's algorithm, where the method has any.
  std::uint64_t min_weights = 1048576;  // Smaller linear layers stay FP16.
  PlanKind plan = PlanKind::kGrouped;
  // Text programs at most; default 127 − vision blocks − 3 spare.
  std::optional<std::size_t> program_budget;
  ScaleCalibration calibration{};
  bool text_only = false;            // Leave the vision encoder out.
  std::string repository, revision;  // Recorded in the manifest when known.
};

struct ConvertProgress {
  std::size_t tensors_done = 0, tensors_total = 0;
  std::uint64_t bytes_done = 0, bytes_total = 0;  // Of the checkpoint.
};

struct ConvertResult {
  Manifest manifest;  // As written.
  bool was_resumed = false;
  std::uint64_t payload_bytes = 0;  // All files but the manifest.
};

// Turns a checkpoint into a bundle at `out` (bundle.md). Streams: memory stays under 2 GiB for any
// checkpoint. Goes on with a conversion that was stopped, whose scales it keeps. The result depends
// on checkpoint and options alone. Throws Error: kInvalidArgument (out exists, plan over budget),
// kCorruptData (checkpoint, a weight that is not finite or that FP16 cannot hold), kUnavailable
// (disk), kCancelled.
ConvertResult convert(const std::filesystem::path& checkpoint, const std::filesystem::path& out,
                      const ConvertOptions& options, const ComputeContext& context,
                      const std::function<void(const ConvertProgress&)>& progress = {});

}  // namespace clefkit
