// SPDX-License-Identifier: Apache-2.0
#include "transfer/staged.hpp"

#include <memory>

#include "backend/queue.hpp"
#include "core/expects.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/ordering.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {
namespace {

// Chunk size in pageable memory: large enough that the fixed cost of a driver's copy is negligible,
// small enough for the processor caches.
constexpr std::size_t k_staged_bytes = std::size_t{4} << 20;

using Slot = StagingRing::Slot;

// Pageable memory for one chunk. The destructor waits for operations on the memory, also when an
// exception is thrown.
struct StagingMemory final : Slot {
  explicit StagingMemory(std::size_t nbytes) { memory = new std::byte[nbytes]; }
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;
  ~StagingMemory() {
    static_cast<void>(end());
    release(memory);
  }

  // While the process exits it is unknown whether a submitted operation still runs, so the memory
  // is not freed then.
  static void release(void* memory) noexcept {
    if (!os::drivers_unavailable()) {
      delete[] static_cast<std::byte*>(memory);
    }
  }
};

// Copies chunk by chunk: reads chunk n from the source while chunk n - 1 is being written to the
// destination.
class StagedCopy : public HostDriven {
 public:
  StagedCopy(const CopyPlan& plan, std::size_t chunk_bytes)
      : HostDriven{plan}, chunks_{plan.cut(chunk_bytes)} {}

 protected:
  [[nodiscard]] Result<void> move_through(Slot& first, Slot& second, Queue& read_queue,
                                          Queue& write_queue) {
    for (std::size_t index = 0; index < chunks_->count(); ++index) {
      auto& slot = index % 2 == 0 ? first : second;
      ISTHMUS_TRY(slot.end());
      auto read = chunks_->read(read_queue, index, slot.memory, {});
      ISTHMUS_TRY(read);
      slot.in_flight = *std::move(read);
      ISTHMUS_TRY(slot.end());
      auto write = chunks_->write(write_queue, index, slot.memory, {});
      ISTHMUS_TRY(write);
      slot.in_flight = *std::move(write);
    }
    ISTHMUS_TRY(first.end());
    return second.end();
  }
  [[nodiscard]] std::size_t largest() const noexcept { return chunks_->bytes(); }

 private:
  std::unique_ptr<const CopyChunks> chunks_;
};

// A copy through pageable memory.
class PageableStagedCopy final : public StagedCopy {
 public:
  PageableStagedCopy(const CopyPlan& plan, Ref<Queue> read_queue, Ref<Queue> write_queue)
      : StagedCopy{plan, k_staged_bytes},
        read_queue_{std::move(read_queue)},
        write_queue_{std::move(write_queue)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    StagingMemory first{largest()};
    StagingMemory second{largest()};
    return move_through(first, second, *read_queue_, *write_queue_);
  }
  void release_resources() noexcept override {
    read_queue_ = nullptr;
    write_queue_ = nullptr;
  }

 private:
  Ref<Queue> read_queue_;
  Ref<Queue> write_queue_;
};

// A copy through the staging ring of one side: a slot pair's queue accesses that side,
// `other_queue` the other.
class PinnedStagedCopy final : public StagedCopy {
 public:
  PinnedStagedCopy(const CopyPlan& plan, StagingRing& ring, Side ring_side, Ref<Queue> other_queue)
      : StagedCopy{plan, StagingRing::k_slot_bytes},
        ring_{ring},
        ring_side_{ring_side},
        other_queue_{std::move(other_queue)} {}

 protected:
  [[nodiscard]] Result<void> move() override {
    auto& pair = ring_.acquire();
    const Undo release_pair{[&] {
      for (auto& each : pair.slots) {
        static_cast<void>(each.end());
      }
      ring_.release(pair);
    }};
    const bool writes = ring_side_ == Side::destination;
    return move_through(pair.slots[0], pair.slots[1], writes ? *other_queue_ : *pair.queue,
                        writes ? *pair.queue : *other_queue_);
  }
  void release_resources() noexcept override { other_queue_ = nullptr; }

