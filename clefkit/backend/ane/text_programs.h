#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clefkit/backend/ane/device.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/model/model.h"
#include "clefkit/model/program_plan.h"
#include "clefkit/programs/program_weights.h"
#include "clefkit/programs/text_program.h"

namespace clefkit::ane {

// How programs are cut, and spelled.
struct ProgramForm {
  PlanKind plan = PlanKind::kGrouped;
  Spellings spellings{};
};

// A model's text programs: those of a bundle, or made here: for a bundle whose programs a device
// needs spelled another way, over the same weight files; for a checkpoint, which copies its weights
// as FP16 and is for small models.
class TextPrograms {
 public:
  // A bundle has been cut already: the form's plan is a checkpoint's. The model must outlive it.
  // Throws Error(kCorruptData) when a bundle's programs are those of no plan.
  TextPrograms(const Model& model, const ProgramForm& form);

  // In the order of their use.
  const std::vector<PlannedProgram>& plan() const { return plan_; }
  // `context` is an attention program's, else 0. Its weights live as long as this. Throws Error
  // as reading files does, and kCorruptData for a weight that FP16 cannot hold.
  ProgramSource source(std::size_t program, std::size_t context);

 private:
  ProgramSource from_bundle(const PlannedProgram& planned, std::size_t context);
  std::string emitted(const PlannedProgram& planned, std::size_t context,
                      const FindWeight& find_weight) const;

  const Model& model_;
  const Spellings spellings_;
  std::vector<PlannedProgram> plan_;
  std::map<std::string, MappedFile> files_;                         // A bundle's weight files.
  std::map<std::size_t, std::unique_ptr<ProgramWeights>> weights_;  // A checkpoint's, by program.
};

}  // namespace clefkit::ane
