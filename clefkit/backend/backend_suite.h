#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "clefkit/backend/backend.h"
#include "clefkit/base/error.h"
#include "clefkit/model/model.h"

// What every backend must keep, whatever it computes with. A backend's own test file instantiates
// BackendSuite with how to make it; that it computes the right thing is for that file to show.

namespace clefkit {

struct BackendUnderTest {
  std::string name;
  std::function<Model()> open;
  std::function<std::unique_ptr<Backend>(const Model&)> make;
  // Largest difference between two ways to cut a sequence, as a part of the output's root mean
  // square.
  double chunk_tolerance = 1e-4;
  // Ways to cut a sequence of 200 tokens, and lengths to cut at 64; fewer for a backend that takes
  // its time.
  std::vector<std::size_t> chunks{1, 2, 3, 7, 31, 63, 64, 65, 100, 127, 128, 129, 199};
  std::vector<std::size_t> lengths = lengths_around_chunks();

  static std::vector<std::size_t> lengths_around_chunks() {
    std::vector<std::size_t> all{1, 2, 3};
    for (std::size_t tokens = 61; tokens <= 131; ++tokens) all.push_back(tokens);
    return all;
  }
};

inline void PrintTo(const BackendUnderTest& backend, std::ostream* out) { *out << backend.name; }

class BackendSuite : public ::testing::TestWithParam<BackendUnderTest> {
 protected:
  // Hidden rows of a sequence, and where its layers left them.
  using Rows = std::vector<float>;

  std::size_t hidden_size() const { return model_.config.text.hidden_size; }

  Rows random_rows(std::size_t tokens, unsigned seed = 1) const {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    Rows rows(tokens * hidden_size());
    for (float& value : rows) value = normal(random);
    return rows;
  }

  // Appends rows [first, first + count) to the sequence and returns the last layer's output.
  Rows append(SequenceState& sequence, const Rows& rows, std::size_t first, std::size_t count,
              const ComputeContext& context, const TextObserver& observer = {}) {
    Rows hidden(rows.begin() + static_cast<std::ptrdiff_t>(first * hidden_size()),
                rows.begin() + static_cast<std::ptrdiff_t>((first + count) * hidden_size()));
    std::vector<std::int32_t> positions(count);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
    backend_->prefill(context, sequence,
                      {.hidden = {hidden.data(), count, hidden_size()},
                       .temporal = positions,
                       .height = positions,
                       .width = positions},
                      observer);
    return hidden;
  }

  Rows append(SequenceState& sequence, const Rows& rows, std::size_t first, std::size_t count) {
    return append(sequence, rows, first, count, {executor_});
  }

  Rows run_in_chunks(const Rows& rows, std::size_t chunk_tokens) {
    const std::size_t tokens = rows.size() / hidden_size();
    const auto sequence = backend_->new_sequence(tokens);
    Rows out;
    for (std::size_t first = 0; first < tokens; first += chunk_tokens) {
      const Rows chunk = append(*sequence, rows, first, std::min(chunk_tokens, tokens - first));
      out.insert(out.end(), chunk.begin(), chunk.end());
    }
    return out;
  }

  static double largest_difference(const Rows& found, const Rows& expected) {
    double square_sum = 0, largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      square_sum += double{expected[i]} * expected[i];
      const double difference = std::abs(double{found[i]} - expected[i]);
      if (!(difference <= largest)) largest = difference;  // A NaN is kept.
    }
    return largest / std::sqrt(square_sum / static_cast<double>(expected.size()));
  }

  Model model_ = GetParam().open();
  std::unique_ptr<Backend> backend_ = GetParam().make(model_);
  Executor executor_{2};
};

TEST_P(BackendSuite, GivesTheSameForEveryChunkSize) {
  const Rows rows = random_rows(200);
  const Rows expected = run_in_chunks(rows, 200);
  for (const std::size_t chunk : GetParam().chunks) {
    EXPECT_LE(largest_difference(run_in_chunks(rows, chunk), expected), GetParam().chunk_tolerance)
        << "chunks of " << chunk;
  }
}

TEST_P(BackendSuite, GivesTheSameForEveryLengthAroundAChunk) {
  const Rows rows = random_rows(131);
  for (const std::size_t tokens : GetParam().lengths) {
    const Rows first(rows.begin(),
                     rows.begin() + static_cast<std::ptrdiff_t>(tokens * hidden_size()));
    EXPECT_LE(largest_difference(run_in_chunks(first, 64), run_in_chunks(first, tokens)),
              GetParam().chunk_tolerance)
        << tokens << " tokens";
  }
}

