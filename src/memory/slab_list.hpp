#pragma once
// The slabs of one size class that have blocks to give: the fullest give first, so that the others
// empty and go back.

#include <array>
#include <span>

#include "memory/free_poison.hpp"
#include "memory/slab.hpp"

namespace isthmus {

// Not safe for threads: its class's lock stands around it. Nothing here allocates or fails.
class slab_list {
 public:
  slab_list() noexcept = default;
  explicit slab_list(queue_slots& slots, free_poison poison = {}) noexcept
      : slots_{&slots}, poison_{poison} {}

  // Takes blocks of a slab just made, good for who made it, and adds it; how many.
  [[nodiscard]] std::size_t add(slab& made, std::span<void*> out) noexcept;
  // Takes blocks that are good for the queue in slot `whom` out of the fullest slabs; how many
  // there were. Looks at a few slabs that wait at most.
  [[nodiscard]] std::size_t take(std::span<void*> out, queue_slots::slot whom) noexcept;
  // Whether `take` would find any.
  [[nodiscard]] bool has(queue_slots::slot whom) const noexcept;
  // Puts a block back. The slab, out of the list, if it has all its blocks now; else null.
  [[nodiscard]] slab* give(slab& to, void* block, ticket freed) noexcept;
  // A slab that has all its blocks since nobody took one, out of the list; null if there is none.
  [[nodiscard]] slab* take_untouched() noexcept;
  // A slab whose record contradicts its list or its blocks' marks; null if none does.
  [[nodiscard]] const slab* find_damaged() const noexcept;

 private:
  // By the quarter of its blocks that a slab has free; behind these, slabs of which all wait.
  static constexpr std::size_t k_grades = 4;
  static constexpr std::size_t k_waiting = k_grades;
  static constexpr std::size_t k_nowhere = k_grades + 1;
  static constexpr int k_most_looks = 8;  // at slabs that wait

  [[nodiscard]] static std::size_t place(const slab& of) noexcept {
    if (of.kept == 0) {
      return of.waiting == 0 ? k_nowhere : k_waiting;
    }
    return std::min<std::size_t>(k_grades - 1, std::size_t{of.kept} * k_grades / of.blocks);
  }
  void link(slab& in, std::size_t to) noexcept;
  void unlink(slab& out, std::size_t from) noexcept;
  void move(slab& moved, std::size_t from) noexcept;
  void put_poison(slab& passed) const noexcept;
  void settle(slab& passed) const noexcept;
  [[nodiscard]] std::size_t take_waiting(std::span<void*> out, queue_slots::slot whom) noexcept;

  queue_slots* slots_ = nullptr;
  free_poison poison_;
  std::array<slab*, k_grades + 1> first_{};
  slab* last_waiting_ = nullptr;
};

}  // namespace isthmus
