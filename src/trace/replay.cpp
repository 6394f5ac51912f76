// SPDX-License-Identifier: Apache-2.0
#include "trace/replay.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "memory/raw.hpp"

namespace isthmus {
namespace {

using Ticks = std::chrono::steady_clock;

std::uint64_t ns_since(Ticks::time_point start) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Ticks::now() - start).count());
}

// The minimal difference of two consecutive clock readings.
std::uint64_t ns_of_clock() noexcept {
  auto least = ~std::uint64_t{0};
  for (int each = 0; each < 1000; ++each) {
    least = std::min(least, ns_since(Ticks::now()));
  }
  return least;
}

// Checks everything that an event refers to, so that replaying needs no checks.
[[nodiscard]] Result<void> check_names(std::size_t number, const TraceEvent& one,
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

[[nodiscard]] Result<void> check_all(std::span<const TraceEvent> events, std::size_t queues) {
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
class Player {
 public:
  Player(MemoryResource& resource, std::span<Queue* const> queues, std::size_t events)
      : resource_{resource}, queues_{queues}, blocks_(events) {}
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  ~Player() {
    for (auto& each : blocks_) {
      static_cast<void>(give_back(each));
    }
  }

  // Pre: checked.
  [[nodiscard]] Result<void> play(const TraceEvent& next) {
    auto& place = blocks_[next.id];
    auto* on = queues_[next.queue];
    if (next.action == ISTHMUS_TRACE_FREE) {
      place.queue = on;
      return give_back(place);
    }
    auto made = allocate_raw(resource_, next.nbytes, 0, *on);
    ISTHMUS_TRY(made);
    place = {*made, next.nbytes, on};
    return {};
  }

 private:
  struct Block {
    void* memory = nullptr;
    std::uint64_t nbytes = 0;
    Queue* queue = nullptr;  // the block is freed after this queue's work
  };
  Result<void> give_back(Block& gone) {
    auto* memory = std::exchange(gone.memory, nullptr);
    return memory == nullptr ? Result<void>{}
                             : deallocate_raw(resource_, memory, gone.nbytes, gone.queue);
  }

  MemoryResource& resource_;
  const std::span<Queue* const> queues_;
  std::vector<Block> blocks_;  // by id
};

[[nodiscard]] Result<ReplayResult> play_all(Player& with, std::span<const TraceEvent> events) {
  const auto start = Ticks::now();
  for (const auto& each : events) {
    ISTHMUS_TRY(with.play(each));
  }
  return ReplayResult{.ns = ns_since(start)};
}

[[nodiscard]] Result<ReplayResult> play_and_sample(Player& with, MemoryResource& resource,
                                                   std::span<const TraceEvent> events,
                                                   std::span<TraceSample> samples) {
  const auto overhead = ns_of_clock();
  ReplayResult all;
  for (std::size_t number = 0; number < events.size(); ++number) {
    const auto start = Ticks::now();
    auto played = with.play(events[number]);
    const auto taken = ns_since(start);
    ISTHMUS_TRY(played);
    samples[number] = {resource.usage().held_bytes, taken - std::min(taken, overhead)};
    all.ns += samples[number].ns;
    all.peak_held_bytes = std::max(all.peak_held_bytes, samples[number].held_bytes);
  }
  return all;
}

}  // namespace

Result<ReplayResult> replay(MemoryResource& resource, std::span<Queue* const> queues,
                            std::span<const TraceEvent> events, std::span<TraceSample> samples) {
  ISTHMUS_TRY(check_all(events, queues.size()));
  const auto before = resource.usage();
  Player with{resource, queues, events.size()};
  auto played =
      samples.empty() ? play_all(with, events) : play_and_sample(with, resource, events, samples);
  if (played) {
    const auto after = resource.usage();
    played->maps = after.maps - before.maps;
    played->unmaps = after.unmaps - before.unmaps;
  }
  return played;
}

}  // namespace isthmus
