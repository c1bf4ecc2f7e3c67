#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace clefkit {

// Shortest paths from node 0 to node `last` along links i → j, i < j, whose weights obey
//   weight(a, c) + weight(b, d) <= weight(a, d) + weight(b, c)  for a <= b <= c <= d (Monge),
// as the cost of one cluster of sorted values does. Among equals the lower node is taken.
struct MongePath {
  std::vector<std::uint32_t> nodes;  // From 0 to `last`.
  // Weight added to every link that made this path the shortest of all; a good first guess for a
  // similar problem.
  double penalty = 0.0;
};

namespace monge_internal {

struct PenalizedSearch {
  std::size_t last;
  std::vector<double> lengths;
  std::vector<std::uint32_t> previous;
  std::vector<std::uint32_t> links;

  // From target `start` on, until the next candidate's start, `node` is the best last stop.
  struct Candidate {
    std::uint32_t node;
    std::uint32_t start;
  };
  std::vector<Candidate> candidates;

  explicit PenalizedSearch(std::size_t last_node)
      : last(last_node), lengths(last + 1), previous(last + 1), links(last + 1) {
    candidates.reserve(last + 1);
  }

  // Shortest path when each link costs `penalty` more. Returns its number of links.
  // The queue of Hirschberg and Larmore: by the Monge condition a later stop that once beats an
  // earlier one does so for all further targets.
  template <typename Weight>
  std::size_t run(const Weight& weight, double penalty) {
    const auto length = [&](std::uint32_t from, std::uint32_t to) {
      return lengths[from] + weight(from, to);
    };
    const auto end = static_cast<std::uint32_t>(last);
    candidates.assign(1, {0, 1});
    std::size_t front = 0;
    for (std::uint32_t node = 1; node <= end; ++node) {
      while (front + 1 < candidates.size() && candidates[front + 1].start <= node) ++front;
      const std::uint32_t from = candidates[front].node;
      lengths[node] = length(from, node) + penalty;
      previous[node] = from;
      links[node] = links[from] + 1;
      if (node == end) break;

      std::uint32_t start = node + 1;
      while (candidates.size() > front) {
        start = std::max(node + 1, candidates.back().start);
        if (!(length(node, start) < length(candidates.back().node, start))) break;
        candidates.pop_back();
      }
      if (candidates.size() == front) {
        candidates.push_back({node, node + 1});
        continue;
      }
      const std::uint32_t rival = candidates.back().node;
      // The new stop takes over soon after the last one did: look in doubling steps first.
      std::uint32_t beaten = start;  // The rival is still better here.
      std::uint32_t wins = end + 1;
      for (std::uint32_t step = 1; beaten < end; step *= 2) {
        const std::uint32_t target = std::min(beaten + step, end);
        if (length(node, target) < length(rival, target)) {
          wins = target;
          break;
        }
        beaten = target;
      }
      if (wins > end) continue;
      while (wins - beaten > 1) {
        const std::uint32_t middle = beaten + (wins - beaten) / 2;
        (length(node, middle) < length(rival, middle) ? wins : beaten) = middle;
      }
      candidates.push_back({node, wins});
    }
    return links[last];
  }

  std::vector<std::uint32_t> path() const {
    std::vector<std::uint32_t> nodes(links[last] + 1);
    std::uint32_t node = static_cast<std::uint32_t>(last);
    for (std::size_t i = nodes.size(); i-- > 0; node = previous[node]) nodes[i] = node;
    return nodes;
  }
};

// Shortest lengths to nodes [low, high] over one more link from nodes [from_low, from_high].
template <typename Weight>
void extend_by_one_link(const Weight& weight, const std::vector<double>& lengths, std::size_t low,
                        std::size_t high, std::size_t from_low, std::size_t from_high,
                        std::vector<double>& extended, std::uint32_t* previous) {
  const std::size_t middle = low + (high - low) / 2;
  double best = std::numeric_limits<double>::infinity();
  std::size_t best_from = from_low;
  for (std::size_t from = from_low; from <= std::min(from_high, middle - 1); ++from) {
    const double length = lengths[from] + weight(static_cast<std::uint32_t>(from),
                                                 static_cast<std::uint32_t>(middle));
    if (length < best) {
      best = length;
      best_from = from;
    }
  }
  extended[middle] = best;
  previous[middle] = static_cast<std::uint32_t>(best_from);
  if (middle > low)
    extend_by_one_link(weight, lengths, low, middle - 1, from_low, best_from, extended, previous);
  if (middle < high)
    extend_by_one_link(weight, lengths, middle + 1, high, best_from, from_high, extended, previous);
}

}  // namespace monge_internal

// Exactly `links` links, 1 <= links <= last: one layer of dynamic programming per link, each by
// divide and conquer. O(links · last · log last) weights.
template <typename Weight>
std::vector<std::uint32_t> layered_monge_path(std::size_t last, std::size_t links,
                                              const Weight& weight) {
  std::vector<std::uint32_t> previous((last + 1) * links);
  std::vector<double> lengths(last + 1);
  std::vector<double> extended(last + 1);
  for (std::size_t node = 1; node <= last; ++node)
    lengths[node] = weight(0, static_cast<std::uint32_t>(node));
  for (std::size_t link = 1; link < links; ++link) {
    // Nodes below link + 1 cannot be reached; the last ones must leave room for further links.
    monge_internal::extend_by_one_link(weight, lengths, link + 1, last, link, last - 1, extended,
                                       previous.data() + link * (last + 1));
    lengths.swap(extended);
  }
  std::vector<std::uint32_t> nodes(links + 1);
  std::uint32_t node = static_cast<std::uint32_t>(last);
  for (std::size_t link = links; link-- > 0;) {
    nodes[link + 1] = node;
    node = previous[link * (last + 1) + node];
  }
  return nodes;
}

// At most `links` links, 1 <= links <= last: fewer only where more do not shorten the path.
// A path that is the shortest when every link costs some penalty more is the shortest of its
// number of links. That number falls as the penalty grows, so the penalty is searched for, from
// `guess` > 0 on; it exists unless the shortest lengths of links − 1, links and links + 1 lie on a
// line, where the layered search decides. Usually about 4 · last · log last weights.
template <typename Weight>
MongePath shortest_monge_path(std::size_t last, std::size_t links, const Weight& weight,
                              double guess) {
  constexpr int kAttempts = 48;
  monge_internal::PenalizedSearch search(last);
  double low = 0.0;  // Too many links.
  double high = std::numeric_limits<double>::infinity();
  double penalty = guess;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // Almost always some penalty asks for too many links at once; if not, perhaps none does.
    if (attempt == 8 && low == 0.0 && search.run(weight, 0.0) <= links)
      return {search.path(), penalty};
    const std::size_t found = search.run(weight, penalty);
    if (found == links) return {search.path(), penalty};
    (found > links ? low : high) = penalty;
    // Quantization theory: the error falls as links^-2, so the penalty as links^-3.
    const double ratio = static_cast<double>(found) / static_cast<double>(links);
    penalty *= ratio * ratio * ratio;
    if (!(penalty > low && penalty < high) || attempt % 4 == 3)
      penalty = std::isinf(high) ? 2.0 * low : low + (high - low) / 2;
    if (!(penalty > low && penalty < high)) break;
  }
  return {layered_monge_path(last, links, weight), guess};
}

}  // namespace clefkit
