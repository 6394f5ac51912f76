#pragma once
// Tracked memory whose written pages the kernel tells.
//
// 2 MiB and more lie in huge pages where the kernel has some, and one write counts for 2 MiB, till
// such a page proves to be written sparsely (refinement.hpp) or is asked for in part (`refine`).
// Where there was no huge page, and of smaller memory, it counts for a small page.

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
  // Pre: all of them such memories, not in a forked child.
  static void take_all(std::span<const taking> each);
  [[nodiscard]] result<const std::byte*> snapshot(const range_set& ranges, writers who) override;
  [[nodiscard]] bool snapshot_stays(writers /*who*/) const noexcept override { return true; }
  [[nodiscard]] result<void> publish(const range_set& ranges, writers who) override;
  void refine(const byte_range& range) override;
  void coarsen(const range_set& still) override;

  // For the arena, which has its lock.
  [[nodiscard]] const page_arena::room& pages() const noexcept { return pages_; }
  [[nodiscard]] result<void> begin(os::written_pages& kernel) const;
  // For what one step of the kernel's finds here. Throws std::bad_alloc.
  void make_room_for_notes();
  // Pre: there is room. The kernel reports a page once, so nothing may fail here.
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
  range_set found_;                // by looks of others, and not taken yet
  std::vector<byte_range> noted_;  // the same since the last `collect`, in order
  bool all_found_ = false;
  // Written before or while the kernel was made to tell it by other pages, and not taken yet: says
  // nothing of how the memory is written since, so that `refinement_` does not judge it.
  std::vector<byte_range> unjudged_;
  refinement refinement_;
};

}  // namespace isthmus::tracking
