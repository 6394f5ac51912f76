#pragma once
// A copy that has been checked: from where to where, and how much of it.

#include <memory>

#include "transfer/endpoint.hpp"
#include "transfer/parts.hpp"

namespace isthmus {

struct movement {
  const endpoint& destination;
  const endpoint& source;
  // From the pointer to the end of the last byte.
  std::size_t destination_bytes = 0;
  std::size_t source_bytes = 0;
  std::size_t nbytes = 0;  // that move
  copy_2d_shape rows{};    // what moves; or, where there are any,
  std::span<const copy_range> ranges{};
  const strided_copy* block = nullptr;  // or, where there is one
  bool is_fresh = false;                // no page of the destination, on the host, was touched yet

  [[nodiscard]] static movement of_block(const endpoint& destination, const endpoint& source,
                                         const strided_copy& block) noexcept {
    return {destination,
            source,
            block.extent(side::destination),
            block.extent(side::source),
            block.bytes(),
            {},
            {},
            &block};
  }

  // Whether it is more than rows: what the host gathers for one operation, or scatters behind it.
  [[nodiscard]] bool is_in_pieces() const noexcept { return block != nullptr || !ranges.empty(); }
  [[nodiscard]] bool is_one_run() const noexcept { return !is_in_pieces() && rows.height == 1; }
  // Parts of at most that many bytes.
  [[nodiscard]] std::unique_ptr<const parts> cut(std::size_t most_bytes) const;
  // By one operation of a queue that reaches both sides.
  [[nodiscard]] submitted put_to(queue& on, wait_list after) const;
};

}  // namespace isthmus
