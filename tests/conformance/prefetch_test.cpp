// SPDX-License-Identifier: Apache-2.0
// An adaptor that prefetches shared memory to the device when it is allocated.
#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class prefetching : public on_upstreams {
 protected:
  [[nodiscard]] bool can() const {
    return (device_.info().capabilities & ISTHMUS_CAN_PREFETCH) != 0;
  }
  // How many prefetches the simulated device executed, or -1 on other backends.
  [[nodiscard]] long asked() const {
    std::uint64_t count = 0;
    return isthmus_sim_calls(device_.get(), "prefetch", &count) == ISTHMUS_OK
               ? static_cast<long>(count)
               : -1;
  }
};
INSTANTIATE_ON_BACKENDS(prefetching);

TEST_P(prefetching, applies_only_to_shared_memory) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource counted = im::resource::statistics(upstream);
      const im::resource ahead = im::resource::prefetch(counted);
      const long before = asked();
      void* const block = ahead.allocate(5000, 0, queue_);
      if (before >= 0) {
        EXPECT_EQ(asked() - before, kind == im::kind::shared && can() ? 1 : 0);
      }
      ahead.deallocate(block, 5000, 0, queue_);
      EXPECT_THROW(ahead.deallocate(block, 5000, 0, queue_), im::invalid_argument);
      {
        const im::buffer buffer(1000, kind, {.queue = queue_, .resource = ahead});
        im::fill(buffer, static_cast<unsigned char>(7));
      }
      EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
      EXPECT_THROW((void)ahead.allocate(std::size_t{1} << 62, 0, queue_), im::out_of_memory);
      EXPECT_THROW((void)ahead.allocate(10, 24, queue_), im::invalid_argument);
    }
  }
}

// While the queue is blocked by an event of the caller, the prefetch is submitted, and the call
// does not wait.
TEST_P(prefetching, over_a_provider_does_not_wait_for_the_queue) {
  const auto has = kinds();
  const bool is_shared = std::count(has.begin(), has.end(), im::kind::shared) != 0;
  if (!is_shared || !on_backend::can(im::capability::wait_for_host))
    GTEST_SKIP() << "nothing moves, or nothing is held up";
  const im::resource ahead =
      im::resource::prefetch(im::resource::provider(queue_.context(), im::kind::shared, device_));
  const im::host_event late;
  (void)queue_.fence({late});
  const long before = asked();
  void* const block = ahead.allocate(5000, 0, queue_);
  if (before >= 0) {
    EXPECT_EQ(asked() - before, can() ? 1 : 0);
  }
  late.complete();
  queue_.wait();
  ahead.deallocate(block, 5000, 0, queue_);
}

TEST_P(prefetching, frees_on_another_queue) {
  const im::queue other(queue_.context(), device_);
  for (im::kind kind : kinds()) {
    const im::resource pool = upstreams(kind)[0];
    const im::resource ahead = im::resource::prefetch(pool);
    im::host_event late;
    (void)queue_.fence({late});
    std::vector<void*> all;
    for (int i = 0; i < 10; ++i) all.push_back(ahead.allocate(64 * k_kib, 0, queue_));
    for (void* each : all) ahead.deallocate(each, 64 * k_kib, 0, other);
    late.complete();
    queue_.wait();
    EXPECT_TRUE(eventually([&] {
      (void)ahead.trim();
      return ahead.usage().held == 0;
    }));
  }
}

TEST_P(prefetching, threads) {
  const im::kind kind = kinds().back();
  const im::resource counted = im::resource::statistics(upstreams(kind)[0]);
  const im::resource ahead = im::resource::prefetch(counted);
  const auto work = [&] {
    const im::queue mine(queue_.context(), device_);
    for (int i = 0; i < 300; ++i) {
      void* const block = ahead.allocate(1000, 0, mine);
      ahead.deallocate(block, 1000, 0, i % 2 == 0 ? mine : queue_);
    }
    mine.wait();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(im::statistics_of(counted).current_count, 0u);
}

TEST_P(prefetching, refuses_bad_arguments) {
  isthmus_resource_t* made = nullptr;
  EXPECT_EQ(isthmus_resource_prefetch(nullptr, &made), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_prefetch(upstreams(kinds().front())[0].get(), nullptr),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
}

}  // namespace
