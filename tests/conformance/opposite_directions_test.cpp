// SPDX-License-Identifier: Apache-2.0
// Operations ordered by one queue and executed by another. Two threads submit such operations to
// the same two queues in opposite directions while their dependencies are pending.
#include <array>
#include <functional>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace support;

constexpr std::size_t k_crossing_bytes = 4096;

class crossing : public leak_checked, public ::testing::WithParamInterface<std::string> {
 protected:
  struct device_side {
    im::queue queue;
    im::buffer host_can_touch;
    im::buffer own;
    bytes data;
  };
  static device_side make(unsigned seed) {
    const im::device device = open_backend(GetParam());
    const im::queue queue{device};
    device_side made{queue, im::buffer(k_crossing_bytes, im::kind::shared, {.queue = queue}),
                     im::buffer(k_crossing_bytes, im::kind::device, {.queue = queue}),
                     noise(k_crossing_bytes, seed)};
    write(made.host_can_touch, made.data);
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(backends, crossing, testing::Values("sim", "sim_late"), backend_label);

// `order`, the queue of `from`, cannot access the memory of the other device, so the other device's
// queue executes the copies, in both directions.
void cross(const im::queue& order, const im::buffer& from, const im::buffer& to,
           const im::host_event& gate, std::vector<im::event>& ends) {
  for (int count = 0; count < 4; ++count) {
    ends.push_back(im::copy_async(to, from, {.queue = order, .after = {gate}}));
    ends.push_back(im::copy_async(to, from, {.queue = order}));
    ends.push_back(im::fill_async(from, std::byte{1}, {.queue = order, .after = {ends.back()}}));
    ends.push_back(im::copy_async(from, to, {.queue = order}));
  }
}

TEST_P(crossing, copies_in_opposite_directions_all_end) {
  for (std::size_t round = 0; round < 100 / k_slower; ++round) {
    const watchdog guard{"crossing copies, round " + std::to_string(round)};
    const std::array sides{make(1), make(2)};
    const im::host_event gate;
    std::array<std::vector<im::event>, 2> ends;
    const auto submit = [&](std::size_t mine) {
      cross(sides[mine].queue, sides[mine].host_can_touch, sides[1 - mine].own, gate, ends[mine]);
    };
    std::thread other{submit, 1};
    submit(0);
    other.join();
    gate.complete();
    for (const auto& each : ends) {
      for (const im::event& end : each) end.wait();
    }
    for (const std::size_t mine : {std::size_t{0}, std::size_t{1}}) {
      EXPECT_TRUE(same(read(sides[1 - mine].own), sides[mine].data));
      EXPECT_TRUE(same(read(sides[mine].host_can_touch), sides[mine].data));
    }
  }
}

class ends_in_order : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && !can(im::capability::wait_for_host))
      GTEST_SKIP() << "the device cannot wait for an event of the host";
  }
};
INSTANTIATE_ON_BACKENDS(ends_in_order);

// The next user of the memory on this queue waits for the last operation's event only, so a failed
// operation must not complete before the operations ahead of it.
TEST_P(ends_in_order, what_fails_later_ends_after_what_came_before) {
  constexpr std::size_t k_much = 64 * k_mib / k_slower;
  const im::buffer target = make(k_much, kinds().front());
  for (int round = 0; round < 5; ++round) {
    const im::host_event opens;
    const im::host_event fails;
    const im::event before = im::fill_async(target, std::byte{7}, {.after = {opens}});
    const im::event failed = im::fill_async(target, std::byte{8}, {.after = {fails}});
    EXPECT_FALSE(failed.done());
    isthmus_event_complete(fails.get(), ISTHMUS_ERROR_INTERNAL, "the second's own failure");
    opens.complete();
    EXPECT_EQ(isthmus_event_wait(failed.get(), -1), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_TRUE(before.done());
    before.wait();
  }
}

TEST_P(ends_in_order, what_fails_later_ends_after_all_that_it_waits_for) {
  constexpr std::size_t k_much = 64 * k_mib / k_slower;
  const im::queue other{queue_.context(), device_};
  const im::buffer target = make(k_much, kinds().front());
  const im::buffer small = make(k_crossing_bytes, kinds().front());
  for (int round = 0; round < 5; ++round) {
    const im::host_event opens;
    const im::host_event fails;
    const im::event before =
        im::fill_async(target, std::byte{7}, {.queue = other, .after = {opens}});
    const im::event failed = im::fill_async(small, std::byte{8}, {.after = {fails, before}});
    isthmus_event_complete(fails.get(), ISTHMUS_ERROR_INTERNAL, "the second's own failure");
    opens.complete();
    EXPECT_EQ(isthmus_event_wait(failed.get(), -1), ISTHMUS_ERROR_DEPENDENCY);
    EXPECT_TRUE(before.done());
    before.wait();
  }
}

}  // namespace
