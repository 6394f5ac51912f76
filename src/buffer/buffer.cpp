// SPDX-License-Identifier: Apache-2.0
#include "buffer/buffer.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "backend/queue.hpp"
#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/innermost.hpp"
#include "os/lock_unless_forked.hpp"
#include "os/process.hpp"
#include "recorder/observers.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {

Buffer::Buffer(Queue& queue, Ref<Allocation> memory, const BufferRequest& request, bool read_only)
    : queue_{&queue},
      whole_{this},
      nbytes_{request.nbytes},
      alignment_{request.alignment},
      kind_{request.kind},
      read_only_{read_only},
      memory_begin_{memory ? static_cast<std::byte*>(memory->facts().base) : nullptr},
      memory_{memory.detach()} {}

Buffer::Buffer(Buffer& base, Queue& queue, std::size_t offset, std::size_t nbytes)
    : queue_{&queue},
      base_{base.whole_},
      whole_{base.whole_},
      offset_{base.offset_ + offset},
      nbytes_{nbytes} {}

// No other thread can use this buffer now, so no lock is needed.
Buffer::~Buffer() {
  if (memory_ != nullptr && !freed_.load(std::memory_order_relaxed)) {
    memory_->release_last();
  }
  if (!counted_view_ || os::drivers_unavailable()) {
    return;
  }
  // If the memory was freed before, its release has already removed the view.
  if (auto memory = whole_->acquire_memory(); memory && *memory) {
    (*memory)->end_view(*queue_);
  }
}

Result<Ref<Buffer>> Buffer::adopt(Queue& queue, const ForeignMemory& foreign, Owner owner) {
  auto kind = check_foreign(queue, foreign);
  if (!kind) {
    return kind.take_error();
  }
  const auto alignment = std::size_t{1} << std::min(std::countr_zero(address(foreign.pointer)), 30);
  auto containing = innermost_at(foreign.pointer);
  ISTHMUS_TRY(containing);
  auto memory = Allocation::adopt(queue, {foreign.pointer, foreign.nbytes, alignment, *kind, true},
                                  std::move(owner), std::move(containing->memory));
  if (!memory) {
    return memory.take_error();
  }
  return make_ref<Buffer>(queue, *std::move(memory),
                          BufferRequest{foreign.nbytes, *kind, alignment}, foreign.read_only);
}

Error Buffer::closed() const {
  const char* const suffix = is_slice() ? ", or the buffer that it slices," : "";
  return nbytes_ == 0 ? fail(ISTHMUS_ERROR_CLOSED, "this buffer{} was freed", suffix)
                      : fail(ISTHMUS_ERROR_CLOSED, "this buffer of {}{} was freed",
                             describe_bytes(nbytes_), suffix);
}

Result<Ref<Allocation>> Buffer::acquire_memory() {
  if (is_freed()) {
    return closed();
  }
  const os::LockUnlessForked guard{whole_->lock_};
  if (whole_->freed_.load(std::memory_order_relaxed)) {
    return closed();
  }
  return Ref<Allocation>{whole_->memory_};
}

void Buffer::free() noexcept {
  Allocation* detached_memory = nullptr;
  {
    const LockGuard guard{lock_};
    if (!freed_.exchange(true, std::memory_order_acq_rel)) {
      detached_memory = memory_;
    }
  }
  if (detached_memory != nullptr) {
    detached_memory->release();
  }
}

namespace {

// Returns no value if the answer depends on whether the work on the memory has completed; checking
// that requires a reference.
std::optional<bool> release_may_wait(Allocation& allocation) noexcept {
  auto* const resource = allocation.resource();
  if (resource == nullptr || !resource->is_pool() || resource->unique() || allocation.is_nested() ||
      allocation.has_exported_queue()) {
    return true;
  }
  return allocation.host_can_touch() && allocation.uses().may_run() ? std::nullopt
                                                                    : std::optional{false};
}

}  // namespace

bool Buffer::free_may_wait() noexcept {
  // The end of the last export releases the memory of a freed buffer, and may then wait. A freed
  // slice may hold the last reference to the whole buffer, which cannot be determined here.
  if (is_freed()) {
    return exports() != 0 || is_slice();
  }
  {
    // Another thread may free the buffer during this call. `free` acquires this lock before it
    // releases the memory, so the memory stays alive while the lock is held. This costs less than a
    // reference.
    const LockGuard guard{whole_->lock_};
    if (whole_->memory_ == nullptr || whole_->freed_.load(std::memory_order_relaxed)) {
      return false;
    }
    if (const auto answer = release_may_wait(*whole_->memory_)) {
      return *answer;
    }
  }
  auto memory = acquire_memory();
  return memory && *memory && !(*memory)->uses().is_known_idle();
}

