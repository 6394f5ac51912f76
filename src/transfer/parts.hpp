#pragma once
// A copy cut into parts that go by way of the host's memory one after the other, or several at a
// time: each is packed there. The host, or a queue of either side, brings a part from its source or
// to its destination.
//
// Where elements change on their way they do so in the host's hands: in `gather` or `scatter`, or
// in `turn` where both sides are out of its reach.

#include <cstddef>
#include <memory>
#include <vector>

#include "backend/queue.hpp"
#include "core/strided.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

class parts {
 public:
  parts() = default;
  parts(const parts&) = delete;
  parts& operator=(const parts&) = delete;
  virtual ~parts() = default;

  [[nodiscard]] virtual std::size_t count() const noexcept = 0;
  // Of the largest, packed.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;

  virtual void gather(std::size_t index, std::byte* packed) const noexcept = 0;
  virtual void scatter(std::size_t index, const std::byte* packed) const noexcept = 0;
  // From as `read` has packed it to as `write` takes it: in `spare`, which has as much room, or
  // where it is already. Gives that.
  [[nodiscard]] virtual const std::byte* turn(std::size_t /*index*/, const std::byte* packed,
                                              std::byte* /*spare*/) const noexcept {
    return packed;
  }
  // The pages that `scatter` will touch first.
  virtual void fault_in(std::size_t /*index*/) const noexcept {}
  [[nodiscard]] virtual submitted read(queue& on, std::size_t index, std::byte* packed,
                                       wait_list after) const = 0;
  [[nodiscard]] virtual submitted write(queue& on, std::size_t index, const std::byte* packed,
                                        wait_list after) const = 0;
};

// Parts are of whole rows; rows that are longer than `most_bytes` are cut into runs.
[[nodiscard]] std::unique_ptr<const parts> cut_rows(const copy_2d_shape& rows,
                                                    std::size_t most_bytes);
// Parts are of whole ranges, but for those that more than one part has a share of. Where a device
// has whole words of a range, on its `device_side`, they are whole where it is packed, too: what
// moves them can move words then.
[[nodiscard]] std::unique_ptr<const parts> cut_ranges(const ranged_copy& what, side device_side,
                                                      std::size_t most_bytes);

}  // namespace isthmus
