// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_buffer.hpp"

#include "core/sizes.hpp"
#include "memory/base/live_counts.hpp"
#include "os/process.hpp"
#include "tracking/creation.hpp"

namespace isthmus {

UnifiedBuffer::UnifiedBuffer(Queue& queue, const UnifiedRequest& request, MemoryResource* resource)
    : queue_{&queue},
      request_{request},
      resource_{resource},
      one_memory_{!request.separate && queue.device().reaches_host_memory()} {}

UnifiedBuffer::~UnifiedBuffer() {
  process_unified_buffers().remove(*this);
  release_pins();
}

void UnifiedBuffer::release_pins() noexcept {
  for (auto* pin : {&pin_, &library_pin_}) {
    if (*pin) {
      (*pin)->end(false);
      *pin = {};
    }
  }
}

Result<Ref<UnifiedBuffer>> UnifiedBuffer::create(Queue& queue, const UnifiedRequest& request,
                                                 MemoryResource* resource) {
  if (queue.closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                queue.device().properties().filter);
  }
  if (request.nbytes == 0 || request.nbytes > PTRDIFF_MAX) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a unified buffer cannot have {} bytes: use 1 to {}", request.nbytes, PTRDIFF_MAX);
  }
  if (resource != nullptr && (!resource->context().is_same_as(queue.context()) ||
                              resource->kind() != ISTHMUS_KIND_DEVICE)) {
    return fail(
        ISTHMUS_ERROR_WRONG_CONTEXT,
        "the memory resource allocates {} memory of {}: the device copy needs device memory of {}",
        kind_name(resource->kind()), resource->device().properties().filter,
        queue.device().properties().filter);
  }
  auto buffer = make_ref<UnifiedBuffer>(queue, request, resource);
  process_unified_buffers().add(*buffer);
  return buffer;
}

UnifiedBuffer::Lock UnifiedBuffer::enter() {
  Lock lock{lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    lock.lock();
  }
  return lock;
}

Error UnifiedBuffer::validate(const ByteRange& range) const {
  if (freed_.load(std::memory_order_acquire)) {
    return fail(ISTHMUS_ERROR_CLOSED, "this unified buffer of {} was freed",
                describe_bytes(request_.nbytes));
  }
  if (range.begin > range.end || range.end > request_.nbytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "bytes {} to {} do not lie in a unified buffer of {}",
                range.begin, range.end, describe_bytes(request_.nbytes));
  }
  return {};
}

// Transfers in flight own the memory that they use, so it remains valid until they complete.
void UnifiedBuffer::free() noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const auto guard = enter();
  // Sequentially consistent, like the load of `views_` in `release_host` and both accesses in
  // `end_host_view`. If `free` and the end of the last view run concurrently, at least one of them
  // sees the other and frees the host copy.
  freed_.store(true, std::memory_order_seq_cst);
  device_ = {};
  std::erase_if(host_writes_, [](const ExactWrite& write) { return write.has_ended; });
  release_host();
}

// Releases the host copy, unless a caller has, or may have, a pointer to it. In that case the last
// reference to the buffer releases it.
void UnifiedBuffer::release_host() noexcept {
  if (views_.load(std::memory_order_seq_cst) != 0 || !host_writes_.empty() || has_read_pointers_) {
    return;
  }
  release_pins();
  host_.reset();
}

bool UnifiedBuffer::uses_device(const isthmus::Device& device) const noexcept {
  return &queue_->device() == &device;
}

namespace {

// Adds the memory to the process's count of live host memory.
std::shared_ptr<tracking::TrackedMemory> count_as_live(
    std::unique_ptr<tracking::TrackedMemory> memory) {
  process_live_counts().add(memory->view(), ISTHMUS_KIND_HOST, memory->nbytes());
  return {memory.release(), [](tracking::TrackedMemory* freed) {
            process_live_counts().remove(freed->view(), ISTHMUS_KIND_HOST, freed->nbytes());
            delete freed;
          }};
}

}  // namespace

Result<void> UnifiedBuffer::ensure_host() {
  if (host_) {
    return {};
  }
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot create a host copy that its parent did not have: access it "
                "before the fork, or start the child with spawn");
  }
  auto tracked =
      tracking::create_memory({request_.nbytes, request_.granularity, request_.mechanism});
  ISTHMUS_TRY(tracked);
  host_ = count_as_live(*std::move(tracked));
  if (auto pinned = ensure_pin(); !pinned) {
    host_.reset();
    return pinned;
  }
  return {};
}

