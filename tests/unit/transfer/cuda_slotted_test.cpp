// Small copies between plain host memory and the device by way of a slot of pinned memory: when they
// are, in whose order, and that no failure costs a slot.

#include <algorithm>
#include <atomic>
#include <thread>

#include "memory/pins.hpp"
#include "transfer/slotted.hpp"
#include "transfer/staging_ring.hpp"
#include "transfer/transfer.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

class cuda_slotted : public cuda_test {
 protected:
  static constexpr std::size_t k_bytes = std::size_t{100} << 10;

  void SetUp() override {
    cuda_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    there_ = make(line(), k_bytes);
    library_ = *os::open_library(where().home().properties().library.c_str());
  }
  void TearDown() override {
    if (there_.memory) {
      ASSERT_TRUE(line().wait(std::nullopt));
      EXPECT_EQ(free_slots(), pinned_slots::k_units) << "none was lost";
      there_ = {};
    }
    cuda_test::TearDown();
  }

  [[nodiscard]] static endpoint make(queue& on, std::size_t nbytes) {
    auto made = *allocation::create(on, {ISTHMUS_KIND_DEVICE, nbytes, 0}, nullptr);
    auto* const start = static_cast<std::byte*>(made->what().base);
    return {start, std::move(made), &on};
  }
  [[nodiscard]] std::optional<submitted> gather(queue& on, std::vector<std::byte>& data,
                                                std::vector<ref<event>> after = {}) const {
    const endpoint from{data.data(), nullptr, nullptr};
    const auto nbytes = data.size();
    transfer_options options{std::move(after), {}, false, false};
    return copy_gathered(on,
                         {there_,
                          from,
                          nbytes,
                          nbytes,
                          nbytes,
                          {there_.pointer, nbytes, from.pointer, nbytes, nbytes, 1}},
                         options);
  }
  // Counts them by taking all, once what is in flight has ended.
  [[nodiscard]] std::size_t free_slots() const {
    auto& slots = staging_ring::of(where()).small();
    std::vector<pinned_slots::slot> all;
    for (auto each = slots.take(1); each.memory != nullptr; each = slots.take(1)) {
      all.push_back(each);
    }
    for (const auto& each : all) {
      slots.give_back(each);
    }
    return all.size();
  }
  // Nothing on the stream goes on till `release` is set.
  void hold_up(cuda::stream_handle on, std::atomic<bool>& release) const {
    using host_function = cuda::code (*)(cuda::stream_handle, void (*)(void*), void*);
    const auto launch =
        reinterpret_cast<host_function>(os::find_symbol(library_, "cuLaunchHostFunc"));
    const cuda::made_current here{calls(), primary()};
    ASSERT_EQ(launch(
                  on,
                  [](void* flag) {
                    while (!static_cast<std::atomic<bool>*>(flag)->load()) {
                      std::this_thread::yield();
                    }
                  },
                  &release),
              0U);
  }

  endpoint there_;
  void* library_ = nullptr;
};

TEST_F(cuda_slotted, the_source_is_the_callers_when_the_call_returns) {
  const auto want = numbered(k_bytes);
  auto data = want;
  auto copied = gather(line(), data);
  ASSERT_TRUE(copied);
  std::fill(data.begin(), data.end(), std::byte{});
  finish(*copied);
  EXPECT_TRUE(read(line(), there_.pointer, k_bytes) == want);
}

TEST_F(cuda_slotted, is_put_to_a_stream_that_others_use_in_its_order) {
  std::atomic<bool> release{false};
  const auto stream = static_cast<cuda::stream_handle>(line().lend());
  const auto want = numbered(k_bytes);
  auto data = want;
  hold_up(stream, release);
  {
    const cuda::made_current here{calls(), primary()};
    ASSERT_EQ(calls().fill_8(cuda::place_of(there_.pointer), 7, k_bytes, stream), 0U);
  }
  auto copied = gather(line(), data);
  ASSERT_TRUE(copied);
  EXPECT_TRUE((**copied)->pending()) << "nothing was waited for";
  release = true;
  finish(*copied);
  EXPECT_TRUE(read(line(), there_.pointer, k_bytes) == want);
}

