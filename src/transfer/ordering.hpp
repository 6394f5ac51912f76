#pragma once
// Orders an operation behind those in flight on the memory it touches, and makes it known to later ones.

#include <array>
#include <cstdint>

#include "transfer/endpoint.hpp"

namespace isthmus {

// The memory that one operation touches: at most a destination and a source.
class touched_memory {
 public:
  void add(const endpoint& side, std::size_t nbytes, bool writes);

  // Adds to `after` what an operation on queue `on` must wait for; null: of no queue, so everything.
  void collect(const queue* on, std::vector<ref<event>>& after);
  // Work of the caller's own on lent queues: a fence on each. For the host's direct access.
  void fence_lent_queues(std::vector<ref<event>>& after);
  // The operation that `ended` stands for is in flight. Pre: `collect` came before its submission.
  void publish(const queue* on, const ref<event>& ended);

 private:
  struct touch {
    allocation* memory = nullptr;
    byte_range range;
    bool writes = false;
    std::uint64_t began_at = 0;
  };
  std::array<touch, 2> touches_{};
  std::size_t count_ = 0;
};

// Waits for all of them; an operation that failed is DEPENDENCY.
[[nodiscard]] result<void> wait_for_all(wait_list events);

// Keeps the owners till `ended` has completed.
void keep_until(event& ended, std::vector<owner> owners);

}  // namespace isthmus
