// SPDX-License-Identifier: Apache-2.0
#pragma once
// Virtual memory of the host: mapping, faulting in, reserving and mapping the same pages twice.
// Thread-safe.

#include <cstddef>

#include "core/status.hpp"
#include "os/pages.hpp"

namespace isthmus::os {

// Maps anonymous read-write pages, `nbytes` rounded up to whole pages, aligned to `alignment` (a
// power of two). Requests huge pages from 2 MiB up.
[[nodiscard]] Result<void*> map_pages(std::size_t nbytes, std::size_t alignment);
// Maps zeroed pages that take memory only once touched, without huge pages: for tables much larger
// than their used part. `alignment` is a power of two. Released by `unmap_pages`.
[[nodiscard]] Result<void*> map_sparse_pages(std::size_t nbytes, std::size_t alignment = 1);
// Makes sparse pages zero again and releases their memory; they remain mapped.
void clear_sparse_pages(void* pointer, std::size_t nbytes) noexcept;
// Faults all pages in for writing, in one call where the kernel supports it. The contents are
// preserved.
void populate_pages(void* pointer, std::size_t nbytes) noexcept;
void unmap_pages(void* pointer, std::size_t nbytes) noexcept;

// Reserves addresses without memory: any access faults. Released by `unmap_pages`, whatever has
// been mapped there since. `alignment` is a power of two.
[[nodiscard]] Result<void*> reserve_addresses(std::size_t nbytes, std::size_t alignment);
// Makes reserved addresses accessible, as zeroed read-write pages.
[[nodiscard]] Result<void> commit_pages(void* start, std::size_t nbytes);
// Requests huge pages where they fit; does nothing for less than one. `start` is aligned to pages.
void prefer_huge_pages(void* start, std::size_t nbytes) noexcept;
// Prevents huge pages from being mapped there from now on.
void avoid_huge_pages(void* start, std::size_t nbytes) noexcept;
// Releases the memory; the addresses remain reserved.
void decommit_pages(void* start, std::size_t nbytes) noexcept;
// The state of the source addresses after a move.
enum class LeftPages { reserved, unmapped };
// Moves committed pages, with their contents, to other reserved addresses. On failure the pages
// remain at `source`, but `destination` may belong to another mapping: the kernel unmaps it before
// the move, and another thread may map something there before it is reserved again.
// `destination_lost` reports that; the caller must then not access or unmap `destination`.
// UNSUPPORTED before Linux 5.7 if `source_state` is `reserved`.
[[nodiscard]] Result<void> move_pages(void* source, void* destination, std::size_t nbytes,
                                      LeftPages source_state, bool& destination_lost);

// One range of memory with two addresses. `inaccessible` only identifies the memory: any access
// there faults. The bytes are accessed at `accessible`.
struct DualMapping {
  void* inaccessible = nullptr;
  void* accessible = nullptr;
};
[[nodiscard]] Result<DualMapping> map_inaccessible(std::size_t nbytes, std::size_t alignment);
void unmap_inaccessible(const DualMapping& pages, std::size_t nbytes) noexcept;

// Two mappings of the same read-write pages, both aligned to `alignment`: writes through one are
// visible through the other. They are shared with forked children.
struct MappedTwice {
  void* first = nullptr;
  void* second = nullptr;
};
[[nodiscard]] Result<MappedTwice> map_twice(std::size_t nbytes, std::size_t alignment);
void unmap_twice(const MappedTwice& pages, std::size_t nbytes) noexcept;

}  // namespace isthmus::os
