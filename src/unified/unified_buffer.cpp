// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_buffer.hpp"

#include "core/sizes.hpp"
#include "memory/live_counts.hpp"
#include "os/process.hpp"
#include "unified/unified_list.hpp"

namespace isthmus {

unified_buffer::unified_buffer(queue& on, const unified_request& wanted, memory_resource* from)
    : on_{&on},
      wanted_{wanted},
      from_{from},
      one_memory_{!wanted.separate && on.where().reaches_host_memory()} {}

unified_buffer::~unified_buffer() {
  process_unified_buffers().remove(*this);
  end_pins();
}

void unified_buffer::end_pins() noexcept {
  for (auto* each : {&pin_, &library_pin_}) {
    if (*each) {
      (*each)->end(false);
      *each = {};
    }
  }
}

result<ref<unified_buffer>> unified_buffer::create(queue& on, const unified_request& wanted,
                                                   memory_resource* from) {
  if (on.closed()) {
    return fail(ISTHMUS_ERROR_CLOSED, "this queue of {} was closed",
                on.where().properties().filter);
  }
  if (wanted.nbytes == 0 || wanted.nbytes > PTRDIFF_MAX) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "a unified buffer cannot have {} bytes: use 1 to {}", wanted.nbytes, PTRDIFF_MAX);
  }
  if (from != nullptr &&
      (!from->home().is_same_as(on.home()) || from->kind() != ISTHMUS_KIND_DEVICE)) {
    return fail(
        ISTHMUS_ERROR_WRONG_CONTEXT,
        "the memory resource allocates {} memory of {}: the device copy needs device memory of {}",
        kind_name(from->kind()), from->where().properties().filter, on.where().properties().filter);
  }
  auto made = make_ref<unified_buffer>(on, wanted, from);
  process_unified_buffers().add(*made);
  return made;
}

unified_buffer::lock unified_buffer::enter() {
  lock held{lock_, std::defer_lock};
  if (!os::is_forked_child()) {
    held.lock();
  }
  return held;
}

error unified_buffer::refuse(const byte_range& range) const {
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
void unified_buffer::free() noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const auto held = enter();
  // Sequentially consistent, as the load of `views_` below and the pair in `end_host_view`: of a
  // free and the end of the last view at least one sees the other, and frees the host copy.
  dead_.store(true, std::memory_order_seq_cst);
  device_ = {};
  std::erase_if(writing_, [](const exact_write& each) { return each.has_ended; });
  let_host_go();
}

// Keeps the host copy while a caller has, or may have, a pointer to it. The last reference then
// frees it.
void unified_buffer::let_host_go() noexcept {
  if (views_.load(std::memory_order_seq_cst) != 0 || !writing_.empty() || is_read_) {
    return;
  }
  end_pins();
  host_.reset();
}

bool unified_buffer::is_on(const isthmus::device& where) const noexcept {
  return &on_->where() == &where;
}

namespace {

// Adds the memory to the process's count of live host memory.
std::shared_ptr<tracking::tracked_memory> counted(std::unique_ptr<tracking::tracked_memory> made) {
  process_live_counts().add(made->view(), ISTHMUS_KIND_HOST, made->nbytes());
  return {made.release(), [](tracking::tracked_memory* gone) {
            process_live_counts().remove(gone->view(), ISTHMUS_KIND_HOST, gone->nbytes());
            delete gone;
          }};
}

}  // namespace

result<void> unified_buffer::need_host() {
  if (host_) {
    return {};
  }
  if (os::is_forked_child()) {
    return fail(ISTHMUS_ERROR_FORKED,
                "a forked child cannot create a host copy that its parent did not have: access it "
                "before the fork, or start the child with spawn");
  }
  auto made = tracking::tracked_memory::create({wanted_.nbytes, wanted_.grain, wanted_.by});
  ISTHMUS_TRY(made);
  host_ = counted(*std::move(made));
  if (auto pinned = need_pin(); !pinned) {
    host_.reset();
    return pinned;
  }
  return {};
}

// Pins the memory that most copies read.
result<void> unified_buffer::need_pin() {
  if (!wanted_.pinned || one_memory_) {
    return {};
  }
  auto* const start = host_->by() == tracking::means::hashes ? host_->view() : host_->library();
  auto made = pin::make(on_->where(), {start, host_->nbytes(), false}, owner_of(host_));
  ISTHMUS_TRY(made);
  pin_ = *std::move(made);
  return {};
}

// If this fails, copies of that memory only take longer.
void unified_buffer::need_library_pin() {
  if (!pin_ || library_pin_ || host_->by() != tracking::means::hashes) {
    return;
  }
  auto made = pin::make(on_->where(), {host_->library(), host_->nbytes(), false}, owner_of(host_));
  if (made) {
    library_pin_ = *std::move(made);
  }
}

result<ref<buffer>> unified_buffer::device_of_host() {
  ISTHMUS_TRY(need_host());
  auto* start = host_->is_one_memory() ? host_->library() : host_->view();
  constexpr std::size_t k_alignment = 64;  // guaranteed for every mechanism
  auto memory = allocation::adopt(*on_, {start, wanted_.nbytes, k_alignment, ISTHMUS_KIND_HOST},
                                  owner_of(host_), {});
  ISTHMUS_TRY(memory);
  return make_ref<buffer>(*on_, *std::move(memory),
                          buffer_request{wanted_.nbytes, ISTHMUS_KIND_HOST, k_alignment}, false);
}

result<void> unified_buffer::need_device() {
  if (device_) {
    return {};
  }
  auto made = one_memory_
                  ? device_of_host()
                  : buffer::create(*on_, {wanted_.nbytes, ISTHMUS_KIND_DEVICE, 0}, from_.get());
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

result<unified_facts> unified_buffer::facts() {
  const auto held = enter();
  auto now = state();
  ISTHMUS_TRY(now);
  unified_facts known;
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

result<buffer_state> unified_buffer::state() {
  const auto held = enter();
  if (auto bad = refuse(all())) {
    return bad;
  }
  ISTHMUS_TRY(land_all());
  ISTHMUS_TRY(look());
  return state_now();
}

result<unified_buffer::dirty> unified_buffer::dirty_ranges() {
  const auto held = enter();
  ISTHMUS_TRY(state());
  return dirty{owed_device_, owed_host_};
}

}  // namespace isthmus
