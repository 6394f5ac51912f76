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

class page_memory;

// One per process, thread-safe, never destroyed. A forked child gets private copies of its memory
// and cannot allocate from it.
class page_arena {
 public:
  page_arena(const page_arena&) = delete;
  page_arena& operator=(const page_arena&) = delete;
  // UNSUPPORTED, with the reason, where the kernel does not report written pages and in a forked
  // child.
  [[nodiscard]] static result<page_arena*> only();

  // The beginnings of both mappings of zeroed memory. Untouched pages may not be backed yet.
  struct room {
    std::byte* view = nullptr;
    std::byte* library = nullptr;
    std::size_t nbytes = 0;  // whole pages
  };
  [[nodiscard]] result<room> allocate(std::size_t nbytes);
  void give_back(const room& unused) noexcept;

  // Writes to its view are reported from here on, and earlier ones are not. Throws std::bad_alloc.
  [[nodiscard]] result<void> add(page_memory& live);
  void remove(const page_memory& gone) noexcept;

  void take(std::span<const tracked_memory::taking> each);
  void refine(page_memory& memory, const byte_range& range);
  void coarsen(page_memory& memory, const range_set& still);

 private:
  friend class never_destroyed<page_arena>;

  page_arena(os::written_pages& kernel, os::shared_file file, const room& all,
             free_ranges large) noexcept;
  [[nodiscard]] static result<page_arena*> open();
  static void watch_forks(page_arena& only) noexcept;

  [[nodiscard]] std::optional<std::size_t> take_small(std::size_t nbytes) noexcept;
  [[nodiscard]] result<void> add_segment();
  [[nodiscard]] result<std::size_t> map_large(std::size_t nbytes);
  [[nodiscard]] result<void> map_both(std::size_t offset, std::size_t nbytes);
  void unmap_large(std::size_t offset, std::size_t nbytes) noexcept;
  void give_large(std::size_t offset, std::size_t nbytes) noexcept;
  // Scans [begin, end) and makes each live memory there note its written pages. Pre: locked.
  void look(std::byte* begin, std::byte* end);
  void make_private() noexcept;

  os::written_pages& kernel_;
  const os::shared_file file_;
  const room all_;

  std::mutex lock_;
  free_ranges large_;                        // in whole huge pages
  free_ranges small_;                        // in whole small pages, of the segments
  std::map<std::byte*, page_memory*> live_;  // by the beginning of the view
};

}  // namespace isthmus::tracking
