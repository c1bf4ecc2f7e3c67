#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "clefkit/base/executor.h"
#include "clefkit/engine/engine.h"
#include "clefkit/model/text_scales.h"
#include "clefkit/questions/request.h"

namespace clefkit {

// What is measured on when nobody names anything better: three short requests, one a line, with
// prose, JSON, code and other scripts in their states, and a question of each kind. Under 512
// tokens altogether: a prompt's own words are most of it, and a 9B model takes a minute or two on
// two cores.
std::string_view built_in_calibration();

// Answers the requests and chooses each layer's factor (choose_mlp_factor) from what went into its
// down-projection. The engine computes on the CPU; of layers that a backend does not show, nothing
// is known. `options` apart from its observer are kept; the calibration's digest is the caller's
// to add. The same for every number of threads. Throws Error as Engine::ask does.
TextScales measure_scales(
    Engine& engine, const std::vector<Request>& requests, const AskOptions& options,
    const ComputeContext& context,
    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

}  // namespace clefkit
