// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds the innermost block at an address. If resources allocate from each other, that is the block
// of the topmost resource. Thread-safe.

#include <optional>

#include "memory/records/allocation.hpp"
#include "memory/records/registry.hpp"

namespace isthmus {

// A block in memory that a resource sub-allocates, and that is in the registry or the page map.
struct InnerBlock {
  enum class State { live, waiting, free } state = State::free;
  std::byte* base = nullptr;  // this and the fields below: only for live memory
  std::size_t nbytes = 0;
  MemoryResource* resource = nullptr;    // borrowed from the owner of the block
  std::optional<Registry::Part> record;  // none: allocated as a bare pointer
};
// Returns nothing if the memory there is not divided. `in_pool`: the address is in the page map.
[[nodiscard]] std::optional<InnerBlock> inner_part_at(const void* pointer, bool in_pool) noexcept;

// The number from core/order.hpp that marks when a resource obtained the memory that it
// sub-allocates at `pointer`. Block records of a tracking resource have greater numbers if they
// describe the innermost block, and smaller ones if they describe the memory around it. 0 if the
// memory is not sub-allocated.
[[nodiscard]] std::uint64_t suballocated_since(const void* pointer) noexcept;

// Whether a resource other than a pool sub-allocates the memory at `pointer`.
[[nodiscard]] bool is_suballocated(const void* pointer) noexcept;

// A block, and the record that orders operations on it.
struct BlockExtent {
  // The block's record, else that of the memory around it; null: the library does not manage the
  // memory.
  Ref<Allocation> memory;
  std::byte* base = nullptr;
  std::size_t nbytes = 0;

  // The block as a range of the uses of `memory`.
  [[nodiscard]] ByteRange range() const noexcept;
};
// The innermost block that holds `pointer`. Fails with INVALID_ARGUMENT if `pointer` lies in memory
// that this library manages, but in no live block.
[[nodiscard]] Result<BlockExtent> innermost_at(const void* pointer);

}  // namespace isthmus
