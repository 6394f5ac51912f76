// SPDX-License-Identifier: Apache-2.0
#include "os/virtual_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "os/shared_file.hpp"

namespace isthmus::os {
namespace {

Error pages_error(const char* call, std::size_t nbytes) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY, "{} of {} failed: {}", call, describe_bytes(nbytes),
              std::strerror(errno));
}

// Reserves more than requested and unmaps both ends, so that the start is aligned. The highest
// aligned start is chosen: the kernel assigns addresses downwards, so the rest below is used by the
// next reservation, whereas a gap above would remain.
Result<void*> reserve_aligned(std::size_t nbytes, std::size_t alignment) {
  const std::size_t slack = alignment > page_size() ? alignment : 0;
  if (nbytes > SIZE_MAX - slack) {
    errno = ENOMEM;
    return pages_error("mmap", nbytes);
  }
  void* start =
      mmap(nullptr, nbytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return pages_error("mmap", nbytes);
  }
  auto* first = static_cast<std::byte*>(start);
  const std::size_t head = slack == 0 ? 0 : slack - (address(first) + slack) % alignment;
  if (head != 0) {
    munmap(first, head);
  }
  if (slack > head) {
    munmap(first + head + nbytes, slack - head);
  }
  return first + head;
}

// Reserves addresses again that the kernel may have unmapped. Returns false if something is mapped
// there: a mapping of another thread or the original reservation, if the kernel has not unmapped
// it. The two cannot be distinguished.
bool reserve_again(void* start, std::size_t nbytes) noexcept {
  constexpr int k_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const mapped = mmap(start, nbytes, PROT_NONE, k_flags, -1, 0);
  if (mapped != MAP_FAILED && mapped != start) {
    munmap(mapped, nbytes);  // a kernel before 4.17 treats the flag as a hint
  }
  return mapped == start;
}

std::size_t whole_pages(std::size_t nbytes) noexcept { return round_up(nbytes, page_size()); }

}  // namespace

Result<void*> map_pages(std::size_t nbytes, std::size_t alignment) {
  if (nbytes > SIZE_MAX / 2) {
    errno = ENOMEM;
    return pages_error("mmap", nbytes);
  }
  const std::size_t rounded = whole_pages(nbytes);
  auto start = reserve_aligned(
      rounded, rounded >= k_huge_page ? std::max(alignment, k_huge_page) : alignment);
  if (!start) {
    return start;
  }
  if (mprotect(*start, rounded, PROT_READ | PROT_WRITE) != 0) {
    auto failure = pages_error("mprotect", nbytes);
    munmap(*start, rounded);
    return failure;
  }
  prefer_huge_pages(*start, rounded);
  return start;
}

Result<void*> map_sparse_pages(std::size_t nbytes, std::size_t alignment) {
  const auto rounded = whole_pages(nbytes);
  auto start = reserve_aligned(rounded, alignment);
  ISTHMUS_TRY(start);
  if (mprotect(*start, rounded, PROT_READ | PROT_WRITE) != 0) {
    auto failure = pages_error("mprotect", nbytes);
    munmap(*start, rounded);
    return failure;
  }
  avoid_huge_pages(*start, rounded);
  return start;
}

void clear_sparse_pages(void* pointer, std::size_t nbytes) noexcept {
  madvise(pointer, nbytes, MADV_DONTNEED);
}

void populate_pages(void* pointer, std::size_t nbytes) noexcept {
  constexpr int k_populate_write = 23;  // MADV_POPULATE_WRITE, Linux 5.14; older headers lack it
  const auto offset_in_page = address(pointer) % page_size();
  auto* const first = static_cast<std::byte*>(pointer) - offset_in_page;
  if (madvise(first, whole_pages(offset_in_page + nbytes), k_populate_write) == 0) {
    return;
  }
  // One byte of each page that the range touches, the first of which may begin before the range.
  auto* const bytes = static_cast<unsigned char*>(pointer);
  for (std::size_t offset = 0; offset < nbytes;
       offset += page_size() - address(bytes + offset) % page_size()) {
    __atomic_fetch_or(bytes + offset, 0, __ATOMIC_RELAXED);  // preserves the contents
  }
}

void unmap_pages(void* pointer, std::size_t nbytes) noexcept {
  munmap(pointer, whole_pages(nbytes));
}

Result<void*> reserve_addresses(std::size_t nbytes, std::size_t alignment) {
  return reserve_aligned(whole_pages(nbytes), alignment);
}

