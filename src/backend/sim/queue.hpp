// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue of a simulated device: turns requests into operations of the engine. Thread-safe.

#include <memory>

#include "backend/queue.hpp"
#include "backend/sim/engine.hpp"

namespace isthmus::sim {

class Queue final : public isthmus::Queue {
 public:
  Queue(isthmus::Context& context, isthmus::Device& device, bool platform_owned);
  // Does not demand pending operations; the device still executes them.
  ~Queue() override;

 protected:
  [[nodiscard]] Result<Ref<Event>> do_copy(void* destination, const void* source,
                                           std::size_t nbytes, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_2d(const Copy2dShape& shape, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_copy_ranges(const RangedCopy& copy, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_fill(void* destination, const FillPattern& pattern,
                                           std::size_t nbytes, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_prefetch(const void* pointer, std::size_t nbytes,
                                               bool to_host, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_advise(const void* pointer, std::size_t nbytes,
                                             std::uint32_t advice, WaitList after) override;
  [[nodiscard]] Result<Ref<Event>> do_fence(WaitList after) override;
  [[nodiscard]] bool can_wait_for(Event& candidate) const noexcept override;

 private:
  [[nodiscard]] Result<Endpoint> resolve(const void* pointer, std::size_t nbytes);
  [[nodiscard]] bool is_local(const Endpoint& endpoint) const noexcept;
  // Prepares the work of a copy. `destination_bytes` and `source_bytes` are the extents of both
  // sides.
  [[nodiscard]] Result<Work> make_copy_work(void* destination, std::size_t destination_bytes,
                                            const void* source, std::size_t source_bytes);
  [[nodiscard]] Result<Ref<Event>> copy_rows(Call kind, const Copy2dShape& shape, WaitList after);
  // Counts the call, and one more call for each event that is not simulated.
  [[nodiscard]] Result<void> begin(Call kind, WaitList after);
  [[nodiscard]] Result<Ref<Event>> submit(Work work, WaitList after);

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<QueueOperations> queue_operations_;
};

}  // namespace isthmus::sim
