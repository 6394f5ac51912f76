#pragma once
// A cutting resource whose blocks go back one by one, in the order of queues, and that keeps its
// chunks till all of one is free and nothing uses it any more: what such have in common.

#include "memory/adaptors/cutting_resource.hpp"

namespace isthmus {

class keeping_resource : public cutting_resource {
 public:
  explicit keeping_resource(memory_resource& upstream)
      : cutting_resource{upstream}, slots_{make_ref<queue_slots>()} {}

  // Chunks that are free as a whole, then what upstream has.
  std::size_t trim(std::size_t keep) noexcept final;

 protected:
  ~keeping_resource() override { slots_->forget_queues(); }
  [[nodiscard]] queue_slots& slots() const noexcept { return *slots_; }
  // Chunks of which no block is out, and whose tickets have all passed, go back to upstream; where
  // that needs memory and there is none, they stay.
  virtual void give_back_whole() noexcept = 0;
  // Pre: nobody refers to it.
  [[nodiscard]] virtual bool has_chunks() const noexcept = 0;

 private:
  void let_go() noexcept final;

  const ref<queue_slots> slots_;
  int tries_to_go_ = 0;
};

}  // namespace isthmus
