// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include "array/element_parts.hpp"
#include "array/placed_move.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/parallel_copy.hpp"
#include "transfer/staged.hpp"

namespace isthmus {
namespace {

// The size of a staging slot: the driver's fixed cost is negligible, and the chunk stays in the
// caches.
constexpr std::size_t k_piece_bytes = StagingRing::k_slot_bytes;

// Buffers for a chunk: packed in the form of the source, and of the destination, each only if the
// host cannot access that side.
struct Stage {
  std::byte* source = nullptr;
  std::byte* destination = nullptr;
  Ref<Event> reading;
  Ref<Event> writing;

  [[nodiscard]] static Result<void> end(Ref<Event>& event) {
    return event ? std::exchange(event, nullptr)->wait(std::nullopt) : Result<void>{};
  }
};
using Stages = std::array<Stage, 2>;

// Moves chunks (`pieces`) through plain host memory, by one thread, on a queue of each side that
// the host cannot access. For devices without a staging ring, and between two devices.
class PiecedMove final : public HostDriven {
 public:
  PiecedMove(const PlacedMove& move, std::size_t most_piece_bytes, Ref<Queue> reading,
             Ref<Queue> writing)
      : HostDriven{move.touching()},
        parts_{move.what, most_piece_bytes},
        reading_{std::move(reading)},
        writing_{std::move(writing)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    std::unique_ptr<std::byte[], PlainDeleter> memory;
    Stages by_way_of;
    give_memory(by_way_of, memory);
    const Undo ended{[&] {  // before the memory is freed, also after an exception
      for (auto& each : by_way_of) {
        static_cast<void>(Stage::end(each.reading));
        static_cast<void>(Stage::end(each.writing));
      }
    }};
    return move_all(by_way_of);
  }
  void release_now() noexcept override {
    reading_ = nullptr;
    writing_ = nullptr;
  }

 private:
  // Once the process is ending it is unknown whether submitted operations still run, so the memory
  // is leaked.
  struct PlainDeleter {
    void operator()(std::byte* memory) const noexcept {
      if (!os::drivers_are_gone()) {
        delete[] memory;
      }
    }
  };

  void give_memory(Stages& all, std::unique_ptr<std::byte[], PlainDeleter>& memory) const {
    const std::size_t sides = reading_ && writing_ ? 2 : 1;
    memory.reset(new std::byte[all.size() * sides * parts_.bytes()]);
    auto* next = memory.get();
    for (auto& each : all) {
      if (reading_) {
        each.source = std::exchange(next, next + parts_.bytes());
      }
      if (writing_) {
        each.destination = std::exchange(next, next + parts_.bytes());
      }
    }
  }

  // Chunk n + 1 is read, and chunk n - 1 written, while chunk n is converted.
  [[nodiscard]] Result<void> move_all(Stages& by_way_of) {
    const auto count = parts_.count();
    ISTHMUS_TRY(read(by_way_of[0], 0));
    for (std::size_t index = 0; index < count; ++index) {
      auto& with = by_way_of.at(index % by_way_of.size());
      if (index + 1 < count) {
        ISTHMUS_TRY(read(by_way_of.at((index + 1) % by_way_of.size()), index + 1));
      }
      ISTHMUS_TRY(Stage::end(with.reading));
      ISTHMUS_TRY(Stage::end(with.writing));
      ISTHMUS_TRY(write(with, index));
    }
    for (auto& each : by_way_of) {
      ISTHMUS_TRY(Stage::end(each.writing));
    }
    return {};
  }
  [[nodiscard]] Result<void> read(Stage& with, std::size_t index) const {
    if (!reading_) {
      return {};
    }
    auto submitted = parts_.read(*reading_, index, with.source, {});
    ISTHMUS_TRY(submitted);
    with.reading = *std::move(submitted);
    return {};
  }
  // Waits until the chunk has been read.
  [[nodiscard]] Result<void> write(Stage& with, std::size_t index) const {
    if (!writing_) {
      parts_.scatter(index, with.source);
      return {};
    }
    const auto* packed = with.destination;
    if (reading_) {
      packed = parts_.turn(index, with.source, with.destination);
    } else {
      parts_.gather(index, with.destination);
    }
    auto submitted = parts_.write(*writing_, index, packed, {});
    ISTHMUS_TRY(submitted);
    with.writing = *std::move(submitted);
    return {};
  }

  const ElementParts parts_;
  Ref<Queue> reading_;  // null: the host can access that side
  Ref<Queue> writing_;
};

Result<Ref<Queue>> queue_of(const Endpoint& place) {
  return place.host_can_copy() ? Result<Ref<Queue>>{Ref<Queue>{}}
                               : place.memory->context().create_queue(place.memory->device());
}

// The device whose staging ring is used for the whole move. Null if there is none, or if the sides
// are on two devices, each of which would need its own ring.
Device* device_of_ring(const PlacedMove& move) {
  const bool reads = !move.source.host_can_copy();
  const bool writes = !move.destination.host_can_copy();
  auto& where = (writes ? move.destination : move.source).memory->device();
  if (reads && writes && &where != &move.source.memory->device()) {
    return nullptr;
  }
  const bool is_there = (!reads || has_ring(where, false)) && (!writes || has_ring(where, true));
  return is_there ? &where : nullptr;
}

}  // namespace

Submitted move_in_pieces(Queue& queue, const PlacedMove& move, TransferOptions options,
                         std::size_t most_piece_bytes) {
  if (auto* const where = device_of_ring(move)) {
    const RingWay way{StagingRing::of(*where), !move.source.host_can_copy(),
                      !move.destination.host_can_copy(), true};
    const auto cut = [&](std::size_t most_bytes) {
      return std::make_unique<ElementParts>(move.what, std::min(most_bytes, most_piece_bytes));
    };
    return copy_by_crew(queue, move.touching(), way, cut, std::move(options));
  }
  auto reading = queue_of(move.source);
  ISTHMUS_TRY(reading);
  const bool is_one_device =
      *reading && !move.destination.host_can_copy() && move.destination.reached_by(**reading);
  auto writing = is_one_device ? Result<Ref<Queue>>{*reading} : queue_of(move.destination);
  ISTHMUS_TRY(writing);
  return carry_out(&queue,
                   std::make_shared<PiecedMove>(move, std::min(most_piece_bytes, k_piece_bytes),
                                                *std::move(reading), *std::move(writing)),
                   std::move(options));
}

}  // namespace isthmus
