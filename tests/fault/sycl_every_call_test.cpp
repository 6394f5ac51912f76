// Every call of dpctl's C interface to SYCL made to fail in turn, in front of the real one: nothing
// is lost, nothing is given back twice, and what says it succeeded has the right bytes.
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

struct lent_scenario : scenario {
  explicit lent_scenario(const im::device& device) : scenario(device, true) {}
};

// Only one has a thousand calls.
template <class Life>
const int k_step = every_nth(std::is_same_v<Life, lent_scenario> ? 7 : 1);

template <class Life>
class sycl_faults : public on_sycl_relay {
 protected:
  // The number of steps that failed.
  int run() const {
    Life life(device_);
    life.run();
    return life.failures();
  }
  void expect_no_more_than(const held_of_sycl& before) const {
    const auto is_all_back = [&] {
      static_cast<void>(im::live());  // which asks out-of-order queues, too
      return more_than(before, relay_.held()).empty();
    };
    EXPECT_TRUE(patiently(is_all_back))
        << "lost: " << ::testing::PrintToString(more_than(before, relay_.held()));
  }
  void fail_in_turn(relayed_by_sycl how) {
    ASSERT_EQ(run(), 0);  // what is made once and kept is there from here on
    fail_each_in_turn(k_step<Life>, [&](int n) {
      const auto before = relay_.held();
      relay_.fail_after(n, how);
      const int failures = run();
      const bool was_reached = relay_.fail_none() < 0;
      expect_no_more_than(before);
      return life_outcome{failures, was_reached};
    });
  }
};

using sycl_lives = ::testing::Types<scenario, lent_scenario, unified_scenario, guests>;
TYPED_TEST_SUITE(sycl_faults, sycl_lives);

TYPED_TEST(sycl_faults, runs_through_without_faults) {
  EXPECT_EQ(this->run(), 0);
  const auto before = this->relay_.held();
  EXPECT_EQ(this->run(), 0);
  this->expect_no_more_than(before);
}

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

// Intel's OpenCL runtime for CPUs crashes where one thread waits for such a queue while another puts
// anything there: a program that is in no call of ours may do so.
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
  for (const auto& from :
       {im::resource{}, im::resource::pool(im::context::of(device_), im::kind::device)}) {
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

}  // namespace
