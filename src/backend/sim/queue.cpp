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

Queue::Queue(isthmus::Context& context, isthmus::Device& device, bool part)
    : isthmus::Queue{context, device, part},
      engine_{engine_of(device).shared_from_this()},
      lane_{engine_->add_lane(&context)} {}

Queue::~Queue() { engine_->orphan(lane_); }

bool Queue::knows(Event& candidate) const noexcept {
  if (device().can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return true;
  }
  const auto* simulated = AwaitedEvent::of(candidate).simulated;
  return simulated != nullptr && &simulated->engine() == engine_.get();
}

Result<Place> Queue::resolve(const void* pointer, std::size_t nbytes) {
  auto found = AddressBook::only().resolve(pointer, nbytes, &context());
  if (found && found->of && found->of->kind() == ISTHMUS_KIND_DEVICE && !is_local(*found)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "invalid pointer: {} is device memory of another device than the queue's",
                fmt::ptr(pointer));
  }
  return found;
}

bool Queue::is_local(const Place& end) const noexcept {
  return end.of && end.of->kind() == ISTHMUS_KIND_DEVICE && &end.of->device() == &device();
}

Result<void> Queue::begin(Call kind, WaitList after) {
  ISTHMUS_TRY(engine_->begin(kind));
  for (const auto& before : after) {
    // The driver needs a new event for each event that it did not make.
    if (AwaitedEvent::of(*before).simulated == nullptr) {
      ISTHMUS_TRY(engine_->begin(Call::event));
    }
  }
  return {};
}

Result<Ref<Event>> Queue::submit(Work todo, WaitList after) {
  return engine_->submit(lane_, std::move(todo), after, *this);
}

Result<Work> Queue::between(void* destination, std::size_t to_bytes, const void* source,
                            std::size_t from_bytes) {
  auto to = resolve(destination, to_bytes);
  ISTHMUS_TRY(to);
  auto from = resolve(source, from_bytes);
  ISTHMUS_TRY(from);
  Work todo;
  todo.over = !is_local(*to)    ? Route::from_device
              : is_local(*from) ? Route::inside
                                : Route::to_device;
  todo.destination = *std::move(to);
  todo.source = *std::move(from);
  return todo;
}

Result<Ref<Event>> Queue::copy_rows(Call kind, const Copy2dShape& shape, WaitList after) {
  ISTHMUS_TRY(begin(kind, after));
  auto todo = between(shape.destination, extent(shape.destination_pitch, shape.width, shape.height),
                      shape.source, extent(shape.source_pitch, shape.width, shape.height));
  ISTHMUS_TRY(todo);
  todo->what = Action::copy;
  todo->destination_pitch = shape.destination_pitch;
  todo->source_pitch = shape.source_pitch;
  todo->width = shape.width;
  todo->height = shape.height;
  todo->nbytes = shape.width * shape.height;
  return submit(*std::move(todo), after);
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  ISTHMUS_TRY(begin(Call::copy_ranges, after));
  auto todo =
      between(copy.destination, copy.destination_extent(), copy.source, copy.source_extent());
  ISTHMUS_TRY(todo);
  todo->what = Action::copy_ranges;
  todo->ranges.assign(copy.ranges.begin(), copy.ranges.end());
  todo->nbytes = copy.bytes();
  return submit(*std::move(todo), after);
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
  auto to = resolve(destination, nbytes);
  if (!to) {
    return to.take_error();
  }
  Work todo;
  todo.what = Action::fill;
  todo.over = is_local(*to) ? Route::inside : Route::from_device;
  todo.destination = *std::move(to);
  todo.width = nbytes;
  todo.pattern = pattern;
  todo.nbytes = nbytes;
  return submit(std::move(todo), after);
}

Result<Ref<Event>> Queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      WaitList after) {
  ISTHMUS_TRY(begin(Call::prefetch, after));
  auto what = resolve(pointer, nbytes);
  if (!what) {
    return what.take_error();
  }
  Work todo;
  todo.over = to_host ? Route::from_device : Route::to_device;
  todo.destination = *std::move(what);
  todo.nbytes = nbytes;
  return submit(std::move(todo), after);
}

Result<Ref<Event>> Queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t,
                                    WaitList after) {
  ISTHMUS_TRY(begin(Call::advise, after));
  auto what = resolve(pointer, nbytes);
  if (!what) {
    return what.take_error();
  }
  Work todo;
  todo.destination = *std::move(what);
  return submit(std::move(todo), after);
}

Result<Ref<Event>> Queue::do_fence(WaitList after) {
  ISTHMUS_TRY(begin(Call::fence, after));
  return submit({}, after);
}

}  // namespace isthmus::sim
