// SPDX-License-Identifier: Apache-2.0
#pragma once
// A buffer: owns one USM allocation as untyped bytes, or is a slice of a buffer that does.
// Thread-safe.
//
// A whole buffer holds its allocation; a slice holds the whole buffer. `free` drops the buffer's
// reference to the allocation at once. Calls, exports and operations in flight that use it at that
// moment keep it alive: a later use is an error, never a crash.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/spin_lock.hpp"
#include "memory/allocation.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus {

struct buffer_request {
  std::size_t nbytes = 0;
  usm_kind kind = ISTHMUS_KIND_DEVICE;
  std::int64_t alignment = 0;  // 0 or less: the device's base alignment
};

// The bytes of a buffer, as shared with other processes.
struct shared_bytes {
  shared_place at;
  std::size_t nbytes = 0;
};

struct foreign_memory {
  void* pointer = nullptr;
  std::size_t nbytes = 0;
  usm_kind kind = ISTHMUS_KIND_UNKNOWN;  // UNKNOWN: as the driver reports
  bool read_only = false;
};

class buffer final : public ref_counted {
 public:
  // For the functions below, which check the arguments first.
  buffer(queue& on, ref<allocation> memory, const buffer_request& request, bool read_only);
  buffer(buffer& base, queue& on, std::size_t offset, std::size_t nbytes);

  // `from` null: from the default pool for buffers (default_pools.hpp).
  [[nodiscard]] static result<ref<buffer>> create(queue& on, const buffer_request& request,
                                                  memory_resource* from) {
    return from != nullptr ? create_from(on, request, from) : create(on, request);
  }
  [[nodiscard]] static result<ref<buffer>> create(queue& on, const buffer_request& request);
  [[nodiscard]] static result<ref<buffer>> adopt(queue& on, const foreign_memory& what, owner keep);
  [[nodiscard]] result<ref<buffer>> slice(std::size_t offset, std::size_t nbytes);
  // The same bytes, with operations on another queue of the same context.
  [[nodiscard]] result<ref<buffer>> on_queue(queue& other);

  // A buffer cannot be looked up, so a reference that a load shows to be the last is the last.
  void release() noexcept {
    if (unique()) {
      last_reference_gone();
    } else {
      ref_counted::release();
    }
  }

  [[nodiscard]] queue& on() const noexcept { return *on_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] usm_kind kind() const noexcept { return whole_->kind_; }
  [[nodiscard]] std::size_t alignment() const noexcept { return whole_->alignment_; }
  [[nodiscard]] bool read_only() const noexcept { return whole_->read_only_; }
  [[nodiscard]] bool is_slice() const noexcept { return static_cast<bool>(base_); }
  [[nodiscard]] std::size_t exports() const noexcept {
    return exports_.load(std::memory_order_relaxed);
  }
  // Null for 0 bytes, and for a freed buffer.
  [[nodiscard]] void* pointer() const noexcept {
    return whole_->start_ == nullptr || nbytes_ == 0 || dead() ? nullptr : whole_->start_ + offset_;
  }
  // Whether it, or the whole buffer of a slice, was freed.
  [[nodiscard]] bool dead() const noexcept {
    return dead_.load(std::memory_order_acquire) || whole_->dead_.load(std::memory_order_acquire);
  }

  [[nodiscard]] error closed() const;

  void free() noexcept;
  // Whether `free`, or the release of its last reference or export, may call a driver, which may
  // wait for its device, or a resource of the caller's. False if the memory returns to a pool that
  // outlives it and has no work whose completion the library must poll.
  [[nodiscard]] bool free_may_wait() noexcept;

  // [offset, offset + nbytes) as an endpoint of a transfer, which keeps the memory alive. CLOSED,
  // OUT_OF_RANGE, or READ_ONLY for a destination.
  [[nodiscard]] result<endpoint> at(std::size_t offset, std::size_t nbytes, bool writes);

