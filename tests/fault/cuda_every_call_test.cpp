// SPDX-License-Identifier: Apache-2.0
// Makes every call of the CUDA driver fail in turn, with the real driver if there is a GPU.
#include "cuda_relay.hpp"
#include "in_turn.hpp"
#include "scenario.hpp"
#include "unified_scenario.hpp"

namespace {

using namespace support;

constexpr int k_out_of_memory = 2;

// What the library has obtained from the driver and not returned.
struct held_by_us {
  long device_blocks;
  long host_blocks;
  long handles;
  long mappings;
  long ranges;

  // Fewer is fine, because pending releases of an earlier run may complete meanwhile.
  [[nodiscard]] bool no_more_than(const held_by_us& other) const {
    return device_blocks <= other.device_blocks && host_blocks <= other.host_blocks &&
           handles <= other.handles && mappings <= other.mappings && ranges <= other.ranges;
  }
  friend std::ostream& operator<<(std::ostream& out, const held_by_us& held) {
    return out << held.device_blocks << " blocks of the device, " << held.host_blocks
               << " of pinned memory, " << held.handles << " handles of memory, " << held.mappings
               << " mappings, " << held.ranges << " ranges of addresses";
  }
};

template <class Life>
class cuda_faults : public on_cuda_relay {
 protected:
  // Trims the default pools first, so that the free memory that they keep does not count.
  [[nodiscard]] held_by_us held() const {
    EXPECT_EQ(isthmus_default_pools_trim(nullptr), ISTHMUS_OK);
    const auto calls = relay_.succeeded();
    const auto of = [&](const char* made, const char* gone) {
      return calls.at(made) - calls.at(gone);
    };
    return {of("cuMemAlloc_v2", "cuMemFree_v2") + calls.at("cuMemAllocManaged"),
            of("cuMemHostAlloc", "cuMemFreeHost"), of("cuMemCreate", "cuMemRelease"),
            of("cuMemMap", "cuMemUnmap"), of("cuMemAddressReserve", "cuMemAddressFree")};
  }
  // Returns the number of steps that failed.
  int run() const {
    Life life(device_);
    life.run();
    return life.failures();
  }
  void expect_no_more_than(const held_by_us& before) const {
    EXPECT_TRUE(eventually([&] { return held().no_more_than(before); }))
        << "held: " << held() << "\nbefore: " << before;
  }
  void fail_in_turn(relayed what, int code, bool may_leak, int variant = 0) {
    EXPECT_EQ(run(), 0);  // afterwards everything that is made once and kept exists
    fail_each_in_turn(every_nth(), variant, [&](int n) {
      const held_by_us before = held();
      relay_.fail_after(n, what, code);
      const int failures = run();
      const bool was_reached = relay_.fail_after(-1, what, code) < 0;
      if (!may_leak) expect_no_more_than(before);
      return life_outcome{failures, was_reached};
    });
  }
};

#if defined(__SANITIZE_THREAD__)  // the calls of one thread, one after another
using cuda_lives = ::testing::Types<scenario>;
#else
using cuda_lives = ::testing::Types<scenario, unified_scenario>;
#endif
TYPED_TEST_SUITE(cuda_faults, cuda_lives);

TYPED_TEST(cuda_faults, runs_through_without_faults) {
  EXPECT_EQ(this->run(), 0);
  const held_by_us before = this->held();
  EXPECT_EQ(this->run(), 0);
  this->expect_no_more_than(before);
}

TYPED_TEST(cuda_faults, out_of_memory_at_every_call) {
  this->fail_in_turn(relayed::takes, k_out_of_memory, false);
}

TYPED_TEST(cuda_faults, an_unknown_error_at_every_call) {
  this->fail_in_turn(relayed::takes, k_unknown, false, 2);
}

// What the driver fails to release stays allocated in the driver. Nothing else may go wrong.
TYPED_TEST(cuda_faults, an_error_at_every_call_that_releases_something) {
  this->fail_in_turn(relayed::gives_back, k_unknown, true);
}

// What was not returned before the loss stays allocated in the driver, which has not really lost
// the device.
TYPED_TEST(cuda_faults, the_device_is_lost_at_every_call) {
  fail_each_in_turn(every_nth(), 3, [&](int n) {
    this->relay_.lose_after(n);
    const int failures = this->run();
    return life_outcome{failures, this->relay_.lose_after(-1) == 0};
  });
}

}  // namespace
