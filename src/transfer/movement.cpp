#include "transfer/movement.hpp"

#include "transfer/strided_parts.hpp"

namespace isthmus {

std::unique_ptr<const parts> movement::cut(std::size_t most_bytes) const {
  const auto device_side = destination.host_can_touch() ? side::source : side::destination;
  if (block != nullptr) {
    return cut_strided(*block, device_side, most_bytes);
  }
  if (ranges.empty()) {
    return cut_rows(rows, most_bytes);
  }
  return cut_ranges({destination.pointer, source.pointer, ranges}, device_side, most_bytes);
}

submitted movement::put_to(queue& on, wait_list after) const {
  if (!ranges.empty()) {
    return on.copy_ranges({destination.pointer, source.pointer, ranges}, after);
  }
  if (block != nullptr) {
    return put_strided(on, *block, after);
  }
  return rows.height == 1 ? on.copy(rows.destination, rows.source, rows.width, after)
                          : on.copy_2d(rows, after);
}

}  // namespace isthmus
