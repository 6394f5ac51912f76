// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pinning: registers the caller's host memory with a driver, so that devices copy it at the speed
// of the bus and asynchronously.
//
// Ranges of bytes are registered, each once per driver. Pins that overlap share ranges: a pin of
// memory that is pinned in part registers only the gaps, as separate ranges. Ranges are not
// extended to whole OS pages, because CUDA rejects copies, including those of other libraries, that
// begin in registered memory and end beyond it. A range remains registered until no pin contains it
// and no copy of it is in flight.

#include <map>
#include <memory>
#include <vector>

#include "backend/device.hpp"
#include "backend/event.hpp"
#include "core/mutex.hpp"
#include "core/owner.hpp"
#include "core/ref.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/deferred_release.hpp"

namespace isthmus {

// A registered range. Its fields belong to the table and are guarded by the table's lock.
class PinnedRange final : public Releasable {
 public:
  // changing: a thread is registering or unregistering it, outside the lock.
  enum class State : std::uint8_t { registered, changing, unregistered };

  PinnedRange(Device& device, HostRange bytes, std::shared_ptr<const Owner> owner)
      : device_{&device}, bytes_{bytes}, owner_{std::move(owner)} {}
  void release_now() noexcept override;

 private:
  friend class PinTable;
  [[nodiscard]] std::uintptr_t end() const noexcept;
  [[nodiscard]] bool is_free() const noexcept {
    return pins_ == 0 && uses_ == 0 && state_ == State::registered;
  }

  Ref<Device> device_;
  const HostRange bytes_;
  std::shared_ptr<const Owner> owner_;  // of the pin that registered it; keeps the memory alive
  std::size_t pins_ = 0;
  std::size_t uses_ = 0;     // copies in flight
  std::size_t waiting_ = 0;  // threads that wait for those copies, to unregister it
  State state_ = State::changing;
  bool is_own_registration_ = false;   // false: other code registered it and unregisters it
  std::shared_ptr<PinnedRange> self_;  // while it is in the list of deferred releases
};

using PinnedRanges = std::vector<std::shared_ptr<PinnedRange>>;

// The pinned ranges of the process. Thread-safe. Never calls a driver while holding its lock.
class PinTable {
 public:
  // Registers the parts of `range` that no range contains, and adds a pin to all ranges in `range`.
  // On failure, no range is newly registered.
  [[nodiscard]] Result<PinnedRanges> pin(Device& device, const HostRange& range,
                                         const std::shared_ptr<const Owner>& owner);
  // Removes one pin from each range and unregisters those that no other pin contains. If `waits` is
  // true, they are unregistered when this returns; otherwise possibly later, on a library thread.
  void unpin(const PinnedRanges& ranges, bool waits) noexcept;
  // Waits for the copies of the ranges that are in flight. TIMEOUT if the deadline passes first.
  [[nodiscard]] Result<void> wait(const PinnedRanges& ranges, const os::Deadline& until);
  // The platform's ranges that overlap [start, start + nbytes). They remain registered until
  // `release_now`.
  [[nodiscard]] PinnedRanges hold(const Platform& platform, const std::byte* start,
                                  std::size_t nbytes);
  void release_now(const PinnedRanges& held) noexcept;
  // Whether there is any range. Costs one load.
  [[nodiscard]] bool any() const noexcept { return count_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] bool has(const Platform& platform, const void* pointer);

 private:
  friend class PinnedRange;
  using Key = std::pair<const Platform*, std::uintptr_t>;

  template <class Visit>
  void visit(const Platform& platform, std::uintptr_t begin, std::uintptr_t end, Visit&& visitor)
      ISTHMUS_REQUIRES(lock_);
  // The ranges that overlap `range`. Waits until none of them is `changing`.
  [[nodiscard]] PinnedRanges wait_until_stable(const Platform& platform, const HostRange& range)
      ISTHMUS_REQUIRES(lock_);
  // `existing` are the ranges in `range`, in order.
  [[nodiscard]] PinnedRanges add_gaps(Device& device, const HostRange& range,
                                      const PinnedRanges& existing,
                                      const std::shared_ptr<const Owner>& owner)
      ISTHMUS_REQUIRES(lock_);
  [[nodiscard]] Error register_all(const PinnedRanges& added) noexcept;
  void unregister(const std::shared_ptr<PinnedRange>& range) noexcept;
  void await_uses(PinnedRange& range) noexcept ISTHMUS_REQUIRES(lock_);

  Mutex lock_;
  ConditionVariable changed_;
  // Disjoint within a platform.
  std::map<Key, std::shared_ptr<PinnedRange>> ranges_ ISTHMUS_GUARDED_BY(lock_);
  std::atomic<std::size_t> count_{0};
};

[[nodiscard]] PinTable& process_pins() noexcept;

// The memory that one caller pinned, until the caller ends the pin.
class Pin final : public RefCounted {
 public:
  struct Request {
    std::byte* start = nullptr;
    std::size_t nbytes = 0;
    bool read_only = false;
  };
  // Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, DRIVER, FORKED.
  [[nodiscard]] static Result<Ref<Pin>> make(Device& device, const Request& request, Owner owner);
  Pin(Device& device, const Request& request, std::shared_ptr<const Owner> owner,
      PinnedRanges ranges)
      : device_{&device}, request_{request}, owner_{std::move(owner)}, ranges_{std::move(ranges)} {}

  [[nodiscard]] Device& device() const noexcept { return *device_; }
  [[nodiscard]] const Request& request() const noexcept { return request_; }
  // False if there was nothing to register, because the driver copies the memory as fast without
  // registration.
  [[nodiscard]] bool is_registered() const noexcept { return !ranges_.empty(); }
  // Waits for the copies of the memory that are in flight. TIMEOUT if the deadline passes first.
  [[nodiscard]] Result<void> wait(const os::Deadline& until);
  // Ends the pin. If `waits` is true, the caller may free the memory as soon as this returns.
  // Called once.
  void end(bool waits) noexcept;

 private:
  Ref<Device> device_;
  const Request request_;
  std::shared_ptr<const Owner> owner_;
  const PinnedRanges ranges_;
};

// An owner that keeps the pinned parts of [start, start + nbytes) registered with the platform of
// `queue`; empty if no part is pinned.
[[nodiscard]] Owner hold_pinned(const Queue& queue, const std::byte* start, std::size_t nbytes);

}  // namespace isthmus
