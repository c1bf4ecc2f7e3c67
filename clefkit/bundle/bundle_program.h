#pragma once

#include <filesystem>

#include "clefkit/mil/program.h"
#include "clefkit/model/program_record.h"

namespace clefkit {

// A program of a bundle, read from its text and checked against its weight file. Throws
// Error(kCorruptData) with the text's path for what the parser or the checker finds, and as reading
// files does.
mil::Program read_bundle_program(const std::filesystem::path& bundle, const ProgramRecord& record);

}  // namespace clefkit
