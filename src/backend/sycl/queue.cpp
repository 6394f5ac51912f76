// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/queue.hpp"

#include <cstring>

#include "backend/copy_division.hpp"
#include "backend/sycl/errors.hpp"
#include "backend/workarounds/delayed_release.hpp"
#include "core/expects.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {
namespace {

// Rows or ranges of at least this size on average are copied by one command each.
constexpr std::size_t k_min_command_bytes = std::size_t{1} << 20;

QueueTraits adopted_traits(const Device& device, bool in_order) noexcept {
  return {.is_adopted = true,
          .keeps_order = in_order,
          .query_may_block = true,
          .is_queried_on_demand = !in_order && device.is_host()};
}

}  // namespace

Queue::Queue(isthmus::Context& context, const Api& calls, Device& device, OwnedQueue reference,
             bool platform_owned)
    : DeferringQueue{context,
                     device,
                     {.is_default = platform_owned, .keeps_order = true, .query_may_block = true}},
      calls_{calls},
      device_{device},
      held_{std::make_shared<HeldQueue>(calls, std::move(reference))},
      key_{calls.queue_key(held_->get())} {}

Queue::Queue(isthmus::Context& context, const Api& calls, Device& device, OwnedQueue reference,
             Owner owner)
    : DeferringQueue{context, device, adopted_traits(device, calls.is_in_order(reference.get()))},
      owner_{std::move(owner)},
      calls_{calls},
      device_{device},
      held_{std::make_shared<HeldQueue>(calls, std::move(reference))},
      key_{calls.queue_key(held_->get())} {}

Queue::~Queue() {
  if (os::drivers_unavailable()) {
    return;
  }
  if (!is_default()) {
    device_.known_queues().remove(key(), *this);
  }
  if (traits().is_queried_on_demand) {
    delay_release();
  }
}

void Queue::delay_release() noexcept {
  try {
    std::vector<Ref<Event>> running;
    add_own_unfinished(running);
    release_later(key(), running, held_);
  } catch (const std::bad_alloc&) {
    held_->abandon();
  }
}

bool Queue::can_wait_for(Event& candidate) const noexcept {
  const auto* operation = dynamic_cast<Operation*>(&candidate);
  return operation != nullptr && operation->context().is_same_as(context());
}

// Orders the next command on the queue after the commands of the events that are still pending.
bool Queue::order_next_after(WaitList after) const {
  std::vector<EventReference> pending;
  for (const auto& dependency : after) {
    if (!dependency->settled()) {
      pending.push_back(static_cast<Operation&>(*dependency).reference());
    }
  }
  if (!traits().keeps_order && !enqueue_barrier()) {
    return false;
  }
  return pending.empty() ||
         OwnedEvent{calls(), calls().barrier_after(reference(), pending.data(), pending.size())};
}

// Returns the event of the last command. On an out-of-order queue a barrier follows several
// commands, so that the event covers all of them.
template <class Command>
OwnedEvent Queue::enqueue_all(std::size_t count, const Command& command) const {
  OwnedEvent last;
  for (std::size_t index = 0; index < count; ++index) {
    last = command(index);
    if (!last) {
      return last;
    }
  }
  if (!traits().keeps_order && count > 1) {
    last = enqueue_barrier();
  }
  return last;
}

template <class Command>
Error Queue::enqueue(Operation& operation, const char* call, std::size_t count, WaitList after,
                     const Command& command) const {
  if (auto failed = failed_dependency_in(after)) {
    return failed;
  }
  const CallOfAnyThread counted;
  if (!counted) {
    return driver_unavailable_error();
  }
  auto last = order_next_after(after) ? enqueue_all(count, command) : OwnedEvent{};
  if (!last) {
    // A command was refused: wait for the earlier ones, so that none is in flight.
    call_safely(calls().finish, reference());
    return call_failed(call);
  }
  operation.submitted(std::move(last));
  return {};
}

template <class Command>
Result<Ref<Event>> Queue::submit(const char* call, std::size_t count, WaitList after,
                                 Command&& command) {
  auto operation = make_ref<Operation>(context(), calls());
  return enqueue_or_defer(
      operation, after,
      [this, operation, call, count, submit_command = std::forward<Command>(command)](
          WaitList ready) { return enqueue(*operation, call, count, ready, submit_command); });
}

template <class Work>
Result<Ref<Event>> Queue::run_on_host(WaitList after, Work&& work) {
  ISTHMUS_EXPECTS(device_.is_host());
  auto fence_operation = make_ref<Operation>(context(), calls());
  auto host_operation = make_ref<HostOperation>();
  const auto fence = [this, fence_operation](WaitList ready) {
    return enqueue(*fence_operation, "a fence", 1, ready,
                   [this](std::size_t) { return enqueue_barrier(); });
  };
  auto host_work = [host_operation, fence_operation,
                    host_function = std::forward<Work>(work)](WaitList) -> Error {
    ISTHMUS_TRY(fence_operation->wait(std::nullopt));
    const CallOfAnyThread counted;  // the driver must not be unloaded meanwhile: it owns the memory
    if (!counted) {
      return driver_unavailable_error();
    }
    host_function();
    host_operation->finish();
    return {};
  };
  return enqueue_then_defer(fence_operation, after, fence, host_operation, std::move(host_work));
}

OwnedEvent Queue::enqueue_barrier() const noexcept {
  return {calls(), calls().barrier(reference())};
}

