// SPDX-License-Identifier: Apache-2.0
#include "buffer/buffer.hpp"

#include <algorithm>
#include <bit>
#include <mutex>
#include <optional>
#include <utility>

#include "backend/queue.hpp"
#include "buffer/foreign.hpp"
#include "core/sizes.hpp"
#include "memory/innermost.hpp"
#include "memory/pooled.hpp"
#include "os/process.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

Buffer::Buffer(Queue& queue, Ref<Allocation> memory, const BufferRequest& request, bool read_only)
    : queue_{&queue},
      whole_{this},
      nbytes_{request.nbytes},
      alignment_{static_cast<std::size_t>(request.alignment)},
      kind_{request.kind},
      read_only_{read_only},
      start_{memory ? static_cast<std::byte*>(memory->what().base) : nullptr},
      memory_{memory.detach()} {}

Buffer::Buffer(Buffer& base, Queue& queue, std::size_t offset, std::size_t nbytes)
    : queue_{&queue},
      base_{base.whole_},
      whole_{base.whole_},
      offset_{base.offset_ + offset},
      nbytes_{nbytes} {}

// No thread can call `free`, or obtain the memory through this buffer, any more.
Buffer::~Buffer() {
  if (memory_ != nullptr && !dead_.load(std::memory_order_relaxed)) {
    memory_->release_last();
  }
  if (!counted_view_ || os::drivers_are_gone()) {
    return;
  }
  // If the memory was freed before, its release has already handled the view.
  if (auto memory = whole_->hold(); memory && *memory) {
    (*memory)->view_ended(*queue_);
  }
}

Result<Ref<Buffer>> Buffer::adopt(Queue& queue, const ForeignMemory& given_memory, Owner keep) {
  auto kind = check_foreign(queue, given_memory);
  if (!kind) {
    return kind.take_error();
  }
  const auto alignment = std::size_t{1}
                         << std::min(std::countr_zero(address(given_memory.pointer)), 30);
  auto within = innermost_at(given_memory.pointer);
  ISTHMUS_TRY(within);
  auto memory =
      Allocation::adopt(queue, {given_memory.pointer, given_memory.nbytes, alignment, *kind, true},
                        std::move(keep), std::move(within->memory));
  if (!memory) {
    return memory.take_error();
  }
  return make_ref<Buffer>(
      queue, *std::move(memory),
      BufferRequest{given_memory.nbytes, *kind, static_cast<std::int64_t>(alignment)},
      given_memory.read_only);
}

Error Buffer::closed() const {
  const char* const part = is_slice() ? ", or the buffer that it slices," : "";
  return nbytes_ == 0 ? fail(ISTHMUS_ERROR_CLOSED, "this buffer{} was freed", part)
                      : fail(ISTHMUS_ERROR_CLOSED, "this buffer of {}{} was freed",
                             describe_bytes(nbytes_), part);
}

Result<Ref<Allocation>> Buffer::hold() {
  if (dead()) {
    return closed();
  }
  // In a forked child a thread of the parent may have held the lock; the child has one thread only.
  std::unique_lock held{whole_->lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    held.lock();
  }
  if (whole_->dead_.load(std::memory_order_relaxed)) {
    return closed();
  }
  return Ref<Allocation>{whole_->memory_};
}

void Buffer::free() noexcept {
  Allocation* let_go = nullptr;
  {
    const std::lock_guard held{lock_};
    if (!dead_.exchange(true, std::memory_order_acq_rel)) {
      let_go = memory_;
    }
  }
  if (let_go != nullptr) {
    let_go->release();
  }
}

namespace {

// Nothing if it depends on whether the work on the memory has completed, which takes a reference to
// find out.
std::optional<bool> end_may_wait(Allocation& allocation) noexcept {
  auto* const from = allocation.resource();
  if (from == nullptr || from->as_pool() == nullptr || from->unique() || allocation.lies_within() ||
      allocation.lent()) {
    return true;
  }
  return allocation.host_can_touch() && allocation.uses().may_run() ? std::nullopt
                                                                    : std::optional{false};
}

}  // namespace

