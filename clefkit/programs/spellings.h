#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clefkit {

// Which of two ways a doubtful operation is spelled (ane.md 3.2). The first ways, of which programs
// are written unless a device turns out not to have them, are those that no published report
// contradicts or that are nearer to float32.
struct Spellings {
  bool reduce_mean = false;        // Else a convolution with the same weight everywhere.
  bool silu = false;               // Else x/2 · (1 + tanh(x/2)): the unit's own is off by 1e-3.
  bool concat_by_sum = false;      // Of parts padded with zeros; else concat.
  bool tile_by_product = false;    // With ones; else tile.
  bool maximum_by_halves = false;  // Of channels: maximum of two halves; else reduce_max.
  bool softmax_by_exp = false;     // exp(x - max) over its sum; else softmax.
  bool root_by_division = false;   // 1 / sqrt(x); else pow(x, -1/2).

  bool operator==(const Spellings&) const = default;
};

// What a second way is called in reports, in records, and by the probe that tries it.
struct SecondSpelling {
  std::string_view name;
  bool Spellings::*flag;
};
inline constexpr std::array kSecondSpellings{
    SecondSpelling{"reduce_mean", &Spellings::reduce_mean},
    SecondSpelling{"silu of the unit", &Spellings::silu},
    SecondSpelling{"concat by sum", &Spellings::concat_by_sum},
    SecondSpelling{"tile by product", &Spellings::tile_by_product},
    SecondSpelling{"maximum by halves", &Spellings::maximum_by_halves},
    SecondSpelling{"softmax by exp", &Spellings::softmax_by_exp},
    SecondSpelling{"inverse root by division", &Spellings::root_by_division},
};

std::vector<std::string> names_of(const Spellings& spellings);
// Nothing when one of them is no second way.
std::optional<Spellings> spellings_of(std::span<const std::string> names);

}  // namespace clefkit
