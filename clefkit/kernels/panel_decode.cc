#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "clefkit/base/bytes.h"
#include "clefkit/kernels/panel_kernels.h"

// As in panel_multiply.cc: panels are arrays of vectors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "clefkit/kernels/panel_decode.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef CLEFKIT_PANEL_DECODE_ONCE
#define CLEFKIT_PANEL_DECODE_ONCE
namespace clefkit {
namespace {

// Rows a vector's 128-bit block is made from; also what one palette must span for table lookups.
constexpr std::size_t kBlockRows = 8;
constexpr std::size_t kBlockBytes = 16;

[[maybe_unused]] float as_float(float value) { return value; }
[[maybe_unused]] float as_float(BFloat16 value) { return to_float(value); }
[[maybe_unused]] float as_float(Half value) { return to_float(value); }

// Any form and shape, one element at a time: for float32, for palettes of other row counts than
// multiples of eight, and for targets without byte shuffles.
template <typename T>
void decode_plain(const MatrixView<const T>& weight, const PanelPlace& place, std::size_t channels,
                  float* panel) {
  const std::size_t rows = std::min(channels, weight.rows - place.first_channel);
  for (std::size_t channel = 0; channel < rows; ++channel) {
    const T* const row = weight.row(place.first_channel + channel).data() + place.first_column;
    for (std::size_t i = 0; i < place.columns; ++i)
      panel[i * channels + channel] = as_float(row[i]);
  }
}

void decode_plain(const Lut6Matrix& weight, const PanelPlace& place, std::size_t channels,
                  float* panel) {
  const std::size_t rows = std::min(channels, weight.shape().rows - place.first_channel);
  for (std::size_t channel = 0; channel < rows; ++channel) {
    const std::size_t row = place.first_channel + channel;
    const Lut6Matrix::Palette palette = weight.palette_of_row(row);
    const std::uint8_t* packed = weight.packed_row(row).data() + place.first_column / 4 * 3;
    for (std::size_t i = 0; i < place.columns; i += 4, packed += 3) {
      const std::uint32_t bits = packed[0] | packed[1] << 8 | packed[2] << 16;
      for (std::size_t j = 0; j < 4; ++j)
        panel[(i + j) * channels + channel] = to_float(palette[bits >> (6 * j) & 63]);
    }
  }
}

}  // namespace
}  // namespace clefkit
#endif  // CLEFKIT_PANEL_DECODE_ONCE

// TableLookupBytes means the same on these two; Highway 1.0.3 leaves indices above 15 open.
#undef CLEFKIT_BYTE_SHUFFLES
#if HWY_TARGET == HWY_NEON || (HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3)
#define CLEFKIT_BYTE_SHUFFLES 1
#else
#define CLEFKIT_BYTE_SHUFFLES 0
#endif

HWY_BEFORE_NAMESPACE();
namespace clefkit {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kFloats;
constexpr std::size_t kChannels = 2 * hn::MaxLanes(kFloats);

#if CLEFKIT_BYTE_SHUFFLES

const hn::ScalableTag<std::uint8_t> kBytes;
const hn::ScalableTag<std::uint16_t> kWords;
const hn::ScalableTag<std::uint32_t> kDwords;
using ByteLanes = hn::Vec<decltype(kBytes)>;
using Words = hn::Vec<decltype(kWords)>;
using HalfWords = hn::Vec<hn::Half<decltype(kWords)>>;
using Floats = hn::Vec<decltype(kFloats)>;

// So one vector of 16-bit words is one column of a panel: block b holds channels 8·b … 8·b + 7.
static_assert(kChannels == hn::MaxLanes(kWords));

using RowPointers = std::array<const std::uint8_t*, kChannels>;

// `bytes` of `row_count` rows of `row_bytes`, `stride` apart. The last row stands in for those
// after it.
RowPointers row_pointers(const std::uint8_t* bytes, std::size_t stride, std::size_t first_row,
                         std::size_t row_count) {
  RowPointers rows;
  for (std::size_t i = 0; i < kChannels; ++i)
    rows[i] = bytes + std::min(first_row + i, row_count - 1) * stride;
  return rows;
}

// The rest of each row from `offset` on, in blocks padded with zeros: so the last step of a row
// can load whole blocks without leaving it.
class RowTails {
 public:
  RowTails(const RowPointers& rows, std::size_t offset, std::size_t bytes) {
    for (std::size_t i = 0; i < kChannels; ++i) {
      std::memcpy(storage_[i].data(), rows[i] + offset, bytes);
      rows_[i] = storage_[i].data();
    }
  }
  const RowPointers& rows() const { return rows_; }

