// SPDX-License-Identifier: Apache-2.0
#include "backend/sycl/queue.hpp"

#include <cstring>

#include "backend/copy_parts.hpp"
#include "backend/delayed_release.hpp"
#include "core/sizes.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {
namespace {

// Pieces of at least this size on average are worth a command each.
constexpr std::size_t k_row_worth_a_command = std::size_t{1} << 20;

}  // namespace

Queue::Queue(Context& context, Device& device, OwnedQueue reference, bool part)
    : DeferringQueue{context, device, part},
      context_{context},
      device_{device},
      held_{std::make_shared<HeldQueue>(calls(), std::move(reference))},
      key_{calls().queue_key(held_->get())} {
  mark_ordered();
  mark_asking_may_block();
}

Queue::Queue(Context& context, Device& device, OwnedQueue reference, Owner keep)
    : DeferringQueue{context, device, false},
      keep_{std::move(keep)},
      context_{context},
      device_{device},
      held_{std::make_shared<HeldQueue>(calls(), std::move(reference))},
      key_{calls().queue_key(held_->get())},
      in_order_{calls().is_in_order(held_->get())} {
  mark_lent();
  mark_asking_may_block();
  if (in_order_) {
    mark_ordered();
  } else if (device.is_host()) {
    mark_asked_on_demand();
  }
}

Queue::~Queue() {
  if (os::drivers_are_gone()) {
    return;
  }
  if (!is_default()) {
    device_.known_queues().remove(key(), *this);
  }
  if (is_asked_on_demand()) {
    let_linger();
  }
}

void Queue::let_linger() noexcept {
  try {
    std::vector<Ref<Event>> running;
    add_unfinished_of_ours(running);
    linger(key(), running, held_);
  } catch (const std::bad_alloc&) {
    held_->abandon();
  }
}

bool Queue::knows(Event& candidate) const noexcept {
  const auto* known = dynamic_cast<Operation*>(&candidate);
  return known != nullptr && known->context().is_same_as(context_);
}

// Orders the next command on the queue after those of the events that have not ended.
bool Queue::stand_behind_these(WaitList after) const {
  std::vector<EventReference> pending;
  for (const auto& before : after) {
    if (!before->settled()) {
      pending.push_back(static_cast<Operation&>(*before).reference());
    }
  }
  if (!in_order_ && !put_barrier()) {
    return false;
  }
  return pending.empty() ||
         OwnedEvent{calls(), calls().barrier_behind(reference(), pending.data(), pending.size())};
}

// Returns the event of the last command. On an out-of-order queue a barrier follows several
// commands, so that the event covers all of them.
template <class Command>
OwnedEvent Queue::put_all(std::size_t count, const Command& command) const {
  OwnedEvent last;
  for (std::size_t index = 0; index < count; ++index) {
    last = command(index);
    if (!last) {
      return last;
    }
  }
  if (!in_order_ && count > 1) {
    last = put_barrier();
  }
  return last;
}

template <class Command>
Error Queue::put(Operation& made, const char* call, std::size_t count, WaitList after,
                 const Command& command) const {
  if (auto failed = failed_dependency_in(after)) {
    return failed;
  }
  const CallOfAnyThread counted;
  if (!counted) {
    return process_is_ending();
  }
  auto last = stand_behind_these(after) ? put_all(count, command) : OwnedEvent{};
  if (!last) {
    // A command was refused: wait for the earlier ones, so that none is in flight.
    call_safely(calls().finish, reference());
    return call_failed(call);
  }
  made.submitted(std::move(last));
  return {};
}

template <class Command>
Result<Ref<Event>> Queue::submit(const char* call, std::size_t count, WaitList after,
                                 Command&& command) {
  auto made = make_ref<Operation>(context_);
  return put_or_hold(made, after,
                     [this, made, call, count, what = std::forward<Command>(command)](
                         WaitList ready) { return put(*made, call, count, ready, what); });
}

template <class Work>
Result<Ref<Event>> Queue::do_on_host(WaitList after, Work&& work) {
  auto reached = make_ref<Operation>(context_);
  auto made = make_ref<HostOperation>();
  const auto fence = [this, reached](WaitList ready) {
    return put(*reached, "a fence", 1, ready, [this](std::size_t) { return put_barrier(); });
  };
  auto in_turn = [made, reached, what = std::forward<Work>(work)](WaitList) -> Error {
    ISTHMUS_TRY(reached->wait(std::nullopt));
    const CallOfAnyThread counted;  // the driver owns the memory
    if (!counted) {
      return process_is_ending();
    }
    what();
    made->finish();
    return {};
  };
  return put_and_hold(reached, after, fence, made, std::move(in_turn));
}

