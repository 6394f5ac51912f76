#include "memory/allocation.hpp"

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/grain.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"
#include "memory/provider.hpp"
#include "memory/reaper.hpp"
#include "memory/registry.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

result<void*> take(queue& on, const allocation_request& request, memory_resource* from) {
  if (from != nullptr) {
    auto* const of = from->as_pool();
    auto* const warm =
        of != nullptr ? of->allocate_warm(request.nbytes, request.alignment, &on) : nullptr;
    return warm != nullptr ? warm : from->allocate(request.nbytes, request.alignment, on);
  }
  if (auto refused = on.refuse_allocation()) {
    return refused;
  }
  return provider_allocate(on.home(), on.where(), request);
}

void give_back(queue& on, const allocation::facts& what, memory_resource* from) noexcept {
  auto* behind = on.lent() ? nullptr : &on;
  if (from != nullptr && from->as_pool() != nullptr) {
    from->as_pool()->take_in(what.base, behind);
  } else if (from != nullptr) {
    static_cast<void>(from->deallocate(what.base, what.nbytes, behind));
  } else {
    provider_deallocate(on.home(), on.where(), what.kind, what.base, what.nbytes);
  }
}

// A device that was lost has nothing unfinished.
result<void> unfinished_on(queue& on, std::vector<ref<event>>& out) {
  auto asked = on.unfinished(out);
  const bool is_lost = !asked && asked.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
  return is_lost ? result<void>{} : std::move(asked);
}

void count_late(pool* of, int change) noexcept {
  if (of != nullptr) {
    of->count_late(change);
  }
}

}  // namespace

allocation::~allocation() {
  if (within_) {
    within_->view_ended(*on_);
  }
}

context& allocation::home() const noexcept { return on_->home(); }
device& allocation::where() const noexcept { return on_->where(); }

bool allocation::contains(const void* pointer) const noexcept {
  return address(pointer) - address(what_.base) < what_.nbytes;
}

result<ref<allocation>> allocation::create(queue& on, const allocation_request& request,
                                           memory_resource* from) {
  auto pointer = take(on, request, from);
  ISTHMUS_TRY(pointer);
  return take_over(on, {*pointer, request.nbytes, request.alignment, request.kind}, from);
}

result<ref<allocation>> allocation::take_over(queue& on, const facts& what, memory_resource* from) {
  auto made = record_new(on, what, from);
  if (!made) {
    give_back(on, what, from);
  }
  return made;
}

