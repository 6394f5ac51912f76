// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/event.hpp"

#include <new>

#include "support/without_memory.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda {
namespace {

using cuda_test::cuda_test;

TEST_F(cuda_test, an_event_is_not_leaked_if_the_host_is_out_of_memory) {
  auto* const library = *os::open_library(test_device().platform().properties().library.c_str());
  auto* const live_events =
      reinterpret_cast<std::size_t (*)()>(os::find_symbol(library, "stand_in_events"));
  if (live_events == nullptr) {
    GTEST_SKIP() << "only the stand-in for the driver counts events";
  }
  // Events without timing go to the cache instead.
  const auto before = live_events();
  EXPECT_THROW(
      {
        const support::without_memory now{1};  // enough for the driver's event
        static_cast<void>(make_operation(test_device(), true));
      },
      std::bad_alloc);
  EXPECT_EQ(live_events(), before);
  static_cast<void>(make_operation(test_device(), true));
  EXPECT_EQ(live_events(), before);
}

}  // namespace
}  // namespace isthmus::cuda
