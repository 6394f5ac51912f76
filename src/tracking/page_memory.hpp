// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory whose written pages the kernel reports. Thread safety: see tracked_memory.hpp; the
// arena's lock protects the results of the kernel's scans.
//
// Memory of 2 MiB or more lies in huge pages if the kernel provides them. A write to a huge page
// dirties 2 MiB, unless the page proves to be written sparsely (refinement.hpp) or is refined
// (`refine`). In smaller memory, and where no huge page was available, a write dirties a small
// page.

#include <vector>

#include "tracking/page_arena.hpp"
#include "tracking/refinement.hpp"

namespace isthmus::tracking {

class PageMemory final : public TrackedMemory {
 public:
  [[nodiscard]] static Result<std::unique_ptr<TrackedMemory>> create(const Request& request);
  ~PageMemory() override;

  [[nodiscard]] std::size_t granule() const noexcept override;
  void take(RangeSet& written) override;
  // Pre: all memories are `PageMemory`, and the process is not a forked child.
  static void take_all(std::span<const Taking> requests);
  [[nodiscard]] Result<const std::byte*> snapshot(const RangeSet& ranges, Writers writers) override;
  [[nodiscard]] bool is_snapshot_stable(Writers /*writers*/) const noexcept override {
    return true;
  }
  [[nodiscard]] Result<void> publish(const RangeSet& ranges, Writers writers) override;
  void refine(const ByteRange& range) override;
  void coarsen(const RangeSet& needed) override;

  // The following functions are called by the arena with its lock held.
  [[nodiscard]] const PageArena::Mappings& pages() const noexcept { return pages_; }
  [[nodiscard]] Result<void> begin(os::WrittenPages& written_pages) const;
  // Reserves capacity for the result of one step of the kernel's scan. Throws std::bad_alloc.
  void reserve_records();
  // Pre: `reserve_records` was called. The kernel reports a write only once, so this must not fail.
  void record(const std::byte* source, const std::byte* destination) noexcept;
  void record_all() noexcept { all_found_ = true; }
  void take_locked(os::WrittenPages& written_pages, RangeSet& written);
  void refine_locked(os::WrittenPages& written_pages, const ByteRange& range);
  void coarsen_locked(os::WrittenPages& written_pages, const RangeSet& needed);

 private:
  PageMemory(PageArena& arena, const PageArena::Mappings& pages, const Request& request);
  [[nodiscard]] Result<void> fault_in() const;
  void collect(std::vector<ByteRange>& records);
  template <class Change>
  void change_unwritten(os::WrittenPages& written_pages, std::size_t chunk, Change change);
  void record_differences(std::size_t first, const std::byte* before) noexcept;
  void change(os::WrittenPages& written_pages, const Refinement::Changes& changes);

  PageArena& arena_;
  const PageArena::Mappings pages_;
  const Granularity granularity_;
  RangeSet found_;                   // reported by scans, not taken yet
  std::vector<ByteRange> recorded_;  // the same since the last `collect`, in ascending order
  bool all_found_ = false;
  // Pages that were written before or during a change of their page size and are not taken yet.
  // `refinement_` does not count them, since they say nothing about writes after the change.
  std::vector<ByteRange> unevaluated_;
  Refinement refinement_;
};

}  // namespace isthmus::tracking
