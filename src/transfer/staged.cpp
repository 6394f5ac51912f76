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

using slot = staging_ring::slot;

// Plain memory that a chunk passes through. The destructor waits for operations on it, also if an
// exception is thrown.
struct own_stage final : slot {
  explicit own_stage(std::size_t nbytes) { memory = new std::byte[nbytes]; }
  own_stage(const own_stage&) = delete;
  own_stage& operator=(const own_stage&) = delete;
  ~own_stage() {
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
class staged_copy : public host_driven {
 public:
  staged_copy(const movement& what, std::size_t piece_bytes)
      : host_driven{what}, parts_{what.cut(piece_bytes)} {}

 protected:
  [[nodiscard]] result<void> move_by_way_of(slot& first, slot& second, queue& reading,
                                            queue& writing) {
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
  std::unique_ptr<const parts> parts_;
};

// Through plain memory.
class plainly_staged final : public staged_copy {
 public:
  plainly_staged(const movement& what, ref<queue> reading, ref<queue> writing)
      : staged_copy{what, k_staged_bytes},
        reading_{std::move(reading)},
        writing_{std::move(writing)} {}

 protected:
  [[nodiscard]] result<void> move() override {
    own_stage first{largest()};
    own_stage second{largest()};
    return move_by_way_of(first, second, *reading_, *writing_);
  }
  void let_go() noexcept override {
    reading_ = nullptr;
    writing_ = nullptr;
  }

 private:
  ref<queue> reading_;
  ref<queue> writing_;
};

// Through pinned memory of one side, on the queue of its staging slot, and a queue of the other
// side.
class pinned_staged final : public staged_copy {
 public:
  pinned_staged(const movement& what, staging_ring& ring, side ring_is_of, ref<queue> other)
      : staged_copy{what, staging_ring::k_slot_bytes},
        ring_{ring},
        ring_is_of_{ring_is_of},
        other_{std::move(other)} {}

 protected:
  [[nodiscard]] result<void> move() override {
    auto& with = ring_.take();
    const undo given_back{[&] {
      for (auto& each : with.slots) {
        static_cast<void>(each.end());
      }
      ring_.give_back(with);
    }};
    const bool writes = ring_is_of_ == side::destination;
    return move_by_way_of(with.slots[0], with.slots[1], writes ? *other_ : *with.on,
                          writes ? *with.on : *other_);
  }
  void let_go() noexcept override { other_ = nullptr; }

 private:
  staging_ring& ring_;
  const side ring_is_of_;
  ref<queue> other_;
};

// For a queue of the destination that cannot wait for a library thread: reads the source now, and
// writes in the queue's order.
submitted write_snapshot(queue& on, queue& reading, const movement& what,
                         transfer_options options) {
  touched_memory read;
  read.add(what.source, what.source_bytes, false);
  std::vector<ref<event>> before;
  read.collect(nullptr, before);
  ISTHMUS_TRY(read.collect_queues(nullptr, before));
  read.add_contents(options);
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  const auto whole = what.cut(SIZE_MAX);
  auto snapshot = std::make_unique_for_overwrite<std::byte[]>(whole->bytes());
  auto* const bytes = snapshot.get();
  auto taken = whole->read(reading, 0, bytes, {});
  ISTHMUS_TRY(taken);
  ISTHMUS_TRY((*taken)->wait(std::nullopt));
  options.owners.reserve(options.owners.size() + 1);
  options.owners.emplace_back(isthmus_owner_t{snapshot.release(), &own_stage::give_back});
  owner_keeper keeper{std::move(options.owners)};
  touched_memory written;
  written.add(what.destination, what.destination_bytes, true);
  written.reserve();
  std::vector<ref<event>> after;
  ISTHMUS_TRY(written.order_after_conflicts(&on, after));
  auto given = whole->write(on, 0, bytes, after);
  ISTHMUS_TRY(given);
  written.publish(&on, *given);
  keeper.until(**given);
  return given;
}

}  // namespace

bool has_ring(device& where, bool to_device) {
  return where.copies_better_staged(nullptr, nullptr, SIZE_MAX, to_device) &&
         staging_ring::of(where).is_there();
}

submitted copy_staged(queue& on, const movement& what, transfer_options options) {
  const auto& from = *what.source.memory;
  const auto& to = *what.destination.memory;
  const bool snapshot = !options.blocking && !on.where().can(ISTHMUS_CAN_WAIT_FOR_HOST) &&
                        what.destination.reached_by(on);
  const bool to_ring = !snapshot && has_ring(to.where(), true);
  const bool from_ring = !snapshot && !to_ring && has_ring(from.where(), false);
  ref<queue> reading;
  ref<queue> writing;
  if (!from_ring) {
    auto made = from.home().create_queue(from.where());
    ISTHMUS_TRY(made);
    reading = *std::move(made);
  }
  if (!to_ring) {
    auto made = to.home().create_queue(to.where());
    ISTHMUS_TRY(made);
    writing = *std::move(made);
  }
  if (snapshot) {
    return write_snapshot(on, *reading, what, std::move(options));
  }
  std::shared_ptr<host_driven> copied;
  if (to_ring) {
    copied = std::make_shared<pinned_staged>(what, staging_ring::of(to.where()), side::destination,
                                             std::move(reading));
  } else if (from_ring) {
    copied = std::make_shared<pinned_staged>(what, staging_ring::of(from.where()), side::source,
                                             std::move(writing));
  } else {
    copied = std::make_shared<plainly_staged>(what, std::move(reading), std::move(writing));
  }
  return carry_out(&on, copied, std::move(options));
}

}  // namespace isthmus
