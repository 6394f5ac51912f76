// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_buffer.hpp"

#include "core/sizes.hpp"
#include "memory/live_counts.hpp"
#include "os/process.hpp"
#include "unified/unified_list.hpp"

namespace isthmus {

UnifiedBuffer::UnifiedBuffer(Queue& queue, const UnifiedRequest& wanted, MemoryResource* resource)
    : queue_{&queue},
      wanted_{wanted},
      resource_{resource},
      one_memory_{!wanted.separate && queue.device().reaches_host_memory()} {}

UnifiedBuffer::~UnifiedBuffer() {
  process_unified_buffers().remove(*this);
  end_pins();
}

void UnifiedBuffer::end_pins() noexcept {
  for (auto* each : {&pin_, &library_pin_}) {
    if (*each) {
      (*each)->end(false);
      *each = {};
    }
  }
}

Result<Ref<UnifiedBuffer>> UnifiedBuffer::create(Queue& queue, const UnifiedRequest& wanted,
                                                 MemoryResource* resource) {
  if (queue.closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                queue.device().properties().filter);
  }
  if (wanted.nbytes == 0 || wanted.nbytes > PTRDIFF_MAX) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a unified buffer cannot have {} bytes: use 1 to {}", wanted.nbytes, PTRDIFF_MAX);
  }
  if (resource != nullptr && (!resource->context().is_same_as(queue.context()) ||
                              resource->kind() != ISTHMUS_KIND_DEVICE)) {
    return fail(
        ISTHMUS_ERROR_WRONG_CONTEXT,
        "the memory resource allocates {} memory of {}: the device copy needs device memory of {}",
        kind_name(resource->kind()), resource->device().properties().filter,
        queue.device().properties().filter);
  }
  auto made = make_ref<UnifiedBuffer>(queue, wanted, resource);
  process_unified_buffers().add(*made);
  return made;
}

UnifiedBuffer::Lock UnifiedBuffer::enter() {
  Lock held{lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    held.lock();
  }
  return held;
}

Error UnifiedBuffer::refuse(const ByteRange& range) const {
  if (dead_.load(std::memory_order_acquire)) {
    return fail(ISTHMUS_ERROR_CLOSED, "this unified buffer of {} was freed",
                describe_bytes(wanted_.nbytes));
  }
  if (range.begin > range.end || range.end > wanted_.nbytes) {
    return fail(ISTHMUS_ERROR_OUT_OF_RANGE, "bytes {} to {} do not lie in a unified buffer of {}",
                range.begin, range.end, describe_bytes(wanted_.nbytes));
  }
  return {};
}

// Transfers in flight keep the memory that they use alive.
void UnifiedBuffer::free() noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const auto held = enter();
  // Sequentially consistent, as the load of `views_` below and the pair in `end_host_view`: of a
  // free and the end of the last view at least one sees the other, and frees the host copy.
  dead_.store(true, std::memory_order_seq_cst);
  device_ = {};
  std::erase_if(writing_, [](const ExactWrite& each) { return each.has_ended; });
  let_host_go();
}

// Keeps the host copy while a caller has, or may have, a pointer to it. The last reference then
// frees it.
void UnifiedBuffer::let_host_go() noexcept {
  if (views_.load(std::memory_order_seq_cst) != 0 || !writing_.empty() || is_read_) {
    return;
  }
  end_pins();
  host_.reset();
}

bool UnifiedBuffer::is_on(const isthmus::Device& device) const noexcept {
  return &queue_->device() == &device;
}

namespace {

// Adds the memory to the process's count of live host memory.
std::shared_ptr<tracking::TrackedMemory> counted(std::unique_ptr<tracking::TrackedMemory> made) {
  process_live_counts().add(made->view(), ISTHMUS_KIND_HOST, made->nbytes());
  return {made.release(), [](tracking::TrackedMemory* gone) {
            process_live_counts().remove(gone->view(), ISTHMUS_KIND_HOST, gone->nbytes());
            delete gone;
          }};
}

}  // namespace

Result<void> UnifiedBuffer::need_host() {
  if (host_) {
    return {};
  }
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot create a host copy that its parent did not have: access it "
                "before the fork, or start the child with spawn");
  }
  auto made = tracking::TrackedMemory::create({wanted_.nbytes, wanted_.grain, wanted_.by});
  ISTHMUS_TRY(made);
  host_ = counted(*std::move(made));
  if (auto pinned = need_pin(); !pinned) {
    host_.reset();
    return pinned;
  }
  return {};
}

// Pins the memory that most copies read.
Result<void> UnifiedBuffer::need_pin() {
  if (!wanted_.pinned || one_memory_) {
    return {};
  }
  auto* const start = host_->by() == tracking::Means::hashes ? host_->view() : host_->library();
  auto made = Pin::make(queue_->device(), {start, host_->nbytes(), false}, owner_of(host_));
  ISTHMUS_TRY(made);
  pin_ = *std::move(made);
  return {};
}

// If this fails, copies of that memory only take longer.
void UnifiedBuffer::need_library_pin() {
  if (!pin_ || library_pin_ || host_->by() != tracking::Means::hashes) {
    return;
  }
  auto made =
      Pin::make(queue_->device(), {host_->library(), host_->nbytes(), false}, owner_of(host_));
  if (made) {
    library_pin_ = *std::move(made);
  }
}

Result<Ref<Buffer>> UnifiedBuffer::device_of_host() {
  ISTHMUS_TRY(need_host());
  auto* start = host_->is_one_memory() ? host_->library() : host_->view();
  constexpr std::size_t k_alignment = 64;  // guaranteed for every mechanism
  auto memory = Allocation::adopt(*queue_, {start, wanted_.nbytes, k_alignment, ISTHMUS_KIND_HOST},
                                  owner_of(host_), {});
  ISTHMUS_TRY(memory);
  return make_ref<Buffer>(*queue_, *std::move(memory),
                          BufferRequest{wanted_.nbytes, ISTHMUS_KIND_HOST, k_alignment}, false);
}

Result<void> UnifiedBuffer::need_device() {
  if (device_) {
    return {};
  }
  auto made = one_memory_ ? device_of_host()
                          : Buffer::create(*queue_, {wanted_.nbytes, ISTHMUS_KIND_DEVICE, 0},
                                           resource_.get());
  ISTHMUS_TRY(made);
  // The request may have run callbacks of the program that used or freed this buffer: the lock is
  // recursive.
  if (auto bad = refuse(all())) {
    return bad;
  }
  if (!device_) {
    device_ = *std::move(made);
  }
  return {};
}

Result<UnifiedFacts> UnifiedBuffer::facts() {
  const auto held = enter();
  auto now = state();
  ISTHMUS_TRY(now);
  UnifiedFacts known;
  known.state = *now;
  known.is_one_memory = one_memory_;
  known.is_pinned = pin_ && pin_->is_registered();
  known.host_views = views_.load(std::memory_order_relaxed);
  known.counts = counts_;
  if (host_) {
    known.by = host_->by();
    known.granule = host_->granule();
  }
  return known;
}

Result<BufferState> UnifiedBuffer::state() {
  const auto held = enter();
  if (auto bad = refuse(all())) {
    return bad;
  }
  ISTHMUS_TRY(land_all());
  ISTHMUS_TRY(look());
  return state_now();
}

Result<UnifiedBuffer::Dirty> UnifiedBuffer::dirty_ranges() {
  const auto held = enter();
  ISTHMUS_TRY(state());
  return Dirty{owed_device_, owed_host_};
}

}  // namespace isthmus