 private:
  std::array<std::array<std::uint8_t, kBlockBytes>, kChannels> storage_ = {};
  RowPointers rows_;
};

// 16 bytes at `offset` of rows[0], rows[8], …: one block each.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const std::uint8_t* const* rows, std::size_t offset) {
  if constexpr (hn::MaxLanes(d) == kBlockBytes) {
    return hn::LoadU(d, rows[0] + offset);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kHalfRows = hn::MaxLanes(half) / kBlockBytes * kBlockRows;
    return hn::Combine(d, load_blocks(half, rows + kHalfRows, offset),
                       load_blocks(half, rows, offset));
  }
}

template <class D>
HWY_INLINE void interleave(D d, ByteLanes a, ByteLanes b, ByteLanes* low, ByteLanes* high) {
  const auto a_lanes = hn::BitCast(d, a);
  const auto b_lanes = hn::BitCast(d, b);
  *low = hn::BitCast(kBytes, hn::InterleaveLower(d, a_lanes, b_lanes));
  *high = hn::BitCast(kBytes, hn::InterleaveUpper(d, a_lanes, b_lanes));
}

// Within each block: v[row] holds elements of eight rows; afterwards the blocks, one after the
// other, hold element 0 of the eight rows, then element 1, … Pairing row i with row i + 4 three
// times leaves them in order.
template <class D>
HWY_INLINE void transpose_blocks(D d, ByteLanes (&v)[kBlockRows]) {
  ByteLanes t[kBlockRows];
  for (std::size_t i = 0; i < 4; ++i) interleave(d, v[i], v[i + 4], &t[2 * i], &t[2 * i + 1]);
  for (std::size_t i = 0; i < 4; ++i) interleave(d, t[i], t[i + 4], &v[2 * i], &v[2 * i + 1]);
  for (std::size_t i = 0; i < 4; ++i) interleave(d, v[i], v[i + 4], &t[2 * i], &t[2 * i + 1]);
  for (std::size_t i = 0; i < kBlockRows; ++i) v[i] = t[i];
}

HWY_INLINE Floats promote(BFloat16, HalfWords bits) {
  return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::PromoteTo(kDwords, bits)));
}

HWY_INLINE Floats promote(Half, HalfWords bits) {
#if HWY_TARGET <= HWY_AVX2 || HWY_TARGET == HWY_NEON
  return hn::PromoteTo(kFloats, hn::BitCast(hn::Rebind<hwy::float16_t, decltype(kFloats)>(), bits));
#else
  // Highway's own form takes infinities for numbers. Scaling by 2^112 moves the exponent's bias and
  // makes subnormals normal.
  const auto wide = hn::PromoteTo(kDwords, bits);
  const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(kDwords, 0x7FFFu)));
  const auto scaled =
      hn::BitCast(kDwords, hn::Mul(hn::BitCast(kFloats, magnitude), hn::Set(kFloats, 0x1p112f)));
  const auto special = hn::Set(kDwords, 0x7C00u << 13);
  const auto value = hn::IfThenElse(hn::Eq(hn::And(magnitude, special), special),
                                    hn::Or(magnitude, hn::Set(kDwords, 0x7F800000u)), scaled);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(kDwords, 0x8000u)));
  return hn::BitCast(kFloats, hn::Or(value, sign));
#endif
}

template <typename T>
HWY_INLINE void store_column(Words column, float* panel) {
  const hn::Half<decltype(kWords)> half;
  hn::Store(promote(T(), hn::LowerHalf(half, column)), kFloats, panel);
  hn::Store(promote(T(), hn::UpperHalf(half, column)), kFloats, panel + kChannels / 2);
}

// Eight columns of a panel.
template <typename T>
HWY_INLINE void decode_step(const RowPointers& rows, std::size_t offset, float* panel) {
  ByteLanes v[kBlockRows];
  for (std::size_t i = 0; i < kBlockRows; ++i) v[i] = load_blocks(kBytes, &rows[i], offset);
  transpose_blocks(kWords, v);
  for (std::size_t i = 0; i < kBlockRows; ++i)
    store_column<T>(hn::BitCast(kWords, v[i]), panel + i * kChannels);
}