Result<Ref<Buffer>> Buffer::view(Queue& queue, std::size_t offset, std::size_t nbytes) {
  auto result = make_ref<Buffer>(*this, queue, offset, nbytes);
  if (&queue == whole_->queue_.get() || os::is_forked_child()) {
    return result;
  }
  auto memory = acquire_memory();
  ISTHMUS_TRY(memory);
  if (*memory) {
    (*memory)->begin_view(queue);
    result->counted_view_ = true;
  }
  return result;
}

Result<Ref<Buffer>> Buffer::slice(std::size_t offset, std::size_t nbytes) {
  if (is_freed()) {
    return closed();
  }
  if (!lies_within(offset, nbytes, nbytes_)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE,
                "a slice of {} bytes from offset {} does not lie in a buffer of {}", nbytes, offset,
                describe_bytes(nbytes_));
  }
  return view(*queue_, offset, nbytes);
}

Result<Ref<Buffer>> Buffer::on_queue(Queue& queue) {
  if (is_freed()) {
    return closed();
  }
  if (!queue.context().is_same_as(queue_->context())) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "the queue of {} belongs to another context than the buffer: use a queue of the "
                "buffer's context",
                queue.device().properties().filter);
  }
  return view(queue, 0, nbytes_);
}

Result<Endpoint> Buffer::at(std::size_t offset, std::size_t nbytes, bool writes) {
  auto memory = acquire_memory();
  if (!memory) {
    return memory.take_error();
  }
  if (!lies_within(offset, nbytes, nbytes_)) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "{} bytes from offset {} do not lie in a buffer of {}",
                nbytes, offset, describe_bytes(nbytes_));
  }
  if (writes && read_only()) {
    return fail(ISTHMUS_ERROR_READ_ONLY,
                "this buffer of {} is read-only and cannot be written: write to a copy of it",
                describe_bytes(nbytes_));
  }
  auto* start = whole_->memory_begin_;
  return Endpoint{start == nullptr ? nullptr : start + offset_ + offset, *std::move(memory),
                  queue_.get()};
}

Result<std::vector<Ref<Event>>> Buffer::pending_on(const Endpoint& endpoint, bool writes,
                                                   const Queue* excluded_queue) const {
  std::vector<Ref<Event>> events;
  if (!endpoint.memory || os::is_forked_child()) {
    return events;
  }
  TouchedMemory touched;
  touched.add(endpoint, nbytes_, writes);
  touched.collect(nullptr, events);
  ISTHMUS_TRY(touched.collect_exported(excluded_queue, events));
  return events;
}

Result<void> Buffer::wait(const os::Deadline& deadline) {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  auto events = pending_on(*endpoint);
  ISTHMUS_TRY(events);
  return wait_until_ended(*events, deadline);
}

Result<void> Buffer::wait_for_writers(const os::Deadline& deadline) {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  auto events = pending_on(*endpoint, false);
  ISTHMUS_TRY(events);
  return wait_until_ended(*events, deadline);
}

Result<void> Buffer::check_contents() {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  return check_contents_of(*endpoint);
}

Result<void> Buffer::check_contents_of(const Endpoint& endpoint) const {
  if (!endpoint.memory || nbytes_ == 0 || os::is_forked_child()) {
    return {};
  }
  std::vector<Ref<Event>> fill_events;
  endpoint.memory->uses().contents().collect(endpoint.range(nbytes_), fill_events);
  for (const auto& event : fill_events) {
    if (const auto status = event->poll(); status != ISTHMUS_OK && status != ISTHMUS_PENDING) {
      return fail(ISTHMUS_ERROR_DEPENDENCY,
                  "a copy that should have filled part of these {} failed: {}; use the unified "
                  "buffer again, which repeats the copy, or overwrite them with a copy or a fill",
                  describe_bytes(nbytes_), event->outcome().message());
    }
  }
  return {};
}

Result<Ref<Event>> Buffer::pending() {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  auto events = pending_on(*endpoint);
  ISTHMUS_TRY(events);
  return end_of_all(*events);
}