OwnedEvent Queue::put_barrier() const noexcept { return {calls(), calls().barrier(reference())}; }

OwnedEvent Queue::copy_part(void* destination, const void* source,
                            std::size_t nbytes) const noexcept {
  return {calls(), calls().copy(reference(), destination, source, nbytes)};
}

Result<Ref<Event>> Queue::do_copy(void* destination, const void* source, std::size_t nbytes,
                                  WaitList after) {
  if (!device_.is_host()) {
    return submit("sycl::queue::memcpy", 1, after,
                  [=, this](std::size_t) { return copy_part(destination, source, nbytes); });
  }
  const CopyParts parts{destination, nbytes};
  return submit("sycl::queue::memcpy", parts.count(), after, [=, this](std::size_t index) {
    const auto begin = parts.begin(index);
    return copy_part(advance(destination, begin), advance(source, begin), parts.size(index));
  });
}

Result<Ref<Event>> Queue::do_copy_2d(const Copy2dShape& shape, WaitList after) {
  const bool contiguous = shape.height == 1 || (shape.width == shape.destination_pitch &&
                                                shape.width == shape.source_pitch);
  if (contiguous) {
    return do_copy(shape.destination, shape.source, shape.width * shape.height, after);
  }
  if (device_.is_host() && shape.width < k_row_worth_a_command) {
    return do_on_host(after, [shape] { copy_rows(shape); });
  }
  return submit("sycl::queue::memcpy", shape.height, after, [=, this](std::size_t row) {
    return copy_part(advance(shape.destination, row * shape.destination_pitch),
                     advance(shape.source, row * shape.source_pitch), shape.width);
  });
}

Result<Ref<Event>> Queue::do_copy_ranges(const RangedCopy& copy, WaitList after) {
  std::vector<CopyRange> ranges{copy.ranges.begin(), copy.ranges.end()};
  if (ranges.size() > 1 && device_.is_host() &&
      copy.bytes() < ranges.size() * k_row_worth_a_command) {
    return do_on_host(after, [copy, ranges = std::move(ranges)] {
      isthmus::copy_ranges({copy.destination, copy.source, ranges});
    });
  }
  return submit("sycl::queue::memcpy", copy.ranges.size(), after,
                [this, to = copy.destination, from = copy.source,
                 ranges = std::move(ranges)](std::size_t index) {
                  const auto& each = ranges[index];
                  return copy_part(advance(to, each.destination_offset),
                                   advance(from, each.source_offset), each.nbytes);
                });
}

namespace {

template <class Word>
Word word_of(const FillPattern& pattern) noexcept {
  Word word{};
  std::memcpy(&word, pattern.bytes, sizeof word);
  return word;
}

// Pre: the destination is aligned to the pattern's size, as SYCL requires.
EventReference fill_words(const Api& calls, QueueReference queue, void* destination,
                          const FillPattern& pattern, std::size_t nbytes) noexcept {
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
FillPattern turned(const FillPattern& pattern, std::size_t step) noexcept {
  FillPattern made;
  made.nbytes = pattern.nbytes;
  for (std::size_t index = 0; index < pattern.nbytes; ++index) {
    made.bytes[index] = pattern.bytes[(index + step) % pattern.nbytes];
  }
  return made;
}

}  // namespace

// The bytes before and after the aligned multiples of the pattern's size are filled singly, with
// fewer than 31 commands, since the host may not be able to access the memory.
Result<Ref<Event>> Queue::do_fill(void* destination, const FillPattern& pattern, std::size_t nbytes,
                                  WaitList after) {
  const auto past = address(destination) % pattern.nbytes;
  const auto head = past == 0 ? 0 : std::min(pattern.nbytes - past, nbytes);
  const auto behind = (nbytes - head) % pattern.nbytes;
  const auto middle = nbytes - head - behind;
  const auto in_middle = turned(pattern, head);
  const std::size_t is_there = middle != 0 ? 1 : 0;
  return submit("sycl::queue::fill", head + behind + is_there, after, [=, this](std::size_t index) {
    auto* const on = reference();
    if (index < is_there) {
      return OwnedEvent{calls(),
                        fill_words(calls(), on, advance(destination, head), in_middle, middle)};
    }
    const auto single = index - is_there;
    const auto at = single < head ? single : middle + single;
    const auto value = std::to_integer<std::uint8_t>(pattern.bytes[at % pattern.nbytes]);
    return OwnedEvent{calls(), calls().fill_1(on, advance(destination, at), value, 1)};
  });
}

// SYCL cannot prefetch to the host, and where host and device are the same there is nothing to
// move.
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
                [this](std::size_t) { return put_barrier(); });
}

}  // namespace isthmus::sycl
