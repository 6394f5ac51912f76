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

struct BufferRequest {
  std::size_t nbytes = 0;
  UsmKind kind = ISTHMUS_KIND_DEVICE;
  std::int64_t alignment = 0;  // 0 or less: the device's base alignment
};

// The bytes of a buffer, as shared with other processes.
struct SharedBytes {
  SharedAllocation location;
  std::size_t nbytes = 0;
};

struct ForeignMemory {
  void* pointer = nullptr;
  std::size_t nbytes = 0;
  UsmKind kind = ISTHMUS_KIND_UNKNOWN;  // UNKNOWN: as the driver reports
  bool read_only = false;
};

class Buffer final : public RefCounted {
 public:
  // For the functions below, which check the arguments first.
  Buffer(Queue& queue, Ref<Allocation> memory, const BufferRequest& request, bool read_only);
  Buffer(Buffer& base, Queue& queue, std::size_t offset, std::size_t nbytes);

  // `resource` null: from the default pool for buffers (default_pools.hpp).
  [[nodiscard]] static Result<Ref<Buffer>> create(Queue& queue, const BufferRequest& request,
                                                  MemoryResource* resource) {
    return resource != nullptr ? create_from(queue, request, resource) : create(queue, request);
  }
  [[nodiscard]] static Result<Ref<Buffer>> create(Queue& queue, const BufferRequest& request);
  [[nodiscard]] static Result<Ref<Buffer>> adopt(Queue& queue, const ForeignMemory& memory,
                                                 Owner owner);
  [[nodiscard]] Result<Ref<Buffer>> slice(std::size_t offset, std::size_t nbytes);
  // The same bytes, with operations on another queue of the same context.
  [[nodiscard]] Result<Ref<Buffer>> on_queue(Queue& other);

  // A buffer cannot be looked up, so a reference that a load shows to be the last is the last.
  void release() noexcept {
    if (unique()) {
      on_last_release();
    } else {
      RefCounted::release();
    }
  }

  [[nodiscard]] Queue& queue() const noexcept { return *queue_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }
  [[nodiscard]] UsmKind kind() const noexcept { return whole_->kind_; }
  [[nodiscard]] std::size_t alignment() const noexcept { return whole_->alignment_; }
  [[nodiscard]] bool read_only() const noexcept { return whole_->read_only_; }
  [[nodiscard]] bool is_slice() const noexcept { return static_cast<bool>(base_); }
  [[nodiscard]] std::size_t exports() const noexcept {
    return exports_.load(std::memory_order_relaxed);
  }
  // Null for 0 bytes, and for a freed buffer.
  [[nodiscard]] void* pointer() const noexcept {
    return whole_->memory_begin_ == nullptr || nbytes_ == 0 || is_freed()
               ? nullptr
               : whole_->memory_begin_ + offset_;
  }
  // Whether it, or the whole buffer of a slice, was freed.
  [[nodiscard]] bool is_freed() const noexcept {
    return freed_.load(std::memory_order_acquire) || whole_->freed_.load(std::memory_order_acquire);
  }

  [[nodiscard]] Error closed() const;

  void free() noexcept;
  // Whether `free`, or the release of its last reference or export, may call a driver, which may
  // wait for its device, or a resource of the caller's. False if the memory returns to a pool that
  // outlives it and has no work whose completion the library must poll.
  [[nodiscard]] bool free_may_wait() noexcept;

  // [offset, offset + nbytes) as an endpoint of a transfer, which keeps the memory alive. CLOSED,
  // OUT_OF_RANGE, or READ_ONLY for a destination.
  [[nodiscard]] Result<Endpoint> at(std::size_t offset, std::size_t nbytes, bool writes);