TEST_P(BackendSuite, SeesNoLaterToken) {
  const Rows rows = random_rows(80);
  const auto sequence = backend_->new_sequence(80);
  const Rows all = append(*sequence, rows, 0, 80);
  const auto shorter = backend_->new_sequence(50);
  const Rows first = append(*shorter, rows, 0, 50);
  EXPECT_LE(largest_difference(
                Rows(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first.size())), first),
            GetParam().chunk_tolerance);
}

TEST_P(BackendSuite, RepeatsItselfBitForBit) {
  const Rows rows = random_rows(90);
  const Rows expected = run_in_chunks(rows, 64);
  run_in_chunks(random_rows(33, 2), 33);  // Leaves nothing behind in the backend.
  EXPECT_EQ(run_in_chunks(rows, 64), expected);
}

TEST_P(BackendSuite, GivesTheSameBitsForEveryNumberOfThreads) {
  const Rows rows = random_rows(130);
  Executor one(1), three(3);
  const auto a = backend_->new_sequence(130), b = backend_->new_sequence(130);
  EXPECT_EQ(append(*a, rows, 0, 130, {one}), append(*b, rows, 0, 130, {three}));
}

TEST_P(BackendSuite, CloneGoesOnByItself) {
  const Rows rows = random_rows(150), other = random_rows(150, 2);
  const auto original = backend_->new_sequence(150);
  append(*original, rows, 0, 70);
  const auto clone = original->clone(120);
  ASSERT_EQ(clone->tokens(), 70u);

  append(*clone, other, 70, 50);
  const Rows continued = append(*original, rows, 70, 80);

  const auto fresh = backend_->new_sequence(150);
  append(*fresh, rows, 0, 70);
  const auto second_clone = fresh->clone(150);
  EXPECT_EQ(append(*second_clone, rows, 70, 80), continued);
  EXPECT_EQ(append(*fresh, rows, 70, 80), continued);
  EXPECT_EQ(clone->tokens(), 120u);
}

TEST_P(BackendSuite, CountsTokensAndBytes) {
  const Rows rows = random_rows(40);
  const auto sequence = backend_->new_sequence(40);
  EXPECT_EQ(sequence->tokens(), 0u);
  append(*sequence, rows, 0, 10);
  const std::size_t bytes = sequence->size_bytes();
  EXPECT_EQ(sequence->tokens(), 10u);
  EXPECT_GT(bytes, 0u);
  append(*sequence, rows, 10, 30);
  EXPECT_EQ(sequence->tokens(), 40u);
  EXPECT_GE(sequence->size_bytes(), bytes);
}

TEST_P(BackendSuite, RefusesMoreThanTheCapacity) {
  const Rows rows = random_rows(12);
  const auto sequence = backend_->new_sequence(10);
  append(*sequence, rows, 0, 10);
  EXPECT_THROW(append(*sequence, rows, 10, 1), Error);
  EXPECT_EQ(sequence->tokens(), 10u);
  const auto small = backend_->new_sequence(10);
  EXPECT_THROW(append(*small, rows, 0, 11), Error);
}

TEST_P(BackendSuite, ShowsEveryLayerInOrder) {
  const Rows rows = random_rows(20);
  const auto sequence = backend_->new_sequence(20);
  std::vector<std::size_t> layers;
  Rows last;
  const Rows out = append(*sequence, rows, 0, 20, {executor_},
                          {.layer_output = [&](std::size_t layer, MatrixView<const float> hidden) {
                            layers.push_back(layer);
                            last.clear();
                            for (std::size_t i = 0; i < hidden.rows; ++i) {
                              last.insert(last.end(), hidden.row(i).begin(), hidden.row(i).end());
                            }
                          }});
  std::vector<std::size_t> expected(model_.config.text.num_hidden_layers);
  std::iota(expected.begin(), expected.end(), std::size_t{0});
  EXPECT_EQ(layers, expected);
  EXPECT_EQ(last, out);
}

TEST_P(BackendSuite, StopsWithinALayerWhenCancelled) {
  const Rows rows = random_rows(20);
  const auto sequence = backend_->new_sequence(20);
  CancelToken token;
  std::size_t seen = 0;
  try {
    append(*sequence, rows, 0, 20, {executor_, &token},
           {.layer_output = [&](std::size_t, MatrixView<const float>) {
             ++seen;
             token.cancel();
           }});
    FAIL() << "ran to the end";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_EQ(seen, 1u);
}

}  // namespace clefkit
