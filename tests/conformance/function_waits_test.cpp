// SPDX-License-Identifier: Apache-2.0
// The library in functions on queues, and in functions that run when an event completes: every call
// works, or fails with DEADLOCK if it would wait for the function itself. None blocks indefinitely.
#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace support;

constexpr std::size_t k_buffer_bytes = 1000;

// What a function has, which runs on `own`.
struct scene {
  im::device device;
  im::queue own;
  im::queue used;       // the queue of the call: `own`, or another one
  im::buffer touched;   // the function accesses it
  im::buffer idle;      // nothing is pending on it
  im::event end;        // of the function
  im::event later;      // of an operation on `own` that was submitted after the function
  im::event dependent;  // of an operation on another queue that waits for the function
};

enum class outcome { works, refused, either };

struct operation {
  std::string name;
  std::function<void(const scene&)> call;
  outcome on_own;
  outcome on_other;
};

// Calls that access the host's memory need an operation on the queue if the device's memory is
// separate, and otherwise wait for the queue.
const std::vector<operation>& operations() {
  using enum outcome;
  static const std::vector<operation> all{
      {"allocate",
       [](const scene& now) { im::buffer(k_buffer_bytes, now.idle.kind(), {.queue = now.used}); },
       works, works},
      {"free", [](const scene& now) { im::buffer(now.idle).free(); }, works, works},
      {"pool",
       [](const scene& now) {
         const auto pool = im::resource::pool(now.used, now.idle.kind());
         pool.deallocate(pool.allocate(k_buffer_bytes, 0, now.used), k_buffer_bytes, 0, now.used);
         pool.trim();
       },
       works, works},
      {"new queue", [](const scene& now) { im::queue(now.device).fence().wait(); }, works, works},
      {"new context",
       [](const scene& now) {
         const im::context context{now.device};
         im::queue(context, now.device).wait();
       },
       works, works},
      {"submit",
       [](const scene& now) { (void)im::fill_async(now.idle, '\1', {.queue = now.used}); }, works,
       works},
      {"timeout",
       [](const scene& now) { EXPECT_FALSE(now.later.wait_for(1ms) || now.end.wait_for(1ms)); },
       works, works},
      {"query", [](const scene& now) { EXPECT_FALSE(now.end.done() || now.own.idle()); }, works,
       works},
      {"fill", [](const scene& now) { im::fill(now.idle, '\1', {.queue = now.used}); }, refused,
       works},
      {"write",
       [](const scene& now) { im::copy(now.idle, bytes(k_buffer_bytes), {.queue = now.used}); },
       refused, works},
      {"read",
       [](const scene& now) {
         bytes got(k_buffer_bytes);
         im::copy(std::span(got), now.idle, {.queue = now.used});
       },
       refused, works},
      {"copy",
       [](const scene& now) {
         const im::buffer other(k_buffer_bytes, now.idle.kind(), {.queue = now.used});
         im::copy(other, now.idle, {.queue = now.used});
       },
       refused, works},
      {"event",
       [](const scene& now) { im::fill_async(now.idle, '\1', {.queue = now.used}).wait(); },
       refused, works},
      {"queue", [](const scene& now) { now.used.wait(); }, refused, works},
      {"fence", [](const scene& now) { now.used.fence().wait(); }, refused, works},
      {"mark", [](const scene& now) { now.used.mark().wait(); }, refused, works},
      {"pending", [](const scene& now) { now.used.pending().wait(); }, refused, works},
      {"function", [](const scene& now) { now.used.submit([] {}).wait(); }, refused, works},
      {"end", [](const scene& now) { now.end.wait(); }, refused, refused},
      {"later", [](const scene& now) { now.later.wait(); }, refused, refused},
      {"dependent", [](const scene& now) { now.dependent.wait(); }, refused, refused},
      {"after its end", [](const scene& now) { now.used.fence({now.end}).wait(); }, refused,
       refused},
      {"blocking after its end",
       [](const scene& now) { im::fill(now.idle, '\1', {.queue = now.used, .after = now.end}); },
       refused, refused},
      {"its buffer", [](const scene& now) { im::fill(now.touched, '\1', {.queue = now.used}); },
       refused, refused},
      {"blocking function on its buffer",
       [](const scene& now) {
         isthmus_buffer_t* const raw = now.touched.get();
         const isthmus_function_t nothing = [](void*, const isthmus_view_t*, std::size_t,
                                               const char**) {
           return isthmus_status_t{ISTHMUS_OK};
         };
         im::detail::check(
             isthmus_queue_submit(now.used.get(), nothing, {}, &raw, 1, nullptr, 0, nullptr));
       },
       refused, refused},
      {"wait for its buffer", [](const scene& now) { now.touched.wait(); }, refused, refused},
      {"host view",
       [](const scene& now) {
         if (now.touched.kind() == im::kind::device) im::raise(im::status::deadlock, "as expected");
         (void)now.touched.host();
       },
       refused, refused},
      {"wait for an idle buffer", [](const scene& now) { now.idle.wait(); }, works, works},
      {"unified",
       [](const scene& now) {
         im::unified_options options;
         options.queue = now.used;
         options.separate = true;
         const im::unified_buffer<std::byte> it(k_buffer_bytes, options);
         it.host()[5] = std::byte{1};
         it.sync_to_device();
         (void)it.device();
         it.mark_device();
         (void)it.host_read();
       },
       either, works},
      {"array",
       [](const scene& now) {
         const auto ones = im::full<float>({100}, 1.F, now.idle.kind(), {.queue = now.used});
         (void)im::to_vector(ones);
       },
       either, works},
  };
  return all;
}

