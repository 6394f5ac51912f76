// SPDX-License-Identifier: Apache-2.0
// An operation that is ordered after another one only by a conflict runs even if that one fails,
// before or after it was submitted. An operation that names the other one in `after` fails with it.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr std::size_t k_bytes = 100'000;

// Whether the predecessor fails before or after its follower is submitted.
enum class fails { before, after };

class implicit_order : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && !can(im::capability::wait_for_host)) {
      GTEST_SKIP() << "nothing can be held up";
    }
  }
  // `follow(buffer)` submits an operation on a whole buffer that a failing operation on another
  // queue uses, and returns its event. That event must succeed.
  template <class Follow>
  void follow_a_failure(im::kind kind, Follow follow) {
    for (const auto when : {fails::before, fails::after}) {
      const im::buffer buffer = make(k_bytes, kind);
      im::fill(buffer, std::byte{1});
      const im::queue other(device_);
      const im::host_event gate;
      const im::event failing =
          im::fill_async(buffer, std::byte{9}, {.queue = other, .after = gate});
      const auto fail = [&] {
        gate.fail("the pump is broken");
        EXPECT_TRUE(throws(im::status::dependency, [&] { failing.wait(); }));
        ran_ = ran_ || ran_despite_failure();
      };
      if (when == fails::before) fail();
      const im::event done = follow(buffer);
      if (when == fails::after) fail();
      EXPECT_NO_THROW(done.wait());
      EXPECT_TRUE(throws(im::status::dependency, [&] { queue_.fence({failing}).wait(); }));
      queue_.wait();
    }
  }
  // Kinds of memory that functions may access.
  std::vector<im::kind> touchable() const {
    std::vector<im::kind> result;
    for (const im::kind one : kinds()) {
      if (one != im::kind::device || can(im::capability::run_functions)) result.push_back(one);
    }
    return result;
  }

  bool ran_ = false;  // the driver could not cancel the failed operation
};
INSTANTIATE_ON_BACKENDS(implicit_order);

TEST_P(implicit_order, copies_from_the_host_follow_a_failure) {
  for (const im::kind kind : kinds()) {
    const bytes data = noise(k_bytes);
    im::buffer last;
    follow_a_failure(kind, [&](const im::buffer& buffer) {
      last = buffer;
      return im::copy_async(buffer, std::span(data), {.queue = queue_});
    });
    EXPECT_TRUE(same(read(last), data));
  }
}

TEST_P(implicit_order, fills_follow_a_failure) {
  for (const im::kind kind : kinds()) {
    im::buffer last;
    follow_a_failure(kind, [&](const im::buffer& buffer) {
      last = buffer;
      return im::fill_async(buffer, std::byte{7}, {.queue = queue_});
    });
    EXPECT_TRUE(same(read(last), bytes(k_bytes, std::byte{7})));
  }
}

TEST_P(implicit_order, copies_to_the_host_and_to_another_buffer_follow_a_failure) {
  const im::kind kind = kinds().front();
  bytes got(k_bytes);
  follow_a_failure(kind, [&](const im::buffer& buffer) {
    return im::copy_async(std::span(got), buffer, {.queue = queue_});
  });
  const im::buffer to = make(k_bytes, kind);
  follow_a_failure(kind, [&](const im::buffer& buffer) {
    return im::copy_async(to, buffer, {.queue = queue_});
  });
  if (!ran_) {
    EXPECT_TRUE(same(got, bytes(k_bytes, std::byte{1})));
    EXPECT_TRUE(same(read(to), bytes(k_bytes, std::byte{1})));
  }
}

TEST_P(implicit_order, functions_follow_a_failure) {
  if (touchable().empty()) GTEST_SKIP();
  im::buffer last;
  follow_a_failure(touchable().front(), [&](const im::buffer& buffer) {
    last = buffer;
    return queue_.submit([](std::span<std::byte> all) { std::ranges::fill(all, std::byte{5}); },
                         buffer);
  });
  EXPECT_TRUE(same(read(last), bytes(k_bytes, std::byte{5})));
}