template <typename T>
void decode_words(const MatrixView<const T>& weight, const PanelPlace& place, float* panel) {
  constexpr std::size_t kStep = kBlockBytes / sizeof(T);
  const RowPointers rows =
      row_pointers(reinterpret_cast<const std::uint8_t*>(weight.data + place.first_column),
                   weight.stride * sizeof(T), place.first_channel, weight.rows);
  std::size_t i = 0;
  for (; i + kStep <= place.columns; i += kStep)
    decode_step<T>(rows, i * sizeof(T), panel + i * kChannels);
  if (i < place.columns) {
    const RowTails tails(rows, i * sizeof(T), (place.columns - i) * sizeof(T));
    decode_step<T>(tails.rows(), 0, panel + i * kChannels);
  }
}

// One byte of each palette entry: 64 entries in four vectors, block b for its eight channels.
struct ByteTable {
  ByteLanes parts[4];
};

HWY_INLINE ByteLanes lookup(const ByteTable& table, ByteLanes indices) {
#if HWY_TARGET == HWY_NEON
  const uint8x16x4_t parts = {
      {table.parts[0].raw, table.parts[1].raw, table.parts[2].raw, table.parts[3].raw}};
  return ByteLanes(vqtbl4q_u8(parts, indices.raw));
#else
  // A shuffle takes the low four bits, and gives 0 for a negative index. Each part was XORed with
  // the one before it, so the parts up to an index's own leave just that.
  ByteLanes result = hn::TableLookupBytesOr0(table.parts[0], indices);
  for (std::size_t i = 1; i < 4; ++i) {
    const ByteLanes below =
        hn::Sub(indices, hn::Set(kBytes, static_cast<std::uint8_t>(i * kBlockBytes)));
    result = hn::Xor(result, hn::TableLookupBytesOr0(table.parts[i], below));
  }
  return result;
#endif
}

// parts: [part][lane]
HWY_INLINE ByteTable load_table(const std::uint8_t (&parts)[4][hn::MaxLanes(kBytes)]) {
  const ByteLanes part0 = hn::Load(kBytes, parts[0]);
  const ByteLanes part1 = hn::Load(kBytes, parts[1]);
  const ByteLanes part2 = hn::Load(kBytes, parts[2]);
  const ByteLanes part3 = hn::Load(kBytes, parts[3]);
#if HWY_TARGET == HWY_NEON
  return {{part0, part1, part2, part3}};
#else
  return {{part0, hn::Xor(part1, part0), hn::Xor(part2, part1), hn::Xor(part3, part2)}};
#endif
}

struct PaletteTables {
  ByteTable low;
  ByteTable high;
};

PaletteTables load_palettes(const Lut6Matrix& weight, std::size_t first_channel) {
  // [part][block]
  HWY_ALIGN std::uint8_t low[4][hn::MaxLanes(kBytes)];
  HWY_ALIGN std::uint8_t high[4][hn::MaxLanes(kBytes)];
  for (std::size_t channel = 0; channel < kChannels; channel += kBlockRows) {
    const Lut6Matrix::Palette palette =
        weight.palette_of_row(std::min(first_channel + channel, weight.shape().rows - 1));
    const hn::CappedTag<std::uint8_t, kBlockBytes> block;
    for (std::size_t part = 0; part < 4; ++part) {
      auto low_bytes = hn::Zero(block);
      auto high_bytes = hn::Zero(block);
      hn::LoadInterleaved2(
          block, reinterpret_cast<const std::uint8_t*>(palette.data() + part * kBlockBytes),
          low_bytes, high_bytes);
      hn::Store(low_bytes, block, &low[part][channel * 2]);
      hn::Store(high_bytes, block, &high[part][channel * 2]);
    }
  }
  return {.low = load_table(low), .high = load_table(high)};
}

// In each block, 16 indices from its first 12 bytes.
HWY_INLINE ByteLanes unpack_indices(ByteLanes packed) {
  HWY_ALIGN static constexpr std::uint8_t kThreeToFour[kBlockBytes] = {
      0, 1, 2, 0x80, 3, 4, 5, 0x80, 6, 7, 8, 0x80, 9, 10, 11, 0x80};
  const auto v =
      hn::BitCast(kDwords, hn::TableLookupBytesOr0(packed, hn::LoadDup128(kBytes, kThreeToFour)));
  const auto first = hn::And(v, hn::Set(kDwords, 0x3Fu));
  const auto second = hn::And(hn::ShiftLeft<2>(v), hn::Set(kDwords, 0x3F00u));
  const auto third = hn::And(hn::ShiftLeft<4>(v), hn::Set(kDwords, 0x3F0000u));
  const auto fourth = hn::And(hn::ShiftLeft<6>(v), hn::Set(kDwords, 0x3F000000u));
  return hn::BitCast(kBytes, hn::Or(hn::Or(first, second), hn::Or(third, fourth)));
}

