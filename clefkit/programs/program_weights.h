#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clefkit/base/bytes.h"
#include "clefkit/model/blob_weight.h"
#include "clefkit/model/model.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/programs/mlp_program.h"

namespace clefkit {

// The weight file of one program in memory, laid out as a bundle's: indices and palettes of what is
// palettized, everything else FP16. From a checkpoint all of it is FP16.
class ProgramWeights {
 public:
  // Throws Error(kCorruptData) as to_fp16_bytes does.
  ProgramWeights(const Model& model, const PlannedProgram& program);
  ProgramWeights(const ProgramWeights&) = delete;
  ProgramWeights& operator=(const ProgramWeights&) = delete;

  const BlobWeight& find(const std::string& name) const { return weights_.at(name); }
  // The same as emitters take it, for as long as this lives.
  FindWeight finder() const {
    return [this](const std::string& name) -> const BlobWeight& { return find(name); };
  }
  Bytes file() const { return file_; }

 private:
  std::map<std::string, BlobWeight> weights_;
  std::vector<std::uint8_t> file_;
};

}  // namespace clefkit
