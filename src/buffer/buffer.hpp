// SPDX-License-Identifier: Apache-2.0
#pragma once
// A buffer owns one USM allocation as untyped bytes, or is a slice of such a buffer. Thread-safe.
//
// A whole buffer refers to its allocation; a slice refers to the whole buffer. `free` releases the
// buffer's reference to the allocation immediately. Calls, exports and operations in flight that
// use the allocation at that moment keep it alive. A later use of the buffer returns an error and
// never crashes.

#include <array>
#include <atomic>
#include <cstdint>

#include "buffer/foreign.hpp"
#include "core/spin_lock.hpp"
#include "memory/records/allocation.hpp"
#include "transfer/endpoint.hpp"

namespace isthmus {

struct BufferRequest {
  std::size_t nbytes = 0;
  UsmKind kind = ISTHMUS_KIND_DEVICE;
  std::size_t alignment = 0;  // 0 selects the device's base alignment
};

// Describes the bytes of a buffer for another process.
struct SharedBytes {
  SharedAllocation location;
  std::size_t nbytes = 0;
};

class Buffer final : public RefCounted {
 public:
  // Called by the functions below, which check the arguments first.
  Buffer(Queue& queue, Ref<Allocation> memory, const BufferRequest& request, bool read_only);
  Buffer(Buffer& base, Queue& queue, std::size_t offset, std::size_t nbytes);

  // Allocates from `resource`; if it is null, from the default pool for buffers
  // (default_pools.hpp).
  [[nodiscard]] static Result<Ref<Buffer>> create(Queue& queue, const BufferRequest& request,
                                                  MemoryResource* resource) {
    return resource != nullptr ? create_from(queue, request, resource) : create(queue, request);
  }
  [[nodiscard]] static Result<Ref<Buffer>> create(Queue& queue, const BufferRequest& request);
  [[nodiscard]] static Result<Ref<Buffer>> adopt(Queue& queue, const ForeignMemory& memory,
                                                 Owner owner);
  [[nodiscard]] Result<Ref<Buffer>> slice(std::size_t offset, std::size_t nbytes);
  // Returns a buffer over the same bytes whose operations use another queue of the same context.
  [[nodiscard]] Result<Ref<Buffer>> on_queue(Queue& queue);

  // A buffer cannot be looked up, so no other thread can add a reference while the caller holds the
  // only one. A load then suffices.
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
  // Null for a buffer of 0 bytes or a freed buffer.
  [[nodiscard]] void* pointer() const noexcept {
    return whole_->memory_begin_ == nullptr || nbytes_ == 0 || is_freed()
               ? nullptr
               : whole_->memory_begin_ + offset_;
  }
  // Whether this buffer or, for a slice, the whole buffer was freed.
  [[nodiscard]] bool is_freed() const noexcept {
    return freed_.load(std::memory_order_acquire) || whole_->freed_.load(std::memory_order_acquire);
  }

  [[nodiscard]] Error closed() const;

  void free() noexcept;
  // Whether `free`, or the release of the last reference or export, may call a resource of the
  // caller or a driver, which may wait for its device. False if the memory returns to a pool that
  // outlives it and no work on it has a completion that the library must poll.
  [[nodiscard]] bool free_may_wait() noexcept;

  // Returns [offset, offset + nbytes) as an endpoint of a transfer; the endpoint keeps the memory
  // alive. Errors: CLOSED, OUT_OF_RANGE; READ_ONLY if `writes` is set.
  [[nodiscard]] Result<Endpoint> at(std::size_t offset, std::size_t nbytes, bool writes);

