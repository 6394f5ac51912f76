// SPDX-License-Identifier: Apache-2.0
// Processes that exit while operations on adopted queues wait for an event that never completes.
// For queues that the library created see tests/python/test_exits.py.

#include <array>

#include "unit/backend/opencl_fixture.hpp"

namespace isthmus::opencl_test {
namespace {

class opencl_exit : public opencl_test {
 protected:
  void SetUp() override {
    opencl_test::SetUp();
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a child process, started by exec
  }
  [[noreturn]] void exit_with_copies_behind(WaitList after) const {
    auto* handle = foreign_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    auto adopted = test_device().platform().adopt_queue(test_device(), handle, Owner{});
    constexpr std::size_t k_bytes = std::size_t{4} << 20;
    const block first{test_context(), test_device(), k_bytes};
    const block second{test_context(), test_device(), k_bytes};
    bool submitted = static_cast<bool>(adopted);
    for (int round = 0; submitted && round < 20; ++round) {
      submitted = static_cast<bool>((*adopted)->copy(second.at(), first.at(), k_bytes, after));
    }
    std::exit(submitted ? 0 : 2);
  }
};

TEST_P(opencl_exit, succeeds_while_an_out_of_order_queue_waits_for_an_event) {
  const std::array<Ref<Event>, 2> never{make_ref<HostEvent>(), make_ref<HostEvent>()};
  EXPECT_EXIT(exit_with_copies_behind(never), ::testing::ExitedWithCode(0), "^$");
}

INSTANTIATE_TEST_SUITE_P(opencl, opencl_exit, ::testing::Range<std::size_t>(0, 4));

}  // namespace
}  // namespace isthmus::opencl_test