// Pins the mapping that most copies use.
Result<void> UnifiedBuffer::ensure_pin() {
  if (!request_.pinned || one_memory_) {
    return {};
  }
  auto* const start =
      host_->mechanism() == tracking::TrackingMechanism::hashes ? host_->view() : host_->library();
  auto pin = Pin::make(queue_->device(), {start, host_->nbytes(), false}, owner_of(host_));
  ISTHMUS_TRY(pin);
  pin_ = *std::move(pin);
  return {};
}

// Pins the other mapping of hashed memory. A failure is ignored: copies of that mapping are then
// only slower.
void UnifiedBuffer::ensure_library_pin() {
  if (!pin_ || library_pin_ || host_->mechanism() != tracking::TrackingMechanism::hashes) {
    return;
  }
  auto pin =
      Pin::make(queue_->device(), {host_->library(), host_->nbytes(), false}, owner_of(host_));
  if (pin) {
    library_pin_ = *std::move(pin);
  }
}

Result<Ref<Buffer>> UnifiedBuffer::device_buffer_over_host() {
  ISTHMUS_TRY(ensure_host());
  auto* start = host_->is_one_memory() ? host_->library() : host_->view();
  constexpr std::size_t k_alignment = 64;  // guaranteed by every tracking mechanism
  auto memory = Allocation::adopt(*queue_, {start, request_.nbytes, k_alignment, ISTHMUS_KIND_HOST},
                                  owner_of(host_), {});
  ISTHMUS_TRY(memory);
  return make_ref<Buffer>(*queue_, *std::move(memory),
                          BufferRequest{request_.nbytes, ISTHMUS_KIND_HOST, k_alignment}, false);
}

Result<void> UnifiedBuffer::ensure_device() {
  if (device_) {
    return {};
  }
  auto buffer = one_memory_ ? device_buffer_over_host()
                            : Buffer::create(*queue_, {request_.nbytes, ISTHMUS_KIND_DEVICE, 0},
                                             resource_.get());
  ISTHMUS_TRY(buffer);
  // The allocation may have run callbacks of the program that used or freed this buffer, since the
  // lock is recursive.
  if (auto error = validate(all())) {
    return error;
  }
  if (!device_) {
    device_ = *std::move(buffer);
  }
  return {};
}

Result<UnifiedFacts> UnifiedBuffer::facts() {
  const auto guard = enter();
  auto state_now = state();
  ISTHMUS_TRY(state_now);
  UnifiedFacts result;
  result.state = *state_now;
  result.is_one_memory = one_memory_;
  result.is_pinned = pin_ && pin_->is_registered();
  result.host_views = views_.load(std::memory_order_relaxed);
  result.counts = counts_;
  if (host_) {
    result.mechanism = host_->mechanism();
    result.granule = host_->granule();
  }
  return result;
}

Result<BufferState> UnifiedBuffer::state() {
  const auto guard = enter();
  if (auto error = validate(all())) {
    return error;
  }
  ISTHMUS_TRY(complete_all());
  ISTHMUS_TRY(scan_host());
  return current_state();
}

Result<UnifiedBuffer::Dirty> UnifiedBuffer::dirty_ranges() {
  const auto guard = enter();
  ISTHMUS_TRY(state());
  return Dirty{host_dirty_, device_dirty_};
}

// Does not release the device copy if the buffer is in use. This thread may itself be in a call on
// the buffer whose request for memory failed.
std::uint64_t UnifiedBuffer::release_device_copy() {
  const Lock guard{lock_, std::try_to_lock};
  if (!guard || !device_ || !device_is_valid_ || one_memory_ || !device_writes_.empty() ||
      (!host_is_valid_ && !device_holds_nothing_)) {
    return 0;
  }
  if (!device_->unique() || device_->exports() != 0 || !complete_all() || !inflight_.empty() ||
      !scan_host() || !device_dirty_.empty()) {
    return 0;
  }
  if (!host_dirty_.empty() && !drop_host_writes(RangeSet{host_dirty_})) {
    return 0;
  }
  host_dirty_.clear();
  host_dirty_again_.clear();
  device_held_.clear();
  device_is_valid_ = false;
  device_ = {};
  return request_.nbytes;
}

}  // namespace isthmus
