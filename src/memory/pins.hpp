// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pinning: registers the caller's host memory with a driver, so that devices copy it at the speed
// of the bus and asynchronously.
//
// Ranges of bytes are registered, each once per driver. Pins that overlap share ranges: a pin of
// memory that is pinned in part registers only the gaps, as ranges of their own. Ranges are not
// extended to whole OS pages, because CUDA rejects copies, also other libraries', that begin in
// registered memory and end beyond it. A range stays registered until no pin contains it and no
// copy of it is in flight.

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/device.hpp"
#include "backend/event.hpp"
#include "core/owner.hpp"
#include "core/ref.hpp"
#include "memory/reaper.hpp"

namespace isthmus {

// A registered range. Its fields belong to the table and are guarded by the table's lock.
class pinned_range final : public reclaimable {
 public:
  // changing: a thread is registering or unregistering it, outside the lock.
  enum class state : std::uint8_t { here, changing, gone };

  pinned_range(device& where, host_range bytes, std::shared_ptr<const owner> keep)
      : where_{&where}, bytes_{bytes}, keep_{std::move(keep)} {}
  void let_go() noexcept override;

 private:
  friend class pin_table;
  [[nodiscard]] std::uintptr_t end() const noexcept;
  [[nodiscard]] bool is_free() const noexcept {
    return pins_ == 0 && uses_ == 0 && state_ == state::here;
  }

  ref<device> where_;
  const host_range bytes_;
  std::shared_ptr<const owner> keep_;  // keeps the memory alive: of the pin that registered it
  std::size_t pins_ = 0;
  std::size_t uses_ = 0;     // copies in flight
  std::size_t waiting_ = 0;  // threads that wait for those copies, to unregister it
  state state_ = state::changing;
  bool is_ours_ = false;                // false: other code registered it and unregisters it
  std::shared_ptr<pinned_range> self_;  // while it is in the list of deferred releases
};

using pinned_ranges = std::vector<std::shared_ptr<pinned_range>>;

// The pinned ranges of the process. Thread-safe. Never calls a driver while holding its lock.
class pin_table {
 public:
  // Registers the parts of `what` that no range contains, and adds a pin to all ranges in `what`.
  // On failure nothing new stays registered.
  [[nodiscard]] result<pinned_ranges> pin(device& where, const host_range& what,
                                          const std::shared_ptr<const owner>& keep);
  // Removes one pin from each range and unregisters those that no other pin contains. With `wait`
  // that has happened when this returns; else it may happen later, on a library thread.
  void unpin(const pinned_ranges& ranges, bool wait) noexcept;
  // Waits for the copies of the ranges that are in flight. TIMEOUT.
  [[nodiscard]] result<void> wait(const pinned_ranges& ranges, const os::deadline& until);
  // The platform's ranges that overlap [start, start + nbytes). They stay registered until
  // `let_go`.
  [[nodiscard]] pinned_ranges hold(const platform& by, const std::byte* start, std::size_t nbytes);
  void let_go(const pinned_ranges& held) noexcept;
  // Whether there is any range. Costs one load.
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] bool has(const platform& by, const void* pointer);

 private:
  friend class pinned_range;
  using key = std::pair<const platform*, std::uintptr_t>;
  using lock = std::unique_lock<std::mutex>;

  template <class Visit>
  void visit(const platform& by, std::uintptr_t begin, std::uintptr_t end, Visit&& each);
  // The ranges that overlap `what`. Waits until none of them is `changing`.
  [[nodiscard]] pinned_ranges settled(lock& held, const platform& by, const host_range& what);
  [[nodiscard]] pinned_ranges add_gaps(device& where, const host_range& what,
                                       const pinned_ranges& known,
                                       const std::shared_ptr<const owner>& keep);
  [[nodiscard]] error register_all(const pinned_ranges& added) noexcept;
  void unregister(const std::shared_ptr<pinned_range>& gone) noexcept;
  void await_uses(lock& held, pinned_range& of) noexcept;

  std::mutex lock_;
  std::condition_variable changed_;
  std::map<key, std::shared_ptr<pinned_range>> ranges_;  // disjoint within a platform
  std::atomic<std::size_t> count_{0};
};

[[nodiscard]] pin_table& process_pins() noexcept;

// The memory that one caller pinned, until the caller ends the pin.
class pin final : public ref_counted {
 public:
  struct request {
    std::byte* start = nullptr;
    std::size_t nbytes = 0;
    bool read_only = false;
  };
  // Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, DRIVER, FORKED.
  [[nodiscard]] static result<ref<pin>> make(device& where, const request& what, owner keep);
  pin(device& where, const request& what, std::shared_ptr<const owner> keep, pinned_ranges ranges)
      : where_{&where}, what_{what}, keep_{std::move(keep)}, ranges_{std::move(ranges)} {}

  [[nodiscard]] device& where() const noexcept { return *where_; }
  [[nodiscard]] const request& what() const noexcept { return what_; }
  // False if there was nothing to register, because the driver copies the memory as fast without
  // that.
  [[nodiscard]] bool is_registered() const noexcept { return !ranges_.empty(); }
  // Waits for the copies of the memory that are in flight. TIMEOUT.
  [[nodiscard]] result<void> wait(const os::deadline& until);
  // Pre: called once. With `wait` the caller may free the memory as soon as this returns.
  void end(bool wait) noexcept;

 private:
  ref<device> where_;
  const request what_;
  std::shared_ptr<const owner> keep_;
  const pinned_ranges ranges_;
};

// An owner that keeps the pinned parts of [start, start + nbytes) registered with the platform of
// `on`; empty if no part is pinned.
[[nodiscard]] owner hold_pinned(const queue& on, const std::byte* start, std::size_t nbytes);

}  // namespace isthmus
