#pragma once

#include <span>
#include <string>
#include <string_view>

#include "clefkit/eval/metrics.h"

// Pieces of a page of HTML that needs nothing from elsewhere.
namespace clefkit {

// For text and for attributes in quotes: what is markup becomes a reference, controls a space.
std::string html_escape(std::string_view text);

// A bar of that part of its width, 0 to 1, as an inline SVG. `style` is the class of what is
// filled.
std::string html_bar(double part, std::string_view style);

// The reliability diagram: how often answers were right, over how probable they were said to be.
// The area of a circle goes with the number of its answers.
std::string html_calibration_plot(std::span<const ReliabilityBin> bins);

}  // namespace clefkit
