#include "transfer/movement.hpp"

namespace isthmus {

std::unique_ptr<const parts> movement::cut(std::size_t most_bytes) const {
  if (ranges.empty()) {
    return cut_rows(rows, most_bytes);
  }
  const auto device_side = destination.host_can_touch() ? side::source : side::destination;
  return cut_ranges({destination.pointer, source.pointer, ranges}, device_side, most_bytes);
}

submitted movement::put_to(queue& on, wait_list after) const {
  if (!ranges.empty()) {
    return on.copy_ranges({destination.pointer, source.pointer, ranges}, after);
  }
  return rows.height == 1 ? on.copy(rows.destination, rows.source, rows.width, after)
                          : on.copy_2d(rows, after);
}

}  // namespace isthmus
