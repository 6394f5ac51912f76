// SPDX-License-Identifier: Apache-2.0
#pragma once
// The innermost block at an address: of resources that allocate from each other, the block of the
// topmost one. Thread-safe.

#include <optional>

#include "memory/allocation.hpp"
#include "memory/registry.hpp"

namespace isthmus {

// A block in divided memory that the registry or the page map knows.
struct InnerBlock {
  enum class State { live, waiting, free } state = State::free;
  std::byte* base = nullptr;  // this and what follows: of live memory only
  std::size_t nbytes = 0;
  MemoryResource* resource = nullptr;    // borrowed from the owner of the block
  std::optional<Registry::Part> record;  // none: handed out as a bare pointer
};
// None: the memory there is not divided. `in_pool`: the page map knows the address.
[[nodiscard]] std::optional<InnerBlock> inner_part_at(const void* pointer, bool in_pool) noexcept;

// When the memory around the innermost block was obtained by the resource that cut the block out of
// it, as a number from core/order.hpp. Of the notes about that address, those about the block have
// greater numbers, those about the memory around it do not. 0: the block was not cut out of another
// resource's memory.
[[nodiscard]] std::uint64_t suballocated_since(const void* pointer) noexcept;

// Whether a resource cuts memory there that no pool knows.
[[nodiscard]] bool is_suballocated(const void* pointer) noexcept;

// A block, and the record that orders operations on it.
struct BlockExtent {
  // Its own record, else that of the memory around it; null: not the library's memory.
  Ref<Allocation> memory;
  std::byte* base = nullptr;
  std::size_t nbytes = 0;

  // As a range of the memory's uses.
  [[nodiscard]] ByteRange range() const noexcept;
};
// The innermost block that holds `pointer`. INVALID_ARGUMENT if it lies in memory that this library
// manages, but in no live block.
[[nodiscard]] Result<BlockExtent> innermost_at(const void* pointer);

}  // namespace isthmus
