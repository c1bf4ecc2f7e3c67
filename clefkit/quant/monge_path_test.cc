#include "clefkit/quant/monge_path.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace clefkit {
namespace {

using Nodes = std::vector<std::uint32_t>;

// Squared error of the points [from, to) against their mean, as k-means has it.
struct ClusterCost {
  std::vector<double> points;  // Ascending.
  double operator()(std::uint32_t from, std::uint32_t to) const {
    double mean = 0.0;
    for (std::uint32_t i = from; i < to; ++i) mean += points[i] / (to - from);
    double cost = 0.0;
    for (std::uint32_t i = from; i < to; ++i) cost += (points[i] - mean) * (points[i] - mean);
    return cost;
  }
};

template <typename Weight>
double length_of(const Nodes& nodes, const Weight& weight) {
  double length = 0.0;
  for (std::size_t i = 1; i < nodes.size(); ++i) length += weight(nodes[i - 1], nodes[i]);
  return length;
}

// Tries every path.
template <typename Weight>
double shortest_length(std::uint32_t from, std::uint32_t last, std::size_t links,
                       const Weight& weight) {
  if (links == 1) return weight(from, last);
  double best = std::numeric_limits<double>::infinity();
  for (std::uint32_t next = from + 1; next + links - 1 <= last; ++next) {
    best = std::min(best, weight(from, next) + shortest_length(next, last, links - 1, weight));
  }
  return best;
}

void expect_path(const Nodes& nodes, std::size_t last, std::size_t links) {
  ASSERT_EQ(nodes.size(), links + 1);
  EXPECT_EQ(nodes.front(), 0);
  EXPECT_EQ(nodes.back(), last);
  EXPECT_TRUE(std::ranges::is_sorted(nodes, std::less_equal<>()));
}

TEST(MongePath, IsTheShortestOfAllWithSoManyLinks) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (std::size_t last = 1; last <= 11; ++last) {
    ClusterCost cost{std::vector<double>(last)};
    for (double& point : cost.points) point = normal(random);
    std::ranges::sort(cost.points);
    for (std::size_t links = 1; links <= last; ++links) {
      const double expected = shortest_length(0, static_cast<std::uint32_t>(last), links, cost);
      const Nodes layered = layered_monge_path(last, links, cost);
      expect_path(layered, last, links);
      EXPECT_NEAR(length_of(layered, cost), expected, 1e-12);
      const MongePath searched = shortest_monge_path(last, links, cost, 0.1);
      expect_path(searched.nodes, last, links);
      EXPECT_NEAR(length_of(searched.nodes, cost), expected, 1e-12);
    }
  }
}

TEST(MongePath, IsFoundFromAnyGuess) {
  ClusterCost cost{std::vector<double>(60)};
  for (std::size_t i = 0; i < cost.points.size(); ++i)
    cost.points[i] = std::pow(1.1, static_cast<double>(i));
  const Nodes expected = layered_monge_path(60, 20, cost);
  for (const double guess : {1e-300, 1e-9, 1.0, 1e9, 1e300})
    EXPECT_EQ(shortest_monge_path(60, 20, cost, guess).nodes, expected) << guess;
}

// Evenly spaced points: 8 clusters of two cost 4, and every further link saves 1/2, so no penalty
// asks for 9 to 15 links.
TEST(MongePath, IsFoundWherePathsOfMoreAndFewerLinksLieOnALine) {
  ClusterCost cost{std::vector<double>(16)};
  for (std::size_t i = 0; i < cost.points.size(); ++i) cost.points[i] = static_cast<double>(i);
  for (std::size_t links = 8; links <= 16; ++links) {
    const MongePath path = shortest_monge_path(16, links, cost, 0.1);
    expect_path(path.nodes, 16, links);
    EXPECT_DOUBLE_EQ(length_of(path.nodes, cost), static_cast<double>(16 - links) / 2);
  }
}

TEST(MongePath, TakesFewerLinksWhereMoreSaveNothing) {
  const ClusterCost cost{{1, 1, 1, 2, 2, 2, 5, 5}};
  const MongePath path = shortest_monge_path(8, 5, cost, 0.1);
  EXPECT_EQ(path.nodes, (Nodes{0, 3, 6, 8}));
}

TEST(MongePath, PrefersTheLowerNodeAmongEquals) {
  const ClusterCost cost{{0, 1, 2}};  // 0 | 1 2 and 0 1 | 2 cost the same.
  EXPECT_EQ(layered_monge_path(3, 2, cost), (Nodes{0, 1, 3}));
  EXPECT_EQ(shortest_monge_path(3, 2, cost, 0.1).nodes, (Nodes{0, 1, 3}));
}

}  // namespace
}  // namespace clefkit