  // Waits for what is pending on its bytes, whatever its outcome. CLOSED or TIMEOUT. In a forked
  // child, which may read what its parent wrote, nothing is pending.
  [[nodiscard]] result<void> wait(const os::deadline& until);
  // The same only for operations that write to them, and for external work.
  [[nodiscard]] result<void> wait_for_writers(const os::deadline& until);
  // DEPENDENCY if a copy that was to fill some of the bytes is known to have failed and nothing has
  // filled them since (memory/content_list.hpp). In a forked child nothing is known.
  [[nodiscard]] result<void> check_contents();
  // The end of what is pending on its bytes now, as one event that cannot fail.
  [[nodiscard]] result<ref<event>> pending();
  // Whether it is not freed, nothing is pending on its memory and all copies that were to fill it
  // have succeeded, as far as is known without a driver call. Pre: no other thread frees it
  // meanwhile.
  [[nodiscard]] bool idle() const noexcept;
  // Flags for checking the same without a call (isthmus_buffer_watch). Check the first two first:
  // if one is set, the flags of the memory may no longer exist.
  [[nodiscard]] std::array<const unsigned char*, ISTHMUS_WATCHED> watch() const noexcept;
  // Waits as `wait` and returns a pointer for the host; the memory lives until `end_export`. Errors
  // as `check_contents`, including copies that failed during the wait. UNSUPPORTED for device
  // memory.
  [[nodiscard]] result<void*> begin_export();
  // Does not block: work that is submitted to `user` from now on runs after what is pending. Null:
  // no order. For memory of any kind. Errors as `check_contents`.
  [[nodiscard]] result<void*> begin_export_to_queue(queue* user);
  void end_export() noexcept;

  // Shares the bytes with another process, which no queue of this process is ordered with: waits
  // for what is pending. INVALID_ARGUMENT for 0 bytes, UNSUPPORTED for memory that cannot be
  // shared, CLOSED; errors as `check_contents`.
  [[nodiscard]] result<shared_bytes> share();
  // Opens what another process shared. Releasing the last reference to its memory closes it, which
  // waits for the device. Errors as `context::open_memory`; OUT_OF_RANGE if the bytes exceed the
  // allocation.
  [[nodiscard]] static result<ref<buffer>> open(queue& on, const shared_bytes& what);

  // Transfers the memory to the caller: the buffer counts as freed, and releasing the owner frees
  // the memory.
  [[nodiscard]] result<isthmus_owner_t> disown();
  // External work uses the memory until `ended`, or until the work now on that queue has completed.
  [[nodiscard]] result<void> record(const ref<event>& ended);
  [[nodiscard]] result<void> record(queue& user);

 private:
  ~buffer() override;
  // `from` null: from the driver.
  [[nodiscard]] static result<ref<buffer>> create_from(queue& on, const buffer_request& request,
                                                       memory_resource* from);
  // A part of it, or all of it, with operations on `on`.
  [[nodiscard]] result<ref<buffer>> view(queue& on, std::size_t offset, std::size_t nbytes);
  [[nodiscard]] result<void> check_contents_of(const endpoint& whole) const;
  // A reference to the memory for the duration of a call; null inside for 0 bytes.
  [[nodiscard]] result<ref<allocation>> hold();
  // What a write to the memory must wait for, or, with `writes` false, a read. Leaves out external
  // work on the exported queue `but_for`, which is ordered by the program that submits it.
  [[nodiscard]] result<std::vector<ref<event>>> pending_on(const endpoint& whole,
                                                           bool writes = true,
                                                           const queue* but_for = nullptr) const;
  // Detaches the export's reference, which `end_export` releases.
  [[nodiscard]] void* keep_exported(endpoint&& whole) noexcept;

  ref<queue> on_;
  // Of a slice: the whole buffer, also for a slice of a slice, so that chains stay flat.
  ref<buffer> base_;
  buffer* whole_ = nullptr;  // holds the allocation: this buffer, or the base
  std::size_t offset_ = 0;   // into the whole
  std::size_t nbytes_ = 0;
  std::size_t alignment_ = 0;
  usm_kind kind_ = ISTHMUS_KIND_DEVICE;
  bool read_only_ = false;
  bool counted_view_ = false;  // on another queue than the whole's, recorded in the memory
  std::atomic<bool> dead_{false};
  std::atomic<std::size_t> exports_{0};
  // Serializes new references with `free`; `memory_` itself never changes. A buffer that was not
  // freed counts as one reference, and each export as one more.
  spin_lock lock_;
  std::byte* start_ = nullptr;  // of the allocation; null for 0 bytes
  allocation* memory_ = nullptr;
};

}  // namespace isthmus
