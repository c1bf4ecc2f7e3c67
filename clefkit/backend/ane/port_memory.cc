#include "clefkit/backend/ane/port_memory.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "clefkit/base/error.h"

namespace clefkit::ane {
namespace {

constexpr std::uint16_t kExponent = 0x7C00;  // All ones: infinity or NaN.

Half load(const std::uint8_t* at) {
  Half value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
void store(std::uint8_t* at, Half value) { std::memcpy(at, &value, sizeof(value)); }

// The last byte that the strides reach, plus one.
std::uint64_t extent_of(const PortLayout& layout) {
  std::uint64_t extent = sizeof(Half);
  for (std::size_t axis = 0; axis < layout.strides.size(); ++axis) {
    extent += layout.strides[axis] * static_cast<std::uint64_t>(layout.shape[axis] - 1);
  }
  return extent;
}

}  // namespace

PortMemory::PortMemory(const PortLayout& layout, Surface& surface, Surface::Access access)
    : layout_(layout), surface_(surface), access_(access), memory_(surface.lock(access)) {
  assert(layout.shape.size() == 4);
  if (const std::uint64_t extent = extent_of(layout); extent > memory_.size()) {
    surface.unlock(access);
    throw_error(ErrorCode::kUnavailable, layout.name, "a surface of {} bytes, expected {}",
                memory_.size(), extent);
  }
}

std::uint8_t* PortMemory::row(std::size_t batch, std::size_t channel, std::size_t height) const {
  return memory_.data() + batch * layout_.strides[0] + channel * layout_.strides[1] +
         height * layout_.strides[2];
}

template <typename Function>
void PortMemory::for_each_row(const Function& function) const {
  for (std::size_t batch = 0; batch < size(0); ++batch) {
    for (std::size_t channel = 0; channel < size(1); ++channel) {
      for (std::size_t height = 0; height < size(2); ++height) {
        function(row(batch, channel, height));
      }
    }
  }
}

void PortMemory::write(std::span<const Half> values) {
  std::size_t next = 0;
  for_each_row([&](std::uint8_t* row) {
    for (std::size_t w = 0; w < size(3) && next < values.size(); ++w) {
      store(row + w * layout_.strides[3], values[next++]);
    }
  });
  assert(next == values.size());
}

void PortMemory::read(std::span<Half> values) const {
  std::size_t next = 0;
  for_each_row([&](const std::uint8_t* row) {
    for (std::size_t w = 0; w < size(3) && next < values.size(); ++w) {
      values[next++] = load(row + w * layout_.strides[3]);
    }
  });
  assert(next == values.size());
}

void PortMemory::write_columns(std::size_t first, MatrixView<const Half> rows) {
  assert(rows.columns == size(1) && first + rows.rows <= size(3));
  for (std::size_t channel = 0; channel < rows.columns; ++channel) {
    std::uint8_t* const at = row(0, channel, 0) + first * layout_.strides[3];
    for (std::size_t token = 0; token < rows.rows; ++token) {
      store(at + token * layout_.strides[3], rows.row(token)[channel]);
    }
  }
}

void PortMemory::read_columns(std::size_t first, MatrixView<Half> rows) const {
  assert(rows.columns == size(1) && first + rows.rows <= size(3));
  for (std::size_t channel = 0; channel < rows.columns; ++channel) {
    const std::uint8_t* const at = row(0, channel, 0) + first * layout_.strides[3];
    for (std::size_t token = 0; token < rows.rows; ++token) {
      rows.row(token)[channel] = load(at + token * layout_.strides[3]);
    }
  }
}

bool PortMemory::is_finite() const {
  bool finite = true;
  for_each_row([&](const std::uint8_t* row) {
    for (std::size_t w = 0; w < size(3); ++w) {
      finite &= (load(row + w * layout_.strides[3]).bits & kExponent) != kExponent;
    }
  });
  return finite;
}

}  // namespace clefkit::ane
