// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "array/element_chunks.hpp"
#include "array/endpoint_move.hpp"
#include "core/expects.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/parallel_copy.hpp"
#include "transfer/staged.hpp"

namespace isthmus {
namespace {

// The size of a staging slot: large enough that the fixed cost of a driver call is negligible,
// small enough for the processor caches.
constexpr std::size_t k_chunk_bytes = StagingRing::k_slot_bytes;

// Buffers for the packed elements of a chunk, in the dtype of the source and of the destination. A
// buffer exists only if the host cannot access that side.
struct Stage {
  std::byte* source = nullptr;
  std::byte* destination = nullptr;
  Ref<Event> read_event;
  Ref<Event> write_event;

  // Waits for the event, if there is one, and drops it. The wait must not be refused, since the
  // buffers are reused after it, and the queues of the move run no functions.
  [[nodiscard]] static Result<void> wait_for(Ref<Event>& event) {
    return event ? std::exchange(event, nullptr)->wait_unchecked(std::nullopt) : Result<void>{};
  }
};
using Stages = std::array<Stage, 2>;

// Moves chunks through pageable memory with one thread, and with a queue for each side that the
// host cannot access. Used for devices without a staging ring, and between two devices.
class ChunkedMove final : public HostDriven {
 public:
  ChunkedMove(const EndpointMove& move, std::size_t max_chunk_bytes, Ref<Queue> read_queue,
              Ref<Queue> write_queue)
      : HostDriven{move.access_plan()},
        chunks_{move.element_move, max_chunk_bytes},
        read_queue_{std::move(read_queue)},
        write_queue_{std::move(write_queue)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    std::unique_ptr<std::byte[], ExitAwareDeleter> memory;
    Stages stages;
    assign_memory(stages, memory);
    const Undo wait_for_events{[&] {  // before the memory is freed, also after an exception
      for (auto& stage : stages) {
        static_cast<void>(Stage::wait_for(stage.read_event));
        static_cast<void>(Stage::wait_for(stage.write_event));
      }
    }};
    return move_all(stages);
  }
  void release_resources() noexcept override {
    read_queue_ = nullptr;
    write_queue_ = nullptr;
  }

 private:
  // While the process exits it is unknown whether submitted operations still run, so the memory is
  // not freed then.
  struct ExitAwareDeleter {
    void operator()(std::byte* memory) const noexcept {
      if (!os::drivers_unavailable()) {
        delete[] memory;
      }
    }
  };

  void assign_memory(Stages& stages, std::unique_ptr<std::byte[], ExitAwareDeleter>& memory) const {
    const std::size_t sides = read_queue_ && write_queue_ ? 2 : 1;
    memory.reset(new std::byte[stages.size() * sides * chunks_.bytes()]);
    auto* next = memory.get();
    for (auto& stage : stages) {
      if (read_queue_) {
        stage.source = std::exchange(next, next + chunks_.bytes());
      }
      if (write_queue_) {
        stage.destination = std::exchange(next, next + chunks_.bytes());
      }
    }
  }

  // Reads chunk n + 1 and writes chunk n - 1 while it converts chunk n.
  [[nodiscard]] Result<void> move_all(Stages& stages) {
    const auto count = chunks_.count();
    ISTHMUS_TRY(read(stages[0], 0));
    for (std::size_t index = 0; index < count; ++index) {
      auto& stage = stages.at(index % stages.size());
      if (index + 1 < count) {
        ISTHMUS_TRY(read(stages.at((index + 1) % stages.size()), index + 1));
      }
      ISTHMUS_TRY(Stage::wait_for(stage.read_event));
      ISTHMUS_TRY(Stage::wait_for(stage.write_event));
      ISTHMUS_TRY(write(stage, index));
    }
    for (auto& stage : stages) {
      ISTHMUS_TRY(Stage::wait_for(stage.write_event));
    }
    return {};
  }
  [[nodiscard]] Result<void> read(Stage& stage, std::size_t index) const {
    if (!read_queue_) {
      return {};
    }
    auto submitted = chunks_.read(*read_queue_, index, stage.source, {});
    ISTHMUS_TRY(submitted);
    stage.read_event = *std::move(submitted);
    return {};
  }
  // Converts a chunk, which has been read, and writes it.
  [[nodiscard]] Result<void> write(Stage& stage, std::size_t index) const {
    if (!write_queue_) {
      chunks_.scatter(index, stage.source);
      return {};
    }
    const auto* packed = stage.destination;
    if (read_queue_) {
      packed = chunks_.convert(index, stage.source, stage.destination);
    } else {
      chunks_.gather(index, stage.destination);
    }
    auto submitted = chunks_.write(*write_queue_, index, packed, {});
    ISTHMUS_TRY(submitted);
    stage.write_event = *std::move(submitted);
    return {};
  }

  const ElementChunks chunks_;
  Ref<Queue> read_queue_;  // null: the host can access that side
  Ref<Queue> write_queue_;
};

Result<Ref<Queue>> queue_of(const Endpoint& endpoint) {
  return endpoint.host_can_copy()
             ? Result<Ref<Queue>>{Ref<Queue>{}}
             : Queue::create(endpoint.memory->context(), endpoint.memory->device());
}

// Returns the device whose staging ring the move uses. Null if there is no ring, or if the sides
// are on two devices, so that one ring does not suffice.
Device* device_of_ring(const EndpointMove& move) {
  const bool reads = !move.source.host_can_copy();
  const bool writes = !move.destination.host_can_copy();
  auto& device = (writes ? move.destination : move.source).memory->device();
  if (reads && writes && &device != &move.source.memory->device()) {
    return nullptr;
  }
  const bool has_rings = (!reads || has_ring(device, false)) && (!writes || has_ring(device, true));
  return has_rings ? &device : nullptr;
}

}  // namespace

Submitted move_in_chunks(Queue& queue, const EndpointMove& move, TransferOptions options,
                         std::size_t max_chunk_bytes) {
  ISTHMUS_EXPECTS(!move.host_can_copy());
  if (auto* const device = device_of_ring(move)) {
    const RingDirection route{StagingRing::of(*device), !move.source.host_can_copy(),
                              !move.destination.host_can_copy(), true};
    const auto make_chunks = [&](std::size_t max_bytes) {
      return std::make_unique<ElementChunks>(move.element_move,
                                             std::min(max_bytes, max_chunk_bytes));
    };
    return copy_in_parallel(queue, move.access_plan(), route, make_chunks, std::move(options));
  }
  auto read_queue = queue_of(move.source);
  ISTHMUS_TRY(read_queue);
  const bool is_one_device = *read_queue && !move.destination.host_can_copy() &&
                             move.destination.is_reachable_by(**read_queue);
  auto write_queue = is_one_device ? Result<Ref<Queue>>{*read_queue} : queue_of(move.destination);
  ISTHMUS_TRY(write_queue);
  return carry_out(&queue,
                   std::make_shared<ChunkedMove>(move, std::min(max_chunk_bytes, k_chunk_bytes),
                                                 *std::move(read_queue), *std::move(write_queue)),
                   std::move(options));
}

}  // namespace isthmus
