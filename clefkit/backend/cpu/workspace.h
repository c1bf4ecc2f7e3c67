#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "clefkit/base/matrix_view.h"

namespace clefkit::cpu {

// Memory for activations, handed out in order and given back all at once. It keeps what a call
// needed, so that the next call of the same size allocates nothing. Not for several threads.
class Workspace {
 public:
  // An uninitialised [rows, columns] matrix, valid until the Scope that was open is closed.
  MatrixView<float> matrix(std::size_t rows, std::size_t columns);

  // Gives back, when it ends, what was handed out since it began. Scopes nest.
  class Scope {
   public:
    explicit Scope(Workspace& workspace) : workspace_(workspace), begin_(workspace.used_) {}
    ~Scope() { workspace_.release(begin_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    std::size_t begin_;
  };

 private:
  // Blocks stay where they are while views into them live; `begin` counts the floats before.
  struct Block {
    std::unique_ptr<float[]> values;
    std::size_t size = 0;
    std::size_t begin = 0;
    std::size_t end() const { return begin + size; }
  };

  void release(std::size_t begin);

  std::vector<Block> blocks_;
  std::size_t used_ = 0;  // Offset of the next free float over all blocks.
  std::size_t peak_ = 0;
};

}  // namespace clefkit::cpu
