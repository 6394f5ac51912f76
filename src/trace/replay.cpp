// SPDX-License-Identifier: Apache-2.0
#include "trace/replay.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "memory/raw.hpp"

namespace isthmus {
namespace {

using ticks = std::chrono::steady_clock;

std::uint64_t ns_since(ticks::time_point start) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(ticks::now() - start).count());
}

// The minimal difference of two consecutive clock readings.
std::uint64_t ns_of_clock() noexcept {
  auto least = ~std::uint64_t{0};
  for (int each = 0; each < 1000; ++each) {
    least = std::min(least, ns_since(ticks::now()));
  }
  return least;
}

// Checks everything that an event refers to, so that replaying needs no checks.
[[nodiscard]] result<void> check_names(std::size_t number, const trace_event& one,
                                       std::size_t events, std::size_t queues) {
  if (one.action > ISTHMUS_TRACE_ALLOCATE) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "event {} of the trace has action {}, neither 0 (free) nor 1 (allocate)", number,
                one.action);
  }
  if (one.id >= events) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "event {} of the trace has id {}, not below the number of events, {}", number,
                one.id, events);
  }
  if (one.queue >= queues) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the trace is on queue {} of {}",
                number, one.queue, queues);
  }
  return {};
}

[[nodiscard]] result<void> check_all(std::span<const trace_event> events, std::size_t queues) {
  std::vector<bool> live(events.size());
  for (std::size_t number = 0; number < events.size(); ++number) {
    const auto& one = events[number];
    ISTHMUS_TRY(check_names(number, one, events.size(), queues));
    const bool allocates = one.action == ISTHMUS_TRACE_ALLOCATE;
    if (allocates == live[one.id]) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the trace {} block {}, which is {}",
                  number, allocates ? "allocates" : "frees", one.id,
                  allocates ? "there" : "not there");
    }
    if (allocates && one.nbytes == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the trace allocates 0 bytes",
                  number);
    }
    live[one.id] = allocates;
  }
  return {};
}

// The blocks that are live while a trace is replayed; frees them at its end.
class player {
 public:
  player(memory_resource& from, std::span<queue* const> queues, std::size_t events)
      : from_{from}, queues_{queues}, blocks_(events) {}
  player(const player&) = delete;
  player& operator=(const player&) = delete;
  ~player() {
    for (auto& each : blocks_) {
      static_cast<void>(give_back(each));
    }
  }

  // Pre: checked.
  [[nodiscard]] result<void> play(const trace_event& next) {
    auto& place = blocks_[next.id];
    auto* on = queues_[next.queue];
    if (next.action == ISTHMUS_TRACE_FREE) {
      place.on = on;
      return give_back(place);
    }
    auto made = hand_out(from_, next.nbytes, 0, *on);
    ISTHMUS_TRY(made);
    place = {*made, next.nbytes, on};
    return {};
  }

 private:
  struct block {
    void* memory = nullptr;
    std::uint64_t nbytes = 0;
    queue* on = nullptr;  // the block is freed after this queue's work
  };
  result<void> give_back(block& gone) {
    auto* memory = std::exchange(gone.memory, nullptr);
    return memory == nullptr ? result<void>{} : take_back(from_, memory, gone.nbytes, gone.on);
  }

  memory_resource& from_;
  const std::span<queue* const> queues_;
  std::vector<block> blocks_;  // by id
};

[[nodiscard]] result<replay_result> play_all(player& with, std::span<const trace_event> events) {
  const auto start = ticks::now();
  for (const auto& each : events) {
    ISTHMUS_TRY(with.play(each));
  }
  return replay_result{.ns = ns_since(start)};
}

[[nodiscard]] result<replay_result> play_and_sample(player& with, memory_resource& from,
                                                    std::span<const trace_event> events,
                                                    std::span<trace_sample> samples) {
  const auto overhead = ns_of_clock();
  replay_result all;
  for (std::size_t number = 0; number < events.size(); ++number) {
    const auto start = ticks::now();
    auto played = with.play(events[number]);
    const auto taken = ns_since(start);
    ISTHMUS_TRY(played);
    samples[number] = {from.usage().held_bytes, taken - std::min(taken, overhead)};
    all.ns += samples[number].ns;
    all.peak_held_bytes = std::max(all.peak_held_bytes, samples[number].held_bytes);
  }
  return all;
}

}  // namespace

result<replay_result> replay(memory_resource& from, std::span<queue* const> queues,
                             std::span<const trace_event> events, std::span<trace_sample> samples) {
  ISTHMUS_TRY(check_all(events, queues.size()));
  const auto before = from.usage();
  player with{from, queues, events.size()};
  auto played =
      samples.empty() ? play_all(with, events) : play_and_sample(with, from, events, samples);
  if (played) {
    const auto after = from.usage();
    played->maps = after.maps - before.maps;
    played->unmaps = after.unmaps - before.unmaps;
  }
  return played;
}

}  // namespace isthmus
