// SPDX-License-Identifier: Apache-2.0
// A function of the calling thread ends its waits early. The call then has no effect.
#include <atomic>
#include <climits>
#include <functional>
#include <thread>

#include "support/short_memory.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

// During its lifetime, waits of the thread end at the `after`-th call of the function.
class interrupts {
 public:
  explicit interrupts(int after = 1)
      : after_{after}, before_{isthmus_interrupt_swap({&interrupts::ends, this})} {}
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;
  ~interrupts() { EXPECT_EQ(isthmus_interrupt_swap(before_).object, this); }
  int calls = 0;

 private:
  static int ends(void* self, const char** message) {
    auto& of = *static_cast<interrupts*>(self);
    *message = "enough";
    return ++of.calls >= of.after_ ? 1 : 0;
  }
  int after_;
  isthmus_interrupt_t before_;
};

class interrupted : public on_short_memory {
 protected:
  template <class Call>
  void expect_interrupted(const Call& call) {
    const interrupts meanwhile;
    try {
      call();
      ADD_FAILURE() << "it did not wait";
    } catch (const im::error& failed) {
      EXPECT_EQ(failed.status(), im::status::callback) << failed.what();
      EXPECT_EQ(std::string(failed.what()), "enough");
    }
    EXPECT_EQ(meanwhile.calls, 1);
    EXPECT_FALSE(im::error_snapshot());
  }
};
INSTANTIATE_ON_BACKENDS(interrupted);

TEST_P(interrupted, a_request_that_waits_for_work) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = make(600s);
  im::host_event gate;
  (void)other.fence({gate});
  std::vector<void*> blocks;
  for (int i = 0; i < 7; ++i) blocks.push_back(from.allocate(k_mib, 0, other));
  for (void* one : blocks) from.deallocate(one, k_mib, 0, other);
  const auto live = im::snapshot_of(from).live;
  for (int again = 0; again < 2; ++again) {
    expect_interrupted([&] { (void)from.allocate(6 * k_mib, 0, queue_); });
    EXPECT_EQ(im::snapshot_of(from).live, live);
  }
  expect_interrupted([&] {
    const im::buffer made(6 * k_mib, im::kind::device, {.queue = queue_, .resource = from});
  });
  EXPECT_EQ(im::counts_of(from, im::oom_stage::wait).served, 0U);
  gate.complete();
  void* const large = from.allocate(6 * k_mib, 0, queue_);
  from.deallocate(large, 6 * k_mib, 0, queue_);
}

// All memory of the device belongs to a pool, in which it was freed while in use.
TEST_P(interrupted, a_request_to_a_driver_whose_memory_a_pool_holds) {
  if (GetParam() != "sim") GTEST_SKIP() << "its memory has another end";
  const im::sim_device small("capacity=8MiB");
  const im::queue busy(small), queue(small);
  const im::resource from = im::resource::pool(queue.context(), im::kind::device, {}, small);
  const im::resource driver = im::resource::provider(queue.context(), im::kind::device, small);
  im::host_event gate;
  (void)busy.fence({gate});
  from.deallocate(from.allocate(6 * k_mib, 0, busy), 6 * k_mib, 0, busy);
  expect_interrupted([&] { (void)driver.allocate(6 * k_mib, 0, queue); });
  gate.complete();
  void* const large = driver.allocate(6 * k_mib, 0, queue);
  driver.deallocate(large, 6 * k_mib, 0, queue);
}

// A buffer used on queues other than its own is freed by a thread of the library.
TEST_P(interrupted, a_request_that_waits_for_a_deferred_release) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = make(600s);
  im::host_event gate;
  (void)other.fence({gate});
  {
    const im::buffer large(6 * k_mib, im::kind::device, {.queue = queue_, .resource = from});
    (void)im::fill_async(large, 1.0F, {.queue = other});
  }
  expect_interrupted([&] { (void)from.allocate(6 * k_mib, 0, queue_); });
  gate.complete();
  void* const large = from.allocate(6 * k_mib, 0, queue_);
  from.deallocate(large, 6 * k_mib, 0, queue_);
}

// A custom resource whose function waits for another thread.
struct slow_source {
  im::resource from;
  std::shared_ptr<std::function<void()>> meanwhile = std::make_shared<std::function<void()>>();

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    if (*meanwhile) (*meanwhile)();
    return from.allocate(nbytes, alignment, on);
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    from.deallocate(pointer, nbytes, 0, on);
  }
};

