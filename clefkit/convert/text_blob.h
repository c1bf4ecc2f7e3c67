#pragma once

#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/base/json.h"
#include "clefkit/bundle/bundle_writer.h"
#include "clefkit/bundle/manifest.h"
#include "clefkit/model/model.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/quant/palettize.h"

namespace clefkit {

// Why a tensor of the text programs is stored as FP16; empty when it is palettized.
std::string reason_to_keep(const TensorView& tensor, std::uint64_t min_weights);

// What is recorded about one blob file.
struct BlobContents {
  struct GridScales {
    std::string name;
    std::vector<float> scales;  // One a palette, 0 where it is on no grid.
  };

  std::vector<BlobWeight> weights;
  std::vector<PalettizedTensor> palettized;
  std::vector<KeptTensor> kept;
  std::vector<GridScales> grid_scales;
};

// As a note in the writer's journal, and back. The note was written by this program, but a person
// may have touched it: throws Error(kCorruptData).
Json blob_contents_to_json(const BlobContents& contents);
BlobContents blob_contents_from_json(const Json& json);

struct TextBlobOptions {
  PaletteOptions palette;
  std::uint64_t min_weights = 0;
};

// Writes the weights of one program in the order of their use: per palettized tensor a record of
// indices and one of palettes, per other tensor one record of FP16. `path` is the blob's place in
// the bundle; `tensor_done` is called with each tensor's bytes in the checkpoint.
BlobContents write_text_blob(const ComputeContext& context, const Model& checkpoint,
                             const PlannedProgram& program, const std::string& path,
                             const TextBlobOptions& options, const BundleWriter::Sink& sink,
                             const std::function<void(std::uint64_t bytes)>& tensor_done);

}  // namespace clefkit
