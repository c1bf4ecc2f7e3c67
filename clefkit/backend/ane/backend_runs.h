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

// Every layer's output.
using Layers = std::map<std::size_t, std::vector<float>>;

// `rows` [tokens, hidden_size] appended to a sequence in these pieces.
inline Layers append_rows(Backend& backend, SequenceState& sequence, MatrixView<const float> rows,
                          const std::vector<std::size_t>& pieces) {
  Executor executor(1);
  Layers layers;
  std::size_t next = 0;
  for (const std::size_t count : pieces) {
    const MatrixView<const float> piece = rows.rows_from(next, count);
    std::vector<float> hidden(piece.data, piece.data + count * rows.columns);
    std::vector<std::int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(next));
    next += count;
    backend.prefill({executor}, sequence,
                    {.hidden = {hidden.data(), count, rows.columns},
                     .temporal = positions,
                     .height = positions,
                     .width = positions},
                    {.layer_output = [&](std::size_t layer, MatrixView<const float> output) {
                      for (std::size_t token = 0; token < output.rows; ++token) {
                        layers[layer].insert(layers[layer].end(), output.row(token).begin(),
                                             output.row(token).end());
                      }
                    }});
  }
  return layers;
}

// The same of a new sequence of random rows.
inline Layers layers_of(Backend& backend, const Model& model,
                        const std::vector<std::size_t>& pieces) {
  const std::size_t hidden_size = model.config.text.hidden_size;
  const std::size_t tokens = std::accumulate(pieces.begin(), pieces.end(), std::size_t{0});
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> rows(tokens * hidden_size);
  for (float& value : rows) value = normal(random);
  const auto sequence = backend.new_sequence(tokens);
  Layers layers = append_rows(backend, *sequence, {rows.data(), tokens, hidden_size}, pieces);
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
