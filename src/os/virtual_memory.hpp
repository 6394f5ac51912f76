#pragma once
// Pages of the host: mapped, faulted in, and double-mapped for memory that has two faces.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus::os {

[[nodiscard]] std::size_t page_size() noexcept;

// Anonymous read-write pages, `nbytes` rounded up to whole pages, aligned to `alignment` (a power
// of two); asks for huge pages from 2 MiB up.
[[nodiscard]] result<void*> map_pages(std::size_t nbytes, std::size_t alignment);
// Zeroed pages of which only those that are touched take memory, and no huge ones: for tables much
// larger than what is used of them. `alignment` a power of two. Given back by `unmap_pages`.
[[nodiscard]] result<void*> map_sparse_pages(std::size_t nbytes, std::size_t alignment = 1);
// Sparse pages are zero again and take no memory; they stay mapped.
void clear_sparse_pages(void* pointer, std::size_t nbytes) noexcept;
// Faults all pages in for writing, in one call where the kernel can.
void populate_pages(void* pointer, std::size_t nbytes) noexcept;
void unmap_pages(void* pointer, std::size_t nbytes) noexcept;

// Two mappings of the same pages: `hidden` faults on any access and only gives the memory its
// address, `open` is where the bytes are reached.
struct two_faced {
  void* hidden = nullptr;
  void* open = nullptr;
};
[[nodiscard]] result<two_faced> map_two_faced(std::size_t nbytes, std::size_t alignment);
void unmap_two_faced(const two_faced& pages, std::size_t nbytes) noexcept;

// Physical memory in bytes that this process may use, its cgroup's limit included, and what of it
// is available without swapping.
struct memory_status {
  std::size_t total = 0;
  std::size_t available = 0;
};
[[nodiscard]] memory_status physical_memory() noexcept;

}  // namespace isthmus::os
