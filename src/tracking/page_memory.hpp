// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tracked memory whose written pages the kernel reports. Thread safety: see tracked_memory; the
// arena's lock protects what the kernel's scans note.
//
// Memory of 2 MiB or more lies in huge pages where the kernel has some, and one write counts for 2
// MiB until such a page proves to be written sparsely (refinement.hpp) or is refined (`refine`). In
// smaller memory, and where there was no huge page, a write counts for a small page.

#include <vector>

#include "tracking/page_arena.hpp"
#include "tracking/refinement.hpp"

namespace isthmus::tracking {

class page_memory final : public tracked_memory {
 public:
  [[nodiscard]] static result<std::unique_ptr<tracked_memory>> create(const request& wanted);
  ~page_memory() override;

  [[nodiscard]] std::size_t granule() const noexcept override;
  void take(range_set& written) override;
  // Pre: all are page_memory, and the process is not a forked child.
  static void take_all(std::span<const taking> each);
  [[nodiscard]] result<const std::byte*> snapshot(const range_set& ranges, writers who) override;
  [[nodiscard]] bool snapshot_stays(writers /*who*/) const noexcept override { return true; }
  [[nodiscard]] result<void> publish(const range_set& ranges, writers who) override;
  void refine(const byte_range& range) override;
  void coarsen(const range_set& still) override;

  // For the arena, which holds its lock.
  [[nodiscard]] const page_arena::room& pages() const noexcept { return pages_; }
  [[nodiscard]] result<void> begin(os::written_pages& kernel) const;
  // Reserves capacity for the result of one step of the kernel's scan. Throws std::bad_alloc.
  void make_room_for_notes();
  // Pre: capacity is reserved. The kernel reports a page once, so this must not fail.
  void note(const std::byte* from, const std::byte* to) noexcept;
  void note_all() noexcept { all_found_ = true; }
  void hand_over(os::written_pages& kernel, range_set& written);
  void refine_locked(os::written_pages& kernel, const byte_range& range);
  void coarsen_locked(os::written_pages& kernel, const range_set& still);

 private:
  page_memory(page_arena& arena, const page_arena::room& pages, const request& wanted);
  [[nodiscard]] result<void> fault_in() const;
  void collect(std::vector<byte_range>& notes);
  template <class Change>
  void change_unwritten(os::written_pages& kernel, std::size_t chunk, Change change);
  void note_differences(std::size_t first, const std::byte* before) noexcept;
  void change(os::written_pages& kernel, const refinement::changes& wanted);

  page_arena& arena_;
  const page_arena::room pages_;
  const granularity grain_;
  range_set found_;                // by scans, not taken yet
  std::vector<byte_range> noted_;  // the same, since the last `collect`, in order
  bool all_found_ = false;
  // Pages written before or during a change of their page size, and not taken yet. They show
  // nothing about how the memory was written since, so `refinement_` does not count them.
  std::vector<byte_range> unjudged_;
  refinement refinement_;
};

}  // namespace isthmus::tracking
