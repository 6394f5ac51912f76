#pragma once
// Cuts blocks off chunks one behind the other, and gives all chunks back together.
//
// Choose it for what is allocated bit by bit and ends at once: a batch, a request, a parse. A block
// costs a lock of a few instructions, and its free a look for its chunk. Chunks double, so there
// are few of them.

#include <vector>

#include "core/spin_lock.hpp"
#include "memory/adaptors/cutting_resource.hpp"

namespace isthmus {

class monotonic_resource final : public cutting_resource {
 public:
  static constexpr std::size_t k_usual_bytes = std::size_t{64} << 10;

  // Pre: `check_upstream`; first_bytes > 0.
  monotonic_resource(memory_resource& upstream, std::size_t first_bytes)
      : cutting_resource{upstream}, first_bytes_{first_bytes}, next_bytes_{first_bytes} {}

  // A failed request changes nothing.
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override;
  // Gives nothing back. INVALID_ARGUMENT for what lies in no chunk.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;

  [[nodiscard]] bool may_take_back() const noexcept override { return true; }
  // All chunks go back, behind what was on their blocks' queues.
  void release_all() noexcept;

 private:
  struct piece {
    chunk memory;
    // What upstream had it behind, on the queue that it was taken for; null: nothing.
    ref<event> until;
    const queue* taken_on = nullptr;
    std::size_t used = 0;
  };

  ~monotonic_resource() override { release_all(); }
  void let_go() noexcept override { delete this; }
  // Pre for these: `lock_` is held. Null where there is no room that is good for the queue.
  [[nodiscard]] void* cut(std::size_t nbytes, std::size_t alignment, const queue& on) noexcept;
  [[nodiscard]] static void* cut_of(piece& from, std::size_t nbytes,
                                    std::size_t alignment) noexcept;
  void note(queue& on);
  [[nodiscard]] bool try_note(queue& on) noexcept;
  [[nodiscard]] bool knows(const queue& on) const noexcept;

  const std::size_t first_bytes_;
  spin_lock lock_;
  std::vector<piece> pieces_;  // the last that is good for a queue is cut from
  std::size_t next_bytes_;
  std::vector<ref<queue>> queues_;  // that blocks were allocated or freed on
};

}  // namespace isthmus