class function_waits : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && !can(im::capability::wait_for_host)) {
      GTEST_SKIP() << "functions cannot be delayed here";
    }
  }

  im::kind kind() const {
    return can(im::capability::run_functions) ? kinds().front() : kinds().back();
  }

  // The outcome of a call in a function on `queue_`.
  im::status called(const operation& each, bool on_own) {
    const im::host_event gate;
    const im::queue other(device_);
    const im::queue third(device_);
    std::promise<scene> ready;
    scene now{device_,
              queue_,
              on_own ? queue_ : other,
              make(k_buffer_bytes, kind()),
              make(k_buffer_bytes, kind()),
              {},
              {},
              {}};
    std::promise<im::status> result;
    now.end = queue_.submit_after(
        gate,
        [&, scene = ready.get_future()](std::span<std::byte>) mutable {
          result.set_value(status_of(each.call, scene.get()));
        },
        now.touched);
    now.later = queue_.fence();
    now.dependent = third.fence({now.end});
    ready.set_value(now);
    gate.complete();
    now.dependent.wait();
    now.later.wait();
    return result.get_future().get();
  }

  static im::status status_of(const std::function<void(const scene&)>& call, const scene& now) try {
    call(now);
    return im::status::ok;
  } catch (const im::error& problem) {
    EXPECT_TRUE(problem.status() != im::status::deadlock || contains(problem.what(), "function") ||
                contains(problem.what(), "as expected"))
        << problem.what();
    return problem.status();
  }
};
INSTANTIATE_ON_BACKENDS(function_waits);

// External work may run on a queue whose handle was exported, so waits for it need a fence.
TEST_P(function_waits, no_operation_blocks_on_an_exported_queue) {
  if (!can(im::capability::export_handles)) GTEST_SKIP() << "its queues have no handles";
  (void)queue_.export_native();
  for (const operation& each : operations()) {
    for (const bool on_own : {true, false}) {
      const watchdog guarded(each.name + (on_own ? " on the same queue" : " on another queue"));
      const im::status got = called(each, on_own);
      EXPECT_TRUE(got == im::status::ok || got == im::status::deadlock) << each.name << on_own;
    }
  }
}

TEST_P(function_waits, every_operation_works_or_is_refused) {
  for (const operation& each : operations()) {
    for (const bool on_own : {true, false}) {
      const watchdog guarded(each.name + (on_own ? " on the same queue" : " on another queue"));
      const auto wanted = on_own ? each.on_own : each.on_other;
      const im::status got = called(each, on_own);
      if (wanted == outcome::works || got == im::status::ok) {
        EXPECT_NE(wanted, outcome::refused) << each.name << on_own;
        EXPECT_EQ(got, im::status::ok) << each.name << on_own;
      } else {
        EXPECT_EQ(got, im::status::deadlock) << each.name << on_own;
      }
    }
  }
}

