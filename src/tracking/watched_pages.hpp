// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pages of one tracked memory, whose writes the kernel reports, and the reports that were not
// taken yet. Knows which huge pages are tracked by small pages, and changes this as refinement.hpp
// decides or a caller requests.
//
// Not thread-safe: the arena (page_arena.hpp) calls all functions with its lock held, except the
// constructor, those whose results do not change (`mappings`, `granule`, `begins_small`), and
// `note_copied` and `note_library_writes`, which concern only calls on the same memory.

#include <cstddef>
#include <vector>

#include "core/range_set.hpp"
#include "core/status.hpp"
#include "os/pages.hpp"
#include "os/written_pages.hpp"
#include "tracking/mechanism.hpp"
#include "tracking/page_samples.hpp"
#include "tracking/refinement.hpp"
#include "tracking/tracked_memory.hpp"

namespace isthmus::tracking {

// Memory of this size or more consists of whole huge pages. Otherwise the page faults of a program
// that writes all of it would take longer than copies of it. At most as much memory is unused.
inline constexpr std::size_t k_min_huge_bytes = std::size_t{1} << 20;
// Returns the size of the pages of a memory of `nbytes` bytes.
[[nodiscard]] std::size_t whole_pages(std::size_t nbytes) noexcept;

// The addresses of the same pages in both mappings: that of the program and that of the library.
struct PageMappings {
  std::byte* view = nullptr;
  std::byte* library = nullptr;
  std::size_t nbytes = 0;  // whole pages, and whole huge pages from 2 MiB on
  [[nodiscard]] std::size_t huge_pages() const noexcept { return nbytes / os::k_huge_page; }
};

class WatchedPages {
 public:
  // The memory consists of the first `request.nbytes` bytes of the pages. Throws std::bad_alloc.
  WatchedPages(const PageMappings& mappings, const Request& request);
  WatchedPages(const WatchedPages&) = delete;
  WatchedPages& operator=(const WatchedPages&) = delete;

  [[nodiscard]] const PageMappings& mappings() const noexcept { return mappings_; }
  // Largest number of bytes reported for a write of one byte.
  [[nodiscard]] std::size_t granule() const noexcept;
  // Whether the memory is tracked by small pages when `begin` returns.
  [[nodiscard]] bool begins_small() const noexcept;

  // Starts watching the pages of memory in huge pages; other memory lies in a segment that is
  // watched already. All pages then count as unwritten.
  [[nodiscard]] Result<void> begin(os::WrittenPages& written_pages);
  // Reserves capacity for the result of one step of the kernel's scan. Throws std::bad_alloc.
  void reserve_records();
  // Records that the kernel reported [source, destination), clipped to the memory. Call
  // `reserve_records` first: the kernel reports a write only once, so this must not fail.
  void record(const std::byte* source, const std::byte* destination) noexcept;
  void record_all() noexcept { all_found_ = true; }
  // Adds to `written` what was recorded since the last call.
  void take(os::WrittenPages& written_pages, RangeSet& written);
  // The library has copied these ranges of the program's contents.
  void note_copied(const RangeSet& ranges) noexcept;
  // The library has stored data in these ranges, which says nothing about the program's writes.
  void note_library_writes(const RangeSet& ranges) noexcept;
  // See `TrackedMemory::refine` and `TrackedMemory::coarsen`.
  void refine(os::WrittenPages& written_pages, const ByteRange& range);
  void coarsen(os::WrittenPages& written_pages, const RangeSet& needed);

 private:
  [[nodiscard]] ByteRange chunk_range(std::size_t chunk) const noexcept;
  void collect(std::vector<ByteRange>& records);
  template <class Change>
  void change_unwritten(os::WrittenPages& written_pages, std::size_t chunk, Change change);
  void record_differences(std::size_t first, const std::byte* before) noexcept;
  void add_unevaluated(const ByteRange& range) noexcept;
  void change(os::WrittenPages& written_pages, const Refinement::Changes& changes);
  [[nodiscard]] bool find_all(const std::vector<std::size_t>& chunks) noexcept;
  void merge(os::WrittenPages& written_pages, std::size_t chunk) noexcept;
  void split(os::WrittenPages& written_pages, std::size_t chunk) noexcept;
  // Removes chunks from `unmapped_` that are no longer tracked by small pages.
  void forget_merged() noexcept;
  void map_some_unmapped() noexcept;

  const PageMappings mappings_;
  const std::size_t nbytes_;
  const Granularity granularity_;
  RangeSet found_;                   // reported by scans, not taken yet
  std::vector<ByteRange> recorded_;  // the same since the last `collect`, in ascending order
  bool all_found_ = false;
  // Pages that were written before or during a change of their page size and are not taken yet.
  // `refinement_` does not count them, since they say nothing about writes after the change.
  std::vector<ByteRange> unevaluated_;
  const PageCosts costs_;
  Refinement refinement_;
  // Chunks whose small pages the kernel has not mapped since they were split. A fault on such a
  // page takes nearly twice as long, so a few of these chunks are mapped after each scan.
  std::vector<std::size_t> unmapped_;
  PageSamples samples_;  // of `library`, where a read causes no fault
};

}  // namespace isthmus::tracking