TEST_F(cuda_slotted, is_left_to_the_driver_while_all_slots_are_in_flight) {
  std::atomic<bool> release{false};
  hold_up(static_cast<cuda::stream_handle>(line().lend()), release);
  auto data = numbered(k_bytes);
  std::size_t gathered = 0;
  while (gather(line(), data)) {
    ASSERT_LE(++gathered, pinned_slots::k_units);
  }
  EXPECT_EQ(gathered, pinned_slots::k_units / 2) << "of two units each";
  release = true;
  ASSERT_TRUE(line().wait(std::nullopt));
  EXPECT_TRUE(gather(line(), data));
}

TEST_F(cuda_slotted, is_not_while_the_host_is_waited_for_first) {
  auto data = numbered(k_bytes);
  const auto gate = make_ref<library_event>();
  EXPECT_FALSE(gather(line(), data, {gate})) << "who completes it may write the source before";
  const std::vector<ref<event>> closed{gate};
  auto held = line().fence(closed);
  ASSERT_TRUE(held);
  const std::vector<ref<event>> behind{*held};
  EXPECT_FALSE(gather(line(), data)) << "behind what is held back";
  auto other = *home().create_queue(where());
  EXPECT_FALSE(gather(*other, data, behind)) << "nor on another queue";
  gate->finish({});
  finish(held);
  EXPECT_TRUE(gather(*other, data, behind));
  ASSERT_TRUE(other->wait(std::nullopt));
}

TEST_F(cuda_slotted, what_is_scattered_has_come_behind_all_before_it) {
  std::atomic<bool> release{false};
  const auto want = numbered(k_bytes);
  auto data = want;
  finish(*gather(line(), data));
  hold_up(static_cast<cuda::stream_handle>(line().lend()), release);
  const endpoint to{data.data(), nullptr, nullptr};
  const copy_2d_shape rows{to.pointer, k_bytes, there_.pointer, k_bytes, k_bytes, 1};
  std::fill(data.begin(), data.end(), std::byte{});
  std::thread later{[&] { release = true; }};
  transfer_options options;
  auto copied = copy_scattered(line(), {to, there_, k_bytes, k_bytes, k_bytes, rows}, options);
  later.join();
  ASSERT_TRUE(copied);
  EXPECT_TRUE(*copied);
  EXPECT_TRUE(data == want);
}

TEST_F(cuda_slotted, is_not_where_a_device_may_write_the_source) {
  auto data = numbered(k_bytes);
  auto part = *pin::make(where(), {data.data() + 5000, 5000, false}, {});
  EXPECT_FALSE(gather(line(), data)) << "a part is pinned";
  part->end(true);
  EXPECT_TRUE(gather(line(), data));
}

TEST_F(cuda_slotted, fails_with_what_it_waits_for) {
  auto data = numbered(k_bytes);
  const auto gate = make_ref<library_event>();
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "it went wrong"));
  auto copied = gather(line(), data, {gate});
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->failure().code(), ISTHMUS_ERROR_DEPENDENCY);
}

// The stand-in alone can be told to fail.
TEST_F(cuda_slotted, loses_no_slot_whichever_call_fails) {
  const auto fail_after =
      reinterpret_cast<long (*)(long)>(os::find_symbol(library_, "stand_in_fail_after"));
  if (fail_after == nullptr) {
    GTEST_SKIP() << "a driver that does not fail when told to";
  }
  bool reached = true;
  int told = 0;
  for (long n = 0; reached; ++n) {
    ASSERT_LT(n, 200);
    const auto want = numbered(k_bytes, static_cast<unsigned>(n));
    auto data = want;
    const endpoint from{data.data(), nullptr, nullptr};
    fail_after(n);
    auto copied = copy(&line(), there_, from, k_bytes, {{}, {}, false, true});
    reached = fail_after(-1) < 0;
    std::fill(data.begin(), data.end(), std::byte{});
    const bool sent = copied && (*copied)->wait(std::nullopt);
    fail_after(n);
    const bool came{copy(&line(), from, there_, k_bytes, {})};
    reached = fail_after(-1) < 0 || reached;
    told += sent && came ? 0 : 1;
    ASSERT_TRUE(line().wait(std::nullopt));
    ASSERT_TRUE(!sent || read(line(), there_.pointer, k_bytes) == want) << n;
    ASSERT_TRUE(!sent || !came || data == want) << n;
    ASSERT_EQ(free_slots(), pinned_slots::k_units) << n;
  }
  EXPECT_GT(told, 1);
}

}  // namespace
}  // namespace isthmus::cuda_test
