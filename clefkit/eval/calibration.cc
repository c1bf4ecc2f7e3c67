#include "clefkit/eval/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "clefkit/backend/weights.h"
#include "clefkit/base/lines.h"
#include "clefkit/base/mapped_file.h"
#include "clefkit/model/tensor_plan.h"
#include "clefkit/programs/mlp_program.h"

namespace clefkit {
namespace {

constexpr std::string_view kRequests =
    R"({"state": "My parcel was due on Monday. It is Friday, nobody answers, and you still took the 49.90. I want my money back!", "questions": {"refund": {"type": "noul"}}}
{"state": {"order": 10482, "items": [{"sku": "A-7", "price": 19.5}], "log": "07:12:44 ERROR db: timeout after 30000 ms", "code": "while (!ok) retry(db);", "note": null}, "questions": {"team": {"type": "choice", "criteria": {"billing": "Invoices", "shipping": null}}}}
{"state": "Die Heizung ist kalt. 请今天修理。 Merci d'avance, спасибо 🙏", "questions": {"urgency": {"type": "score", "criteria": ["low", "high"]}}}
)";

double norm(std::span<const float> values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

double largest_row_norm(const ComputeContext& context, const WeightMatrix& matrix) {
  std::vector<double> norms(rows_of(matrix));
  context.parallel_for(norms.size(), [&](std::size_t row, std::size_t) {
    std::vector<float> values(columns_of(matrix));
    copy_weight_row(matrix, row, values);
    norms[row] = norm(values);
  });
  return std::ranges::max(norms);
}

// The smallest power of two that is not below; 0 of 0.
double power_of_two_above(double value) {
  if (!(value > 0)) return 0;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return std::ldexp(1.0, fraction == 0.5 ? exponent - 1 : exponent);
}

// A layer's weights in their files.
std::vector<Bytes> mapped_weights(const Model& model, std::size_t layer) {
  std::vector<Bytes> mapped;
  for (const auto& [name, weight] : model.weights) {
    const auto* const tensor = std::get_if<TensorView>(&weight);
    if (tensor != nullptr && name.starts_with(text_layer_prefix(layer))) {
      mapped.push_back(tensor->bytes);
    }
  }
  return mapped;
}

struct Largest {
  double activation = 0;
  double norm = 0;  // Of one token's activations.
};

}  // namespace

std::string_view built_in_calibration() { return kRequests; }

TextScales measure_scales(Engine& engine, const std::vector<Request>& requests,
                          const AskOptions& options, const ComputeContext& context,
                          const std::function<void(std::size_t, std::size_t)>& progress) {
  const Model& model = engine.model();
  const TextConfig& config = model.config.text;
  std::vector<std::vector<Bytes>> mapped(config.num_hidden_layers);
  for (std::size_t layer = 0; layer < mapped.size(); ++layer) {
    mapped[layer] = mapped_weights(model, layer);
  }
  std::map<std::size_t, Largest> seen;
  const TextObserver observer{
      // One layer's weights at a time stay in memory, as everywhere in a conversion.
      .layer_output =
          [&](std::size_t layer, MatrixView<const float>) {
            for (const Bytes bytes : mapped[layer]) release_pages(bytes);
          },
      .mlp_activations =
          [&](std::size_t layer, MatrixView<const float> rows) {
            Largest& largest = seen[layer];
            for (std::size_t token = 0; token < rows.rows; ++token) {
              const std::span<const float> row = rows.row(token);
              for (const float value : row) {
                largest.activation = std::max(largest.activation, std::abs(double{value}));
              }
              largest.norm = std::max(largest.norm, norm(row));
            }
          }};
  AskOptions asking = options;
  asking.observer = &observer;

  TextScales scales;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    scales.tokens +=
        at_place(requests[i].place, [&] { return engine.ask(requests[i], asking).input_tokens; });
    if (progress) progress(i + 1, requests.size());
  }
  for (const auto& [layer, largest] : seen) {
    const WeightMatrix down =
        weight_matrix(model, text_layer_prefix(layer) + "mlp.down_proj.weight", config.hidden_size,
                      config.intermediate_size);
    // Some products of a row and a token sum up to |w|·|a| at most (Cauchy, Schwarz), whichever
    // they are: that bounds the results, and what a unit has summed on its way to them.
    const double sum = largest_row_norm(context, down) * largest.norm;
    for (const Bytes bytes : mapped[layer]) release_pages(bytes);
    MlpScale scale{.layer = layer,
                   .largest_activation = power_of_two_above(largest.activation),
                   .largest_sum = power_of_two_above(sum)};
    scale.factor = choose_mlp_factor(scale.largest_activation, scale.largest_sum);
    scales.mlp.push_back(scale);
  }
  return scales;
}

}  // namespace clefkit
