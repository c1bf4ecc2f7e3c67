#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace clefkit::mil {

// How the simulator computes (ane.md 5 and 8.3). What is known of the generations was measured by
// others and published; none of it could be repeated without the machines.
enum class NumericProfile {
  kIdeal,   // FP16 storage, float32 sums, ties to even, infinity from 65520 on.
  kM1,      // Sums of 4 rounded to 12 bits, then float32; infinity from 2^15; activations by table.
  kH15g,    // M3 Ultra: products rounded to FP16 without subnormals, exact sums, ties away from
            // zero; 0 when a sum on the way reaches 2^15.
  kM5,      // Float32 sums, ties away from zero, infinity from 2^15 on.
  kStrict,  // As ideal; whatever a Neural Engine could get wrong is an error.
};

// "ideal", "m1", "h15g", "m5", "strict".
std::string_view to_string(NumericProfile profile);
std::optional<NumericProfile> numeric_profile(std::string_view name);

// Whether it follows a machine, rather than what FP16 itself says.
bool is_hardware(NumericProfile profile);

// A sum of products as the multiply-accumulate units give it, rounded to FP16.
struct Dot {
  float value = 0;
  bool is_in_range = true;  // No sum on the way reached 2^15.
};
Dot dot(NumericProfile profile, const float* x, const float* y, std::size_t count);

// Any other result, rounded to FP16.
float round_to_half(NumericProfile profile, double value);

}  // namespace clefkit::mil
