// SPDX-License-Identifier: Apache-2.0
#include "memory/allocation.hpp"

#include <atomic>

#include "backend/queue.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "memory/deferred_release.hpp"
#include "memory/page_map.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"
#include "memory/provider.hpp"
#include "memory/registry.hpp"

namespace isthmus {
namespace {

constinit std::atomic<bool> any_lies_within{false};

Result<void*> take(Queue& queue, const AllocationRequest& request, MemoryResource* resource) {
  if (resource != nullptr) {
    auto* const of = resource->as_pool();
    auto* const warm =
        of != nullptr ? of->allocate_warm(request.nbytes, request.alignment, &queue) : nullptr;
    if (of == nullptr) {
      release_much_on_demand();
    }
    return warm != nullptr ? warm : resource->allocate(request.nbytes, request.alignment, queue);
  }
  if (auto refused = queue.refuse_allocation()) {
    return refused;
  }
  release_much_on_demand();
  return provider_allocate_or_trim(queue.context(), queue.device(), request);
}

}  // namespace

Allocation::~Allocation() {
  if (within_) {
    within_->view_ended(*queue_);
  }
}

Context& Allocation::context() const noexcept { return queue_->context(); }
Device& Allocation::device() const noexcept {
  if (within_) {
    return within_->device();
  }
  return elsewhere_ != nullptr ? *elsewhere_ : queue_->device();
}

bool Allocation::contains(const void* pointer) const noexcept {
  return address(pointer) - address(what_.base) < what_.nbytes;
}

Result<Ref<Allocation>> Allocation::create(Queue& queue, const AllocationRequest& request,
                                           MemoryResource* resource) {
  auto pointer = take(queue, request, resource);
  ISTHMUS_TRY(pointer);
  return take_over(queue, {*pointer, request.nbytes, request.alignment, request.kind}, resource);
}

Result<Ref<Allocation>> Allocation::take_over(Queue& queue, const Facts& facts,
                                              MemoryResource* resource) {
  auto made = record_new(queue, facts, resource);
  if (!made) {
    const bool orders_lent = resource != nullptr && resource->as_pool() != nullptr;
    return_memory(facts, queue, resource, orders_lent || !queue.lent() ? &queue : nullptr);
  }
  return made;
}

Result<Ref<Allocation>> Allocation::record_new(Queue& queue, const Facts& facts,
                                               MemoryResource* resource) noexcept try {
  auto made = make_ref<Allocation>(queue, facts);
  if (facts.alignment == 0) {
    made->what_.alignment = queue.device().properties().base_alignment;
  }
  auto* giver = resource;
  auto* below = resource != nullptr ? resource->as_pool() : nullptr;
  if (resource != nullptr && below == nullptr) {
    giver = &resource->giver_of(facts.base, facts.nbytes);
    made->what_.kind = giver->kind();
    below = giver->as_pool();
    if (giver->cuts()) {
      ISTHMUS_TRY(made->lie_within_known());
    }
  }
  if (giver != nullptr && &giver->device() != &queue.device()) {
    made->elsewhere_ = &giver->device();
  }
  // The pool may hand out memory before the work it was freed after has completed, but only on the
  // queue of that work.
  if (below != nullptr && below->frees_after_work()) {
    ISTHMUS_TRY(made->inherit(queue));
  }
  made->is_block_ = below != nullptr;
  made->enter(resource);
  return made;
} catch (const std::bad_alloc&) {
  return Error::no_memory();
}

// The events stay separate: a single event for all of them would have to watch each of them.
Result<void> Allocation::follow(Queue& queue) {
  if (queue.quiet()) {
    return {};
  }
  std::vector<Ref<Event>> running;
  ISTHMUS_TRY(unfinished_on(queue, running));
  const auto begin = address(what_.base) - address(start_of_uses());
  uses().add_all({queue.serial(), {begin, begin + what_.nbytes}, true, true}, running);
  return {};
}

Result<void> Allocation::inherit(Queue& queue) {
  Ref<Event> last;
  if (within_ || !queue.ends_in_one(last)) {
    return follow(queue);
  }
  if (last) {
    uses_.inherit(queue.serial(), what_.nbytes, std::move(last));
  }
  return {};
}

Result<void> Allocation::note_use(Queue& queue, const ByteRange& range) {
  const auto began_at = uses().begin();
  Undo given_up{[&] { uses().give_up(); }};
  auto reached = queue.fence({});
  ISTHMUS_TRY(reached);
  given_up.dismiss();
  uses().add({queue.serial(), range, true}, *reached, began_at);
  return {};
}

void Allocation::enter(MemoryResource* resource) {
  resource_ = Ref<MemoryResource>{resource};  // first: look-ups in the registry read it
  process_registry().add(*this);
  origin_ = Origin::ours;
  if (!within_) {
    process_page_map.note_record(what_.base);
  }
}

Result<void> Allocation::lie_within_known() {
  auto outer = allocation_at(what_.base);
  ISTHMUS_TRY(outer);
  lie_within(*std::move(outer));
  return {};
}

void Allocation::lie_within(Ref<Allocation> outer) {
  if (outer) {
    outer->view_began(*queue_);
    within_ = std::move(outer);
    any_lies_within.store(true, std::memory_order_relaxed);
    note_part();
  }
}

bool Allocation::any_within() noexcept { return any_lies_within.load(std::memory_order_relaxed); }

// Marks the outermost record, the one that look-ups find.
void Allocation::note_part() noexcept {
  if (within_) {
    within_->note_part();
  } else if (!has_parts_.exchange(true, std::memory_order_relaxed)) {
    Registry::mark_divided(*this);
  }
}

void Allocation::become_chunk() noexcept {
  is_chunk_.store(true, std::memory_order_relaxed);
  note_part();
}

Ref<Allocation> Allocation::record(Queue& queue, const Facts& facts, MemoryResource& resource) {
  auto made = make_ref<Allocation>(queue, facts);
  made->is_block_ = true;
  made->enter(&resource);
  made->hold_by_pointer();
  return made;
}

void Allocation::hold_by_pointer() noexcept {
  retain();
  held_by_pointer_.store(true, std::memory_order_release);
}

// If the queue cannot be queried now, it is queried after the last reference was dropped, and as
// often as necessary.
bool Allocation::drop_pointer(Queue* behind) noexcept {
  if (!held_by_pointer_.exchange(false, std::memory_order_acq_rel)) {
    return false;
  }
  if (behind != nullptr && !follows(*behind)) {
    freed_behind_ = Ref<Queue>{behind};
  }
  release();
  return true;
}

bool Allocation::follows(Queue& queue) noexcept try {
  return static_cast<bool>(follow(queue));
} catch (const std::bad_alloc&) {
  return false;
}

Result<Ref<Allocation>> Allocation::adopt(Queue& queue, const Facts& facts, Owner keep,
                                          Ref<Allocation> within) {
  release_much_on_demand();
  auto made = make_ref<Allocation>(queue, facts);
  made->lie_within(std::move(within));
  if (!made->within_) {  // else look-ups of its addresses find the outer allocation
    process_registry().add(*made);
  }
  made->origin_ = Origin::foreign;
  made->keep_ = std::move(keep);
  return made;
}

void Allocation::view_began(Queue& queue) {
  if (within_) {
    within_->view_began(queue);
  } else if (&queue != queue_.get()) {
    views_.begin(queue);
  }
}

// Adds the work that runs on an exported queue now to the uses. Returns false if that is not
// possible: the queue then counts as a view's for the rest of the allocation's lifetime.
bool Allocation::outlasts_view(Queue& queue) {
  if (!queue.lent()) {
    return true;
  }
  std::vector<Ref<Event>> running;
  if (in_continuation() || queue.asking_may_block() || queue.is_asked_on_demand() ||
      !queue.unfinished(running)) {
    return false;
  }
  uses_.add_all({queue.serial(), {0, what_.nbytes}, true}, running);
  return true;
}

void Allocation::view_ended(Queue& queue) noexcept {
  if (within_) {
    within_->view_ended(queue);
    return;
  }
  if (&queue == queue_.get()) {
    return;
  }
  try {
    if (outlasts_view(queue)) {
      views_.end(queue);
    }
  } catch (const std::bad_alloc&) {
    // As if the driver could not be queried: the view still counts.
  }
}

std::vector<Ref<Queue>> Allocation::lent_queues() {
  if (within_) {
    return within_->lent_queues();  // includes this one's queue, as that of a view
  }
  std::vector<Ref<Queue>> found;
  if (queue_->lent()) {
    found.push_back(queue_);
  }
  views_.collect_lent(found);
  return found;
}

bool Allocation::lent() noexcept {
  return within_ ? within_->lent() : queue_->lent() || views_.any_lent();
}

Result<void> Allocation::unfinished_on_lent(const Queue* but, std::vector<Ref<Event>>& out) {
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
