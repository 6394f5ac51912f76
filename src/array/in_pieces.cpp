#include <algorithm>
#include <memory>

#include "array/placed_move.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "transfer/staged.hpp"
#include "transfer/staging_ring.hpp"
#include "transfer/strided_parts.hpp"

namespace isthmus {
namespace {

// What a piece goes by way of: packed as its source has it, and as its destination has it, as far
// as these are out of the host's reach.
struct stage {
  std::byte* source = nullptr;
  std::byte* destination = nullptr;
  ref<event> reading;
  ref<event> writing;

  [[nodiscard]] static result<void> end(ref<event>& of) {
    return of ? std::exchange(of, nullptr)->wait(std::nullopt) : result<void>{};
  }
};
using stages = std::array<stage, staging_ring::k_slots>;

// A device whose memory the host cannot touch, on one of the two sides.
struct device_side {
  ref<queue> on;                 // null: the host can touch it; or of the ring's lane
  staging_ring* ring = nullptr;  // that its pieces lie in

  [[nodiscard]] bool is_there() const noexcept { return on || ring != nullptr; }
};

class pieced_move final : public host_driven {
 public:
  pieced_move(const placed_move& move, std::size_t piece_bytes, device_side reading,
              device_side writing)
      : host_driven{move.touching()},
        pieces_{move.what, piece_bytes},
        reading_{std::move(reading)},
        writing_{std::move(writing)} {}

 protected:
  [[nodiscard]] result<void> move() override {
    auto* const ring = reading_.ring != nullptr ? reading_.ring : writing_.ring;
    auto* const with = ring != nullptr ? &ring->take() : nullptr;
    const undo given_back{[&] {
      if (with != nullptr) {
        ring->give_back(*with);
      }
    }};
    std::unique_ptr<std::byte[], plain_deleter> plain;
    stages by_way_of;
    give_ring_memory(by_way_of, with);
    give_plain_memory(by_way_of, plain);
    const undo ended{[&] {  // before the memory goes, whatever is thrown
      for (auto& each : by_way_of) {
        static_cast<void>(stage::end(each.reading));
        static_cast<void>(stage::end(each.writing));
      }
    }};
    return move_all(by_way_of, reading_.ring != nullptr ? with->on.get() : reading_.on.get(),
                    writing_.ring != nullptr ? with->on.get() : writing_.on.get());
  }
  void let_go() noexcept override {
    reading_.on = nullptr;
    writing_.on = nullptr;
  }

 private:
  // Once the process is ending nobody can tell whether what was submitted still runs.
  struct plain_deleter {
    void operator()(std::byte* memory) const noexcept {
      if (!os::drivers_are_gone()) {
        delete[] memory;
      }
    }
  };

  // A slot for each stage; where both sides lie in the ring, the half of one for each.
  void give_ring_memory(stages& all, const staging_ring::lane* with) const noexcept {
    const bool shared = reading_.ring != nullptr && writing_.ring != nullptr;
    for (std::size_t i = 0; i < all.size() && with != nullptr; ++i) {
      auto* const memory = with->slots.at(i).memory;
      all.at(i).source = reading_.ring != nullptr ? memory : nullptr;
      all.at(i).destination = writing_.ring != nullptr
                                  ? memory + (shared ? staging_ring::k_slot_bytes / 2 : 0)
                                  : nullptr;
    }
  }
  void give_plain_memory(stages& all, std::unique_ptr<std::byte[], plain_deleter>& plain) const {
    const bool reads = reading_.is_there() && reading_.ring == nullptr;
    const bool writes = writing_.is_there() && writing_.ring == nullptr;
    const auto bytes = pieces_.bytes();
    const auto count = (reads ? all.size() : 0) + (writes ? all.size() : 0);
    if (count == 0) {
      return;
    }
    plain.reset(new std::byte[count * bytes]);
    auto* next = plain.get();
    for (auto& each : all) {
      if (reads) {
        each.source = std::exchange(next, next + bytes);
      }
      if (writes) {
        each.destination = std::exchange(next, next + bytes);
      }
    }
  }