bool Buffer::free_may_wait() noexcept {
  if (dead()) {
    return exports() != 0 || is_slice();
  }
  {
    // Another thread may free the buffer meanwhile, with the same reference too. `free` takes this
    // lock before it releases the memory, so the memory lives while it is held; this costs less
    // than a reference.
    const std::lock_guard held{whole_->lock_};
    if (whole_->memory_ == nullptr || whole_->dead_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (const auto known = end_may_wait(*whole_->memory_)) {
      return *known;
    }
  }
  auto memory = hold();
  return memory && *memory && !(*memory)->uses().quiet();
}

Result<Ref<Buffer>> Buffer::view(Queue& queue, std::size_t offset, std::size_t nbytes) {
  auto made = make_ref<Buffer>(*this, queue, offset, nbytes);
  if (&queue == whole_->queue_.get() || os::is_forked_child()) {
    return made;
  }
  auto memory = hold();
  ISTHMUS_TRY(memory);
  if (*memory) {
    (*memory)->view_began(queue);
    made->counted_view_ = true;
  }
  return made;
}

Result<Ref<Buffer>> Buffer::slice(std::size_t offset, std::size_t nbytes) {
  if (dead()) {
    return closed();
  }
  if (!lies_within(offset, nbytes, nbytes_)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "a slice of {} bytes from {} does not lie in a buffer of {}", nbytes, offset,
                describe_bytes(nbytes_));
  }
  return view(*queue_, offset, nbytes);
}

Result<Ref<Buffer>> Buffer::on_queue(Queue& other) {
  if (dead()) {
    return closed();
  }
  if (!other.context().is_same_as(queue_->context())) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue of {} belongs to another context than the buffer",
                other.device().properties().filter);
  }
  return view(other, 0, nbytes_);
}

Result<Endpoint> Buffer::at(std::size_t offset, std::size_t nbytes, bool writes) {
  auto memory = hold();
  if (!memory) {
    return memory.take_error();
  }
  if (!lies_within(offset, nbytes, nbytes_)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "{} bytes from {} do not lie in a buffer of {}", nbytes,
                offset, describe_bytes(nbytes_));
  }
  if (writes && read_only()) {
    return fail(ISTHMUS_ERROR_READ_ONLY, "this buffer of {} is read-only and cannot be written",
                describe_bytes(nbytes_));
  }
  auto* start = whole_->start_;
  return Endpoint{start == nullptr ? nullptr : start + offset_ + offset, *std::move(memory),
                  queue_.get()};
}

Result<std::vector<Ref<Event>>> Buffer::pending_on(const Endpoint& whole, bool writes,
                                                   const Queue* but_for) const {
  std::vector<Ref<Event>> found;
  if (!whole.memory || os::is_forked_child()) {
    return found;
  }
  TouchedMemory touched;
  touched.add(whole, nbytes_, writes);
  touched.collect(nullptr, found);
  ISTHMUS_TRY(touched.collect_lent(but_for, found));
  return found;
}

Result<void> Buffer::wait(const os::Deadline& until) {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  auto found = pending_on(*side);
  ISTHMUS_TRY(found);
  return let_end(*found, until);
}

Result<void> Buffer::wait_for_writers(const os::Deadline& until) {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  auto found = pending_on(*side, false);
  ISTHMUS_TRY(found);
  return let_end(*found, until);
}

Result<void> Buffer::check_contents() {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  return check_contents_of(*side);
}

Result<void> Buffer::check_contents_of(const Endpoint& whole) const {
  if (!whole.memory || nbytes_ == 0 || os::is_forked_child()) {
    return {};
  }
  std::vector<Ref<Event>> filling;
  whole.memory->uses().contents().collect(whole.range(nbytes_), filling);
  for (const auto& each : filling) {
    if (const auto now = each->poll(); now != ISTHMUS_OK && now != ISTHMUS_PENDING) {
      return fail(ISTHMUS_ERROR_DEPENDENCY,
                  "a copy that should have filled part of these {} failed: {}; use the unified "
                  "buffer again, which repeats the copy, or overwrite them with a copy or a fill",
                  describe_bytes(nbytes_), each->outcome().message());
    }
  }
  return {};
}

