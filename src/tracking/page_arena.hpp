// SPDX-License-Identifier: Apache-2.0
#pragma once
// Address space in which the kernel reports written pages. One file is mapped twice, over two
// address ranges: the user's view and the library's. A byte of the file has the same offset in
// both, so one scan of the kernel covers any number of tracked memories.
//
// Memory of 2 MiB or more has pages of its own and begins at a huge page. Smaller memory shares
// segments of 64 MiB, in which each has whole small pages of its own; segments are never freed.

#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "core/never_destroyed.hpp"
#include "core/range_set.hpp"
#include "core/status.hpp"
#include "os/shared_file.hpp"
#include "os/written_pages.hpp"
#include "tracking/free_ranges.hpp"
#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

class PageMemory;

// One per process, thread-safe, never destroyed. A forked child gets private copies of its memory
// and cannot allocate from it.
class PageArena {
 public:
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;
  // UNSUPPORTED, with the reason, where the kernel does not report written pages and in a forked
  // child.
  [[nodiscard]] static Result<PageArena*> instance();

  // The beginnings of both mappings of zeroed memory. Untouched pages may not be backed yet.
  struct Mappings {
    std::byte* view = nullptr;
    std::byte* library = nullptr;
    std::size_t nbytes = 0;  // whole pages
  };
  [[nodiscard]] Result<Mappings> allocate(std::size_t nbytes);
  void deallocate(const Mappings& unused) noexcept;

  // Writes to its view are reported from here on, and earlier ones are not. Throws std::bad_alloc.
  [[nodiscard]] Result<void> add(PageMemory& live);
  void remove(const PageMemory& memory) noexcept;

  void take(std::span<const TrackedMemory::Taking> requests);
  void refine(PageMemory& memory, const ByteRange& range);
  void coarsen(PageMemory& memory, const RangeSet& needed);

 private:
  friend class NeverDestroyed<PageArena>;

  PageArena(os::WrittenPages& kernel, os::SharedFile file, const Mappings& all,
            FreeRanges large) noexcept;
  [[nodiscard]] static Result<PageArena*> open();
  static void watch_forks(PageArena& created) noexcept;

  [[nodiscard]] std::optional<std::size_t> allocate_small(std::size_t nbytes) noexcept;
  [[nodiscard]] Result<void> add_segment();
  [[nodiscard]] Result<std::size_t> map_large(std::size_t nbytes);
  [[nodiscard]] Result<void> map_both(std::size_t offset, std::size_t nbytes);
  void unmap_large(std::size_t offset, std::size_t nbytes) noexcept;
  void free_large(std::size_t offset, std::size_t nbytes) noexcept;
  // Scans [begin, end) and makes each live memory there record its written pages. Pre: locked.
  void scan(std::byte* begin, std::byte* end);
  void make_private() noexcept;

  os::WrittenPages& kernel_;
  const os::SharedFile file_;
  const Mappings all_;

  std::mutex lock_;
  FreeRanges large_;                        // in whole huge pages
  FreeRanges small_;                        // in whole small pages, of the segments
  std::map<std::byte*, PageMemory*> live_;  // by the beginning of the view
};

}  // namespace isthmus::tracking
