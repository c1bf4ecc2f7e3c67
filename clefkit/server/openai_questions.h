#pragma once

#include <vector>

#include "clefkit/base/json.h"
#include "clefkit/questions/request.h"

namespace clefkit::server {

struct OpenAiQuestions {
  Json system_one;  // The same as System One's `questions`.
  // Per question what its answer repeats: {name, values} with a choice's values or a score's
  // labels.
  Json memo;
};

// Reads the list of /v1/decisions. Images in instructions go to `images`. Throws Error
// (kInvalidArgument) naming the place: `questions[2].choices[0].value`.
OpenAiQuestions read_openai_questions(Json* questions, std::vector<MediaSource>& images);

// The list of answers. `system_one` is the object that answers_to_json() makes.
Json openai_answers(const std::vector<Question>& questions,
                    const std::vector<std::vector<double>>& probabilities, const Json& system_one,
                    const Json& memo);

}  // namespace clefkit::server