Result<Ref<Event>> Buffer::pending() {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  auto found = pending_on(*side);
  ISTHMUS_TRY(found);
  return end_of_all(*found);
}

// Without memory nothing can be pending.
std::array<const unsigned char*, ISTHMUS_WATCHED> Buffer::watch() const noexcept {
  static constexpr std::atomic<bool> k_never{false};
  const auto* const memory = dead() ? nullptr : whole_->memory_;
  const auto work =
      memory != nullptr ? memory->signs_of_work() : Allocation::Signs{&k_never, &k_never, &k_never};
  const auto at = [](const std::atomic<bool>* flag) {
    static_assert(sizeof *flag == 1 && std::atomic<bool>::is_always_lock_free);
    return reinterpret_cast<const unsigned char*>(flag);
  };
  return {at(&dead_), at(&whole_->dead_), at(work.operations), at(work.own_queue),
          at(work.other_queues)};
}

bool Buffer::idle() const noexcept {
  if (dead()) {
    return false;
  }
  auto* const memory = whole_->memory_;
  return memory == nullptr ||
         ((os::is_forked_child() || (memory->uses().quiet() && !memory->uses().contents().any())) &&
          !memory->lent());
}

Result<void*> Buffer::begin_export() {
  auto side = at(0, nbytes_, false);
  if (!side) {
    return side.take_error();
  }
  if (kind() == ISTHMUS_KIND_DEVICE) {
    return fail(
        ISTHMUS_ERROR_UNSUPPORTED,
        "device memory cannot be accessed by the host: copy it, or submit a function to the queue");
  }
  auto found = pending_on(*side);
  ISTHMUS_TRY(found);
  let_end(*found);
  ISTHMUS_TRY(check_contents_of(*side));
  return keep_exported(*std::move(side));
}

Result<void*> Buffer::begin_export_to_queue(Queue* user) {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  if (user != nullptr) {
    auto found = pending_on(*side, true, user);
    ISTHMUS_TRY(found);
    std::erase_if(*found, [](const Ref<Event>& each) { return !each->pending(); });
    ISTHMUS_TRY(user->stand_behind(*found));
  }
  ISTHMUS_TRY(check_contents_of(*side));  // after a wait for such a copy
  return keep_exported(*std::move(side));
}

void* Buffer::keep_exported(Endpoint&& whole) noexcept {
  exports_.fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(whole.memory.detach());
  return whole.pointer;
}

void Buffer::end_export() noexcept {
  exports_.fetch_sub(1, std::memory_order_relaxed);
  if (whole_->memory_ != nullptr) {
    whole_->memory_->release();
  }
}

Result<isthmus_owner_t> Buffer::disown() {
  const std::lock_guard held{lock_};
  if (dead()) {
    return closed();
  }
  if (is_slice() || memory_ == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} has no memory of its own to transfer",
                is_slice() ? "a slice" : "a buffer of 0 bytes");
  }
  if (!memory_->unique() || !unique()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the memory of this buffer is in use by {} exports, by slices or by other handles: "
                "release them first",
                exports());
  }
  dead_.store(true, std::memory_order_release);
  return isthmus_owner_t{memory_,
                         [](void* memory) { static_cast<Allocation*>(memory)->release(); }};
}

Result<void> Buffer::record(const Ref<Event>& ended) {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  if (side->memory) {
    auto& uses = side->memory->uses();
    uses.add({0, side->range(nbytes_), true}, ended, uses.begin());
  }
  return {};
}

Result<void> Buffer::record(Queue& user) {
  auto side = at(0, nbytes_, false);
  ISTHMUS_TRY(side);
  return side->memory ? side->memory->note_use(user, side->range(nbytes_)) : Result<void>{};
}

}  // namespace isthmus
