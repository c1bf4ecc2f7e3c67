#include "clefkit/backend/cpu/workspace.h"

#include <algorithm>
#include <cassert>

namespace clefkit::cpu {
namespace {

// Rows of different matrices start on their own cache line.
constexpr std::size_t kAlignmentFloats = 16;

}  // namespace

MatrixView<float> Workspace::matrix(std::size_t rows, std::size_t columns) {
  const std::size_t size =
      (rows * columns + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  // The first block with room after what is in use; the rest of an earlier block is skipped.
  auto block = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& candidate) {
    return std::max(candidate.begin, used_) + size <= candidate.end();
  });
  if (block == blocks_.end()) {
    const std::size_t begin = blocks_.empty() ? 0 : blocks_.back().end();
    blocks_.push_back({std::make_unique_for_overwrite<float[]>(size), size, begin});
    block = blocks_.end() - 1;
  }
  const std::size_t begin = std::max(block->begin, used_);
  used_ = begin + size;
  peak_ = std::max(peak_, used_);
  return {block->values.get() + (begin - block->begin), rows, columns};
}

void Workspace::release(std::size_t begin) {
  assert(begin <= used_);
  used_ = begin;
  // Nothing is in use: several blocks become one that has room for all of them.
  if (used_ == 0 && blocks_.size() > 1) {
    blocks_.clear();
    blocks_.push_back({std::make_unique_for_overwrite<float[]>(peak_), peak_, 0});
  }
}

}  // namespace clefkit::cpu