constexpr std::size_t kLut6Step = 16;       // columns
constexpr std::size_t kLut6StepBytes = 12;  // of a row; a load takes 16

HWY_INLINE void decode_lut6_step(const PaletteTables& tables, const RowPointers& rows,
                                 std::size_t offset, float* panel) {
  ByteLanes v[kBlockRows];
  for (std::size_t i = 0; i < kBlockRows; ++i)
    v[i] = unpack_indices(load_blocks(kBytes, &rows[i], offset));
  transpose_blocks(kBytes, v);
  for (std::size_t i = 0; i < kBlockRows; ++i, panel += 2 * kChannels) {
    const ByteLanes low = lookup(tables.low, v[i]);
    const ByteLanes high = lookup(tables.high, v[i]);
    ByteLanes even;
    ByteLanes odd;
    interleave(kBytes, low, high, &even, &odd);
    store_column<Half>(hn::BitCast(kWords, even), panel);
    store_column<Half>(hn::BitCast(kWords, odd), panel + kChannels);
  }
}

void decode_lut6(const Lut6Matrix& weight, const PanelPlace& place, float* panel) {
  const std::size_t row_bytes = weight.shape().bytes_per_row();
  const std::size_t first_byte = place.first_column / 4 * 3;
  const RowPointers rows = row_pointers(weight.packed_indices().data() + first_byte, row_bytes,
                                        place.first_channel, weight.shape().rows);
  const PaletteTables tables = load_palettes(weight, place.first_channel);
  for (std::size_t i = 0; i < place.columns; i += kLut6Step) {
    const std::size_t offset = i / 4 * 3;
    const std::size_t left = row_bytes - first_byte - offset;
    if (left >= kBlockBytes) {
      decode_lut6_step(tables, rows, offset, panel + i * kChannels);
    } else {
      const RowTails tails(rows, offset, left);
      decode_lut6_step(tables, tails.rows(), 0, panel + i * kChannels);
    }
  }
}

#endif  // CLEFKIT_BYTE_SHUFFLES

struct Decoder {
  const PanelPlace& place;
  float* panel;

  void operator()(const MatrixView<const float>& weight) const {
    decode_plain(weight, place, kChannels, panel);
  }
  template <typename T>
  void operator()(const MatrixView<const T>& weight) const {
#if CLEFKIT_BYTE_SHUFFLES
    decode_words(weight, place, panel);
#else
    decode_plain(weight, place, kChannels, panel);
#endif
  }
  void operator()(const Lut6Matrix& weight) const {
#if CLEFKIT_BYTE_SHUFFLES
    if (weight.shape().rows_per_palette % kBlockRows == 0) {
      decode_lut6(weight, place, panel);
      return;
    }
#endif
    decode_plain(weight, place, kChannels, panel);
  }
};

void decode(const WeightMatrix& weight, const PanelPlace& place, float* panel) {
  std::visit(Decoder{place, panel}, weight);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace clefkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace clefkit {
namespace {

HWY_EXPORT(decode);

constexpr std::size_t kCacheLineBytes = 64;

template <typename T>
Bytes bytes_of(const MatrixView<const T>& weight, std::size_t row, const PanelPlace& place) {
  return {reinterpret_cast<const std::uint8_t*>(weight.row(row).data() + place.first_column),
          place.columns * sizeof(T)};
}
Bytes bytes_of(const Lut6Matrix& weight, std::size_t row, const PanelPlace& place) {
  return weight.packed_row(row).subspan(place.first_column / 4 * 3, place.columns / 4 * 3);
}

}  // namespace

void decode_panel(const WeightMatrix& weight, const PanelPlace& place, float* panel) {
  HWY_DYNAMIC_DISPATCH(decode)(weight, place, panel);
}

void prefetch_panel(const WeightMatrix& weight, const PanelPlace& place, std::size_t rows) {
  std::visit(
      [&](const auto& matrix) {
        for (std::size_t i = 0; i < rows; ++i) {
          const Bytes bytes = bytes_of(matrix, place.first_channel + i, place);
          for (std::size_t at = 0; at < bytes.size(); at += kCacheLineBytes)
            hwy::Prefetch(bytes.data() + at);
        }
      },
      weight);
}

}  // namespace clefkit
#endif  // HWY_ONCE
