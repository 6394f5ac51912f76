// SPDX-License-Identifier: Apache-2.0
#pragma once
// The host copy of a unified buffer: tracked memory, its registration with the driver, and the
// host views through which other threads may write to it.
//
// The buffer's lock guards everything except `end_view`, which the end of a view calls without it.
// Views begin under the lock. The end of a view sets `has_unscanned_writes_` and then decrements
// `views_` (release). A thread that holds the lock may load 0 from `views_` (acquire) and then
// false from `has_unscanned_writes_`. Then no view has written since the last scan, and the thread
// has exclusive access.

#include <atomic>
#include <cstddef>
#include <memory>

#include "memory/records/pins.hpp"
#include "tracking/tracked_memory.hpp"
#include "unified/requests.hpp"

namespace isthmus {

class HostCopy {
 public:
  // `request` must outlive the host copy.
  HostCopy(Device& device, const UnifiedRequest& request, bool is_one_memory) noexcept
      : device_{device}, request_{request}, is_one_memory_{is_one_memory} {}
  HostCopy(const HostCopy&) = delete;
  HostCopy& operator=(const HostCopy&) = delete;
  ~HostCopy() { release_pins(); }

  // Creates the memory, unless it exists.
  [[nodiscard]] Result<void> ensure();
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(memory_); }
  [[nodiscard]] tracking::TrackedMemory* operator->() const noexcept { return memory_.get(); }
  // Shared with transfers in flight.
  [[nodiscard]] const std::shared_ptr<tracking::TrackedMemory>& memory() const noexcept {
    return memory_;
  }
  // Releases the memory, unless a caller has, or may have, a pointer to it. In that case the last
  // reference to the buffer releases it.
  void release() noexcept;
  [[nodiscard]] bool is_pinned() const noexcept { return pin_ && pin_->is_registered(); }
  // Pins the mapping that `ensure` has not pinned, for copies that read it. A failure is ignored:
  // these copies are then only slower.
  void ensure_library_pin();
  // Rounds to whole granules if the memory is hashed: after a complete upload of a hashed block,
  // later host writes to the block can be detected.
  [[nodiscard]] ByteRange whole_granules(const ByteRange& range) const noexcept;

  void begin_view() noexcept { views_.fetch_add(1, std::memory_order_acq_rel); }
  // Returns true for the last view. Sequentially consistent: see `UnifiedBuffer::free`.
  bool end_view() noexcept {
    mark_unscanned();
    return views_.fetch_sub(1, std::memory_order_seq_cst) == 1;
  }
  [[nodiscard]] std::size_t views() const noexcept {
    return views_.load(std::memory_order_relaxed);
  }
  // A pointer was returned whose last use is unknown: the memory is then retained.
  void note_read_pointer() noexcept { has_read_pointers_ = true; }

  // Whether other threads may write through views, or have done so since the last scan.
  // `views_` is loaded before `has_unscanned_writes_`, so that a view that ends between the two
  // loads is visible in at least one of them.
  [[nodiscard]] tracking::Writers writers() const noexcept {
    const bool has_no_writers = views_.load(std::memory_order_acquire) == 0 &&
                                !has_unscanned_writes_.load(std::memory_order_acquire);
    return has_no_writers ? tracking::Writers::none : tracking::Writers::some;
  }
  // `begin_scan` precedes a scan, so that the flag remains set for the next one if a view ends
  // during this one. `mark_unscanned` also reverts it if the scan fails.
  void begin_scan() noexcept { has_unscanned_writes_.store(false, std::memory_order_seq_cst); }
  void mark_unscanned() noexcept { has_unscanned_writes_.store(true, std::memory_order_seq_cst); }

 private:
  [[nodiscard]] tracking::CopiedBy copied_by() const noexcept;
  [[nodiscard]] Result<void> ensure_pin();
  void release_pins() noexcept;

  Device& device_;
  const UnifiedRequest& request_;
  const bool is_one_memory_;
  std::shared_ptr<tracking::TrackedMemory> memory_;
  Ref<Pin> pin_;
  Ref<Pin> library_pin_;  // pins `library` of hashed memory; `pin_` pins its view
  std::atomic<std::size_t> views_{0};
  std::atomic<bool> has_unscanned_writes_{false};
  bool has_read_pointers_ = false;
};

}  // namespace isthmus
