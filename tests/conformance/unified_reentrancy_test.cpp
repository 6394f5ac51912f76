// SPDX-License-Identifier: Apache-2.0
// A request for memory, and a wait, may call functions of the program. These may use the unified
// buffer that the call is on, cause the release of its device copy, or free it.
#include <functional>

#include "support/unified.hpp"

namespace {

using namespace support;

// Keeps all memory of the pool allocated. The first request that finds no memory frees it and calls
// the function.
class taken_until_needed {
 public:
  taken_until_needed(const im::resource& pool, std::size_t nbytes, const im::queue& on,
                     std::function<void()> meanwhile)
      : pool_{pool},
        nbytes_{nbytes},
        on_{on},
        meanwhile_{std::move(meanwhile)},
        block_{pool.allocate(nbytes, 0, on)} {}
  taken_until_needed(const taken_until_needed&) = delete;
  taken_until_needed& operator=(const taken_until_needed&) = delete;
  ~taken_until_needed() { EXPECT_EQ(block_, nullptr) << "no request lacked memory"; }

 private:
  std::uint64_t release() noexcept {
    if (block_ == nullptr) return 0;
    pool_.deallocate(std::exchange(block_, nullptr), nbytes_, 0, on_);
    meanwhile_();
    return nbytes_;
  }

  const im::resource& pool_;
  std::size_t nbytes_;
  const im::queue& on_;
  std::function<void()> meanwhile_;
  void* block_;
  im::oom_callback asked_{[this](const im::oom_request&) noexcept { return release(); }};
};

// Calls the function once, in the first interruptible wait of this thread.
class called_in_waits {
 public:
  explicit called_in_waits(std::function<void()> meanwhile) : meanwhile_{std::move(meanwhile)} {
    isthmus_interrupt_swap({&called_in_waits::call, this});
  }
  called_in_waits(const called_in_waits&) = delete;
  called_in_waits& operator=(const called_in_waits&) = delete;
  ~called_in_waits() {
    isthmus_interrupt_swap({});
    EXPECT_FALSE(meanwhile_) << "nothing waited";
  }

 private:
  static int call(void* self, const char**) {
    auto& of = *static_cast<called_in_waits*>(self);
    if (const auto once = std::exchange(of.meanwhile_, {})) once();
    return 0;
  }
  std::function<void()> meanwhile_;
};

template <class Call>
im::status status_of(const Call& call) try {
  call();
  return im::status::ok;
} catch (const im::error& problem) {
  return problem.status();
}

class unified_reentrancy : public on_unified {
 protected:
  // Large enough that hashes send it in several chunks.
  static constexpr std::size_t k_bytes = 3 * k_mib;
  static constexpr std::size_t k_limit = 8 * k_mib;  // two device copies

  using function = std::function<void(const unified&)>;

  void SetUp() override {
    on_unified::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (one_memory()) GTEST_SKIP() << "its device copy needs no memory";
    pool_ = im::resource::pool(queue_.context(), im::kind::device,
                               {.initial_bytes = k_limit, .limit_bytes = k_limit}, device_);
  }
  void TearDown() override {
    pool_ = {};
    on_unified::TearDown();
  }

  // A buffer of ones with a host copy only.
  unified make_filled() const {
    auto how = options();
    how.resource = pool_;
    const unified it(k_bytes, how);
    it.copy_from(ones());
    return it;
  }
  static bytes ones() { return bytes(k_bytes, std::byte{1}); }

  // Every call that makes the device copy.
  static const std::vector<function>& calls() {
    static const std::vector<function> all{
        [](const unified& it) { (void)it.device(); },
        [](const unified& it) { (void)it.device({5, 100}); },
        [](const unified& it) { it.sync_to_device(); },
        [](const unified& it) { (void)it.sync_to_device_async(it.all()); },
        [](const unified& it) { im::synchronize(it); },
        [](const unified& it) { it.device_write({0, 10}, [](const im::buffer&) {}); },
    };
    return all;
  }

