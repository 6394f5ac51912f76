// SPDX-License-Identifier: Apache-2.0
#include "transfer/staged.hpp"

#include <memory>

#include "backend/queue.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/ordering.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {
namespace {

// Large enough that a driver's fixed cost of a copy is negligible, small enough to stay in the
// caches.
constexpr std::size_t k_staged_bytes = std::size_t{4} << 20;

using Slot = StagingRing::Slot;

// Plain memory that a chunk passes through. The destructor waits for operations on it, also if an
// exception is thrown.
struct OwnStage final : Slot {
  explicit OwnStage(std::size_t nbytes) { memory = new std::byte[nbytes]; }
  OwnStage(const OwnStage&) = delete;
  OwnStage& operator=(const OwnStage&) = delete;
  ~OwnStage() {
    static_cast<void>(end());
    give_back(memory);
  }

  // When the process is ending it is unknown whether a submitted operation still runs; the memory
  // is then not freed.
  static void give_back(void* memory) noexcept {
    if (!os::drivers_are_gone()) {
      delete[] static_cast<std::byte*>(memory);
    }
  }
};

// Reads one chunk after another from one side and writes it to the other: reads chunk n while chunk
// n - 1 is being written.
class StagedCopy : public HostDriven {
 public:
  StagedCopy(const CopyPlan& movement, std::size_t piece_bytes)
      : HostDriven{movement}, parts_{movement.cut(piece_bytes)} {}

 protected:
  [[nodiscard]] Result<void> move_by_way_of(Slot& first, Slot& second, Queue& reading,
                                            Queue& writing) {
    for (std::size_t index = 0; index < parts_->count(); ++index) {
      auto& by_way_of = index % 2 == 0 ? first : second;
      ISTHMUS_TRY(by_way_of.end());
      auto read = parts_->read(reading, index, by_way_of.memory, {});
      ISTHMUS_TRY(read);
      by_way_of.in_flight = *std::move(read);
      ISTHMUS_TRY(by_way_of.end());
      auto write = parts_->write(writing, index, by_way_of.memory, {});
      ISTHMUS_TRY(write);
      by_way_of.in_flight = *std::move(write);
    }
    ISTHMUS_TRY(first.end());
    return second.end();
  }
  [[nodiscard]] std::size_t largest() const noexcept { return parts_->bytes(); }

 private:
  std::unique_ptr<const Parts> parts_;
};

// Through plain memory.
class PlainlyStaged final : public StagedCopy {
 public:
  PlainlyStaged(const CopyPlan& movement, Ref<Queue> reading, Ref<Queue> writing)
      : StagedCopy{movement, k_staged_bytes},
        reading_{std::move(reading)},
        writing_{std::move(writing)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    OwnStage first{largest()};
    OwnStage second{largest()};
    return move_by_way_of(first, second, *reading_, *writing_);
  }
  void release_now() noexcept override {
    reading_ = nullptr;
    writing_ = nullptr;
  }

 private:
  Ref<Queue> reading_;
  Ref<Queue> writing_;
};

// Through pinned memory of one side, on the queue of its staging slot, and a queue of the other
// side.
class PinnedStaged final : public StagedCopy {
 public:
  PinnedStaged(const CopyPlan& movement, StagingRing& ring, Side ring_is_of, Ref<Queue> other)
      : StagedCopy{movement, StagingRing::k_slot_bytes},
        ring_{ring},
        ring_is_of_{ring_is_of},
        other_{std::move(other)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    auto& with = ring_.take();
    const Undo given_back{[&] {
      for (auto& each : with.slots) {
        static_cast<void>(each.end());
      }
      ring_.give_back(with);
    }};
    const bool writes = ring_is_of_ == Side::destination;
    return move_by_way_of(with.slots[0], with.slots[1], writes ? *other_ : *with.queue,
                          writes ? *with.queue : *other_);
  }
  void release_now() noexcept override { other_ = nullptr; }

 private:
  StagingRing& ring_;
  const Side ring_is_of_;
  Ref<Queue> other_;
};

// For a queue of the destination that cannot wait for a library thread: reads the source now, and
// writes in the queue's order.
Submitted write_snapshot(Queue& queue, Queue& reading, const CopyPlan& movement,
                         TransferOptions options) {
  TouchedMemory read;
  read.add(movement.source, movement.source_bytes, false);
  std::vector<Ref<Event>> before;
  read.collect(nullptr, before);
  ISTHMUS_TRY(read.collect_queues(nullptr, before));
  read.add_contents(options);
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  const auto whole = movement.cut(SIZE_MAX);
  auto snapshot = std::make_unique_for_overwrite<std::byte[]>(whole->bytes());
  auto* const bytes = snapshot.get();
  auto taken = whole->read(reading, 0, bytes, {});
  ISTHMUS_TRY(taken);
  ISTHMUS_TRY((*taken)->wait(std::nullopt));
  options.owners.reserve(options.owners.size() + 1);
  options.owners.emplace_back(isthmus_owner_t{snapshot.release(), &OwnStage::give_back});
  OwnerKeeper keeper{std::move(options.owners)};
  TouchedMemory written;
  written.add(movement.destination, movement.destination_bytes, true);
  written.reserve();
  std::vector<Ref<Event>> after;
  ISTHMUS_TRY(written.order_after_conflicts(&queue, after));
  auto given = whole->write(queue, 0, bytes, after);
  ISTHMUS_TRY(given);
  written.publish(&queue, *given);
  keeper.until(**given);
  return given;
}

}  // namespace

bool has_ring(Device& device, bool to_device) {
  return device.copies_better_staged(nullptr, nullptr, SIZE_MAX, to_device) &&
         StagingRing::of(device).is_there();
}

Submitted copy_staged(Queue& queue, const CopyPlan& movement, TransferOptions options) {
  const auto& from = *movement.source.memory;
  const auto& to = *movement.destination.memory;
  const bool snapshot = !options.blocking && !queue.device().can(ISTHMUS_CAN_WAIT_FOR_HOST) &&
                        movement.destination.reached_by(queue);
  const bool to_ring = !snapshot && has_ring(to.device(), true);
  const bool from_ring = !snapshot && !to_ring && has_ring(from.device(), false);
  Ref<Queue> reading;
  Ref<Queue> writing;
  if (!from_ring) {
    auto made = from.context().create_queue(from.device());
    ISTHMUS_TRY(made);
    reading = *std::move(made);
  }
  if (!to_ring) {
    auto made = to.context().create_queue(to.device());
    ISTHMUS_TRY(made);
    writing = *std::move(made);
  }
  if (snapshot) {
    return write_snapshot(queue, *reading, movement, std::move(options));
  }
  std::shared_ptr<HostDriven> copied;
  if (to_ring) {
    copied = std::make_shared<PinnedStaged>(movement, StagingRing::of(to.device()),
                                            Side::destination, std::move(reading));
  } else if (from_ring) {
    copied = std::make_shared<PinnedStaged>(movement, StagingRing::of(from.device()), Side::source,
                                            std::move(writing));
  } else {
    copied = std::make_shared<PlainlyStaged>(movement, std::move(reading), std::move(writing));
  }
  return carry_out(&queue, copied, std::move(options));
}

}  // namespace isthmus
