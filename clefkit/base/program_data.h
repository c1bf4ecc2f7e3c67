#pragma once

#include <filesystem>
#include <optional>

namespace clefkit {

// The directory of the program that this process runs; empty when the system does not say.
std::filesystem::path directory_of_this_program();

// Data that come with the program, by their path under share/clefkit: beside the program, as in a
// build's folder; where an installation puts data for programs in this directory, wherever it was
// moved to; where it was to put them. The first place that has them.
std::optional<std::filesystem::path> find_program_data(const std::filesystem::path& relative);

}  // namespace clefkit