Result<void> commit_pages(void* start, std::size_t nbytes) {
  ISTHMUS_EXPECTS(are_whole_pages(start, nbytes), start, nbytes);
  if (mprotect(start, nbytes, PROT_READ | PROT_WRITE) != 0) {
    return pages_error("mprotect", nbytes);
  }
  return {};
}

void prefer_huge_pages(void* start, std::size_t nbytes) noexcept {
  if (nbytes >= k_huge_page) {
    madvise(start, nbytes, MADV_HUGEPAGE);
  }
}

void avoid_huge_pages(void* start, std::size_t nbytes) noexcept {
  madvise(start, nbytes, MADV_NOHUGEPAGE);
}

void decommit_pages(void* start, std::size_t nbytes) noexcept {
  constexpr int k_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(start, nbytes, PROT_NONE, k_flags, -1, 0) == MAP_FAILED) {
    // The process has reached its limit of mappings: release at least the memory.
    madvise(start, nbytes, MADV_DONTNEED);
  }
}

Result<void> move_pages(void* source, void* destination, std::size_t nbytes, LeftPages source_state,
                        bool& destination_lost) {
  ISTHMUS_EXPECTS(are_whole_pages(source, nbytes), source, nbytes);
  ISTHMUS_EXPECTS(are_whole_pages(destination, nbytes), destination, nbytes);
  ISTHMUS_EXPECTS(address(source) + nbytes <= address(destination) ||
                      address(destination) + nbytes <= address(source),
                  source, destination, nbytes);
  constexpr int k_dont_unmap = 4;  // MREMAP_DONTUNMAP, Linux 5.7: older headers lack it
  const int keep_flag = source_state == LeftPages::reserved ? k_dont_unmap : 0;
  destination_lost = false;
  if (mremap(source, nbytes, nbytes, MREMAP_MAYMOVE | MREMAP_FIXED | keep_flag, destination) ==
      MAP_FAILED) {
    auto failure = errno == EINVAL ? fail(ISTHMUS_ERROR_UNSUPPORTED,
                                          "the kernel cannot move pages: use Linux 5.7 or later")
                                   : pages_error("mremap", nbytes);
    destination_lost = !reserve_again(destination, nbytes);
    return failure;
  }
  if (source_state == LeftPages::reserved) {
    decommit_pages(source, nbytes);
  }
  return {};
}

namespace {

Result<SharedFile> open_for(std::size_t nbytes) {
  return SharedFile::open(nbytes > SIZE_MAX / 2 ? nbytes : whole_pages(nbytes));
}

Result<void*> map_aligned(const SharedFile& file, std::size_t nbytes, std::size_t alignment) {
  auto start = reserve_aligned(nbytes, alignment);
  ISTHMUS_TRY(start);
  auto mapped = file.map(*start, 0, nbytes);
  if (!mapped) {
    munmap(*start, nbytes);
  }
  return mapped;
}

}  // namespace

Result<DualMapping> map_inaccessible(std::size_t nbytes, std::size_t alignment) {
  auto file = open_for(nbytes);
  ISTHMUS_TRY(file);
  const auto rounded = whole_pages(nbytes);
  auto accessible = file->map(nullptr, 0, rounded);
  ISTHMUS_TRY(accessible);
  auto inaccessible = reserve_aligned(rounded, alignment);
  if (!inaccessible) {
    munmap(*accessible, rounded);
    return inaccessible.take_error();
  }
  return DualMapping{*inaccessible, *accessible};
}

void unmap_inaccessible(const DualMapping& pages, std::size_t nbytes) noexcept {
  munmap(pages.inaccessible, whole_pages(nbytes));
  munmap(pages.accessible, whole_pages(nbytes));
}

Result<MappedTwice> map_twice(std::size_t nbytes, std::size_t alignment) {
  auto file = open_for(nbytes);
  ISTHMUS_TRY(file);
  const auto rounded = whole_pages(nbytes);
  auto first = map_aligned(*file, rounded, alignment);
  ISTHMUS_TRY(first);
  auto second = map_aligned(*file, rounded, alignment);
  if (!second) {
    munmap(*first, rounded);
    return second.take_error();
  }
  return MappedTwice{*first, *second};
}

void unmap_twice(const MappedTwice& pages, std::size_t nbytes) noexcept {
  munmap(pages.first, whole_pages(nbytes));
  munmap(pages.second, whole_pages(nbytes));
}

}  // namespace isthmus::os
