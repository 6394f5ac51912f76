// Every call of dpctl's C interface to SYCL made to fail in turn, in front of the real one: nothing
// is lost, nothing is given back twice, and what says it succeeded has the right bytes.
#include <functional>

#include "guests.hpp"
#include "in_turn.hpp"
#include "scenario.hpp"
#include "sycl_relay.hpp"
#include "unified_scenario.hpp"

namespace {

using namespace support;

using held_of_sycl = std::map<std::string, long>;

// What is held beyond what was before; what an earlier run let go of late may go meanwhile.
held_of_sycl more_than(const held_of_sycl& before, const held_of_sycl& now) {
  held_of_sycl more;
  for (const auto& [call, count] : now) {
    const auto known = before.find(call);
    const long was = known == before.end() ? 0 : known->second;
    if (count > was) more[call] = count - was;
  }
  return more;
}
// References to out-of-order queues linger for a second.
constexpr const char* k_a_queue = "DPCTLQueue_Copy";
held_of_sycl without_queues(held_of_sycl held) {
  held.erase(k_a_queue);
  return held;
}

struct lent_scenario : scenario {
  explicit lent_scenario(const im::device& device) : scenario(device, true) {}
};

// Only one has a thousand calls.
template <class Life>
const int k_step = every_nth(std::is_same_v<Life, lent_scenario> ? 7 : 1);

template <class Life>
class sycl_faults : public on_sycl_relay {
 protected:
  void SetUp() override {
    on_sycl_relay::SetUp();
    if (!IsSkipped()) {
      const auto queues = held()[k_a_queue];
      EXPECT_EQ(run(), 0);  // what is made once and kept is there from here on
      at_first_ = held();
      at_first_[k_a_queue] = queues;
    }
  }
  void TearDown() override {
    if (!IsSkipped()) expect_no_more_than(at_first_);
    on_sycl_relay::TearDown();
  }
  // Default pools keep what is free: not what this counts.
  [[nodiscard]] held_of_sycl held() const {
    EXPECT_EQ(isthmus_default_pools_trim(nullptr), ISTHMUS_OK);
    return relay_.held();
  }
  // The number of steps that failed. What default pools kept goes back within it, so that every run
  // allocates and frees by the driver.
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
      static_cast<void>(im::live());  // which asks out-of-order queues, too
      return more_than(before, counted(held())).empty();
    };
    EXPECT_TRUE(patiently(is_all_back))
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

using sycl_lives = ::testing::Types<scenario, lent_scenario, unified_scenario, guests>;
TYPED_TEST_SUITE(sycl_faults, sycl_lives);

TYPED_TEST(sycl_faults, runs_through_without_faults) { EXPECT_EQ(this->run(), 0); }

TYPED_TEST(sycl_faults, null_at_every_call_that_gives_something) {
  this->fail_in_turn(relayed_by_sycl::gives_null);
}

TYPED_TEST(sycl_faults, an_exception_at_every_call_that_lets_some_out) {
  this->fail_in_turn(relayed_by_sycl::throws);
}

TYPED_TEST(sycl_faults, every_operation_ends_badly) {
  this->fail_in_turn(relayed_by_sycl::ends_badly);
}

using sycl_asking = on_sycl_relay;

// Intel's OpenCL runtime for CPUs crashes where one thread waits for such a queue while another
// puts anything there: a program that is in no call of ours may do so.
TEST_F(sycl_asking, an_out_of_order_queue_is_asked_on_demand) {
  constexpr long k_many = 1'000'000;
  const auto calls_of = [&](const auto& what) {
    relay_.fail_after(k_many, relayed_by_sycl::gives_null);
    what();
    return k_many - relay_.fail_none();
  };
  const auto before = im::live();
  const stranger theirs(device_);
  const auto adopted = im::queue::adopt(device_, theirs.queue());
  const auto context = im::context::of(device_);
  for (const auto& from : {im::resource::provider(context, im::kind::device),
                           im::resource::pool(context, im::kind::device)}) {
    im::buffer dropped(1000, im::kind::device, {.on = adopted, .from = from});
    EXPECT_EQ(calls_of([&] {
                dropped = {};
                std::this_thread::sleep_for(50ms);
              }),
              0);
    EXPECT_NE(calls_of([] { static_cast<void>(im::live()); }), 0);
  }
  EXPECT_TRUE(patiently([&] { return im::live().count == before.count; }));
}

// Intel's OpenCL runtime for CPUs hangs for ever where the last reference to such a queue goes
// while one of its threads is not quite done with a command, which may have been said to have
// ended: so would this test.
TEST_F(sycl_asking, an_out_of_order_queue_may_go_with_the_last_that_was_waited_for) {
  const im::buffer kept(5000, im::kind::device, {.on = im::queue(device_)});
  for (int round = 0; round < 2000; ++round) {
    const stranger theirs(device_);
    const auto adopted = im::queue::adopt(device_, theirs.queue());
    im::fill_async(kept.slice(3, 80), 1.25, {.on = adopted}).wait();
  }
}

}  // namespace