// A recorded event stands for work of the caller. Its failure is reported to the caller alone.
TEST_P(implicit_order, a_recorded_event_that_fails_orders_only) {
  for (const auto when : {fails::before, fails::after}) {
    const im::buffer buffer = make(k_bytes, kinds().front());
    im::fill(buffer, std::byte{1});
    const im::host_event work;
    buffer.record(work);
    if (when == fails::before) work.fail("the caller's work failed");
    const im::event done = im::fill_async(buffer, std::byte{3});
    if (when == fails::after) work.fail("the caller's work failed");
    EXPECT_NO_THROW(done.wait());
    EXPECT_TRUE(same(read(buffer), bytes(k_bytes, std::byte{3})));
  }
}

// When one dependency fails, the operation must still wait for the others.
TEST_P(implicit_order, an_order_holds_beside_a_failure) {
  const im::buffer buffer = make(k_bytes, kinds().front());
  im::fill(buffer, std::byte{1});
  const im::host_event fails_soon, ends_late;
  buffer.record(fails_soon);
  buffer.record(ends_late);
  const im::event done = im::fill_async(buffer, std::byte{4});
  fails_soon.fail("the caller's work failed");
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(done.status(), im::status::pending);
  ends_late.complete();
  EXPECT_NO_THROW(done.wait());
  EXPECT_TRUE(same(read(buffer), bytes(k_bytes, std::byte{4})));
}

// A pool reuses memory on the same queue before the work on it has completed. The next owner may
// never use it, or use it on another queue first.
TEST_P(implicit_order, memory_that_is_handed_out_under_work_comes_after_it) {
  const bytes data = noise(k_bytes);
  for (const im::kind kind : kinds()) {
    const im::resource pool = im::resource::pool(queue_.context(), kind);
    const im::queue other(device_);
    const im::host_event gate;
    void* used = nullptr;
    {
      const im::buffer first(k_bytes, kind, {.queue = queue_, .resource = pool});
      used = first.pointer();
      static_cast<void>(im::fill_async(first, std::byte{9}, {.after = gate}));
    }
    for (int time = 0; time < 3; ++time) {
      const im::buffer never_used(k_bytes, kind, {.queue = queue_, .resource = pool});
    }
    const im::buffer elsewhere(k_bytes, kind, {.queue = other, .resource = pool});
    EXPECT_NE(elsewhere.pointer(), used) << "work of another queue is to write it";
    const im::event copied = im::copy_async(elsewhere, std::span(data), {.queue = other});
    const im::buffer next(k_bytes, kind, {.queue = queue_, .resource = pool});
    const im::event written = im::copy_async(next, std::span(data), {.queue = other});
    if (next.pointer() == used) {
      std::this_thread::sleep_for(2ms);
      EXPECT_EQ(written.status(), im::status::pending);
    }
    gate.complete();
    written.wait();
    copied.wait();
    queue_.wait();
    EXPECT_TRUE(same(read(next), data));
    EXPECT_TRUE(same(read(elsewhere), data));
  }
}

// A failure of the previous owner's work does not fail the next owner's operations.
TEST_P(implicit_order, memory_that_is_handed_out_under_work_does_not_fail_with_it) {
  for (const im::kind kind : kinds()) {
    const im::resource pool = im::resource::pool(queue_.context(), kind);
    const im::queue other(device_);
    const im::host_event gate;
    {
      const im::buffer first(k_bytes, kind, {.queue = queue_, .resource = pool});
      static_cast<void>(im::fill_async(first, std::byte{9}, {.after = gate}));
    }
    const im::buffer next(k_bytes, kind, {.queue = queue_, .resource = pool});
    const im::event filled = im::fill_async(next, std::byte{3}, {.queue = other});
    gate.fail("the pump is broken");
    EXPECT_NO_THROW(filled.wait());
    EXPECT_TRUE(same(read(next), bytes(k_bytes, std::byte{3})));
  }
}

}  // namespace
