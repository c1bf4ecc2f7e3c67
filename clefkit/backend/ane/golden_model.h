#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "clefkit/model/checkpoint.h"

// For tests: the golden checkpoints, and how far results are from what they are to be.
namespace clefkit::ane {

inline Model open_golden(const std::string& name) {
  return open_checkpoint(CLEFKIT_SOURCE_DIR "/tests/golden/checkpoints/" + name);
}

// A model with one of another's text layers only, as its layer 0. The other must outlive it.
inline Model one_layer(const Model& model, std::size_t layer) {
  const std::string layers = "model.language_model.layers.";
  const std::string prefix = layers + std::to_string(layer) + ".";
  Model one{};
  static_cast<ModelFiles&>(one) = model;
  one.config.text.num_hidden_layers = 1;
  one.config.text.layer_types = {model.config.text.layer_types[layer]};
  for (const auto& [name, weight] : model.weights) {
    if (name.starts_with(prefix)) {
      one.weights.emplace(layers + "0." + name.substr(prefix.size()), weight);
    } else if (!name.starts_with(layers)) {
      one.weights.emplace(name, weight);
    }
  }
  return one;
}

// Root mean square of the difference as a part of that of the values.
inline double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(double{actual[i]} - expected[i], 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / size);
}

}  // namespace clefkit::ane