  im::resource pool_;
};
ISTHMUS_ON_UNIFIED(unified_reentrancy);

TEST_P(unified_reentrancy, a_request_that_uses_the_buffer) {
  for (const auto& call : calls()) {
    const unified it = make_filled();
    const auto view = it.host();
    im::buffer there;
    {
      const taken_until_needed meanwhile(pool_, k_limit, queue_, [&] {
        view[7] = std::byte{2};
        there = it.device();
      });
      call(it);
    }
    auto want = ones();
    want[7] = std::byte{2};
    EXPECT_EQ(it.device().pointer(), there.pointer()) << "there is one device copy";
    EXPECT_TRUE(same(read(there), want));
    EXPECT_TRUE(same(it.host_read(), want));
  }
}

// Bytes that the device wrote meanwhile are not overwritten by host writes to the same bytes.
TEST_P(unified_reentrancy, a_request_that_leaves_a_conflict) {
  for (const auto& call : calls()) {
    const unified it = make_filled();
    const auto view = it.host();
    {
      const taken_until_needed meanwhile(pool_, k_limit, queue_, [&] {
        write_on_device(it, 5, bytes(10, std::byte{9}));
        view[7] = std::byte{2};
      });
      (void)status_of([&] { call(it); });
    }
    EXPECT_EQ(status_of([&] { it.sync_to_device(); }), im::status::conflict);
    it.resolve(im::winner::device);
    auto want = ones();
    std::fill_n(want.begin() + 5, 10, std::byte{9});
    EXPECT_TRUE(same(it.host_read(), want));
    EXPECT_TRUE(same(read_on_device(it), want));
  }
}

TEST_P(unified_reentrancy, a_request_that_frees_the_buffer) {
  for (const bool is_viewed : {false, true}) {
    for (const auto& call : calls()) {
      const unified it = make_filled();
      const auto view = is_viewed ? it.host() : im::unified_view<std::byte>{};
      {
        const taken_until_needed meanwhile(pool_, k_limit, queue_, [&] { it.free(); });
        EXPECT_EQ(status_of([&] { call(it); }), im::status::closed);
      }
      EXPECT_EQ(status_of([&] { call(it); }), im::status::closed);
      (void)queue_.fence().wait_for(30s);
      // Succeeds only if no device copy is left.
      void* const all = pool_.allocate(k_limit, 0, queue_);
      pool_.deallocate(all, k_limit, 0, queue_);
    }
  }
}

TEST_P(unified_reentrancy, a_request_that_frees_another_buffer_of_the_call) {
  const unified it = make_filled();
  const unified other = make_filled();
  {
    const taken_until_needed meanwhile(pool_, k_limit, queue_, [&] { other.free(); });
    EXPECT_EQ(status_of([&] { im::synchronize(it, other); }), im::status::closed);
  }
  EXPECT_EQ(it.state(), im::unified_state::synchronized);
  EXPECT_TRUE(same(read_on_device(it), ones()));
}

// The device copy for another queue is ordered after pending uploads. With a driver whose queues
// defer operations, the host waits for those uploads.
class unified_on_another_queue : public unified_reentrancy {
 protected:
  void expect_after(const std::function<void(const unified&)>& meanwhile, im::status wanted) {
    const unified it = make_filled();
    (void)it.device();
    queue_.wait();
    const im::queue other(queue_.context(), device_);
    const im::host_event gate;
    (void)queue_.fence({gate});
    it.copy_from(bytes(k_bytes, std::byte{2}));
    (void)it.device();
    const called_in_waits called([&] {
      gate.complete();
      queue_.wait();
      meanwhile(it);
    });
    im::buffer there;
    EXPECT_EQ(status_of([&] { there = it.device(other); }), wanted);
    if (there) {
      EXPECT_TRUE(same(read(there), bytes(k_bytes, std::byte{2})));
    }
  }
};
ISTHMUS_ON_UNIFIED(unified_on_another_queue);

TEST_P(unified_on_another_queue, frees_the_buffer_meanwhile) {
  if (!defers_host_waits(GetParam().backend)) GTEST_SKIP() << "the host waits for nothing";
  expect_after([](const unified& it) { it.free(); }, im::status::closed);
}

TEST_P(unified_on_another_queue, needs_all_memory_meanwhile) {
  if (!defers_host_waits(GetParam().backend)) GTEST_SKIP() << "the host waits for nothing";
  expect_after(
      [this](const unified&) {
        EXPECT_THROW((void)pool_.allocate(k_limit, 0, queue_), im::out_of_memory);
      },
      im::status::ok);
}

}  // namespace
