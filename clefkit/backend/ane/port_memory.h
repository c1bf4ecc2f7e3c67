#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "clefkit/backend/ane/device.h"
#include "clefkit/base/half.h"
#include "clefkit/base/matrix_view.h"

namespace clefkit::ane {

// A port's elements, under its surface's lock. One that is written starts with what it held.
class PortMemory {
 public:
  // Throws Error(kUnavailable) when the surface is smaller than the port.
  PortMemory(const PortLayout& layout, Surface& surface, Surface::Access access);
  ~PortMemory() { surface_.unlock(access_); }
  PortMemory(const PortMemory&) = delete;
  PortMemory& operator=(const PortMemory&) = delete;

  // All elements in row-major order, without padding. They may be fewer than the port has; the rest
  // stays.
  void write(std::span<const Half> values);
  void read(std::span<Half> values) const;

  // Rows [tokens, channels] as columns `first`, `first` + 1, … of a port [1, channels, 1, width].
  void write_columns(std::size_t first, MatrixView<const Half> rows);
  void read_columns(std::size_t first, MatrixView<Half> rows) const;

  // Whether no element is an infinity or NaN.
  bool is_finite() const;

 private:
  std::uint8_t* row(std::size_t batch, std::size_t channel, std::size_t height) const;
  std::size_t size(std::size_t axis) const { return static_cast<std::size_t>(layout_.shape[axis]); }
  template <typename Function>
  void for_each_row(const Function& function) const;

  const PortLayout& layout_;
  Surface& surface_;
  const Surface::Access access_;
  std::span<std::uint8_t> memory_;
};

}  // namespace clefkit::ane