result<ref<allocation>> allocation::record_new(queue& on, const facts& what,
                                               memory_resource* from) noexcept try {
  auto made = make_ref<allocation>(on, what);
  if (what.alignment == 0) {
    made->what_.alignment = on.where().properties().base_alignment;
  }
  auto* below = from != nullptr ? from->as_pool() : nullptr;
  if (from != nullptr && below == nullptr) {
    auto& giver = from->giver_of(what.base, what.nbytes);
    made->what_.kind = giver.kind();
    below = giver.as_pool();
    if (giver.cuts()) {
      ISTHMUS_TRY(made->lie_within_known());
    }
  }
  // What the memory was freed behind is before it on this queue only.
  if (below != nullptr && below->freed_by_pointer()) {
    ISTHMUS_TRY(made->follow(on));
  }
  made->is_block_ = below != nullptr;
  made->enter(from);
  return made;
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

result<void> allocation::follow(queue& on) {
  if (on.quiet()) {
    return {};
  }
  const auto began_at = uses().begin();
  auto ended = on.pending();
  if (ended) {
    const auto begin = address(what_.base) - address(start_of_uses());
    uses().insert({on.serial(), {begin, begin + what_.nbytes}, true}, *ended, began_at);
  } else if (ended.failure().code() != ISTHMUS_ERROR_DEVICE_LOST) {  // where nothing runs
    return ended.take_error();
  }
  return {};
}

void allocation::enter(memory_resource* from) {
  from_ = ref<memory_resource>{from};  // which the registry tells of
  process_registry().add(*this);
  origin_ = origin::ours;
  if (!within_) {
    process_page_map.note_record(what_.base);
  }
}

result<void> allocation::lie_within_known() {
  auto outer = allocation_at(what_.base);
  ISTHMUS_TRY(outer);
  lie_within(*std::move(outer));
  return {};
}

void allocation::lie_within(ref<allocation> outer) {
  if (outer) {
    outer->view_began(*on_);
    within_ = std::move(outer);
  }
}

ref<allocation> allocation::record(queue& on, const facts& what, memory_resource& from) {
  auto made = make_ref<allocation>(on, what);
  made->is_block_ = true;
  made->enter(&from);
  made->hold_by_pointer();
  return made;
}

void allocation::hold_by_pointer() noexcept {
  retain();
  held_by_pointer_.store(true, std::memory_order_release);
}

// Where the queue cannot be asked now, it is once nobody refers to the memory any more, and then as
// often as it takes.
bool allocation::drop_pointer(queue* behind) noexcept {
  if (!held_by_pointer_.exchange(false, std::memory_order_acq_rel)) {
    return false;
  }
  if (behind != nullptr && !follows(*behind)) {
    freed_behind_ = ref<queue>{behind};
  }
  release();
  return true;
}

// Waits for nothing, and asks the driver only where the queue is lent: for one event that stands
// for all of them it would have to watch them.
bool allocation::follows(queue& on) noexcept try {
  const auto began_at = uses().begin();
  std::vector<ref<event>> running;
  const auto asked = unfinished_on(on, running);
  const auto begin = address(what_.base) - address(start_of_uses());
  for (const auto& each : running) {
    uses().insert({on.serial(), {begin, begin + what_.nbytes}, true}, each, began_at);
  }
  return static_cast<bool>(asked);
} catch (const std::bad_alloc&) {
  return false;
}

result<ref<allocation>> allocation::adopt(queue& on, const facts& what, owner keep,
                                          ref<allocation> within) {
  auto made = make_ref<allocation>(on, what);
  made->lie_within(std::move(within));
  if (!made->within_) {  // else a pointer is looked up as that one's
    process_registry().add(*made);
  }
  made->origin_ = origin::foreign;
  made->keep_ = std::move(keep);
  return made;
}

void allocation::view_began(queue& on) {
  if (within_) {
    within_->view_began(on);
  } else if (&on != on_.get()) {
    views_.begin(on);
  }
}

// What runs on a lent queue now is in the use list from here on. False if that cannot be: the view
// then counts for ever.
bool allocation::outlasts_view(queue& on) {
  if (!on.lent()) {
    return true;
  }
  const auto began_at = uses_.begin();
  std::vector<ref<event>> running;
  if (in_continuation() || !on.unfinished(running)) {
    return false;
  }
  for (const auto& each : running) {
    uses_.add({on.serial(), {0, what_.nbytes}, true}, each, began_at);
  }
  return true;
}

void allocation::view_ended(queue& on) noexcept {
  if (within_) {
    within_->view_ended(on);
    return;
  }
  if (&on == on_.get()) {
    return;
  }
  try {
    if (outlasts_view(on)) {
      views_.end(on);
    }
  } catch (const std::bad_alloc&) {
    // As where the driver cannot tell.
  }
}

std::vector<ref<queue>> allocation::lent_queues() {
  if (within_) {
    return within_->lent_queues();  // ours is among them, as that of a view
  }
  std::vector<ref<queue>> found;
  if (on_->lent()) {
    found.push_back(on_);
  }
  views_.collect_lent(found);
  return found;
}

bool allocation::lent() noexcept {
  return within_ ? within_->lent() : on_->lent() || views_.any_lent();
}

result<void> allocation::unfinished_on_lent(const queue* but, std::vector<ref<event>>& out) {
  if (!lent()) {
    return {};
  }
  for (const auto& each : lent_queues()) {
    if (each.get() != but) {
      ISTHMUS_TRY(unfinished_on(*each, out));
    }
  }
  return {};
}

result<std::vector<ref<event>>> allocation::still_running() {
  const auto begin = address(what_.base) - address(start_of_uses());
  auto running = uses().pending({begin, begin + what_.nbytes});
  ISTHMUS_TRY(unfinished_on_lent(nullptr, running));
  if (freed_behind_) {
    ISTHMUS_TRY(unfinished_on(*freed_behind_, running));
  }
  return running;
}

void allocation::retire() {
  auto running = still_running();
  if (!running) {
    let_go_again(*this);  // somebody may still use it and nobody can tell now
  } else if (running->empty()) {
    reclaim();
  } else {
    unused_ = true;  // before it is handed over
    auto* const from = from_ ? from_->as_pool() : nullptr;
    count_late(from, 1);
    undo told{[&] {
      count_late(from, -1);
      unused_ = false;
    }};
    reclaim_after(*this, *running);
    told.dismiss();
  }
}

void allocation::release_last() noexcept {
  if (references() != 1 || os::drivers_are_gone() || in_continuation() || !end_unused_block()) {
    release();
  }
}

// Who finds the record does so under the lock under which it is seen to be nobody's but the
// caller's; from then on the block is no longer live.
bool allocation::end_unused_block() noexcept {
  auto* const from = from_ ? from_->as_pool() : nullptr;
  auto* const in = from != nullptr ? process_page_map.find(what_.base) : nullptr;
  const bool ended =
      in != nullptr && in->is_slab() && never_used() && process_registry().remove_if(*this, [&] {
        const bool last = references() == 1 && never_used();
        if (last) {
          from->end_block(*in, what_.base);
        }
        return last;
      });
  if (ended) {
    from->take_in_ended(*in, what_.base, on_->lent() ? nullptr : on_.get());
    delete this;
  }
  return ended;
}

void allocation::last_reference_gone() noexcept {
  // What a child frees stays the parent's, and what is freed at the very end goes with the process.
  if (os::drivers_are_gone()) {
    return;
  }
  if (origin_ == origin::unregistered) {
    delete this;
    return;
  }
  if (entry_ != nullptr) {
    registry::mark_dying(*this);
  }
  if (in_continuation()) {
    retire_later(*this);  // which may have to ask a driver
  } else {
    let_go();
  }
}

void allocation::let_go() noexcept {
  if (unused_) {
    const auto from = from_;  // outlives this
    reclaim();
    count_late(from ? from->as_pool() : nullptr, -1);
    return;
  }
  if (never_used()) {
    reclaim();
    return;
  }
  try {
    retire();
  } catch (const std::bad_alloc&) {
    let_go_again(*this);  // no memory for a list of what to wait for
  }
}

// Known till here, so that who frees it twice meanwhile can be told.
void allocation::reclaim() noexcept {
  if (origin_ == origin::ours || !within_) {
    process_registry().remove(*this);
  }
  if (origin_ == origin::ours) {
    give_back(*on_, what_, from_.get());
  }
  delete this;
}

}  // namespace isthmus
