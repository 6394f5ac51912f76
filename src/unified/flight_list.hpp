#pragma once
// The copies of a unified buffer that are on their way, found by what they move and by their queue.
//
// Of n of them each function takes log n, and what it finds. The copies of one queue end in turn:
// only the first of each has to be asked whether it has ended.

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
  // A queue's serial number, and how many were made before. 0: of no queue, and in no order.
  using key = std::pair<std::uint64_t, std::uint64_t>;

  ref<event> ended;
  range_set ranges;  // some
  bool to_device = false;
  // Where a download waits until it may be published, one range after the other; null: in the
  // host copy itself.
  std::shared_ptr<std::byte> block{};
  range_set outdated{};       // what the device wrote, or a later upload brought, since it began
  bool is_forgotten = false;  // its own event alone reports its failure
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

  // One that is not on its way yet: what follows its submission needs no
  // memory.
  class seat {
   public:
    [[nodiscard]] flight& operator*() noexcept { return turn_.mapped(); }
    [[nodiscard]] flight* operator->() noexcept { return &turn_.mapped(); }

   private:
    friend class flight_list;
    in_turn::node_type turn_;
    in_place::seat place_;
  };
  // Throws std::bad_alloc, and then nothing has changed.
  [[nodiscard]] seat make(std::uint64_t on, bool to_device, range_set ranges);
  // Pre: its event is there.
  void add(seat made) noexcept;
  iterator erase(iterator gone) noexcept;
  void erase(const flight& gone) noexcept { erase(turns_.find(gone.name)); }

  [[nodiscard]] bool empty() const noexcept { return turns_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return turns_.size(); }
  // Queue after queue, those of one in the order in which they began.
  [[nodiscard]] iterator begin() noexcept { return turns_.begin(); }
  [[nodiscard]] iterator end() noexcept { return turns_.end(); }
  // What may have ended although `pending` has not.
  [[nodiscard]] iterator next_after(iterator pending) noexcept;

  // Those that move some of these bytes. May throw std::bad_alloc.
  [[nodiscard]] std::vector<flight*> of(const byte_range& range, bool to_device) const;

 private:
  std::uint64_t made_ = 0;
  in_turn turns_;
  in_place places_;
};

}  // namespace isthmus