// A buffer without memory has no pending work: `k_never` stands for the flags of its memory.
std::array<const unsigned char*, ISTHMUS_WATCHED> Buffer::watch() const noexcept {
  static constexpr std::atomic<bool> k_never{false};
  const auto* const memory = is_freed() ? nullptr : whole_->memory_;
  const auto flags = memory != nullptr ? memory->activity_flags()
                                       : Allocation::ActivityFlags{&k_never, &k_never, &k_never};
  const auto flag_address = [](const std::atomic<bool>* flag) {
    static_assert(sizeof *flag == 1 && std::atomic<bool>::is_always_lock_free);
    return reinterpret_cast<const unsigned char*>(flag);
  };
  return {flag_address(&freed_), flag_address(&whole_->freed_), flag_address(flags.operations),
          flag_address(flags.own_queue), flag_address(flags.other_queues)};
}

bool Buffer::idle() const noexcept {
  if (is_freed()) {
    return false;
  }
  auto* const memory = whole_->memory_;
  return memory == nullptr || ((os::is_forked_child() || (memory->uses().is_known_idle() &&
                                                          !memory->uses().contents().any())) &&
                               !memory->has_exported_queue());
}

Result<void*> Buffer::begin_export() {
  auto endpoint = at(0, nbytes_, false);
  if (!endpoint) {
    return endpoint.take_error();
  }
  if (kind() == ISTHMUS_KIND_DEVICE) {
    return fail(
        ISTHMUS_ERROR_UNSUPPORTED,
        "device memory cannot be accessed by the host: copy it, or submit a function to the queue");
  }
  auto events = pending_on(*endpoint);
  ISTHMUS_TRY(events);
  ISTHMUS_TRY(wait_until_ended(*events, std::nullopt));
  ISTHMUS_TRY(check_contents_of(*endpoint));
  return retain_export(*std::move(endpoint));
}

Result<void*> Buffer::begin_export_to_queue(Queue* queue) {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  if (queue != nullptr) {
    auto events = pending_on(*endpoint, true, queue);
    ISTHMUS_TRY(events);
    std::erase_if(*events, [](const Ref<Event>& event) { return !event->pending(); });
    ISTHMUS_TRY(queue->order_after(*events));
  }
  ISTHMUS_TRY(check_contents_of(*endpoint));  // last: a copy may have failed since the call began
  return retain_export(*std::move(endpoint));
}

void Buffer::observe_export(const void* pointer) const noexcept {
  observe(MemoryEventKind::export_memory, [&] {
    return MemoryEvent{.kind = MemoryEventKind::export_memory,
                       .address = pointer,
                       .nbytes = nbytes_,
                       .queue = queue_->serial()};
  });
}

void* Buffer::retain_export(Endpoint&& endpoint) noexcept {
  exports_.fetch_add(1, std::memory_order_relaxed);
  observe_export(endpoint.pointer);
  static_cast<void>(endpoint.memory.detach());
  return endpoint.pointer;
}

void Buffer::end_export() noexcept {
  exports_.fetch_sub(1, std::memory_order_relaxed);
  if (whole_->memory_ != nullptr) {
    whole_->memory_->release();
  }
}

Result<isthmus_owner_t> Buffer::disown() {
  const LockGuard guard{lock_};
  if (is_freed()) {
    return closed();
  }
  if (is_slice() || memory_ == nullptr) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} owns no memory that can be transferred",
                is_slice() ? "a slice" : "a buffer of 0 bytes");
  }
  if (!memory_->unique() || !unique()) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "the memory of this buffer is in use by {} exports, by slices or by other handles: "
                "release them first",
                exports());
  }
  freed_.store(true, std::memory_order_release);
  return isthmus_owner_t{memory_,
                         [](void* memory) { static_cast<Allocation*>(memory)->release(); }};
}

Result<void> Buffer::record(const Ref<Event>& completion) {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  if (endpoint->memory) {
    auto& uses = endpoint->memory->uses();
    uses.add({0, endpoint->range(nbytes_), true}, completion, uses.begin());
  }
  return {};
}

Result<void> Buffer::record(Queue& queue) {
  auto endpoint = at(0, nbytes_, false);
  ISTHMUS_TRY(endpoint);
  return endpoint->memory ? endpoint->memory->record_use(queue, endpoint->range(nbytes_))
                          : Result<void>{};
}

}  // namespace isthmus