  // Waits for the pending operations on the buffer's bytes, regardless of their outcome. CLOSED or
  // TIMEOUT. In a forked child nothing is pending: it may read the bytes that its parent wrote.
  [[nodiscard]] Result<void> wait(const os::Deadline& deadline);
  // The same, but only for operations that write to the bytes, and for external work.
  [[nodiscard]] Result<void> wait_for_writers(const os::Deadline& deadline);
  // Returns DEPENDENCY if a copy into some of the bytes is known to have failed and they were not
  // written since (memory/records/content_list.hpp). Always succeeds in a forked child.
  [[nodiscard]] Result<void> check_contents();
  // Returns one event for the completion of everything now pending on the buffer's bytes. The event
  // cannot fail.
  [[nodiscard]] Result<Ref<Event>> pending();
  // Whether the buffer is not freed, nothing is pending on its memory, and all copies into it have
  // succeeded, determined without a driver call. May return false for an idle buffer. No other
  // thread frees the buffer during the call.
  [[nodiscard]] bool idle() const noexcept;
  // Returns flags with which a caller checks without a call whether the buffer is idle
  // (isthmus_buffer_watch). The caller must check the first two flags first: if one of them is set,
  // the flags of the memory may no longer exist.
  [[nodiscard]] std::array<const unsigned char*, ISTHMUS_WATCHED> watch() const noexcept;
  // Waits like `wait` and returns a pointer for the host; the memory stays alive until
  // `end_export`. Errors as for `check_contents`, including copies that failed during the wait;
  // UNSUPPORTED for device memory.
  [[nodiscard]] Result<void*> begin_export();
  // Returns a pointer to memory of any kind for work that is submitted to `queue` afterwards. That
  // work runs after the pending operations, for which this call waits only where
  // `Queue::order_after` does. If `queue` is null nothing is ordered. Errors as for
  // `check_contents`, and those of `Queue::order_after`.
  [[nodiscard]] Result<void*> begin_export_to_queue(Queue* queue);
  void end_export() noexcept;

  // Shares the bytes with another process. Waits for the pending operations, since no queue orders
  // the other process after them. INVALID_ARGUMENT for 0 bytes, UNSUPPORTED for memory that cannot
  // be shared, CLOSED; other errors as for `check_contents`.
  [[nodiscard]] Result<SharedBytes> share();
  // Opens bytes that another process shared. Releasing the last reference to the memory closes it,
  // which waits for the device. Errors as for `Context::open_memory`; OUT_OF_RANGE if the bytes
  // exceed the allocation.
  [[nodiscard]] static Result<Ref<Buffer>> open(Queue& queue, const SharedBytes& shared);

  // Transfers the memory to the caller: the buffer counts as freed, and releasing the returned
  // owner frees the memory.
  [[nodiscard]] Result<isthmus_owner_t> disown();
  // Records that external work uses the memory until `completion`, or until the work now on `queue`
  // has completed.
  [[nodiscard]] Result<void> record(const Ref<Event>& completion);
  [[nodiscard]] Result<void> record(Queue& queue);

 private:
  ~Buffer() override;
  // Allocates from `resource`; if it is null, from the driver.
  [[nodiscard]] static Result<Ref<Buffer>> create_from(Queue& queue, const BufferRequest& request,
                                                       MemoryResource* resource);
  // Returns a buffer over a part of the bytes, or all of them, whose operations use `queue`.
  [[nodiscard]] Result<Ref<Buffer>> view(Queue& queue, std::size_t offset, std::size_t nbytes);
  [[nodiscard]] Result<void> check_contents_of(const Endpoint& endpoint) const;
  // Returns a reference to the memory for the duration of a call; a null reference for 0 bytes.
  [[nodiscard]] Result<Ref<Allocation>> acquire_memory();
  // Returns the events that a write to the memory must wait for or, if `writes` is false, a read.
  // Excludes external work on the exported queue `excluded_queue`, which the program that submits
  // it orders.
  [[nodiscard]] Result<std::vector<Ref<Event>>> pending_on(
      const Endpoint& endpoint, bool writes = true, const Queue* excluded_queue = nullptr) const;
  // Counts an export and detaches the endpoint's reference to the memory; `end_export` releases the
  // reference.
  [[nodiscard]] void* retain_export(Endpoint&& endpoint) noexcept;
  void observe_export(const void* pointer) const noexcept;

  Ref<Queue> queue_;
  // For a slice, the whole buffer, even if the slice was created from another slice.
  Ref<Buffer> base_;
  Buffer* whole_ = nullptr;  // refers to the allocation: this buffer, or the base
  std::size_t offset_ = 0;   // in the whole buffer
  std::size_t nbytes_ = 0;
  std::size_t alignment_ = 0;
  UsmKind kind_ = ISTHMUS_KIND_DEVICE;
  bool read_only_ = false;
  // This slice or view uses another queue than the whole buffer, and the allocation counts it.
  bool counted_view_ = false;
  std::atomic<bool> freed_{false};
  std::atomic<std::size_t> exports_{0};
  // Serializes new references to the allocation with `free`; `memory_` itself never changes. A
  // buffer that was not freed holds one reference, and each export one more.
  SpinLock lock_;
  std::byte* memory_begin_ = nullptr;  // start of the allocation; null for 0 bytes
  Allocation* memory_ = nullptr;
};

}  // namespace isthmus