 private:
  StagingRing& ring_;
  const Side ring_side_;
  Ref<Queue> other_queue_;
};

// Reads the source before it returns, then writes to the destination in the order of `queue`. Used
// if `queue` belongs to the destination and cannot wait for a library thread.
Submitted write_snapshot(Queue& queue, Queue& read_queue, const CopyPlan& plan,
                         TransferOptions options) {
  TouchedMemory read;
  read.add(plan.source, plan.source_bytes, false);
  std::vector<Ref<Event>> conflicts;
  read.collect(nullptr, conflicts);
  ISTHMUS_TRY(read.collect_queues(nullptr, conflicts));
  read.add_contents(options);
  ISTHMUS_TRY(wait_for_all(options.after));
  ISTHMUS_TRY(wait_until_ended(conflicts, std::nullopt));
  const auto whole = plan.cut(SIZE_MAX);
  auto snapshot = std::make_unique_for_overwrite<std::byte[]>(whole->bytes());
  auto* const bytes = snapshot.get();
  auto read_event = whole->read(read_queue, 0, bytes, {});
  ISTHMUS_TRY(read_event);
  ISTHMUS_TRY((*read_event)->wait_unchecked(std::nullopt));  // fills `snapshot`
  options.owners.reserve(options.owners.size() + 1);
  options.owners.emplace_back(isthmus_owner_t{snapshot.release(), &StagingMemory::release});
  OwnerKeeper keeper{std::move(options.owners)};
  TouchedMemory written;
  written.add(plan.destination, plan.destination_bytes, true);
  written.reserve();
  std::vector<Ref<Event>> after;
  ISTHMUS_TRY(written.order_after_conflicts(&queue, after));
  auto write_event = whole->write(queue, 0, bytes, after);
  ISTHMUS_TRY(write_event);
  written.publish(&queue, *write_event);
  keeper.keep_until(**write_event);
  return write_event;
}

}  // namespace

bool has_ring(Device& device, bool to_device) {
  return device.copies_better_staged(nullptr, nullptr, SIZE_MAX, to_device) &&
         StagingRing::of(device).is_available();
}

Submitted copy_staged(Queue& queue, const CopyPlan& plan, TransferOptions options) {
  ISTHMUS_EXPECTS(plan.source.memory && plan.destination.memory);
  const auto& source_memory = *plan.source.memory;
  const auto& destination_memory = *plan.destination.memory;
  const bool snapshot = !options.blocking && !queue.device().can(ISTHMUS_CAN_WAIT_FOR_HOST) &&
                        plan.destination.is_reachable_by(queue);
  const bool to_ring = !snapshot && has_ring(destination_memory.device(), true);
  const bool from_ring = !snapshot && !to_ring && has_ring(source_memory.device(), false);
  Ref<Queue> read_queue;
  Ref<Queue> write_queue;
  if (!from_ring) {
    auto created = Queue::create(source_memory.context(), source_memory.device());
    ISTHMUS_TRY(created);
    read_queue = *std::move(created);
  }
  if (!to_ring) {
    auto created = Queue::create(destination_memory.context(), destination_memory.device());
    ISTHMUS_TRY(created);
    write_queue = *std::move(created);
  }
  if (snapshot) {
    return write_snapshot(queue, *read_queue, plan, std::move(options));
  }
  std::shared_ptr<HostDriven> operation;
  if (to_ring) {
    operation =
        std::make_shared<PinnedStagedCopy>(plan, StagingRing::of(destination_memory.device()),
                                           Side::destination, std::move(read_queue));
  } else if (from_ring) {
    operation = std::make_shared<PinnedStagedCopy>(plan, StagingRing::of(source_memory.device()),
                                                   Side::source, std::move(write_queue));
  } else {
    operation =
        std::make_shared<PageableStagedCopy>(plan, std::move(read_queue), std::move(write_queue));
  }
  return carry_out(&queue, operation, std::move(options));
}

}  // namespace isthmus
