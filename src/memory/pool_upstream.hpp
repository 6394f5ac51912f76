#pragma once
// The resource that a pool has its memory from, where that is not the driver.
//
// It may be the program's code, which may call the library, the same pool too: it is asked, and
// given back to, with no lock held. What it gives is an allocation with a record, as a chunk of a
// cutting resource is: what it is cut out of lives as long.

#include "memory/allocation.hpp"

namespace isthmus {

class pool_upstream {
 public:
  // UNSUPPORTED for what gives memory of several kinds, takes back what nobody freed, or stands on
  // a pool: the page map has one pool for a grain.
  [[nodiscard]] static result<void> check(memory_resource& of);

  // Null: none.
  explicit pool_upstream(ref<memory_resource> of) noexcept : of_{std::move(of)} {}
  [[nodiscard]] bool is_there() const noexcept { return static_cast<bool>(of_); }

  // Before the rest. Errors as `context::create_queue`.
  [[nodiscard]] result<void> open();
  // Good on any queue. Errors as upstream's; CALLBACK for memory that is a pool's.
  [[nodiscard]] result<ref<allocation>> allocate(const allocation_request& request);
  std::size_t trim(std::size_t keep) const noexcept { return is_there() ? of_->trim(keep) : 0; }
  [[nodiscard]] result<void> verify() const { return is_there() ? of_->verify() : result<void>{}; }

 private:
  ref<memory_resource> of_;
  // What upstream gives is good on the queue that it was asked for. This one has no work of its
  // own, so that nothing is good there that is not good everywhere.
  ref<queue> quiet_;
};

}  // namespace isthmus
