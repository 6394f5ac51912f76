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

queue::queue(isthmus::context& home, isthmus::device& where, bool part)
    : isthmus::queue{home, where, part},
      engine_{engine_of(where).shared_from_this()},
      lane_{engine_->add_lane(&home)} {}

queue::~queue() { engine_->orphan(lane_); }

bool queue::knows(event& candidate) const noexcept {
  if (where().can(ISTHMUS_CAN_WAIT_FOR_HOST)) {
    return true;
  }
  const auto* simulated = awaited_event::of(candidate).simulated;
  return simulated != nullptr && &simulated->home() == engine_.get();
}

result<place> queue::resolve(const void* pointer, std::size_t nbytes) {
  auto found = address_book::only().resolve(pointer, nbytes, &home());
  if (found && found->of && found->of->kind() == ISTHMUS_KIND_DEVICE && !is_local(*found)) {
    return fail(ISTHMUS_ERROR_WRONG_CONTEXT,
                "invalid pointer: {} is device memory of another device than the queue's",
                fmt::ptr(pointer));
  }
  return found;
}

bool queue::is_local(const place& end) const noexcept {
  return end.of && end.of->kind() == ISTHMUS_KIND_DEVICE && &end.of->home() == &where();
}

result<void> queue::begin(call kind, wait_list after) {
  ISTHMUS_TRY(engine_->begin(kind));
  for (const auto& before : after) {
    // The driver needs a new event for each event that it did not make.
    if (awaited_event::of(*before).simulated == nullptr) {
      ISTHMUS_TRY(engine_->begin(call::event));
    }
  }
  return {};
}

result<ref<event>> queue::submit(work todo, wait_list after) {
  return engine_->submit(lane_, std::move(todo), after, *this);
}

result<work> queue::between(void* destination, std::size_t to_bytes, const void* source,
                            std::size_t from_bytes) {
  auto to = resolve(destination, to_bytes);
  ISTHMUS_TRY(to);
  auto from = resolve(source, from_bytes);
  ISTHMUS_TRY(from);
  work todo;
  todo.over = !is_local(*to)    ? route::from_device
              : is_local(*from) ? route::inside
                                : route::to_device;
  todo.destination = *std::move(to);
  todo.source = *std::move(from);
  return todo;
}

result<ref<event>> queue::copy_rows(call kind, const copy_2d_shape& shape, wait_list after) {
  ISTHMUS_TRY(begin(kind, after));
  auto todo = between(shape.destination, extent(shape.destination_pitch, shape.width, shape.height),
                      shape.source, extent(shape.source_pitch, shape.width, shape.height));
  ISTHMUS_TRY(todo);
  todo->what = action::copy;
  todo->destination_pitch = shape.destination_pitch;
  todo->source_pitch = shape.source_pitch;
  todo->width = shape.width;
  todo->height = shape.height;
  todo->nbytes = shape.width * shape.height;
  return submit(*std::move(todo), after);
}

result<ref<event>> queue::do_copy_ranges(const ranged_copy& what, wait_list after) {
  ISTHMUS_TRY(begin(call::copy_ranges, after));
  auto todo =
      between(what.destination, what.destination_extent(), what.source, what.source_extent());
  ISTHMUS_TRY(todo);
  todo->what = action::copy_ranges;
  todo->ranges.assign(what.ranges.begin(), what.ranges.end());
  todo->nbytes = what.bytes();
  return submit(*std::move(todo), after);
}

result<ref<event>> queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  wait_list after) {
  return copy_rows(call::copy, {destination, nbytes, source, nbytes, nbytes, 1}, after);
}

result<ref<event>> queue::do_copy_2d(const copy_2d_shape& shape, wait_list after) {
  return copy_rows(call::copy_2d, shape, after);
}

result<ref<event>> queue::do_fill(void* destination, const fill_pattern& pattern,
                                  std::size_t nbytes, wait_list after) {
  ISTHMUS_TRY(begin(call::fill, after));
  auto to = resolve(destination, nbytes);
  if (!to) {
    return to.take_error();
  }
  work todo;
  todo.what = action::fill;
  todo.over = is_local(*to) ? route::inside : route::from_device;
  todo.destination = *std::move(to);
  todo.width = nbytes;
  todo.pattern = pattern;
  todo.nbytes = nbytes;
  return submit(std::move(todo), after);
}

result<ref<event>> queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      wait_list after) {
  ISTHMUS_TRY(begin(call::prefetch, after));
  auto what = resolve(pointer, nbytes);
  if (!what) {
    return what.take_error();
  }
  work todo;
  todo.over = to_host ? route::from_device : route::to_device;
  todo.destination = *std::move(what);
  todo.nbytes = nbytes;
  return submit(std::move(todo), after);
}

result<ref<event>> queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t,
                                    wait_list after) {
  ISTHMUS_TRY(begin(call::advise, after));
  auto what = resolve(pointer, nbytes);
  if (!what) {
    return what.take_error();
  }
  work todo;
  todo.destination = *std::move(what);
  return submit(std::move(todo), after);
}

result<ref<event>> queue::do_fence(wait_list after) {
  ISTHMUS_TRY(begin(call::fence, after));
  return submit({}, after);
}

}  // namespace isthmus::sim
