#include "transfer/staged.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <memory>

#include "backend/library_threads.hpp"
#include "backend/queue.hpp"
#include "os/process.hpp"
#include "transfer/ordering.hpp"

namespace isthmus {
namespace {

// Large enough that a driver's fixed cost a copy vanishes, small enough to stay in the caches.
constexpr std::size_t k_piece_bytes = std::size_t{4} << 20;

struct piece {
  std::byte* destination;
  std::byte* source;
  std::size_t width;
  std::size_t rows;
};

// Cuts a shape into pieces of whole rows, or rows that are too long into runs.
class pieces {
 public:
  pieces(std::byte* destination, std::byte* source, const pitched& shape)
      : destination_{destination},
        source_{source},
        shape_{shape},
        width_{std::min(shape.width, k_piece_bytes)},
        rows_{std::min(k_piece_bytes / width_, shape.height)} {}

  [[nodiscard]] std::size_t count() const noexcept {
    return columns() * ((shape_.height + rows_ - 1) / rows_);
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return width_ * rows_; }
  [[nodiscard]] piece at(std::size_t index) const noexcept {
    const auto row = index / columns() * rows_;
    const auto begin = index % columns() * width_;
    return {destination_ + row * shape_.destination_pitch + begin,
            source_ + row * shape_.source_pitch + begin, std::min(width_, shape_.width - begin),
            std::min(rows_, shape_.height - row)};
  }
  [[nodiscard]] submitted read(queue& on, const piece& what, std::byte* into,
                               wait_list after) const {
    return on.copy_2d({into, what.width, what.source, shape_.source_pitch, what.width, what.rows},
                      after);
  }
  [[nodiscard]] submitted write(queue& on, const piece& what, std::byte* from,
                                wait_list after) const {
    return on.copy_2d(
        {what.destination, shape_.destination_pitch, from, what.width, what.width, what.rows},
        after);
  }

 private:
  [[nodiscard]] std::size_t columns() const noexcept {
    return (shape_.width + width_ - 1) / width_;
  }

  std::byte* destination_;
  std::byte* source_;
  pitched shape_;
  std::size_t width_;
  std::size_t rows_;  // 1 where a row is in several pieces
};

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

// What a staged copy in flight owns.
struct staged_copy {
  pieces parts;
  ref<queue> reading;
  ref<queue> writing;
  ref<allocation> destination;
  ref<allocation> source;
  std::vector<ref<event>> after;
  std::vector<ref<event>> before;  // in order, but not its concern whether it failed
  std::vector<owner> owners;
  ref<library_event> done;

  [[nodiscard]] result<void> await_turn() const {
    ISTHMUS_TRY(wait_for_all(after));
    let_end(before);
    return {};
  }
  // Reads piece n while piece n - 1 is being written.
  [[nodiscard]] result<void> move_pieces() {
    std::array<stage, 2> stages{stage{parts.bytes()}, stage{parts.bytes()}};
    for (std::size_t index = 0; index < parts.count(); ++index) {
      ISTHMUS_TRY(move_one(parts.at(index), stages[index % 2]));
    }
    ISTHMUS_TRY(stages[0].end());
    return stages[1].end();
  }

