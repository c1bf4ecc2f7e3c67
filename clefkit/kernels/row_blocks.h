#pragma once

#include <algorithm>
#include <cstddef>

#include "clefkit/base/executor.h"

namespace clefkit {

// Calls body(row) for each row of a matrix of `columns` columns, several rows to a task: enough
// work to outweigh handing it to a thread, and little enough to stop soon.
template <typename Body>
void for_each_row(const ComputeContext& context, std::size_t rows, std::size_t columns,
                  const Body& body) {
  constexpr std::size_t kValuesPerTask = 32768;
  const std::size_t rows_per_task =
      std::max<std::size_t>(1, kValuesPerTask / std::max<std::size_t>(1, columns));
  const std::size_t tasks = (rows + rows_per_task - 1) / rows_per_task;
  context.parallel_for(tasks, [&](std::size_t task, std::size_t) {
    const std::size_t end = std::min(rows, (task + 1) * rows_per_task);
    for (std::size_t row = task * rows_per_task; row < end; ++row) body(row);
  });
}

}  // namespace clefkit