  // Waits for what is pending on its bytes, whatever its outcome. CLOSED or TIMEOUT. In a forked
  // child, which may read what its parent wrote, nothing is pending.
  [[nodiscard]] Result<void> wait(const os::Deadline& until);
  // The same only for operations that write to them, and for external work.
  [[nodiscard]] Result<void> wait_for_writers(const os::Deadline& until);
  // DEPENDENCY if a copy that was to fill some of the bytes is known to have failed and nothing has
  // filled them since (memory/content_list.hpp). In a forked child nothing is known.
  [[nodiscard]] Result<void> check_contents();
  // The end of what is pending on its bytes now, as one event that cannot fail.
  [[nodiscard]] Result<Ref<Event>> pending();
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
  [[nodiscard]] Result<void*> begin_export();
  // Does not block: work that is submitted to `user` from now on runs after what is pending. Null:
  // no order. For memory of any kind. Errors as `check_contents`.
  [[nodiscard]] Result<void*> begin_export_to_queue(Queue* user);
  void end_export() noexcept;

  // Shares the bytes with another process, which no queue of this process is ordered with: waits
  // for what is pending. INVALID_ARGUMENT for 0 bytes, UNSUPPORTED for memory that cannot be
  // shared, CLOSED; errors as `check_contents`.
  [[nodiscard]] Result<SharedBytes> share();
  // Opens what another process shared. Releasing the last reference to its memory closes it, which
  // waits for the device. Errors as `Context::open_memory`; OUT_OF_RANGE if the bytes exceed the
  // allocation.
  [[nodiscard]] static Result<Ref<Buffer>> open(Queue& queue, const SharedBytes& shared);

  // Transfers the memory to the caller: the buffer counts as freed, and releasing the owner frees
  // the memory.
  [[nodiscard]] Result<isthmus_owner_t> disown();
  // External work uses the memory until `completion`, or until the work now on that queue has
  // completed.
  [[nodiscard]] Result<void> record(const Ref<Event>& completion);
  [[nodiscard]] Result<void> record(Queue& user);

 private:
  ~Buffer() override;
  // `resource` null: from the driver.
  [[nodiscard]] static Result<Ref<Buffer>> create_from(Queue& queue, const BufferRequest& request,
                                                       MemoryResource* resource);
  // A part of it, or all of it, with operations on `queue`.
  [[nodiscard]] Result<Ref<Buffer>> view(Queue& queue, std::size_t offset, std::size_t nbytes);
  [[nodiscard]] Result<void> check_contents_of(const Endpoint& endpoint) const;
  // A reference to the memory for the duration of a call; null inside for 0 bytes.
  [[nodiscard]] Result<Ref<Allocation>> acquire_memory();
  // What a write to the memory must wait for, or, with `writes` false, a read. Leaves out external
  // work on the exported queue `except`, which is ordered by the program that submits it.
  [[nodiscard]] Result<std::vector<Ref<Event>>> pending_on(const Endpoint& endpoint,
                                                           bool writes = true,
                                                           const Queue* except = nullptr) const;
  // Detaches the export's reference, which `end_export` releases.
  [[nodiscard]] void* retain_export(Endpoint&& endpoint) noexcept;

  Ref<Queue> queue_;
  // For a slice, the whole buffer, even if it was made from a slice, so that chains stay flat.
  Ref<Buffer> base_;
  Buffer* whole_ = nullptr;  // holds the allocation: this buffer, or the base
  std::size_t offset_ = 0;   // into the whole
  std::size_t nbytes_ = 0;
  std::size_t alignment_ = 0;
  UsmKind kind_ = ISTHMUS_KIND_DEVICE;
  bool read_only_ = false;
  bool counted_view_ = false;  // on another queue than the whole's, recorded in the memory
  std::atomic<bool> freed_{false};
  std::atomic<std::size_t> exports_{0};
  // Serializes new references with `free`; `memory_` itself never changes. A buffer that was not
  // freed counts as one reference, and each export as one more.
  SpinLock lock_;
  std::byte* memory_begin_ = nullptr;  // of the allocation; null for 0 bytes
  Allocation* memory_ = nullptr;
};

}  // namespace isthmus
