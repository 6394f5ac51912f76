#pragma once
// Pages of the host: mapped, faulted in, and double-mapped for memory that has two faces.

#include <cstddef>

#include "core/status.hpp"

namespace isthmus::os {

[[nodiscard]] std::size_t page_size() noexcept;
inline constexpr std::size_t k_huge_page = std::size_t{2} << 20;

// Anonymous read-write pages, `nbytes` rounded up to whole pages, aligned to `alignment` (a power
// of two); asks for huge pages from 2 MiB up.
[[nodiscard]] result<void*> map_pages(std::size_t nbytes, std::size_t alignment);
// Zeroed pages of which only those that are touched take memory, and no huge ones: for tables much
// larger than what is used of them. `alignment` a power of two. Given back by `unmap_pages`.
[[nodiscard]] result<void*> map_sparse_pages(std::size_t nbytes, std::size_t alignment = 1);
// Sparse pages are zero again and take no memory; they stay mapped.
void clear_sparse_pages(void* pointer, std::size_t nbytes) noexcept;
// Faults all pages in for writing, in one call where the kernel can; what is in the range may be
// lost.
void populate_pages(void* pointer, std::size_t nbytes) noexcept;
void unmap_pages(void* pointer, std::size_t nbytes) noexcept;

// Addresses with no memory behind them: any access faults. Given back by `unmap_pages`, whatever
// has come to lie there. `alignment` a power of two.
[[nodiscard]] result<void*> reserve_addresses(std::size_t nbytes, std::size_t alignment);
// Zeroed read-write pages at reserved addresses. Pre: whole pages.
[[nodiscard]] result<void> commit_pages(void* at, std::size_t nbytes);
// Asks for huge pages where they fit; for less than one nothing is done. `at` a page's beginning.
void prefer_huge_pages(void* at, std::size_t nbytes) noexcept;
// From here on none is mapped there.
void avoid_huge_pages(void* at, std::size_t nbytes) noexcept;
// The addresses are reserved, as before.
void decommit_pages(void* at, std::size_t nbytes) noexcept;
// What becomes of addresses that pages leave.
enum class left_pages { reserved, unmapped };
// Committed pages, with what is in them, to other reserved addresses. In an error the pages stay,
// but `to` may be anybody's: the kernel lets go of it before it tries, and another thread may have
// been quicker. `to_lost` tells; then nobody may touch or unmap it. UNSUPPORTED before Linux 5.7
// where addresses stay reserved. Pre: whole pages, no overlap.
[[nodiscard]] result<void> move_pages(void* from, void* to, std::size_t nbytes, left_pages left,
                                      bool& to_lost);

// Two mappings of the same pages: `hidden` faults on any access and only gives the memory its
// address, `open` is where the bytes are reached.
struct two_faced {
  void* hidden = nullptr;
  void* open = nullptr;
};
[[nodiscard]] result<two_faced> map_two_faced(std::size_t nbytes, std::size_t alignment);
void unmap_two_faced(const two_faced& pages, std::size_t nbytes) noexcept;

// Two mappings of the same read-write pages, both so aligned: what is written by way of one is
// there in the other. They are shared with forked children.
struct mapped_twice {
  void* first = nullptr;
  void* second = nullptr;
};
[[nodiscard]] result<mapped_twice> map_twice(std::size_t nbytes, std::size_t alignment);
void unmap_twice(const mapped_twice& pages, std::size_t nbytes) noexcept;

}  // namespace isthmus::os
