// SPDX-License-Identifier: Apache-2.0
// Host functions in the order of a queue.
#include <atomic>
#include <future>
#include <memory>
#include <numeric>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class submitting : public on_backend {
 protected:
  // Kinds whose memory a function may access.
  std::vector<im::kind> touchable() const {
    std::vector<im::kind> result;
    for (im::kind one : kinds()) {
      if (one != im::kind::device || can(im::capability::run_functions)) result.push_back(one);
    }
    return result;
  }
};
INSTANTIATE_ON_BACKENDS(submitting);

void invert(std::span<std::byte> all) {
  for (std::byte& one : all) one = ~one;
}

TEST_P(submitting, a_function_sees_and_changes_the_bytes) {
  for (im::kind kind : touchable()) {
    const im::buffer buffer = make(1000, kind);
    bytes data = noise(1000);
    write(buffer, data);
    const im::event done = queue_.submit(invert, buffer);
    done.wait();
    invert(data);
    EXPECT_TRUE(same(read(buffer), data)) << name(kind);
  }
}

TEST_P(submitting, functions_take_their_turn) {
  for (im::kind kind : touchable()) {
    const im::buffer buffer = make(100000, kind);
    bytes got(100000);
    for (unsigned i = 0; i < 10; ++i) {
      (void)im::fill_async(buffer, static_cast<std::uint8_t>(i));
      (void)queue_.submit(
          [](std::span<std::byte> all) {
            std::this_thread::sleep_for(100us);
            for (std::byte& one : all) one |= std::byte{0x80};
          },
          buffer);
      im::copy_async(std::span(got), buffer).wait();
      ASSERT_TRUE(same(got, bytes(100000, static_cast<std::byte>(0x80 | i)))) << name(kind);
    }
  }
}

TEST_P(submitting, several_buffers_and_slices) {
  const std::vector<im::kind> usable = touchable();
  if (usable.empty()) GTEST_SKIP();
  const im::buffer in = make(1000, usable.front());
  const im::buffer out = make(1000, usable.back());
  const bytes data = noise(1000);
  write(in, data);
  im::fill(out, std::byte{0});
  queue_
      .submit([](std::span<std::byte> to,
                 std::span<std::byte> from) { std::copy(from.begin(), from.end(), to.begin()); },
              out.slice(100, 500), in.slice(7, 500))
      .wait();
  bytes want(1000);
  std::copy_n(data.begin() + 7, 500, want.begin() + 100);
  EXPECT_TRUE(same(read(out), want));
}

TEST_P(submitting, without_buffers) {
  std::atomic<int> ran{0};
  (void)queue_.submit([&ran] { ++ran; });
  queue_.submit([&ran] { ++ran; }).wait();
  EXPECT_EQ(ran, 2);
}

TEST_P(submitting, after_events) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  std::atomic<bool> ran{false};
  const im::host_event gate;
  const im::event done = queue_.submit_after(gate, [&ran] { ran = true; });
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(ran);
  gate.complete();
  done.wait();
  EXPECT_TRUE(ran);
}

TEST_P(submitting, exceptions_end_the_event) {
  const im::event failed = queue_.submit([] { throw std::runtime_error("the sum is wrong"); });
  EXPECT_TRUE(throws(im::status::callback, {"the sum is wrong"}, [&] { failed.wait(); }));
  EXPECT_EQ(failed.status(), im::status::callback);
  const im::event odd = queue_.submit([] { throw 42; });
  EXPECT_TRUE(throws(im::status::callback, [&] { odd.wait(); }));
  std::atomic<bool> ran{false};
  queue_.submit([&ran] { ran = true; }).wait();  // the queue still works
  EXPECT_TRUE(ran);
}

TEST_P(submitting, what_waits_for_a_failed_function_fails) {
  const im::buffer buffer = make(100, kinds().front());
  im::fill(buffer, std::byte{1});
  const im::event failed = queue_.submit([] { throw std::runtime_error("no"); });
  const im::queue other(device_);
  EXPECT_TRUE(throws(im::status::dependency,
                     [&] { im::fill(buffer, std::byte{2}, {.queue = other, .after = failed}); }));
  const auto want = ran_despite_failure() ? std::byte{2} : std::byte{1};
  EXPECT_TRUE(same(read(buffer), bytes(100, want)));
}

