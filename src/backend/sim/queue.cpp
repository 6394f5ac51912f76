// SPDX-License-Identifier: Apache-2.0
#include "backend/sim/queue.hpp"

#include "backend/sim/device.hpp"
#include "core/sizes.hpp"

namespace isthmus::sim {
namespace {

std::size_t extent(std::size_t pitch, std::size_t width, std::size_t height) noexcept {
  return (height - 1) * pitch + width;
}

}  // namespace

Queue::Queue(isthmus::Context& context, isthmus::Device& device, bool platform_owned)
    : isthmus::Queue{context, device, {.is_default = platform_owned}},
      engine_{engine_of(device).shared_from_this()},
      queue_operations_{engine_->add_queue_operations(&context)} {}

Queue::~Queue() { engine_->release_queue_operations(queue_operations_); }

bool Queue::can_wait_for(Event& candidate) const noexcept {
  if (device().can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return true;
  }
  const auto* simulated = AwaitedEvent::of(candidate).simulated;
  return simulated != nullptr && &simulated->engine() == engine_.get();
}

Result<Endpoint> Queue::resolve(const void* pointer, std::size_t nbytes) {
  auto found = AddressBook::instance().resolve(pointer, nbytes, &context());
  if (found && found->allocation && found->allocation->kind() == ISTHMUS_KIND_DEVICE &&
      !is_local(*found)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "invalid pointer: {} is device memory of another device than the queue's",
                fmt::ptr(pointer));
  }
  return found;
}

bool Queue::is_local(const Endpoint& endpoint) const noexcept {
  return endpoint.allocation && endpoint.allocation->kind() == ISTHMUS_KIND_DEVICE &&
         &endpoint.allocation->device() == &device();
}

Result<void> Queue::begin(Call kind, WaitList after) {
  ISTHMUS_TRY(engine_->begin(kind));
  for (const auto& dependency : after) {
    // The driver creates an event for each event that is not simulated.
    if (AwaitedEvent::of(*dependency).simulated == nullptr) {
      ISTHMUS_TRY(engine_->begin(Call::event));
    }
  }
  return {};
}

Result<Ref<Event>> Queue::submit(Work work, WaitList after) {
  return engine_->submit(queue_operations_, std::move(work), after, *this);
}

Result<Work> Queue::make_copy_work(void* destination, std::size_t destination_bytes,
                                   const void* source, std::size_t source_bytes) {
  auto destination_endpoint = resolve(destination, destination_bytes);
  ISTHMUS_TRY(destination_endpoint);
  auto source_endpoint = resolve(source, source_bytes);
  ISTHMUS_TRY(source_endpoint);
  Work work;
  work.route = !is_local(*destination_endpoint) ? Route::from_device
               : is_local(*source_endpoint)     ? Route::inside
                                                : Route::to_device;
  work.destination = *std::move(destination_endpoint);
  work.source = *std::move(source_endpoint);
  return work;
}

Result<Ref<Event>> Queue::copy_rows(Call kind, const Copy2dShape& shape, WaitList after) {
  ISTHMUS_TRY(begin(kind, after));
  auto work =
      make_copy_work(shape.destination, extent(shape.destination_pitch, shape.width, shape.height),
                     shape.source, extent(shape.source_pitch, shape.width, shape.height));
  ISTHMUS_TRY(work);
  work->action = Action::copy;
  work->destination_pitch = shape.destination_pitch;
  work->source_pitch = shape.source_pitch;
  work->width = shape.width;
  work->height = shape.height;
  work->nbytes = shape.width * shape.height;
  return submit(*std::move(work), after);
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  ISTHMUS_TRY(begin(Call::copy_ranges, after));
  auto work = make_copy_work(copy.destination, copy.destination_extent(), copy.source,
                             copy.source_extent());
  ISTHMUS_TRY(work);
  work->action = Action::copy_ranges;
  work->ranges.assign(copy.ranges.begin(), copy.ranges.end());
  work->nbytes = copy.bytes();
  return submit(*std::move(work), after);
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  return copy_rows(Call::copy, {destination, nbytes, source, nbytes, nbytes, 1}, after);
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  return copy_rows(Call::copy_2d, shape, after);
}

Result<Ref<Event>> Queue::do_fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                                  WaitList after) {
  ISTHMUS_TRY(begin(Call::fill, after));
  auto destination_endpoint = resolve(destination, nbytes);
  if (!destination_endpoint) {
    return destination_endpoint.take_error();
  }
  Work work;
  work.action = Action::fill;
  work.route = is_local(*destination_endpoint) ? Route::inside : Route::from_device;
  work.destination = *std::move(destination_endpoint);
  work.width = nbytes;
  work.pattern = pattern;
  work.nbytes = nbytes;
  return submit(std::move(work), after);
}

Result<Ref<Event>> Queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      WaitList after) {
  ISTHMUS_TRY(begin(Call::prefetch, after));
  auto endpoint = resolve(pointer, nbytes);
  if (!endpoint) {
    return endpoint.take_error();
  }
  Work work;
  work.route = to_host ? Route::from_device : Route::to_device;
  work.destination = *std::move(endpoint);
  work.nbytes = nbytes;
  return submit(std::move(work), after);
}

Result<Ref<Event>> Queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t,
                                    WaitList after) {
  ISTHMUS_TRY(begin(Call::advise, after));
  auto endpoint = resolve(pointer, nbytes);
  if (!endpoint) {
    return endpoint.take_error();
  }
  Work work;
  work.destination = *std::move(endpoint);
  return submit(std::move(work), after);
}

Result<Ref<Event>> Queue::do_fence(WaitList after) {
  ISTHMUS_TRY(begin(Call::fence, after));
  return submit({}, after);
}

}  // namespace isthmus::sim