TEST_P(interrupted, a_request_that_waits_for_another_thread_at_the_upstream) {
  slow_source source{im::resource::provider(queue_.context(), im::kind::device, device_)};
  const auto meanwhile = source.meanwhile;
  const im::resource from =
      im::resource::pool(im::resource::custom(queue_.context(), im::kind::device, source, device_),
                         {.growth_bytes = 5 * k_mib, .limit_bytes = 8 * k_mib, .wait = 600s});
  std::atomic<bool> is_there{false};
  im::host_event gate;
  *meanwhile = [&] {
    is_there = true;
    gate.wait();
  };
  std::thread other([&] {
    const im::queue own(queue_.context(), device_);
    from.deallocate(from.allocate(5 * k_mib, 0, own), 5 * k_mib, 0, own);
  });
  while (!is_there) std::this_thread::sleep_for(1ms);
  expect_interrupted([&] { (void)from.allocate(5 * k_mib, 0, queue_); });
  gate.complete();
  other.join();
  *meanwhile = {};
  void* const large = from.allocate(5 * k_mib, 0, queue_);
  from.deallocate(large, 5 * k_mib, 0, queue_);
}

// Pending work could still write to the block, so the guard bytes around it cannot be written yet.
TEST_P(interrupted, a_block_that_is_to_be_checked) {
  for (im::kind kind : {im::kind::shared, im::kind::host}) {
    if (!device_.offers(kind)) continue;
    const im::resource pool = im::resource::pool(queue_.context(), kind, {}, device_);
    for (const im::resource& under :
         {pool, im::resource::provider(queue_.context(), kind, device_)}) {
      const im::resource counted = im::resource::statistics(under);
      const im::resource checked = im::resource::debug(counted);
      const im::resource outer = im::resource::statistics(checked);
      im::host_event gate;
      (void)queue_.fence({gate});
      for (int again = 0; again < 2; ++again) {
        expect_interrupted([&] { (void)outer.allocate(1000, 0, queue_); });
        EXPECT_EQ(im::statistics_of(counted).current_count, 0U);
        EXPECT_TRUE(counts(im::statistics_of(outer), {}));
      }
      gate.complete();
      void* const made = outer.allocate(1000, 0, queue_);
      outer.deallocate(made, 1000, 0, queue_);
      checked.verify();
    }
  }
}

// External work on the queue must be ordered after work elsewhere. A driver without events that the
// host completes makes the host wait for it.
TEST_P(interrupted, an_export_to_a_queue) {
  if (!defers_host_waits(GetParam())) GTEST_SKIP() << "its queues wait for all that is elsewhere";
  const im::queue other(queue_.context(), device_);
  const im::buffer buffer = make_unpooled(4096, im::kind::device);
  const im::buffer view = buffer.on_queue(other);
  im::host_event gate;
  const im::event filled = im::fill_async(buffer, 1.0F, {.queue = queue_, .after = {gate}});
  const auto lend = [&] {
    void* pointer = nullptr;
    im::detail::check(isthmus_buffer_export_to_queue(view.get(), other.get(), &pointer));
    isthmus_buffer_unexport(view.get());
  };
  expect_interrupted(lend);
  gate.complete();
  const interrupts meanwhile{INT_MAX};
  lend();
  other.fence().wait();
  EXPECT_TRUE(filled.done());
}

TEST_P(interrupted, the_wait_for_running_oom_callbacks) {
  const im::resource from = make(0s);
  const block held{from, queue_};
  std::atomic<bool> runs{false};
  std::atomic<bool> goes{false};
  struct state {
    std::atomic<bool>& runs;
    std::atomic<bool>& goes;
  } of{runs, goes};
  isthmus_oom_callback_t* raw = nullptr;
  const auto function = [](void* object, const isthmus_oom_request_t*) -> std::uint64_t {
    auto& at = *static_cast<state*>(object);
    at.runs = true;
    while (!at.goes) std::this_thread::sleep_for(1ms);
    return 0;
  };
  ASSERT_EQ(isthmus_oom_callback_add(function, {&of, nullptr}, &raw), ISTHMUS_OK);
  std::thread asks(
      [&] { EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory); });
  while (!runs) std::this_thread::sleep_for(1ms);
  {
    const interrupts meanwhile;
    isthmus_oom_callback_remove(raw, 1);
    EXPECT_EQ(meanwhile.calls, 1);
  }
  goes = true;
  asks.join();
}

TEST_P(interrupted, waits_continue_as_long_as_the_function_returns_true) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = make(600s);
  im::host_event gate;
  (void)other.fence({gate});
  from.deallocate(from.allocate(6 * k_mib, 0, other), 6 * k_mib, 0, other);
  struct opens {
    im::host_event& gate;
    int calls = 0;
  } opener{gate};
  const auto open = [](void* object, const char**) {
    auto& of = *static_cast<opens*>(object);
    if (++of.calls == 2) of.gate.complete();
    return 0;
  };
  const auto before = isthmus_interrupt_swap({open, &opener});
  EXPECT_EQ(before.function, nullptr);
  void* const large = from.allocate(6 * k_mib, 0, queue_);
  from.deallocate(large, 6 * k_mib, 0, queue_);
  isthmus_interrupt_swap({});
  EXPECT_GE(opener.calls, 2);
}

}  // namespace
