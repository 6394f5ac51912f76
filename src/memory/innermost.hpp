#pragma once
// The innermost block at an address: of a resource that stands on others, that resource's own.

#include <optional>

#include "memory/allocation.hpp"
#include "memory/registry.hpp"

namespace isthmus {

// In memory of which the registry or the page map knows, and which is divided further.
struct inner_part {
  enum class state { live, waiting, free } now = state::free;
  std::byte* base = nullptr;  // of live memory, as all that follows
  std::size_t nbytes = 0;
  memory_resource* from = nullptr;       // borrowed from the owner of the block
  std::optional<registry::part> record;  // none: it was handed out as a bare pointer
};
// None: nothing is known but what is known of all the memory there. `in_pool`: the page map knows
// the address.
[[nodiscard]] std::optional<inner_part> inner_part_at(const void* pointer, bool in_pool) noexcept;

// When the memory around the innermost block there came to the resource that cut the block out of
// it, as an order (core/order.hpp): of the notes about that address, those of the block are above
// it, and those of the memory around it are not. 0: it was cut out of no other resource's memory.
[[nodiscard]] std::uint64_t cut_since(const void* pointer) noexcept;

// Whether a resource cuts memory there, of which no pool knows.
[[nodiscard]] bool is_cut(const void* pointer) noexcept;

// What orders operations on a block, and its extent.
struct block_extent {
  ref<allocation> memory;  // its own record, else that of the memory around it; null: none of ours
  std::byte* base = nullptr;
  std::size_t nbytes = 0;

  // As a range of the memory's uses.
  [[nodiscard]] byte_range range() const noexcept;
};
// The innermost block that holds `pointer`. INVALID_ARGUMENT: it lies in memory that this library
// manages, but in no live block.
[[nodiscard]] result<block_extent> innermost_at(const void* pointer);

}  // namespace isthmus