  // Piece n + 1 is read, and piece n - 1 written, while piece n is converted.
  [[nodiscard]] result<void> move_all(stages& by_way_of, queue* reads, queue* writes) {
    const auto count = pieces_.count();
    ISTHMUS_TRY(read(by_way_of[0], 0, reads));
    for (std::size_t index = 0; index < count; ++index) {
      auto& with = by_way_of.at(index % by_way_of.size());
      if (index + 1 < count) {
        ISTHMUS_TRY(read(by_way_of.at((index + 1) % by_way_of.size()), index + 1, reads));
      }
      ISTHMUS_TRY(stage::end(with.reading));
      ISTHMUS_TRY(stage::end(with.writing));
      ISTHMUS_TRY(write(with, index, writes));
    }
    for (auto& each : by_way_of) {
      ISTHMUS_TRY(stage::end(each.writing));
    }
    return {};
  }
  [[nodiscard]] result<void> read(stage& with, std::size_t index, queue* on) const {
    if (on == nullptr) {
      return {};
    }
    const auto way = pack_source(pieces_.at(index), with.source);
    auto submitted = put_strided(*on, as_strided(way.read), {});
    ISTHMUS_TRY(submitted);
    with.reading = *std::move(submitted);
    return {};
  }
  // Once its source is here.
  [[nodiscard]] result<void> write(stage& with, std::size_t index, queue* on) const {
    auto piece = pieces_.at(index);
    if (reading_.is_there()) {
      piece = pack_source(piece, with.source).rest;
    }
    if (on == nullptr) {
      move_elements(joined(piece));
      return {};
    }
    const auto way = pack_destination(piece, with.destination);
    move_elements(way.first);
    auto submitted = put_strided(*on, as_strided(way.write), {});
    ISTHMUS_TRY(submitted);
    with.writing = *std::move(submitted);
    return {};
  }

  move_pieces pieces_;
  device_side reading_;
  device_side writing_;
};

// Where the ring is not used the side has a queue of its own.
result<device_side> side_of(const endpoint& place, staging_ring* ring) {
  device_side made;
  made.ring = ring;
  if (place.host_can_copy() || ring != nullptr) {
    return made;
  }
  auto on = place.memory->home().create_queue(place.memory->where());
  ISTHMUS_TRY(on);
  made.on = *std::move(on);
  return made;
}

}  // namespace

submitted move_in_pieces(queue& on, const placed_move& move, transfer_options options,
                         std::size_t most_piece_bytes) {
  const auto ring_of = [](const endpoint& place, bool to_device) -> staging_ring* {
    const bool is_used = !place.host_can_copy() && has_ring(place.memory->where(), to_device);
    return is_used ? &staging_ring::of(place.memory->where()) : nullptr;
  };
  auto* const to_ring = ring_of(move.destination, true);
  auto* from_ring = ring_of(move.source, false);
  if (to_ring != nullptr && from_ring != to_ring) {
    from_ring = nullptr;  // of two rings one thread would wait for the other's lane
  }
  auto reading = side_of(move.source, from_ring);
  ISTHMUS_TRY(reading);
  const bool is_one_device =
      reading->on && move.destination.reached_by(*reading->on) && !move.destination.host_can_copy();
  auto writing = is_one_device ? result<device_side>{*reading} : side_of(move.destination, to_ring);
  ISTHMUS_TRY(writing);
  const bool shares_slots = to_ring != nullptr && from_ring != nullptr;
  const auto piece_bytes = std::min(
      most_piece_bytes, shares_slots ? staging_ring::k_slot_bytes / 2 : staging_ring::k_slot_bytes);
  return carry_out(
      &on,
      std::make_shared<pieced_move>(move, piece_bytes, *std::move(reading), *std::move(writing)),
      std::move(options));
}

}  // namespace isthmus