 private:
  [[nodiscard]] result<void> move_one(const piece& what, stage& by_way_of) {
    ISTHMUS_TRY(by_way_of.end());
    auto read = parts.read(*reading, what, by_way_of.memory.get(), {});
    ISTHMUS_TRY(read);
    by_way_of.in_flight = *std::move(read);
    ISTHMUS_TRY(by_way_of.end());
    auto write = parts.write(*writing, what, by_way_of.memory.get(), {});
    ISTHMUS_TRY(write);
    by_way_of.in_flight = *std::move(write);
    return {};
  }
};

error run_guarded(staged_copy& copy) noexcept try {
  return copy.move_pieces().take_error();
} catch (const std::bad_alloc&) {
  return fail(ISTHMUS_ERROR_OUT_OF_MEMORY,
              "no host memory for the pieces of a copy between contexts");
}

// On a thread of the library. Nothing of a driver's is left in `copy` when it is told to have
// ended: the end of the process may follow at once.
error run_to_the_end(staged_copy& copy) noexcept {
  auto outcome = copy.await_turn().take_error();
  const os::driver_call calls;
  if (!calls) {
    return fail(ISTHMUS_ERROR_FORKED, "the process is ending");
  }
  if (!outcome) {
    outcome = run_guarded(copy);
  }
  copy.reading = nullptr;
  copy.writing = nullptr;
  copy.destination = nullptr;
  copy.source = nullptr;
  copy.after.clear();
  copy.before.clear();
  return outcome;
}

// The copy waits on a thread of its own; later work on `on` waits for it.
submitted run_behind(queue& on, const std::shared_ptr<staged_copy>& copy, touched_memory& touched) {
  const ref<event> done{copy->done};
  // Made before the fence: once that waits for `done`, nothing may keep it from ending.
  std::function<void()> work = [copy] {
    auto outcome = run_to_the_end(*copy);
    const auto ended = copy->done;
    copy->owners.clear();
    ended->finish(std::move(outcome));
  };
  std::function<void(error)> refuse = [copy](error refused) {
    copy->done->finish(std::move(refused));
  };
  auto gate = on.fence(std::span{&done, 1});
  if (!gate) {
    copy->done->finish({});
    return gate;
  }
  touched.publish(nullptr, done);
  run_on_library_thread(std::move(work), std::move(refuse));
  return done;
}

// On a queue of the destination that cannot wait for a thread of ours: reads the source now, and
// writes in the queue's order.
submitted write_snapshot(queue& on, queue& reading, const endpoint& destination,
                         const endpoint& source, const pitched& shape, transfer_options options) {
  touched_memory read;
  read.add(source, shape.extent(shape.source_pitch), false);
  std::vector<ref<event>> before;
  read.collect(nullptr, before);
  ISTHMUS_TRY(read.collect_queues(nullptr, before));
  ISTHMUS_TRY(wait_for_all(options.after));
  let_end(before);
  auto snapshot = std::make_unique_for_overwrite<std::byte[]>(shape.width * shape.height);
  auto* const bytes = snapshot.get();
  auto taken = reading.copy_2d(
      {bytes, shape.width, source.pointer, shape.source_pitch, shape.width, shape.height}, {});
  ISTHMUS_TRY(taken);
  ISTHMUS_TRY((*taken)->wait(std::nullopt));
  options.owners.emplace_back(isthmus_owner_t{snapshot.release(), &stage::give_back});
  owner_keeper keeper{std::move(options.owners)};
  touched_memory written;
  written.add(destination, shape.extent(shape.destination_pitch), true);
  std::vector<ref<event>> after;
  written.collect(&on, after);
  auto given = on.copy_2d(
      {destination.pointer, shape.destination_pitch, bytes, shape.width, shape.width, shape.height},
      after);
  ISTHMUS_TRY(given);
  written.publish(&on, *given);
  keeper.until(**given);
  return given;
}

}  // namespace

submitted copy_staged(queue& on, const endpoint& destination, const endpoint& source,
                      const pitched& shape, transfer_options options) {
  auto reading = source.memory->home().create_queue(source.memory->where());
  ISTHMUS_TRY(reading);
  auto writing = destination.memory->home().create_queue(destination.memory->where());
  ISTHMUS_TRY(writing);
  const bool waits = on.where().can(ISTHMUS_CAN_WAIT_FOR_HOST);
  if (!options.blocking && !waits && destination.in_context_of(on)) {
    return write_snapshot(on, **reading, destination, source, shape, std::move(options));
  }
  touched_memory touched;
  touched.add(destination, shape.extent(shape.destination_pitch), true);
  touched.add(source, shape.extent(shape.source_pitch), false);
  std::vector<ref<event>> before;
  touched.collect(nullptr, before);
  ISTHMUS_TRY(touched.collect_queues(&on, before));
  auto copy = std::make_shared<staged_copy>(
      staged_copy{pieces{destination.pointer, source.pointer, shape}, *std::move(reading),
                  *std::move(writing), destination.memory, source.memory, std::move(options.after),
                  std::move(before), std::move(options.owners), make_ref<library_event>()});
  if (!options.blocking && waits) {
    return run_behind(on, copy, touched);
  }
  ISTHMUS_TRY(copy->await_turn());
  ISTHMUS_TRY(copy->move_pieces());
  return options.blocking ? ref<event>{} : completed_event();
}

}  // namespace isthmus
