#include "transfer/pageable.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>

#include "backend/library_threads.hpp"
#include "core/stream_copy.hpp"
#include "core/undo.hpp"
#include "transfer/host_driven.hpp"
#include "transfer/pieces.hpp"
#include "transfer/staging_ring.hpp"

namespace isthmus {
namespace {

using lane = staging_ring::lane;
using slot = staging_ring::slot;

// So that a copy of some MiB is worth several threads.
constexpr std::size_t k_least_piece = std::size_t{256} << 10;

// For less a thread that carries the copy out while its caller goes on costs more than it saves.
constexpr std::size_t k_least_behind = std::size_t{2} << 20;

std::size_t piece_bytes(std::size_t nbytes) noexcept {
  return std::clamp(nbytes / (staging_ring::most_lanes() * staging_ring::k_slots), k_least_piece,
                    staging_ring::k_slot_bytes);
}

// Past the caches a copy leaves them as they are and writes what it need not read first; of a large
// one the pinned memory stays in the caches, where the device reaches it sooner: 1 GiB to it at 48
// GB/s against 44, but 64 MiB at 41 against 44 (H100).
constexpr std::size_t k_most_past_caches = std::size_t{128} << 20;

void stream_rows(const copy_2d_shape& rows) noexcept {
  auto* to = static_cast<std::byte*>(rows.destination);
  const auto* from = static_cast<const std::byte*>(rows.source);
  if (rows.destination_pitch == rows.width && rows.source_pitch == rows.width) {
    stream_copy(to, from, rows.width * rows.height);
    return;
  }
  for (std::size_t row = 0; row < rows.height; ++row) {
    stream_copy(to + row * rows.destination_pitch, from + row * rows.source_pitch, rows.width);
  }
}

class pageable_copy final : public host_driven {
 public:
  pageable_copy(const endpoint& destination, const endpoint& source, const pitched& shape,
                device& where)
      : host_driven{destination, source, shape},
        parts_{destination.pointer, source.pointer, shape, piece_bytes(shape.width * shape.height)},
        to_device_{static_cast<bool>(destination.memory)},
        past_caches_{shape.width * shape.height <= k_most_past_caches},
        ring_{staging_ring::of(where)} {}

 protected:
  // This thread takes part, and others as there are pieces, lanes and threads.
  [[nodiscard]] result<void> move() override {
    auto own = ring_.take();
    ISTHMUS_TRY(own);
    start_helpers();
    work_on(**own);
    std::unique_lock hold{lock_};
    helped_.wait(hold, [this] { return helpers_ == 0; });
    return failed_ ? result<void>{std::move(failure_)} : result<void>{};
  }
  void let_go() noexcept override {}

 private:
  void start_helpers() noexcept {
    const auto wanted =
        std::min(parts_.count() / staging_ring::k_slots, staging_ring::most_lanes());
    bool more = true;
    for (std::size_t helpers = 1; more && helpers < wanted; ++helpers) {
      more = start_helper();
    }
  }

  // False where no lane is free, or there is no memory for more: who is at work does it all.
  [[nodiscard]] bool start_helper() noexcept try {
    auto* const with = ring_.try_take();
    if (with == nullptr) {
      return false;
    }
    undo kept{[&] { ring_.give_back(*with); }};
    std::function<void()> work = [this, with] {
      work_on(*with);
      leave();
    };
    const std::function<void(error)> refuse = [this, with](const error&) {
      ring_.give_back(*with);
      leave();
    };
    kept.dismiss();
    {
      const std::lock_guard hold{lock_};
      ++helpers_;
    }
    run_on_library_thread(std::move(work), refuse);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
  void leave() noexcept {
    const std::lock_guard hold{lock_};
    --helpers_;
    helped_.notify_all();
  }

  void copy_on_host(const copy_2d_shape& rows) const noexcept {
    past_caches_ ? stream_rows(rows) : copy_rows(rows);
  }

  void work_on(lane& with) noexcept {
    auto outcome = guarded(with);
    for (auto& each : with.slots) {
      auto ended = each.end();
      if (outcome && !ended) {
        outcome = std::move(ended);
      }
    }
    ring_.give_back(with);
    if (!outcome) {
      const std::lock_guard hold{lock_};
      if (!failed_.exchange(true)) {
        failure_ = outcome.take_error();
      }
    }
  }

  [[nodiscard]] result<void> guarded(lane& with) noexcept try {
    return to_device_ ? write_pieces(with) : read_pieces(with);
  } catch (const std::bad_alloc&) {
    return error::no_memory();
  }

  // False once there is none left, or some failed.
  [[nodiscard]] bool next(std::size_t& index) noexcept {
    index = next_.fetch_add(1, std::memory_order_relaxed);
    return index < parts_.count() && !failed_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] result<void> write_pieces(lane& with) {
    std::size_t index = 0;
    for (std::size_t turn = 0; next(index); ++turn) {
      auto& by_way_of = with.slots[turn % staging_ring::k_slots];
      ISTHMUS_TRY(by_way_of.end());
      const auto what = parts_.at(index);
      copy_on_host(parts_.reading(what, by_way_of.memory));
      auto given = with.on->copy_2d(parts_.writing(what, by_way_of.memory), {});
      ISTHMUS_TRY(given);
      by_way_of.in_flight = *std::move(given);
    }
    return {};
  }

  [[nodiscard]] result<void> read_pieces(lane& with) {
    std::array<piece, staging_ring::k_slots> coming{};
    for (std::size_t turn = 0;; ++turn) {
      auto& by_way_of = with.slots[turn % staging_ring::k_slots];
      auto& what = coming[turn % staging_ring::k_slots];
      if (by_way_of.in_flight) {
        ISTHMUS_TRY(by_way_of.end());
        copy_on_host(parts_.writing(what, by_way_of.memory));
      }
      std::size_t index = 0;
      if (next(index)) {
        what = parts_.at(index);
        auto given = with.on->copy_2d(parts_.reading(what, by_way_of.memory), {});
        ISTHMUS_TRY(given);
        by_way_of.in_flight = *std::move(given);
      } else if (std::none_of(with.slots.begin(), with.slots.end(),
                              [](const slot& each) { return bool{each.in_flight}; })) {
        return {};
      }
    }
  }

  const pieces parts_;
  const bool to_device_;
  const bool past_caches_;
  staging_ring& ring_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex lock_;
  std::condition_variable helped_;
  std::size_t helpers_ = 0;
  error failure_;
};

}  // namespace

bool is_better_staged(queue& carrying, const endpoint& destination, const endpoint& source,
                      const pitched& shape, bool blocking) {
  const auto nbytes = shape.width * shape.height;
  const bool to_device = !source.memory && destination.memory && !destination.host_can_touch();
  const bool from_device = !destination.memory && source.memory && !source.host_can_touch();
  if (to_device == from_device || (!blocking && nbytes < k_least_behind)) {
    return false;
  }
  const auto* const plain = to_device ? source.pointer : destination.pointer;
  return carrying.copies_better_staged(plain, nbytes, to_device);
}

submitted copy_pageable(queue& on, queue& carrying, const endpoint& destination,
                        const endpoint& source, const pitched& shape, transfer_options options) {
  return carry_out(on,
                   std::make_shared<pageable_copy>(destination, source, shape, carrying.where()),
                   std::move(options));
}

}  // namespace isthmus
