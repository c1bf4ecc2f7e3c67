#pragma once

#include <functional>
#include <optional>
#include <string>

// What `function` threw as a clefkit::Error, if it did. In a file of plain C++: with gcc's runtime,
// Objective-C++ files catch none of C++'s exceptions.
std::optional<std::string> failure_of(const std::function<void()>& function);
