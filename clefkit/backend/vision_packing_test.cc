#include "clefkit/backend/vision_packing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "clefkit/kernels/attention.h"

namespace clefkit {
namespace {

std::vector<std::size_t> patches_of(const std::vector<VisionGroup>& groups) {
  std::vector<std::size_t> patches;
  for (const VisionGroup& group : groups) patches.push_back(group.patches);
  return patches;
}

TEST(VisionPacking, FillsGroupsInOrder) {
  const std::vector<VisionSegment> segments{{16, 16}, {16, 16}, {16, 16}, {16, 16},
                                            {16, 16}, {32, 32}, {2, 2}};
  const std::vector<VisionGroup> groups = pack_vision_segments(segments, 1024);
  EXPECT_EQ(patches_of(groups), (std::vector<std::size_t>{1024, 256, 1024, 4}));
  EXPECT_EQ(groups[1].first_segment, 4u);
  EXPECT_EQ(groups[1].segment_count, 1u);
  EXPECT_EQ(groups[1].first_patch, 1024u);
  EXPECT_EQ(groups[3].first_patch, 2304u);
}

TEST(VisionPacking, LeavesALargeSegmentAlone) {
  const std::vector<VisionSegment> segments{{2, 2}, {64, 64}, {2, 4}};
  EXPECT_EQ(patches_of(pack_vision_segments(segments, 1024)),
            (std::vector<std::size_t>{4, 4096, 8}));
  EXPECT_TRUE(pack_vision_segments({}, 1024).empty());
}

// Scores with the mask added, softmax, values: what a program of fixed size computes.
std::vector<double> masked_attention(const std::vector<float>& q, const std::vector<float>& k,
                                     const std::vector<float>& v, MatrixView<const float> mask,
                                     std::size_t dim) {
  const std::size_t count = mask.rows;
  std::vector<double> out(count * dim);
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<double> weights(count);
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j) {
      double score = mask.row(i)[j];
      for (std::size_t d = 0; d < dim; ++d) score += double{q[i * dim + d]} * k[j * dim + d];
      sum += weights[j] = std::exp(score);
    }
    for (std::size_t j = 0; j < count; ++j) {
      for (std::size_t d = 0; d < dim; ++d) out[i * dim + d] += weights[j] / sum * v[j * dim + d];
    }
  }
  return out;
}

TEST(VisionPacking, MaskGivesWhatSegmentsGiveAlone) {
  const std::vector<VisionSegment> segments{{2, 4}, {4, 4}, {2, 2}};
  constexpr std::size_t kCapacity = 40, kDim = 5;  // 28 patches and padding.
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> q(kCapacity * kDim), k(q.size()), v(q.size()), mask(kCapacity * kCapacity, 7);
  for (auto* values : {&q, &k, &v}) {
    for (float& value : *values) value = normal(random);
  }
  const MatrixView<float> mask_view(mask.data(), kCapacity, kCapacity);
  fill_segment_mask(segments, -1e4f, mask_view);
  const std::vector<double> packed = masked_attention(q, k, v, mask_view, kDim);
  for (const double value : packed) ASSERT_TRUE(std::isfinite(value));

  std::size_t first = 0;
  for (const VisionSegment& segment : segments) {
    const std::size_t count = segment.patches();
    const auto rows = [&](std::vector<float>& values) {
      return MatrixView<float>(values.data() + first * kDim, count, kDim);
    };
    std::vector<float> alone(count * kDim);
    attention_reference({.query_heads = 1, .kv_heads = 1, .head_dim = kDim, .scale = 1.0f}, rows(q),
                        rows(k), rows(v), -1, {alone.data(), count, kDim});
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_NEAR(alone[i], packed[first * kDim + i], 1e-6) << "segment at " << first;
    }
    first += count;
  }
}

}  // namespace
}  // namespace clefkit
