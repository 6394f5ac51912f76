// SPDX-License-Identifier: Apache-2.0
#pragma once
// Address space in which the kernel reports written pages. One file is mapped to two address
// ranges: the view of the program and that of the library. A byte of the file has the same offset
// in both, so one scan by the kernel covers any number of tracked ranges.
//
// A range of `k_min_huge_bytes` or more has its own pages: whole huge pages. Smaller ranges share
// segments of 64 MiB, in which each occupies whole small pages. Segments are never freed.

#include <map>
#include <optional>
#include <span>

#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/range_set.hpp"
#include "core/status.hpp"
#include "core/thread_safety.hpp"
#include "os/shared_file.hpp"
#include "os/written_pages.hpp"
#include "tracking/free_ranges.hpp"
#include "tracking/watched_pages.hpp"

namespace isthmus::tracking {

// There is one arena per process; it is thread-safe and never destroyed. A forked child has private
// copies of the arena's memory and cannot allocate from the arena.
class PageArena {
 public:
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;
  // Returns the process's arena. UNSUPPORTED, with the reason, if the kernel does not report
  // written pages or the process is a forked child.
  [[nodiscard]] static Result<PageArena*> instance();

  // Returns zeroed memory of at least `nbytes` bytes. Untouched pages may not be backed by physical
  // memory yet.
  [[nodiscard]] Result<PageMappings> allocate(std::size_t nbytes);
  void deallocate(const PageMappings& unused) noexcept;

  // Registers `live`: writes to its view after this call are reported, earlier writes are not.
  // Throws std::bad_alloc.
  [[nodiscard]] Result<void> add(WatchedPages& live);
  void remove(const WatchedPages& live) noexcept;

  struct Taking {
    WatchedPages* pages;
    RangeSet* written;
  };
  // Scans the pages of all requests at once, and adds to each `written` what was reported for its
  // pages.
  void take(std::span<const Taking> requests);
  void refine(WatchedPages& live, const ByteRange& range);
  void coarsen(WatchedPages& live, const RangeSet& needed);

 private:
  friend class NeverDestroyed<PageArena>;

  PageArena(os::WrittenPages& written_pages, os::SharedFile file, const PageMappings& all,
            FreeRanges large) noexcept;
  [[nodiscard]] static Result<PageArena*> open();
  static void watch_forks(PageArena& created) noexcept;

  [[nodiscard]] std::optional<std::size_t> allocate_small(std::size_t nbytes) noexcept;
  [[nodiscard]] Result<void> add_segment();
  [[nodiscard]] Result<std::size_t> map_large(std::size_t nbytes);
  [[nodiscard]] Result<void> map_both(std::size_t offset, std::size_t nbytes);
  void unmap_large(std::size_t offset, std::size_t nbytes) noexcept;
  void free_large(std::size_t offset, std::size_t nbytes) noexcept;
  // Scans [begin, end) and records the result in the live pages there.
  void scan(std::byte* begin, std::byte* end) ISTHMUS_REQUIRES(lock_);
  void make_private() noexcept ISTHMUS_REQUIRES(lock_);

  os::WrittenPages& written_pages_;
  const os::SharedFile file_;
  const PageMappings all_;

  Mutex lock_;
  FreeRanges large_ ISTHMUS_GUARDED_BY(lock_);  // units of huge pages
  FreeRanges small_ ISTHMUS_GUARDED_BY(lock_);  // units of small pages, within the segments
  // Keyed by the beginning of the view.
  std::map<std::byte*, WatchedPages*> live_ ISTHMUS_GUARDED_BY(lock_);
};

}  // namespace isthmus::tracking
