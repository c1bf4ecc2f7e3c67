#include "clefkit/bundle/bundle_program.h"

#include "clefkit/base/error.h"
#include "clefkit/base/file_io.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/bundle/manifest.h"
#include "clefkit/mil/checker.h"
#include "clefkit/mil/parser.h"

namespace clefkit {

mil::Program read_bundle_program(const std::filesystem::path& bundle, const ProgramRecord& record) {
  const std::filesystem::path text = bundle_path(bundle, record.mil);
  const std::filesystem::path weights = bundle_path(bundle, record.weights);
  mil::Program program = mil::parse_program(read_file(text, kMaxProgramBytes), text.string());
  const MappedFile file(weights);
  const mil::WeightBlobReader reader(file.bytes(), weights.string());
  mil::require_sound(program, {{mil::kWeightPath, &reader}}, ErrorCode::kCorruptData,
                     text.string());
  return program;
}

}  // namespace clefkit
