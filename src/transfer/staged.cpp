#include "transfer/staged.hpp"

#include <array>
#include <memory>

#include "backend/queue.hpp"
#include "os/process.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {
namespace {

// Large enough that a driver's fixed cost a copy vanishes, small enough to stay in the caches.
constexpr std::size_t k_piece_bytes = std::size_t{4} << 20;

// Host memory that a piece goes by way of. It does not go before what was submitted on it has
// ended, whatever is thrown.
struct stage {
  explicit stage(std::size_t nbytes)
      : memory{std::make_unique_for_overwrite<std::byte[]>(nbytes)} {}
  stage(const stage&) = delete;
  stage& operator=(const stage&) = delete;
  ~stage() {
    static_cast<void>(end());
    give_back(memory.release());
  }

  // Once the process is ending nobody can tell whether what was submitted still runs.
  static void give_back(void* memory) noexcept {
    if (!os::drivers_are_gone()) {
      delete[] static_cast<std::byte*>(memory);
    }
  }

  [[nodiscard]] result<void> end() {
    return in_flight ? in_flight->wait(std::nullopt) : result<void>{};
  }

  std::unique_ptr<std::byte[]> memory;
  ref<event> in_flight;
};

class staged_copy final : public host_driven {
 public:
  staged_copy(const movement& what, ref<queue> reading, ref<queue> writing)
      : host_driven{what},
        parts_{what.cut(k_piece_bytes)},
        reading_{std::move(reading)},
        writing_{std::move(writing)} {}

 protected:
  // Reads piece n while piece n - 1 is being written.
  [[nodiscard]] result<void> move() override {
    std::array<stage, 2> stages{stage{parts_->bytes()}, stage{parts_->bytes()}};
    for (std::size_t index = 0; index < parts_->count(); ++index) {
      ISTHMUS_TRY(move_one(index, stages[index % 2]));
    }
    ISTHMUS_TRY(stages[0].end());
    return stages[1].end();
  }
  void let_go() noexcept override {
    reading_ = nullptr;
    writing_ = nullptr;
  }

 private:
  [[nodiscard]] result<void> move_one(std::size_t index, stage& by_way_of) {
    ISTHMUS_TRY(by_way_of.end());
    auto read = parts_->read(*reading_, index, by_way_of.memory.get(), {});
    ISTHMUS_TRY(read);
    by_way_of.in_flight = *std::move(read);
    ISTHMUS_TRY(by_way_of.end());
    auto write = parts_->write(*writing_, index, by_way_of.memory.get(), {});
    ISTHMUS_TRY(write);
    by_way_of.in_flight = *std::move(write);
    return {};
  }

  std::unique_ptr<const parts> parts_;
  ref<queue> reading_;
  ref<queue> writing_;
};

// On a queue of the destination that cannot wait for a thread of ours: reads the source now, and
// writes in the queue's order.
submitted write_snapshot(queue& on, queue& reading, const movement& what,
                         transfer_options options) {
  touched_memory read;
  read.add(what.source, what.source_bytes, false);
  std::vector<ref<event>> before;
  read.collect(nullptr, before);
  ISTHMUS_TRY(read.collect_queues(nullptr, before));
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  const auto whole = what.cut(SIZE_MAX);
  auto snapshot = std::make_unique_for_overwrite<std::byte[]>(whole->bytes());
  auto* const bytes = snapshot.get();
  auto taken = whole->read(reading, 0, bytes, {});
  ISTHMUS_TRY(taken);
  ISTHMUS_TRY((*taken)->wait(std::nullopt));
  options.owners.emplace_back(isthmus_owner_t{snapshot.release(), &stage::give_back});
  owner_keeper keeper{std::move(options.owners)};
  touched_memory written;
  written.add(what.destination, what.destination_bytes, true);
  std::vector<ref<event>> after;
  written.collect(&on, after);
  ISTHMUS_TRY(written.collect_lent(&on, after));
  auto given = whole->write(on, 0, bytes, after);
  ISTHMUS_TRY(given);
  written.publish(&on, *given);
  keeper.until(**given);
  return given;
}

}  // namespace

submitted copy_staged(queue& on, const movement& what, transfer_options options) {
  const auto& from = *what.source.memory;
  const auto& to = *what.destination.memory;
  auto reading = from.home().create_queue(from.where());
  ISTHMUS_TRY(reading);
  auto writing = to.home().create_queue(to.where());
  ISTHMUS_TRY(writing);
  if (!options.blocking && !on.where().can(ISTHMUS_CAN_WAIT_FOR_HOST) &&
      what.destination.in_context_of(on)) {
    return write_snapshot(on, **reading, what, std::move(options));
  }
  return carry_out(&on,
                   std::make_shared<staged_copy>(what, *std::move(reading), *std::move(writing)),
                   std::move(options));
}

}  // namespace isthmus
