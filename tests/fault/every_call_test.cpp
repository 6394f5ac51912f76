// SPDX-License-Identifier: Apache-2.0
// Makes every driver call fail in turn, until a run makes too few calls for one to fail. There are
// no leaks and no hangs, and operations that succeed have produced the right bytes.
#include "every_nth.hpp"
#include "scenario.hpp"
#include "unified_scenario.hpp"

namespace {

using namespace support;

class every_call : public leak_checked, public ::testing::WithParamInterface<const char*> {
 protected:
  // Expects that the simulated driver has no memory allocated after the scenario and its deferred
  // releases.
  static void expect_nothing_left(const im::sim_device& device, const std::string& options) {
    const auto patience = std::chrono::steady_clock::now() + 5s;
    static_cast<void>(isthmus_default_pools_trim(nullptr));
    im::sim_state state = device.state();
    while (state.device_bytes + state.host_bytes != 0 &&
           std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(1ms);
      static_cast<void>(isthmus_default_pools_trim(nullptr));
      state = device.state();
    }
    EXPECT_EQ(state.device_bytes, 0u) << options;
    EXPECT_EQ(state.host_bytes, 0u) << options;
    EXPECT_EQ(device.calls("violation"), 0u) << options;
  }

  // Returns the number of steps that failed.
  template <class Life>
  static int run_with(const std::string& options) {
    const im::sim_device device(options);
    int failures = 0;
    {
      Life life(device);
      life.run();
      failures = life.failures();
    }
    expect_nothing_left(device, options);
    return failures;
  }

  // Ends at the first n that a run does not reach.
  template <class Life>
  static void fail_in_turn(const std::string& kind, const std::string& more, int variant = 0) {
    for (int n = 1; n <= k_max_calls; n = next_call(n, every_nth(), variant)) {
      const std::string options = "fail=" + kind + ":" + std::to_string(n) + more;
      const im::sim_device device(options);
      const std::uint64_t before = device.calls(kind);
      int failures = 0;
      {
        Life life(device);
        life.run();
        failures = life.failures();
      }
      expect_nothing_left(device, options);
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << options;
        return;
      }
      if (device.calls(kind) - before < static_cast<std::uint64_t>(n)) {
        EXPECT_EQ(failures, 0) << options << ": nothing was to fail";
        return;
      }
    }
    ADD_FAILURE() << kind << ": still failing after " << k_max_calls << " calls";
  }
};
INSTANTIATE_TEST_SUITE_P(kinds, every_call,
                         ::testing::Values("allocate", "free", "context", "queue", "copy",
                                           "copy_2d", "copy_ranges", "fill", "fence", "event",
                                           "prefetch", "advise", "any"));

TEST_P(every_call, fails_in_turn) { fail_in_turn<scenario>(GetParam(), ""); }
TEST_P(every_call, fails_in_turn_with_late_effects) {
  fail_in_turn<scenario>(GetParam(), ",effect=late", 2);
}
TEST_P(every_call, of_unified_buffers_fails_in_turn) {
  fail_in_turn<unified_scenario>(GetParam(), "");
}
TEST_P(every_call, of_unified_buffers_fails_in_turn_with_late_effects) {
  fail_in_turn<unified_scenario>(GetParam(), ",effect=late", 2);
}

template <class Life>
class scenario_test : public every_call {
 protected:
  static int run(const std::string& options) { return run_with<Life>(options); }
};
using lives = ::testing::Types<scenario, unified_scenario>;
TYPED_TEST_SUITE(scenario_test, lives);

TYPED_TEST(scenario_test, runs_through_without_faults) {
  EXPECT_EQ(this->run(""), 0);
  EXPECT_EQ(this->run("effect=late"), 0);
  EXPECT_EQ(this->run("effect=random,seed=7"), 0);
}

// These fail when the device executes them, which may be after the call has returned.
using unified_scenario_test = scenario_test<unified_scenario>;

TEST_F(unified_scenario_test, survives_the_failure_of_every_operation) {
  fail_in_turn<unified_scenario>("operation", "");
}
TEST_F(unified_scenario_test, survives_the_failure_of_every_operation_with_late_effects) {
  fail_in_turn<unified_scenario>("operation", ",effect=late", 2);
}

TYPED_TEST(scenario_test, survives_the_loss_of_the_device_at_any_call) {
  for (int n = 0; n < k_max_calls; n = next_call(n, every_nth(), 1)) {
    const std::string options = n == 0 ? "lost=now" : "lost=" + std::to_string(n);
    const int failures = this->run(options);
    if (this->HasFailure()) {
      ADD_FAILURE() << options;
      return;
    }
    if (failures == 0) {
      EXPECT_GT(n, 20);
      return;
    }
  }
  ADD_FAILURE() << "the device is lost after any number of calls";
}

TYPED_TEST(scenario_test, survives_two_failures_at_once) {
  for (int n = 1; n < 60; n = next_call(n, every_nth(), 3)) {
    const std::string step = std::to_string(n);
    this->run("effect=random,seed=" + step + ",fail=any:" + step +
              ",fail=any:" + std::to_string(n + 1));
    if (this->HasFailure()) {
      ADD_FAILURE() << step;
      return;
    }
  }
}

TYPED_TEST(scenario_test, survives_every_failure_beside_a_driver_that_cannot_wait_for_the_host) {
  for (int n = 1; n < 200; n = next_call(n, every_nth(), 1)) {
    this->run("wait_for_host=0,fail=any:" + std::to_string(n));
    if (this->HasFailure()) {
      ADD_FAILURE() << n;
      return;
    }
  }
}

}  // namespace
