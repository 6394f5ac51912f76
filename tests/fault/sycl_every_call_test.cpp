// SPDX-License-Identifier: Apache-2.0
// Makes every call of dpctl's C interface to SYCL fail in turn, in front of the real one. Nothing
// is leaked, nothing is released twice, and operations that succeed have produced the right bytes.
#include <functional>

#include "foreign_scenario.hpp"
#include "in_turn.hpp"
#include "scenario.hpp"
#include "sycl_relay.hpp"
#include "unified_scenario.hpp"

namespace {

using namespace support;

using held_of_sycl = std::map<std::string, long>;

// Returns what is held now and was not before. Less than before is fine, because pending releases
// of an earlier run may complete meanwhile.
held_of_sycl more_than(const held_of_sycl& before, const held_of_sycl& now) {
  held_of_sycl more;
  for (const auto& [call, count] : now) {
    const auto known = before.find(call);
    const long was = known == before.end() ? 0 : known->second;
    if (count > was) more[call] = count - was;
  }
  return more;
}
// References to out-of-order queues are kept for another second.
constexpr const char* k_a_queue = "DPCTLQueue_Copy";
held_of_sycl without_queues(held_of_sycl held) {
  held.erase(k_a_queue);
  return held;
}

struct exported_scenario : scenario {
  explicit exported_scenario(const im::device& device) : scenario(device, true) {}
};

// Only `exported_scenario` makes a thousand calls.
template <class Life>
const int k_step = every_nth(std::is_same_v<Life, exported_scenario> ? 7 : 1);

template <class Life>
class sycl_faults : public on_sycl_relay {
 protected:
  void SetUp() override {
    on_sycl_relay::SetUp();
    if (!IsSkipped()) {
      const auto queues = held()[k_a_queue];
      EXPECT_EQ(run(), 0);  // afterwards everything that is made once and kept exists
      at_first_ = held();
      at_first_[k_a_queue] = queues;
    }
  }
  void TearDown() override {
    if (!IsSkipped()) expect_no_more_than(at_first_);
    on_sycl_relay::TearDown();
  }
  // Trims the default pools first, so that the free memory that they keep does not count.
  [[nodiscard]] held_of_sycl held() const {
    EXPECT_EQ(isthmus_default_pools_trim(nullptr), ISTHMUS_OK);
    return relay_.held();
  }
  // Returns the number of steps that failed. It also trims the default pools, so that every run
  // allocates and frees with driver calls.
  int run() const {
    int failures = 0;
    {
      Life life(device_);
      life.run();
      failures = life.failures();
    }
    EXPECT_EQ(isthmus_default_pools_trim(nullptr), ISTHMUS_OK);
    return failures;
  }
  template <class Counted = std::identity>
  void expect_no_more_than(const held_of_sycl& before, Counted counted = {}) const {
    const auto is_all_back = [&] {
      static_cast<void>(im::live());  // also queries out-of-order queues
      return more_than(before, counted(held())).empty();
    };
    EXPECT_TRUE(eventually(is_all_back))
        << "lost: " << ::testing::PrintToString(more_than(before, counted(held())));
  }
  void fail_in_turn(relayed_by_sycl how) {
    fail_each_in_turn(k_step<Life>, 0, [&](int n) {
      const auto before = without_queues(held());
      relay_.fail_after(n, how);
      const int failures = run();
      const bool was_reached = relay_.fail_none() < 0;
      expect_no_more_than(before, without_queues);
      return life_outcome{failures, was_reached};
    });
  }

 private:
  held_of_sycl at_first_;
};

using sycl_lives =
    ::testing::Types<scenario, exported_scenario, unified_scenario, foreign_scenario>;
TYPED_TEST_SUITE(sycl_faults, sycl_lives);

TYPED_TEST(sycl_faults, runs_through_without_faults) { EXPECT_EQ(this->run(), 0); }

TYPED_TEST(sycl_faults, null_at_every_call_that_returns_an_object) {
  this->fail_in_turn(relayed_by_sycl::gives_null);
}

TYPED_TEST(sycl_faults, an_exception_at_every_call_that_may_throw) {
  this->fail_in_turn(relayed_by_sycl::throws);
}

TYPED_TEST(sycl_faults, every_operation_fails) { this->fail_in_turn(relayed_by_sycl::ends_badly); }

using sycl_queries = on_sycl_relay;

// Intel's OpenCL runtime for CPUs crashes if one thread waits for such a queue while another thread
// submits to it, which may be a program that makes no call of ours. So the library queries the
// queue only on demand.
TEST_F(sycl_queries, an_out_of_order_queue_is_queried_on_demand) {
  constexpr long k_many = 1'000'000;
  const auto calls_of = [&](const auto& what) {
    relay_.fail_after(k_many, relayed_by_sycl::gives_null);
    what();
    return k_many - relay_.fail_none();
  };
  const auto before = im::live();
  const foreign_objects theirs(device_);
  const auto adopted = im::queue::adopt(device_, theirs.queue());
  const auto context = im::context::of(device_);
  for (const auto& from : {im::resource::provider(context, im::kind::device),
                           im::resource::pool(context, im::kind::device)}) {
    im::buffer dropped(1000, im::kind::device, {.queue = adopted, .resource = from});
    EXPECT_EQ(calls_of([&] {
                dropped = {};
                std::this_thread::sleep_for(50ms);
              }),
              0);
    // A thread that waits for a processor for 4 ms queries nothing in this call.
    EXPECT_TRUE(eventually([&] { return calls_of([] { static_cast<void>(im::live()); }) != 0; }));
  }
  EXPECT_TRUE(eventually([&] { return im::live().count == before.count; }));
}

// Intel's OpenCL runtime for CPUs hangs if the last reference to such a queue is released while one
// of the runtime's threads is still finishing a command, which may already have been reported as
// complete. This test would then hang.
TEST_F(sycl_queries, an_out_of_order_queue_may_be_released_after_its_last_event) {
  const im::buffer kept(5000, im::kind::device, {.queue = im::queue(device_)});
  for (int round = 0; round < 2000; ++round) {
    const foreign_objects theirs(device_);
    const auto adopted = im::queue::adopt(device_, theirs.queue());
    im::fill_async(kept.slice(3, 80), 1.25, {.queue = adopted}).wait();
  }
}

}  // namespace