OwnedEvent Queue::enqueue_copy(void* destination, const void* source,
                               std::size_t nbytes) const noexcept {
  return {calls(), calls().copy(reference(), destination, source, nbytes)};
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  if (!device_.is_host()) {
    return submit("sycl::queue::memcpy", 1, after,
                  [=, this](std::size_t) { return enqueue_copy(destination, source, nbytes); });
  }
  const CopyDivision chunks{destination, nbytes};
  return submit("sycl::queue::memcpy", chunks.count(), after, [=, this](std::size_t index) {
    const auto begin = chunks.begin(index);
    return enqueue_copy(advance(destination, begin), advance(source, begin), chunks.size(index));
  });
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  if (device_.is_host() && shape.width < k_min_command_bytes) {
    return run_on_host(after, [shape] { copy_rows(shape); });
  }
  return submit("sycl::queue::memcpy", shape.height, after, [=, this](std::size_t row) {
    return enqueue_copy(advance(shape.destination, row * shape.destination_pitch),
                        advance(shape.source, row * shape.source_pitch), shape.width);
  });
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  std::vector<CopyRange> ranges{copy.ranges.begin(), copy.ranges.end()};
  if (ranges.size() > 1 && device_.is_host() &&
      copy.bytes() < ranges.size() * k_min_command_bytes) {
    return run_on_host(after, [copy, ranges = std::move(ranges)] {
      isthmus::copy_ranges({copy.destination, copy.source, ranges});
    });
  }
  return submit("sycl::queue::memcpy", copy.ranges.size(), after,
                [this, destination = copy.destination, source = copy.source,
                 ranges = std::move(ranges)](std::size_t index) {
                  const auto& range = ranges[index];
                  return enqueue_copy(advance(destination, range.destination_offset),
                                      advance(source, range.source_offset), range.nbytes);
                });
}

namespace {

template <class Word>
Word word_of(const FillPattern& pattern) noexcept {
  Word word{};
  std::memcpy(&word, pattern.bytes, sizeof word);
  return word;
}

// SYCL requires a destination that is aligned to the pattern's size.
EventReference fill_words(const Api& calls, QueueReference queue, void* destination,
                          const FillPattern& pattern, std::size_t nbytes) noexcept {
  ISTHMUS_EXPECTS(address(destination) % pattern.nbytes == 0, destination, pattern.nbytes);
  const auto count = nbytes / pattern.nbytes;
  switch (pattern.nbytes) {
    case 1: return calls.fill_1(queue, destination, word_of<std::uint8_t>(pattern), count);
    case 2: return calls.fill_2(queue, destination, word_of<std::uint16_t>(pattern), count);
    case 4: return calls.fill_4(queue, destination, word_of<std::uint32_t>(pattern), count);
    case 8: return calls.fill_8(queue, destination, word_of<std::uint64_t>(pattern), count);
    default: break;
  }
  std::uint64_t words[2];
  std::memcpy(words, pattern.bytes, sizeof words);
  return calls.fill_16(queue, destination, words, count);
}

// The pattern rotated by `step` bytes.
FillPattern rotated(const FillPattern& pattern, std::size_t step) noexcept {
  FillPattern result;
  result.nbytes = pattern.nbytes;
  for (std::size_t index = 0; index < pattern.nbytes; ++index) {
    result.bytes[index] = pattern.bytes[(index + step) % pattern.nbytes];
  }
  return result;
}

}  // namespace

// Fills the bytes before and after the aligned multiples of the pattern's size with one command
// each, at most 30 in total, since the host may be unable to access the memory.
Result<Ref<Event>> Queue::do_fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                                  WaitList after) {
  const auto misalignment = address(destination) % pattern.nbytes;
  const auto head = misalignment == 0 ? 0 : std::min(pattern.nbytes - misalignment, nbytes);
  const auto tail = (nbytes - head) % pattern.nbytes;
  const auto middle = nbytes - head - tail;
  const auto middle_pattern = rotated(pattern, head);
  const std::size_t middle_count = middle != 0 ? 1 : 0;
  return submit(
      "sycl::queue::fill", head + tail + middle_count, after, [=, this](std::size_t index) {
        auto* const queue = reference();
        if (index < middle_count) {
          return OwnedEvent{calls(), fill_words(calls(), queue, advance(destination, head),
                                                middle_pattern, middle)};
        }
        const auto byte_index = index - middle_count;
        const auto offset = byte_index < head ? byte_index : middle + byte_index;
        const auto value = std::to_integer<std::uint8_t>(pattern.bytes[offset % pattern.nbytes]);
        return OwnedEvent{calls(), calls().fill_1(queue, advance(destination, offset), value, 1)};
      });
}

// SYCL cannot prefetch to the host, and if the device is the host no data has to move.
Result<Ref<Event>> Queue::do_prefetch(const void* pointer, std::size_t nbytes, bool to_host,
                                      WaitList after) {
  if (to_host || device_.is_host()) {
    return do_fence(after);
  }
  return submit("sycl::queue::prefetch", 1, after, [=, this](std::size_t) {
    return OwnedEvent{calls(), calls().prefetch(reference(), pointer, nbytes)};
  });
}

Result<Ref<Event>> Queue::do_advise(const void* pointer, std::size_t nbytes, std::uint32_t advice,
                                    WaitList after) {
  return submit("sycl::queue::mem_advise", 1, after, [=, this](std::size_t) {
    return OwnedEvent{calls(),
                      calls().advise(reference(), pointer, nbytes, static_cast<int>(advice))};
  });
}

Result<Ref<Event>> Queue::do_fence(WaitList after) {
  return submit("sycl::queue::ext_oneapi_submit_barrier", 1, after,
                [this](std::size_t) { return enqueue_barrier(); });
}

}  // namespace isthmus::sycl
