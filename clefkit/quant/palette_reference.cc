#include "clefkit/quant/palette_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace clefkit::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double square(double x) { return x * x; }

std::size_t nearest(const Palette& palette, double weight) {
  std::size_t best = 0;
  for (std::size_t k = 1; k < palette.size(); ++k) {
    if (std::fabs(weight - palette[k]) < std::fabs(weight - palette[best])) best = k;
  }
  return best;
}

// Nodes of the shortest path from 0 to the last node with `links` links of length cost[from][to].
std::vector<std::size_t> shortest_path(const std::vector<std::vector<double>>& cost,
                                       std::size_t links) {
  const std::size_t nodes = cost.size();
  std::vector<std::vector<double>> length(links + 1, std::vector<double>(nodes, kInfinity));
  std::vector<std::vector<std::size_t>> previous(links + 1, std::vector<std::size_t>(nodes));
  length[0][0] = 0.0;
  for (std::size_t link = 1; link <= links; ++link) {
    for (std::size_t to = 1; to < nodes; ++to) {
      for (std::size_t from = 0; from < to; ++from) {
        const double candidate = length[link - 1][from] + cost[from][to];
        if (candidate < length[link][to]) {
          length[link][to] = candidate;
          previous[link][to] = from;
        }
      }
    }
  }
  std::vector<std::size_t> path{nodes - 1};
  for (std::size_t link = links; link > 0; --link) path.push_back(previous[link][path.back()]);
  std::ranges::reverse(path);
  return path;
}

bool has_four_significant_bits(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent) * 16;
  return mantissa == std::floor(mantissa);
}

// The next larger value of at most 4 significant bits.
double next_scale(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return value + std::ldexp(1.0, exponent - 4);
}

// The best 64 of k · scale, |k| <= 127.
Palette best_on_grid(const std::vector<double>& weights, double scale) {
  const std::size_t nodes = 255 + 2;  // One on each side of the points.
  const auto point = [&](std::size_t node) { return (static_cast<double>(node) - 128) * scale; };
  std::vector<std::vector<double>> cost(nodes, std::vector<double>(nodes));
  for (std::size_t a = 0; a < nodes; ++a) {
    for (std::size_t b = a + 1; b < nodes; ++b) {
      for (const double weight : weights) {
        const bool right_of_a = a == 0 || weight > point(a);
        const bool left_of_b = b == nodes - 1 || weight <= point(b);
        if (!right_of_a || !left_of_b) continue;
        const double to_a = a == 0 ? kInfinity : std::fabs(weight - point(a));
        const double to_b = b == nodes - 1 ? kInfinity : std::fabs(weight - point(b));
        cost[a][b] += square(std::min(to_a, to_b));
      }
    }
  }
  const std::vector<std::size_t> path = shortest_path(cost, 65);
  Palette palette;
  for (std::size_t k = 0; k < 64; ++k) palette[k] = point(path[k + 1]);
  return palette;
}

}  // namespace

Palette original_palette(std::vector<double> weights, std::size_t rounds) {
  std::ranges::sort(weights);
  Palette palette;
  for (std::size_t i = 0; i < 32; ++i) {
    const double rank =
        (static_cast<double>(i) + 0.5) / 32 * static_cast<double>(weights.size() - 1);
    const auto lower = static_cast<std::size_t>(rank);
    const std::size_t upper = std::min(lower + 1, weights.size() - 1);
    const double part = rank - static_cast<double>(lower);
    palette[i] = weights[lower] * (1 - part) + weights[upper] * part;
    palette[32 + i] =
        weights.front() + static_cast<double>(i) / 31 * (weights.back() - weights.front());
  }
  std::ranges::sort(palette);
  for (std::size_t round = 0; round < rounds; ++round) {
    Palette sums{};
    Palette counts{};
    for (const double weight : weights) {
      const std::size_t k = nearest(palette, weight);
      sums[k] += weight;
      counts[k] += 1;
    }
    for (std::size_t k = 0; k < 64; ++k) {
      if (counts[k] != 0) palette[k] = sums[k] / counts[k];
    }
    std::ranges::sort(palette);
  }
  return palette;
}

Palette optimal_palette(const std::vector<double>& weights) {
  std::map<double, double> counts;
  for (const double weight : weights) counts[weight] += 1;
  const std::vector<std::pair<double, double>> values(counts.begin(), counts.end());
  Palette palette;
  if (values.size() <= 64) {
    for (std::size_t k = 0; k < 64; ++k) palette[k] = values[std::min(k, values.size() - 1)].first;
    return palette;
  }
  const auto mean = [&](std::size_t first, std::size_t last) {
    double sum = 0.0;
    double count = 0.0;
    for (std::size_t i = first; i < last; ++i) {
      sum += values[i].first * values[i].second;
      count += values[i].second;
    }
    return sum / count;
  };
  const std::size_t nodes = values.size() + 1;
  std::vector<std::vector<double>> cost(nodes, std::vector<double>(nodes));
  for (std::size_t first = 0; first < nodes; ++first) {
    for (std::size_t last = first + 1; last < nodes; ++last) {
      const double center = mean(first, last);
      for (std::size_t i = first; i < last; ++i)
        cost[first][last] += values[i].second * square(values[i].first - center);
    }
  }
  const std::vector<std::size_t> path = shortest_path(cost, 64);
  for (std::size_t k = 0; k < 64; ++k) palette[k] = mean(path[k], path[k + 1]);
  return palette;
}

GridPalette grid8_palette(const std::vector<double>& weights) {
  const Palette optimum = optimal_palette(weights);
  double largest = 0.0;
  for (const double weight : weights) largest = std::max(largest, std::fabs(weight));
  if (largest == 0.0) return {optimum, 0.0};

  GridPalette best;
  double best_error = kInfinity;
  double scale = std::ldexp(1.0, std::ilogb(largest / 127) - 1);
  while (scale < 0.8 * largest / 127) scale = next_scale(scale);
  for (bool is_last = false; !is_last; scale = next_scale(scale)) {
    is_last = scale >= largest / 127;
    if (!has_four_significant_bits(scale)) return {};
    if (std::fmod(scale, 0x1p-24) != 0.0) return {optimum, 0.0};
    const Palette palette = best_on_grid(weights, scale);
    const double error = squared_error(weights, palette);
    if (error <= best_error) {
      best_error = error;
      best = {palette, scale};
    }
  }
  if (best_error > 2 * squared_error(weights, optimum)) return {optimum, 0.0};
  return best;
}

double squared_error(const std::vector<double>& weights, const Palette& palette) {
  double total = 0.0;
  for (const double weight : weights) total += square(weight - palette[nearest(palette, weight)]);
  return total;
}

}  // namespace clefkit::reference
