#pragma once

#include <filesystem>
#include <string>

namespace clefkit {

// The path of a program of ours that runs as a process of its own: `given` unless it is empty, else
// what the environment's `variable` names, else the one beside this process's own program, else the
// installed one. Throws Error(kUnavailable) when neither of the last two exists.
std::filesystem::path find_companion_program(const std::string& name, const char* variable,
                                             const std::filesystem::path& given = {});

}  // namespace clefkit