TEST_P(submitting, the_function_is_destroyed_once) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = owned;
  const im::event done = queue_.submit([kept = std::move(owned)] { (void)*kept; });
  done.wait();
  for (int i = 0; i < 5000 && !seen.expired(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(seen.expired());
  auto refusedly = std::make_shared<int>(2);
  const std::weak_ptr<int> gone = refusedly;
  const im::buffer dead = make(10, kinds().back());
  dead.free();
  EXPECT_THROW((void)queue_.submit([kept = std::move(refusedly)](std::span<std::byte>) {}, dead),
               im::closed);
  EXPECT_TRUE(gone.expired());
}

TEST_P(submitting, buffers_are_owned_until_the_function_has_run) {
  if (touchable().empty() || !can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::host_event gate;
  std::atomic<int> sum{0};
  im::event done;
  {
    const im::buffer buffer = make(100, touchable().front());
    im::fill(buffer, std::byte{1});
    done = queue_.submit_after(
        gate,
        [&sum](std::span<std::byte> all) {
          for (std::byte one : all) sum += std::to_integer<int>(one);
        },
        buffer);
  }
  gate.complete();
  done.wait();
  EXPECT_EQ(sum, 100);
}

TEST_P(submitting, functions_may_use_the_library) {
  const im::queue other(device_);
  const im::buffer buffer(1000, kinds().front(), {.queue = other});
  queue_
      .submit([buffer, other] {
        const im::buffer inner(10, buffer.kind(), {.queue = other});
        im::fill(buffer, std::byte{7});
      })
      .wait();
  EXPECT_TRUE(same(read(buffer), bytes(1000, std::byte{7})));
}

TEST_P(submitting, device_memory_needs_the_capability) {
  if (can(im::capability::run_functions) || !device_.offers(im::kind::device)) GTEST_SKIP();
  const im::buffer buffer = make(10, im::kind::device);
  EXPECT_TRUE(throws(im::status::unsupported, [&] { (void)queue_.submit(invert, buffer); }));
}

// A return value that is neither success nor a known error also fails the function.
TEST_P(submitting, a_code_that_means_nothing_fails_the_function) {
  for (const isthmus_status_t code :
       {ISTHMUS_PENDING + 0, ISTHMUS_ERROR_TIMEOUT + 0, ISTHMUS_ERROR_DEADLOCK - 1}) {
    isthmus_status_t given = code;
    const isthmus_function_t function = [](void* object, const isthmus_view_t*, std::size_t,
                                           const char**) {
      return *static_cast<isthmus_status_t*>(object);
    };
    isthmus_event_t* event = nullptr;
    ASSERT_EQ(isthmus_queue_submit(queue_.get(), function, {&given, nullptr}, nullptr, 0, nullptr,
                                   0, &event),
              ISTHMUS_OK);
    EXPECT_EQ(isthmus_event_wait(event, -1), ISTHMUS_ERROR_CALLBACK);
    isthmus_event_release(event);
  }
}

TEST_P(submitting, functions_that_do_not_run_are_destroyed_on_a_library_thread) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::host_event gate;
  std::promise<std::thread::id> let_go;
  auto where = let_go.get_future();
  std::shared_ptr<void> kept(nullptr, [&](void*) { let_go.set_value(std::this_thread::get_id()); });
  const im::event done = queue_.submit_after(gate, [kept = std::move(kept)] {});
  gate.fail("as asked");
  EXPECT_THROW(done.wait(), im::dependency_failed);
  EXPECT_NE(where.get(), std::this_thread::get_id());
}

TEST_P(submitting, a_buffer_kept_by_a_copy_may_be_released_with_it) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  const im::live_memory before = im::live();
  {
    const im::host_event gate;
    const im::buffer target = make_unpooled(1000, kinds().front());
    auto kept = std::make_shared<im::buffer>(make_unpooled(1000, kinds().front()));
    auto data = std::make_shared<bytes>(noise(1000));
    const im::event written =
        im::copy_async(target, std::span<const std::byte>(*data),
                       {.after = gate, .keep = im::keep(std::move(kept), data)});
    gate.complete();
    written.wait();
  }
  for (int i = 0; i < 5000 && im::live().count != before.count; ++i) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(im::live().count, before.count);
}

// What the function writes to stderr.
template <class Function>
std::string printed(const Function& function) {
  testing::internal::CaptureStderr();
  function();
  return testing::internal::GetCapturedStderr();
}

TEST_P(submitting, a_failure_whose_event_was_dropped_is_printed) {
  const auto fails = [] { throw std::runtime_error("the pump is broken"); };
  for (const bool is_late : {false, true}) {
    if (is_late && !can(im::capability::wait_for_host)) continue;
    const std::string text = printed([&] {
      const im::host_event gate;
      if (!is_late) gate.complete();
      {
        const im::event failed = queue_.submit_after(gate, fails);
        const im::event copy = failed;
        if (!is_late) queue_.wait();
      }
      if (is_late) gate.complete();
      queue_.wait();
    });
    const auto first = text.find("the pump is broken");
    EXPECT_NE(first, std::string::npos) << is_late;
    EXPECT_EQ(text.find("the pump is broken", first + 1), std::string::npos) << text;
  }
}

TEST_P(submitting, a_failure_that_was_retrieved_is_not_printed) {
  const auto fails = [] { throw std::runtime_error("no"); };
  const auto text = printed([&] {
    EXPECT_THROW(queue_.submit(fails).wait(), im::callback_failed);
    const im::event queried = queue_.submit(fails);
    while (!queried.done()) std::this_thread::sleep_for(1ms);
    const im::event reported = queue_.submit(fails);
    isthmus_event_mark_reported(reported.get());
    (void)queue_.submit([] {});
  });
  queue_.wait();
  EXPECT_EQ(text, "");
}

}  // namespace
