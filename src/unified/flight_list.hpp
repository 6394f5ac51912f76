// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pending transfers (`flight`) of a unified buffer, indexed by the bytes that they move and by
// their queue. Not thread-safe: the buffer's lock protects it.
//
// With n transfers each function takes O(log n), plus its results. Transfers of one queue complete
// in order, so only the first of each queue has to be polled.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backend/event.hpp"
#include "core/range_set.hpp"
#include "core/span_index.hpp"

namespace isthmus {

struct flight {
  // Serial number of the queue, and number of transfers made before. Queue 0: on no queue,
  // unordered.
  using key = std::pair<std::uint64_t, std::uint64_t>;

  ref<event> ended;
  range_set ranges;  // not empty
  bool to_device = false;
  // Memory into which a download goes until it may be published, one range after the other. Null:
  // it goes to the host copy directly.
  std::shared_ptr<std::byte> block{};
  range_set outdated{};       // written by the device, or by a later upload, since it began
  bool is_forgotten = false;  // only its own event reports its failure
  key name{};

  [[nodiscard]] byte_range span() const noexcept { return ranges.span(); }
  [[nodiscard]] std::uint64_t on() const noexcept { return name.first; }
  [[nodiscard]] bool is_before(const flight& other) const noexcept {
    return name.second < other.name.second;
  }
};

class flight_list {
  using in_turn = std::map<flight::key, flight>;
  using in_place = span_index<flight::key, flight>;

 public:
  using iterator = in_turn::iterator;

  // A transfer that is not submitted yet. Adding it after the submission needs no memory.
  class seat {
   public:
    [[nodiscard]] flight& operator*() noexcept { return turn_.mapped(); }
    [[nodiscard]] flight* operator->() noexcept { return &turn_.mapped(); }

   private:
    friend class flight_list;
    in_turn::node_type turn_;
    in_place::seat place_;
  };
  // Throws std::bad_alloc, without effect.
  [[nodiscard]] seat make(std::uint64_t on, bool to_device, range_set ranges);
  // Pre: its event is set.
  void add(seat made) noexcept;
  iterator erase(iterator gone) noexcept;
  void erase(const flight& gone) noexcept { erase(turns_.find(gone.name)); }

  [[nodiscard]] bool empty() const noexcept { return turns_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return turns_.size(); }
  // Ordered by queue; transfers of one queue in the order in which they began.
  [[nodiscard]] iterator begin() noexcept { return turns_.begin(); }
  [[nodiscard]] iterator end() noexcept { return turns_.end(); }
  // The next transfer that may have completed although `pending` has not.
  [[nodiscard]] iterator next_after(iterator pending) noexcept;

  // Transfers that move some of these bytes. May throw std::bad_alloc.
  [[nodiscard]] std::vector<flight*> of(const byte_range& range, bool to_device) const;

 private:
  std::uint64_t made_ = 0;
  in_turn turns_;
  in_place places_;
};

}  // namespace isthmus
