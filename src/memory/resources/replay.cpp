// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/replay.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "memory/records/bare_pointers.hpp"

namespace isthmus {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t ns_since(Clock::time_point start) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// Returns the minimum difference of two consecutive clock readings.
std::uint64_t clock_overhead_ns() noexcept {
  auto min_ns = ~std::uint64_t{0};
  for (int i = 0; i < 1000; ++i) {
    min_ns = std::min(min_ns, ns_since(Clock::now()));
  }
  return min_ns;
}

// Checks the fields of an event that the replay uses as indices or as a choice.
[[nodiscard]] Result<void> check_event(std::size_t number, const TraceEvent& event,
                                       std::size_t event_count, std::size_t queue_count) {
  if (event.action > ISTHMUS_TRACE_ALLOCATE) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "event {} of the trace has action {}, neither 0 (free) nor 1 (allocate)", number,
                event.action);
  }
  if (event.id >= event_count) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "event {} of the trace has id {}, not below the number of events, {}", number,
                event.id, event_count);
  }
  if (event.queue >= queue_count) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "event {} of the trace has queue {}, not below the number of queues, {}", number,
                event.queue, queue_count);
  }
  return {};
}

[[nodiscard]] Result<void> check_all(std::span<const TraceEvent> events, std::size_t queue_count) {
  std::vector<bool> live(events.size());
  for (std::size_t number = 0; number < events.size(); ++number) {
    const auto& event = events[number];
    ISTHMUS_TRY(check_event(number, event, events.size(), queue_count));
    const bool allocates = event.action == ISTHMUS_TRACE_ALLOCATE;
    if (allocates == live[event.id]) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the trace {} block {}, which is {}",
                  number, allocates ? "allocates" : "frees", event.id,
                  allocates ? "already allocated" : "not allocated");
    }
    if (allocates && event.nbytes == 0) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the trace allocates 0 bytes",
                  number);
    }
    live[event.id] = allocates;
  }
  return {};
}

// Owns the live blocks during a replay; the destructor frees the remaining ones.
class Replayer {
 public:
  Replayer(MemoryResource& resource, std::span<Queue* const> queues, std::size_t event_count)
      : resource_{resource}, queues_{queues}, blocks_(event_count) {}
  Replayer(const Replayer&) = delete;
  Replayer& operator=(const Replayer&) = delete;
  ~Replayer() {
    for (auto& block : blocks_) {
      static_cast<void>(free_block(block));
    }
  }

  // The event was checked by `check_all`.
  [[nodiscard]] Result<void> replay_event(const TraceEvent& event) {
    auto& block = blocks_[event.id];
    auto* queue = queues_[event.queue];
    if (event.action == ISTHMUS_TRACE_FREE) {
      block.queue = queue;
      return free_block(block);
    }
    auto memory = allocate_raw(resource_, event.nbytes, 0, *queue);
    ISTHMUS_TRY(memory);
    block = {*memory, event.nbytes, queue};
    return {};
  }

 private:
  struct Block {
    void* memory = nullptr;
    std::uint64_t nbytes = 0;
    Queue* queue = nullptr;  // the block is freed after this queue's work
  };
  Result<void> free_block(Block& block) {
    auto* memory = std::exchange(block.memory, nullptr);
    return memory == nullptr ? Result<void>{}
                             : deallocate_raw(resource_, memory, block.nbytes, block.queue);
  }

  MemoryResource& resource_;
  const std::span<Queue* const> queues_;
  std::vector<Block> blocks_;  // by id
};

[[nodiscard]] Result<ReplayResult> replay_all(Replayer& replayer,
                                              std::span<const TraceEvent> events) {
  const auto start = Clock::now();
  for (const auto& event : events) {
    ISTHMUS_TRY(replayer.replay_event(event));
  }
  return ReplayResult{.ns = ns_since(start)};
}

[[nodiscard]] Result<ReplayResult> replay_and_sample(Replayer& replayer, MemoryResource& resource,
                                                     std::span<const TraceEvent> events,
                                                     std::span<TraceSample> samples) {
  const auto overhead = clock_overhead_ns();
  ReplayResult result;
  for (std::size_t number = 0; number < events.size(); ++number) {
    const auto start = Clock::now();
    auto status = replayer.replay_event(events[number]);
    const auto elapsed_ns = ns_since(start);
    ISTHMUS_TRY(status);
    samples[number] = {resource.usage().held_bytes, elapsed_ns - std::min(elapsed_ns, overhead)};
    result.ns += samples[number].ns;
    result.peak_held_bytes = std::max(result.peak_held_bytes, samples[number].held_bytes);
  }
  return result;
}

}  // namespace

Result<ReplayResult> replay(MemoryResource& resource, std::span<Queue* const> queues,
                            std::span<const TraceEvent> events, std::span<TraceSample> samples) {
  ISTHMUS_TRY(check_all(events, queues.size()));
  const auto usage_before = resource.usage();
  Replayer replayer{resource, queues, events.size()};
  auto result = samples.empty() ? replay_all(replayer, events)
                                : replay_and_sample(replayer, resource, events, samples);
  if (result) {
    const auto usage_after = resource.usage();
    result->maps = usage_after.maps - usage_before.maps;
    result->unmaps = usage_after.unmaps - usage_before.unmaps;
  }
  return result;
}

}  // namespace isthmus
