// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/queue.hpp"

#include "backend/cuda/pointer.hpp"
#include "backend/cuda/submit.hpp"
#include "backend/cuda/thread_queues.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"

namespace isthmus::cuda {

// Operations on the stream still complete: the driver destroys the stream after them.
Queue::~Queue() {
  if (!adopted_ && handle_ != legacy_stream() && !os::drivers_are_gone()) {
    device_.streams().remove(handle_, *this);
    if (const MadeCurrent here{calls(), device_.known_primary()}; here.outcome() == cu::k_success) {
      calls().destroy_stream(handle_);
    }
  }
}

StreamHandle Queue::stream() const noexcept {
  return thread_ == 0 || thread_ == own_thread() ? handle_ : legacy_stream();
}

// The legacy default stream has the same handle on every device, the per-thread default stream also
// on every thread, so neither handle identifies a queue.
std::uintptr_t Queue::key() const noexcept {
  if (thread_ != 0) {
    return isthmus::Queue::key();
  }
  return handle_ == legacy_stream() ? address(&device_) : address(handle_);
}

namespace {

Result<EventHandle> take_event(const Device& device, bool knows_time) {
  if (auto* spare = knows_time ? nullptr : device.events().take()) {
    return spare;
  }
  const MadeCurrent here{device.calls(), device.known_primary()};
  EventHandle made = nullptr;
  const auto outcome =
      here.outcome() != cu::k_success
          ? here.outcome()
          : device.calls().create_event(
                &made, knows_time ? cu::k_event_with_times : cu::k_event_without_times);
  if (outcome != cu::k_success) {
    return call_failed("cuEventCreate", outcome);
  }
  return made;
}

}  // namespace

// If this fails for lack of memory and the cache is full, the driver's event is leaked.
Result<Ref<Operation>> make_operation(const Device& device, bool knows_time) {
  auto handle = take_event(device, knows_time);
  ISTHMUS_TRY(handle);
  Undo kept{[&] { static_cast<void>(!knows_time && device.events().keep(*handle)); }};
  auto made = make_ref<Operation>(device, *handle, knows_time);
  kept.dismiss();
  return made;
}

Code Queue::wait_for(WaitList after) const noexcept {
  for (const auto& before : after) {
    if (before->settled()) {
      continue;
    }
    const auto outcome =
        calls().stream_wait(stream(), static_cast<Operation&>(*before).handle(), 0);
    if (outcome != cu::k_success) {
      return outcome;
    }
  }
  return cu::k_success;
}

// Operations submitted to a stream that is being captured run when the graph does, and their events
// never complete. The legacy default stream accepts nothing while a stream that waits for it is
// captured. This query does no harm, whereas a copy would end the capture with an error.
Error Queue::refuse_capture() const {
  if (!has_external_work()) {
    return {};
  }
  Number capturing = cu::k_not_capturing;
  const auto outcome = calls().is_capturing(stream(), &capturing);
  if (outcome == cu::k_success && capturing == cu::k_not_capturing) {
    return {};
  }
  return call_failed("cuStreamIsCapturing",
                     outcome != cu::k_success ? outcome : cu::k_error_STREAM_CAPTURE_UNSUPPORTED);
}

Error Queue::refuse_recorded() const {
  const MadeCurrent here{calls(), device_.known_primary()};
  return refuse_capture();
}

Result<Ref<Event>> Queue::do_fence(WaitList after) {
  return submit("a fence", after, [] { return cu::k_success; });
}

Result<Ref<Event>> Queue::do_mark() {
  return submit("a mark", {}, [] { return cu::k_success; }, true);
}

// Only managed memory can migrate.
Result<Ref<Event>> Queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      WaitList after) {
  if (!device_.can(ISTHMUS_CAN_PREFETCH)) {
    return isthmus::Queue::do_prefetch(pointer, nbytes, to_host, after);
  }
  return submit("cuMemPrefetchAsync", after, [=, this] {
    if (ask_pointer(calls(), pointer).kind != ISTHMUS_KIND_SHARED) {
      return cu::k_success;
    }
    if (calls().prefetch == nullptr) {
      const Ordinal host = -1;
      return calls().prefetch_to_ordinal(place_of(pointer), nbytes,
                                         to_host ? host : device_.index(), stream());
    }
    const Location where{to_host ? cu::k_location_host : cu::k_location_device,
                         to_host ? 0 : device_.index()};
    return calls().prefetch(place_of(pointer), nbytes, where, 0, stream());
  });
}

// The driver applies advice at once, not in the queue's order. 0 is not one of CUDA's values, and
// memory that cannot migrate takes no advice.
Result<Ref<Event>> Queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                    WaitList after) {
  if (!device_.can(ISTHMUS_CAN_ADVISE)) {
    return isthmus::Queue::do_advise(pointer, nbytes, advice, after);
  }
  return submit("cuMemAdvise", after, [=, this] {
    if (advice == 0 || ask_pointer(calls(), pointer).kind != ISTHMUS_KIND_SHARED) {
      return cu::k_success;
    }
    if (calls().advise == nullptr) {
      return calls().advise_ordinal(place_of(pointer), nbytes, advice, device_.index());
    }
    return calls().advise(place_of(pointer), nbytes, advice,
                          Location{cu::k_location_device, device_.index()});
  });
}

bool Queue::knows(Event& candidate) const noexcept {
  return dynamic_cast<Operation*>(&candidate) != nullptr;
}

}  // namespace isthmus::cuda
