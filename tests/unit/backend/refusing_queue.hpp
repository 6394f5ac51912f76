// SPDX-License-Identifier: Apache-2.0
#pragma once
// A queue whose driver refuses all operations. A test overrides those that it needs.

#include "backend/queue.hpp"

namespace isthmus::sim_test {

class RefusingQueue : public Queue {
 public:
  RefusingQueue(Context& context, Device& device, QueueTraits traits = {})
      : Queue{context, device, traits} {}

 protected:
  using Submission = Result<Ref<Event>>;

  [[nodiscard]] virtual Error refusal() const {
    return fail(ISTHMUS_ERROR_UNSUPPORTED, "the test's queue refuses this operation");
  }
  Submission do_copy(void*, const void*, std::size_t, WaitList) override { return refusal(); }
  Submission do_copy_2d(const Copy2dShape&, WaitList) override { return refusal(); }
  Submission do_copy_ranges(const RangedCopy&, WaitList) override { return refusal(); }
  Submission do_fill(void*, const FillPattern&, std::size_t, WaitList) override {
    return refusal();
  }
  Submission do_fence(WaitList) override { return refusal(); }
  [[nodiscard]] bool can_wait_for(Event&) const noexcept override { return true; }
};

}  // namespace isthmus::sim_test
