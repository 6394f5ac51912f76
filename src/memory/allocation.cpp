// SPDX-License-Identifier: Apache-2.0
#include "memory/allocation.hpp"

#include <atomic>

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"
#include "memory/provider.hpp"
#include "memory/reaper.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

constinit std::atomic<bool> any_lies_within{false};

result<void*> take(queue& on, const allocation_request& request, memory_resource* from) {
  if (from != nullptr) {
    auto* const of = from->as_pool();
    auto* const warm =
        of != nullptr ? of->allocate_warm(request.nbytes, request.alignment, &on) : nullptr;
    if (of == nullptr) {
      let_much_go_on_demand();
    }
    return warm != nullptr ? warm : from->allocate(request.nbytes, request.alignment, on);
  }
  if (auto refused = on.refuse_allocation()) {
    return refused;
  }
  let_much_go_on_demand();
  return provider_allocate_or_trim(on.home(), on.where(), request);
}

}  // namespace

allocation::~allocation() {
  if (within_) {
    within_->view_ended(*on_);
  }
}

context& allocation::home() const noexcept { return on_->home(); }
device& allocation::where() const noexcept {
  if (within_) {
    return within_->where();
  }
  return elsewhere_ != nullptr ? *elsewhere_ : on_->where();
}

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
    const bool orders_lent = from != nullptr && from->as_pool() != nullptr;
    give_back(what, on, from, orders_lent || !on.lent() ? &on : nullptr);
  }
  return made;
}

result<ref<allocation>> allocation::record_new(queue& on, const facts& what,
                                               memory_resource* from) noexcept try {
  auto made = make_ref<allocation>(on, what);
  if (what.alignment == 0) {
    made->what_.alignment = on.where().properties().base_alignment;
  }
  auto* giver = from;
  auto* below = from != nullptr ? from->as_pool() : nullptr;
  if (from != nullptr && below == nullptr) {
    giver = &from->giver_of(what.base, what.nbytes);
    made->what_.kind = giver->kind();
    below = giver->as_pool();
    if (giver->cuts()) {
      ISTHMUS_TRY(made->lie_within_known());
    }
  }
  if (giver != nullptr && &giver->where() != &on.where()) {
    made->elsewhere_ = &giver->where();
  }
  // The pool may hand out memory before the work it was freed after has completed, but only on the
  // queue of that work.
  if (below != nullptr && below->frees_behind_work()) {
    ISTHMUS_TRY(made->inherit(on));
  }
  made->is_block_ = below != nullptr;
  made->enter(from);
  return made;
} catch (const std::bad_alloc&) {
  return error::no_memory();
}

// The events stay separate: a single event for all of them would have to watch each of them.
result<void> allocation::follow(queue& on) {
  if (on.quiet()) {
    return {};
  }
  std::vector<ref<event>> running;
  ISTHMUS_TRY(unfinished_on(on, running));
  const auto begin = address(what_.base) - address(start_of_uses());
  uses().add_all({on.serial(), {begin, begin + what_.nbytes}, true, true}, running);
  return {};
}

result<void> allocation::inherit(queue& on) {
  ref<event> last;
  if (within_ || !on.ends_in_one(last)) {
    return follow(on);
  }
  if (last) {
    uses_.inherit(on.serial(), what_.nbytes, std::move(last));
  }
  return {};
}

result<void> allocation::note_use(queue& on, const byte_range& where) {
  const auto began_at = uses().begin();
  undo given_up{[&] { uses().give_up(); }};
  auto reached = on.fence({});
  ISTHMUS_TRY(reached);
  given_up.dismiss();
  uses().add({on.serial(), where, true}, *reached, began_at);
  return {};
}

void allocation::enter(memory_resource* from) {
  from_ = ref<memory_resource>{from};  // first: look-ups in the registry read it
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
    any_lies_within.store(true, std::memory_order_relaxed);
    note_part();
  }
}

bool allocation::any_within() noexcept { return any_lies_within.load(std::memory_order_relaxed); }

// Marks the outermost record, the one that look-ups find.
void allocation::note_part() noexcept {
  if (within_) {
    within_->note_part();
  } else if (!has_parts_.exchange(true, std::memory_order_relaxed)) {
    registry::mark_divided(*this);
  }
}

void allocation::become_chunk() noexcept {
  is_chunk_.store(true, std::memory_order_relaxed);
  note_part();
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

// If the queue cannot be queried now, it is queried after the last reference was dropped, and as
// often as necessary.
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

bool allocation::follows(queue& on) noexcept try {
  return static_cast<bool>(follow(on));
} catch (const std::bad_alloc&) {
  return false;
}

result<ref<allocation>> allocation::adopt(queue& on, const facts& what, owner keep,
                                          ref<allocation> within) {
  let_much_go_on_demand();
  auto made = make_ref<allocation>(on, what);
  made->lie_within(std::move(within));
  if (!made->within_) {  // else look-ups of its addresses find the outer allocation
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

// Adds the work that runs on an exported queue now to the uses. Returns false if that is not
// possible: the queue then counts as a view's for the rest of the allocation's lifetime.
bool allocation::outlasts_view(queue& on) {
  if (!on.lent()) {
    return true;
  }
  std::vector<ref<event>> running;
  if (in_continuation() || on.asking_may_block() || on.is_asked_on_demand() ||
      !on.unfinished(running)) {
    return false;
  }
  uses_.add_all({on.serial(), {0, what_.nbytes}, true}, running);
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
    // As if the driver could not be queried: the view still counts.
  }
}

std::vector<ref<queue>> allocation::lent_queues() {
  if (within_) {
    return within_->lent_queues();  // includes this one's queue, as that of a view
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

}  // namespace isthmus
