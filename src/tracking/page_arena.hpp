#pragma once
// The memory of which the kernel tells the written pages: one file, mapped twice over two ranges of
// addresses, the user's view and the library's. A byte of the file lies at the same distance from
// the beginning of both, so one look of the kernel covers any number of memories.
//
// Memory of 2 MiB and more has pages of its own from a huge page's beginning on. What is smaller
// shares segments, each memory with whole small pages of its own; a segment stays.

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

// The process's own, safe for threads, never destroyed. In a forked child its memory is the child's
// own, and nothing can be had from it.
class page_arena {
 public:
  page_arena(const page_arena&) = delete;
  page_arena& operator=(const page_arena&) = delete;
  // UNSUPPORTED, with the reason, where there is none.
  [[nodiscard]] static result<page_arena*> only();

  // Where both mappings of zeroed memory begin; what was not touched may take none yet.
  struct room {
    std::byte* view = nullptr;
    std::byte* library = nullptr;
    std::size_t nbytes = 0;  // whole pages
  };
  [[nodiscard]] result<room> allocate(std::size_t nbytes);
  void give_back(const room& unused) noexcept;

  // From here on what is written to its view is found, and was not before. Throws std::bad_alloc.
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
  // Has each live memory there note what was written. Pre: locked.
  void look(std::byte* begin, std::byte* end);
  void make_private() noexcept;

  os::written_pages& kernel_;
  const os::shared_file file_;
  const room all_;

  std::mutex lock_;
  free_ranges large_;                        // in whole huge pages
  free_ranges small_;                        // in whole small pages, of the segments
  std::map<std::byte*, page_memory*> live_;  // by where the view begins
};

}  // namespace isthmus::tracking