// The caller releases what the function uses after a failure.
TEST_P(function_waits, a_refused_function_never_runs) {
  const watchdog guarded("a function that is refused");
  const im::queue other(device_);
  const im::buffer buffer = make(k_buffer_bytes, kind());
  std::atomic<bool> ran{false};
  isthmus_status_t got = ISTHMUS_OK;
  const auto submit_and_wait = [&](std::span<std::byte>) {
    isthmus_buffer_t* const raw = buffer.get();
    const isthmus_function_t set = [](void* object, const isthmus_view_t*, std::size_t,
                                      const char**) {
      *static_cast<std::atomic<bool>*>(object) = true;
      return isthmus_status_t{ISTHMUS_OK};
    };
    got = isthmus_queue_submit(other.get(), set, {&ran, nullptr}, &raw, 1, nullptr, 0, nullptr);
  };
  const im::host_event gate;  // the function begins after its use of the buffer was recorded
  const im::event function = queue_.submit_after(gate, submit_and_wait, buffer);
  gate.complete();
  function.wait();
  other.wait();
  buffer.wait();
  EXPECT_EQ(got, ISTHMUS_ERROR_DEADLOCK);
  EXPECT_FALSE(ran);
}

// Each function waits for the other one, directly or for later work on its queue.
TEST_P(function_waits, of_two_functions_for_each_other) {
  const watchdog guarded("two functions that wait for each other");
  for (const bool is_direct : {true, false}) {
    const im::host_event gate;
    const im::queue other(device_);
    std::promise<std::pair<im::event, im::event>> ready;
    const std::shared_future awaited = ready.get_future().share();
    std::atomic<int> refused{0};
    const auto wait_for = [&](auto which) {
      return [&refused, awaited, which] {
        try {
          (awaited.get().*which).wait();
        } catch (const im::deadlock&) {
          ++refused;
        }
      };
    };
    using events = std::pair<im::event, im::event>;
    const im::event first = queue_.submit_after(gate, wait_for(&events::second));
    const im::event second = other.submit_after(gate, wait_for(&events::first));
    ready.set_value(is_direct ? events{first, second} : events{queue_.fence(), other.fence()});
    gate.complete();
    first.wait();
    second.wait();
    EXPECT_EQ(refused, 1);
  }
}

// A wait that ends is not refused, whatever the order in which functions and operations begin.
TEST_P(function_waits, of_many_functions_for_earlier_work) {
  const watchdog guarded("functions that wait for earlier work");
  const im::queue other(device_);
  std::atomic<int> ran{0};
  im::event before = other.fence();
  for (int i = 0; i < 50; ++i) {
    const im::event here = queue_.submit([before, &ran] {
      before.wait();
      ++ran;
    });
    before = other.submit_after(here, [here, &ran] {
      here.wait();
      ++ran;
    });
  }
  before.wait();
  EXPECT_EQ(ran, 100);
}

TEST_P(function_waits, in_functions_of_events) {
  const watchdog guarded("functions that run on completion");
  const im::queue other(device_);
  const im::host_event gate;
  const im::buffer buffer = make(k_buffer_bytes, kind());
  std::promise<void> called;
  const im::event done = im::fill_async(buffer, '\1', {.after = gate});
  done.then([&]() noexcept {
    im::fill(buffer, '\2');
    im::fill_async(buffer, '\3', {.queue = other}).wait();
    queue_.wait();
    (void)read(make(k_buffer_bytes, kind()));
    queue_.submit([] {}).wait();
    called.set_value();
  });
  gate.complete();
  called.get_future().wait();
  EXPECT_TRUE(same(read(buffer), bytes(k_buffer_bytes, std::byte{3})));
}

// The function runs after the operations that wait for the event were started.
TEST_P(function_waits, in_functions_of_host_events) {
  const watchdog guarded("functions of host events");
  const im::host_event gate;
  const im::buffer buffer = make(k_buffer_bytes, kind());
  im::event done;
  std::atomic<bool> called{false};
  const auto wait = [&]() noexcept {
    done.wait();
    called = true;
  };
  gate.then(wait);
  done = im::fill_async(buffer, '\1', {.after = gate});
  gate.complete();
  EXPECT_TRUE(called);
}

}  // namespace
