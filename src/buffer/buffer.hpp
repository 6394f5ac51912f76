#pragma once
// A buffer: owns one piece of USM as untyped bytes, or is a slice of one that does.
//
// A whole buffer holds its allocation; a slice holds the whole buffer. `free` lets go of the
// allocation at once, while whoever uses it at that moment (a call, an export, an operation in
// flight) still holds it: an error for later users, never a crash.

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
  std::int64_t alignment = 0;  // 0 or less: the device's own
};

// The bytes of a buffer in other processes.
struct shared_bytes {
  shared_place at;
  std::size_t nbytes = 0;
};

struct foreign_memory {
  void* pointer = nullptr;
  std::size_t nbytes = 0;
  usm_kind kind = ISTHMUS_KIND_UNKNOWN;  // UNKNOWN: what the driver says
  bool read_only = false;
};

class buffer final : public ref_counted {
 public:
  // For the functions below, which check first.
  buffer(queue& on, ref<allocation> memory, const buffer_request& request, bool read_only);
  buffer(buffer& base, queue& on, std::size_t offset, std::size_t nbytes);

  // Of the default pool of buffers (default_pools.hpp) where `from` is null.
  [[nodiscard]] static result<ref<buffer>> create(queue& on, const buffer_request& request,
                                                  memory_resource* from) {
    return from != nullptr ? create_from(on, request, from) : create(on, request);
  }
  [[nodiscard]] static result<ref<buffer>> create(queue& on, const buffer_request& request);
  [[nodiscard]] static result<ref<buffer>> adopt(queue& on, const foreign_memory& what, owner keep);
  [[nodiscard]] result<ref<buffer>> slice(std::size_t offset, std::size_t nbytes);
  // The same bytes, with operations on another queue of the same context.
  [[nodiscard]] result<ref<buffer>> on_queue(queue& other);

  // Nobody finds a buffer who does not hold it: a last reference is seen to be one by a load.
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
  // Whether it or the whole was freed.
  [[nodiscard]] bool dead() const noexcept {
    return dead_.load(std::memory_order_acquire) || whole_->dead_.load(std::memory_order_acquire);
  }

  [[nodiscard]] error closed() const;

  void free() noexcept;
  // Whether `free`, or the end of its last reference or export, may call a driver, which may wait
  // for its device, or a resource of the caller's. Not where the memory returns to a pool that
  // stays, with no work on it whose end the library has to find.
  [[nodiscard]] bool free_may_wait() noexcept;

  // [offset, offset + nbytes) as one side of a transfer, which holds the memory. CLOSED,
  // OUT_OF_RANGE, or READ_ONLY for a destination.
  [[nodiscard]] result<endpoint> at(std::size_t offset, std::size_t nbytes, bool writes);

  // Waits for what is pending on its bytes, whatever its outcome. CLOSED or TIMEOUT. In a forked
  // child, which may read what its parent wrote, nothing is pending.
  [[nodiscard]] result<void> wait(const os::deadline& until);
  // The same for what writes to them, and for work unknown to us, alone.
  [[nodiscard]] result<void> wait_for_writers(const os::deadline& until);
  // DEPENDENCY where a copy that was to fill some of the bytes is known to have failed, and nothing
  // has filled them since (memory/content_list.hpp). In a forked child nothing is known.
  [[nodiscard]] result<void> check_contents();
  // The end of what is pending on its bytes now, as one event that cannot fail.
  [[nodiscard]] result<ref<event>> pending();
  // Whether it lives, nothing is pending on its memory and all copies that were to fill it have
  // done so, as far as is known without asking a driver. Pre: nobody frees it meanwhile.
  [[nodiscard]] bool idle() const noexcept;
  // For who looks without a call; the flags of the first two are to be looked at first, since the
  // memory's may be gone where these are true.
  [[nodiscard]] std::array<const unsigned char*, ISTHMUS_WATCHED> watch() const noexcept;
  // Waits likewise and gives the host a pointer; the memory stays until `end_export`. Errors as
  // `check_contents`, for what has failed when the wait is over.
  [[nodiscard]] result<void*> begin_export();
  // Waits for nothing: what others put on `user` from now on comes behind what is pending. Null: in
  // no order. Any kind. Errors as `check_contents`.
  [[nodiscard]] result<void*> begin_export_to_queue(queue* user);
  void end_export() noexcept;

  // For another process, which no queue of this one's is in order with: waits for what is pending.
  // INVALID_ARGUMENT for 0 bytes, UNSUPPORTED for memory that cannot be shared, CLOSED; errors as
  // `check_contents`.
  [[nodiscard]] result<shared_bytes> share();
  // What another process shared. The last reference to its memory closes it, which waits for the
  // device. Errors as `context::open_memory`; OUT_OF_RANGE where the bytes are not all there.
  [[nodiscard]] static result<ref<buffer>> open(queue& on, const shared_bytes& what);

  // Gives the memory away: the buffer is dead, and who releases the owner frees the memory.
  [[nodiscard]] result<isthmus_owner_t> disown();
  // The memory is in use by work unknown to us until `ended`, or that is on that queue now.
  [[nodiscard]] result<void> record(const ref<event>& ended);
  [[nodiscard]] result<void> record(queue& user);

 private:
  ~buffer() override;
  // Null: from the driver.
  [[nodiscard]] static result<ref<buffer>> create_from(queue& on, const buffer_request& request,
                                                       memory_resource* from);
  // A part of it, or all, with operations on `on`.
  [[nodiscard]] result<ref<buffer>> view(queue& on, std::size_t offset, std::size_t nbytes);
  [[nodiscard]] result<void> check_contents_of(const endpoint& whole) const;
  // A reference to the memory for the time of a call; null inside where there are 0 bytes.
  [[nodiscard]] result<ref<allocation>> hold();
  // What a write to it must wait for, or but a read. What others put on the lent queue `but_for` is
  // left out: its order is in the hands of whoever puts work there.
  [[nodiscard]] result<std::vector<ref<event>>> pending_on(const endpoint& whole,
                                                           bool writes = true,
                                                           const queue* but_for = nullptr) const;
  // The export's reference, given back by `end_export`.
  [[nodiscard]] void* keep_exported(endpoint&& whole) noexcept;

  ref<queue> on_;
  // Of a slice: the whole, also for a slice of a slice, so that a chain of them stays flat.
  ref<buffer> base_;
  buffer* whole_ = nullptr;  // holds the allocation: this one, or the base
  std::size_t offset_ = 0;   // into the whole
  std::size_t nbytes_ = 0;
  std::size_t alignment_ = 0;
  usm_kind kind_ = ISTHMUS_KIND_DEVICE;
  bool read_only_ = false;
  bool counted_view_ = false;  // on another queue than the whole, which the memory knows
  std::atomic<bool> dead_{false};
  std::atomic<std::size_t> exports_{0};
  // Guards the handing out of references against `free`; `memory_` itself never changes. Alive, the
  // buffer counts as one reference; an export is one more.
  spin_lock lock_;
  std::byte* start_ = nullptr;  // of the allocation; null for 0 bytes
  allocation* memory_ = nullptr;
};

}  // namespace isthmus
