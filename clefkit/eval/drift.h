#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/engine/engine.h"
#include "clefkit/questions/request.h"

namespace clefkit {

// One model's probabilities for a list of requests: [request][question][option].
using Probabilities = std::vector<std::vector<std::vector<double>>>;

// Answers every request with one engine. `progress` is given requests done and in all. An Error
// begins with the place of the request.
Probabilities answer_all(Engine& engine, const std::vector<Request>& requests,
                         const AskOptions& options,
                         const std::function<void(std::size_t, std::size_t)>& progress = {});

// A question whose chosen answer differs between two models.
struct ChangedAnswer {
  std::size_t request = 0;  // Index into the requests.
  std::string question;
  std::string chosen, chosen_against;
  double margin = 0;  // Largest minus second probability, of the model compared against.
};

// How far probabilities moved. Every option of every question counts once; a noul's answer is its
// likelier side, a score's its likeliest level.
struct Drift {
  std::size_t requests = 0;
  std::size_t questions = 0;
  std::size_t probabilities = 0;
  double largest = 0;
  double mean = 0;
  std::vector<ChangedAnswer> changed;

  std::size_t agreeing() const { return questions - changed.size(); }
  // Changed answers whose margin was above `margin`.
  std::size_t changed_beyond(double margin) const;
};

Drift compare_probabilities(const std::vector<Request>& requests, const Probabilities& found,
                            const Probabilities& against);

// The `drift` of verify --json; `margin` is what `changed_beyond_margin` is counted by.
Json drift_to_json(const Drift& drift, double margin);

}  // namespace clefkit
