#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "clefkit/base/half.h"
#include "clefkit/model/config.h"
#include "clefkit/safetensors/safetensors_writer.h"

namespace clefkit {

// How the values of a tensor are distributed.
struct Distribution {
  enum class Kind {
    kNormal,
    kLogUniformDecay,  // log of a uniform number in [1, 16): A_log.
    kTimeStep,         // What softplus turns into log-uniform numbers in [0.001, 0.1): dt_bias.
  };
  Kind kind = Kind::kNormal;
  double mean = 0;
  double deviation = 0;

  friend auto operator<=>(const Distribution&, const Distribution&) = default;
};

// Distributions that make a lively model: activations of order one in every layer, a residual
// stream that neither vanishes nor grows with depth, decay between 0 and 1, attention that selects,
// answers that depend on the state.
Distribution distribution_of(const TensorInfo& tensor, const ModelConfig& config);

// The distribution's values at 65,536 evenly spaced quantiles: a draw is one look-up, and the tail
// ends at 4.3 deviations.
class QuantileTable {
 public:
  static constexpr std::size_t kSize = std::size_t{1} << 16;
  explicit QuantileTable(const Distribution& distribution);

  BFloat16 operator[](std::uint16_t quantile) const { return values_[quantile]; }

 private:
  std::vector<BFloat16> values_;
};

// Fills block `block` of a tensor. The values depend on the seed, the tensor's name, the block and
// the place in it alone, so that blocks may be made in any order on any number of threads.
void fill_block(const QuantileTable& table, std::uint64_t seed, std::string_view tensor_name,
                std::uint64_t block, std::span<BFloat16> out);

}  // namespace clefkit
