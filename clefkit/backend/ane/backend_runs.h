#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/model/model.h"

// For tests: what a backend makes of random inputs, the same for each that is asked.
namespace clefkit::ane {

// Every layer's output for a sequence that is appended in these pieces.
using Layers = std::map<std::size_t, std::vector<float>>;
inline Layers layers_of(Backend& backend, const Model& model,
                        const std::vector<std::size_t>& pieces) {
  const std::size_t hidden_size = model.config.text.hidden_size;
  const std::size_t tokens = std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  Executor executor(1);
  const auto sequence = backend.new_sequence(tokens);
  Layers layers;
  std::int32_t next = 0;
  for (const std::size_t count : pieces) {
    std::vector<float> rows(count * hidden_size);
    for (float& value : rows) value = normal(random);
    std::vector<std::int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), next);
    next += static_cast<std::int32_t>(count);
    backend.prefill({executor}, *sequence,
                    {.hidden = {rows.data(), count, hidden_size},
                     .temporal = positions,
                     .height = positions,
                     .width = positions},
                    {.layer_output = [&](std::size_t layer, MatrixView<const float> hidden) {
                      for (std::size_t token = 0; token < hidden.rows; ++token) {
                        layers[layer].insert(layers[layer].end(), hidden.row(token).begin(),
                                             hidden.row(token).end());
                      }
                    }});
  }
  EXPECT_EQ(sequence->tokens(), tokens);
  return layers;
}

// Features [patches / 4, out_hidden_size] of pictures with random pixels.
inline std::vector<float> features_of(Backend& backend, const VisionConfig& config,
                                      const std::vector<VisionSegment>& pictures) {
  std::size_t patches = 0;
  for (const VisionSegment& picture : pictures) patches += picture.patches();
  std::vector<float> pixels(patches * config.patch_values());
  std::mt19937 random(5);
  std::uniform_real_distribution<float> normed(-1, 1);
  for (float& value : pixels) value = normed(random);
  std::vector<float> features(patches / 4 * config.out_hidden_size);
  Executor executor(1);
  backend.encode_vision({executor},
                        {.pixels = {pixels.data(), patches, config.patch_values()},
                         .segments = pictures,
                         .features = {features.data(), patches / 4, config.out_hidden_size}},
                        {});
  return features;
}

}  // namespace clefkit::ane
