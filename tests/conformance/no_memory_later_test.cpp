// SPDX-License-Identifier: Apache-2.0
// The host runs out of memory during an asynchronous call, or when what the call waits for
// completes. The call fails and can be repeated, has no partial effect and does not hang. Tested on
// the backends whose driver is part of the library, because other drivers may behave differently.
#include <sys/eventfd.h>
#include <unistd.h>
#include <atomic>
#include <filesystem>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"
#include "support/later_calls.hpp"
#include "support/watchdog.hpp"
#include "support/without_memory.hpp"

namespace {

using namespace support;

class no_memory_later : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (IsSkipped()) return;
    if (!can(im::capability::wait_for_host))
      GTEST_SKIP() << "the device cannot wait for an event of the host";
  }
  // A queue of the same device, and one of another device of the same backend.
  std::vector<im::queue> others() const {
    std::vector<im::queue> all{queue_, im::queue{queue_.context(), device_}};
    if (std::string_view{GetParam()} != "host") all.emplace_back(open_backend(GetParam()));
    return all;
  }
  later_call make_all(const im::queue& other, im::kind of) const {
    later_call made{queue_, other, im::buffer(k_later_bytes, of, {.queue = queue_}),
                    im::buffer(k_later_bytes, of, {.queue = other}), noise(k_later_bytes)};
    write(made.target, bytes(k_later_bytes));
    write(made.source, made.plain);
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(backends, no_memory_later, testing::Values("host", "sim", "sim_late"),
                         backend_label);

// Makes the call with memory for `served` allocations while the event that it waits for is pending.
// Returns whether an allocation failed.
bool fails_later_after(const later_form& what, const later_call& all, long served, shortage of) {
  const im::host_event gate;
  later_call to = all;
  to.after = gate.get();
  isthmus_event_t* made = nullptr;
  isthmus_status_t status = ISTHMUS_OK;
  bool failed = false;
  {
    const without_memory later{served, of};
    status = what.make(to, &made);
    failed = without_memory::failed();
  }
  if (status != ISTHMUS_OK && status != ISTHMUS_ERROR_UNSUPPORTED) {
    EXPECT_EQ(status, ISTHMUS_ERROR_OUT_OF_MEMORY) << isthmus_error_message();
    EXPECT_TRUE(failed);
  }
  gate.complete();
  if (status == ISTHMUS_OK) {  // the event fails if there is no thread for a copy through the host
    status = isthmus_event_wait(made, -1);
    EXPECT_TRUE(status == ISTHMUS_OK || (failed && status == ISTHMUS_ERROR_OUT_OF_MEMORY))
        << isthmus_error_message();
  }
  isthmus_event_release(made);
  to.queue.wait();
  to.other.wait();
  if (status != ISTHMUS_OK) {
    EXPECT_TRUE(same(read(all.target), bytes(k_later_bytes))) << "half done";
  }
  return failed;
}

void expect_later_done(const later_form& what, const later_call& all) {
  EXPECT_TRUE(same(read(all.target), what.result(all)));
}

void make_later_again(const later_form& what, const later_call& all) {
  const im::host_event gate;
  later_call to = all;
  to.after = gate.get();
  isthmus_event_t* made = nullptr;
  const auto status = what.make(to, &made);
  gate.complete();
  if (status != ISTHMUS_ERROR_UNSUPPORTED) {
    ASSERT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
    EXPECT_EQ(isthmus_event_wait(made, -1), ISTHMUS_OK) << isthmus_error_message();
    expect_later_done(what, all);
  }
  isthmus_event_release(made);
}

TEST_P(no_memory_later, any_allocation_of_a_call_may_fail) {
  for (const auto& other : others()) {
    for (const im::kind kind : kinds()) {
      for (const auto& what : later_forms()) {
        const watchdog guard{what.name};
        fail_each_allocation([&](long served, shortage of) {
          SCOPED_TRACE(std::string{what.name} + ", " + describe(served, of));
          const auto all = make_all(other, kind);  // new buffers, because their first use allocates
          const bool failed = fails_later_after(what, all, served, of);
          make_later_again(what, all);
          return failed && !HasFailure();
        });
        if (HasFailure()) return;
      }
    }
  }
}

// Makes a blocking copy in a function on a queue, with memory for `served` allocations.
isthmus_status_t copy_in_function(const im::queue& queue, const later_call& all, long served,
                                  shortage of, bool& failed) {
  isthmus_status_t status = ISTHMUS_OK;
  queue
      .submit([&] {
        const isthmus_endpoint_t target{all.target.get(), nullptr, 0};
        const isthmus_endpoint_t source{all.source.get(), nullptr, 0};
        const without_memory later{served, of};
        status = isthmus_copy(all.queue.get(), &target, &source, k_later_bytes, nullptr, nullptr);
        failed = without_memory::failed();
      })
      .wait();
  return status;
}

// In a function the library also needs memory to check waits for deadlock.
TEST_P(no_memory_later, any_allocation_of_a_copy_in_a_function_may_fail) {
  const im::queue function_queue{queue_.context(), device_};
  for (const auto& other : others()) {
    fail_each_allocation([&](long served, shortage of) {
      const auto description = "copy in a function, " + describe(served, of);
      SCOPED_TRACE(description);
      const watchdog guard{description};
      const auto all = make_all(other, kinds().front());
      bool failed = false;
      const auto status = copy_in_function(function_queue, all, served, of, failed);
      EXPECT_TRUE(status == ISTHMUS_OK || (failed && status == ISTHMUS_ERROR_OUT_OF_MEMORY))
          << isthmus_error_message();
      const bool is_done = status == ISTHMUS_OK;
      EXPECT_TRUE(same(read(all.target), is_done ? all.plain : bytes(k_later_bytes)));
      return failed && !HasFailure();
    });
  }
}

// Completing an event needs no memory. The one operation that may fail is a function that gets no
// thread to run on.
TEST_P(no_memory_later, an_event_may_complete_without_memory) {
  for (const auto& other : others()) {
    for (const im::kind kind : kinds()) {
      for (const auto& what : later_forms()) {
        SCOPED_TRACE(what.name);
        const watchdog guard{std::string{what.name} + ", completed"};
        const auto all = make_all(other, kind);
        const im::host_event gate;
        later_call to = all;
        to.after = gate.get();
        isthmus_event_t* made = nullptr;
        const auto status = what.make(to, &made);
        {
          const without_memory now;
          isthmus_event_complete(gate.get(), ISTHMUS_OK, nullptr);
        }
        if (status != ISTHMUS_ERROR_UNSUPPORTED) {
          ASSERT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
          const auto ended = isthmus_event_wait(made, -1);
          EXPECT_TRUE(ended == ISTHMUS_OK || ended == ISTHMUS_ERROR_OUT_OF_MEMORY) << ended;
          if (ended == ISTHMUS_OK) expect_later_done(what, all);
        }
        isthmus_event_release(made);
        queue_.wait();
      }
    }
  }
}

// Three rows that are filled one by one, or elements with gaps, which are filled from a row.
struct parts_to_fill {
  const char* name;
  std::int64_t shape[2];
  std::int64_t strides[2];
};
constexpr std::int64_t k_filled_row = k_mib;
constexpr parts_to_fill k_parts[] = {
    {"rows", {3, k_filled_row / 4}, {k_filled_row + 64, 4}},
    {"every other element", {3, k_filled_row / 8}, {k_filled_row + 64, 8}}};

// Makes the call only. The caller completes the event that it waits for.
isthmus_status_t fill_parts(const parts_to_fill& what, const im::queue& on, const im::buffer& to,
                            isthmus_event_t* after, isthmus_event_t** made) {
  const std::int32_t value = 0x07070707;
  const isthmus_array_t all{{to.get(), nullptr, 0}, ISTHMUS_INT32, 2, what.shape, what.strides};
  isthmus_operation_t operation{};
  operation.struct_size = sizeof operation;
  operation.after = &after;
  operation.after_count = 1;
  return isthmus_fill_array(on.get(), &all, &value, ISTHMUS_INT32, ISTHMUS_CASTING_NO, &operation,
                            made);
}

// A later chunk may fail when an earlier one is already in flight. Then the event of the whole fill
// fails.
TEST_P(no_memory_later, any_allocation_of_a_fill_in_parts_may_fail) {
  for (const im::kind kind : kinds()) {
    const im::resource pool = im::default_pool(kind, queue_);
    for (const auto& what : k_parts) {
      const im::buffer target(3 * (k_filled_row + 64), kind, {.queue = queue_, .resource = pool});
      fail_each_allocation([&](long served, shortage of) {
        const auto description = std::string{what.name} + ", " + describe(served, of);
        SCOPED_TRACE(description);
        const watchdog guard{description};
        const im::host_event gate;
        isthmus_event_t* made = nullptr;
        isthmus_status_t status = ISTHMUS_OK;
        bool failed = false;
        {
          const without_memory later{served, of};
          status = fill_parts(what, queue_, target, gate.get(), &made);
          failed = without_memory::failed();
        }
        gate.complete();
        if (status == ISTHMUS_OK) status = isthmus_event_wait(made, -1);
        EXPECT_TRUE(status == ISTHMUS_OK || (failed && status == ISTHMUS_ERROR_OUT_OF_MEMORY))
            << isthmus_error_message();
        isthmus_event_release(made);
        queue_.wait();
        return failed && !HasFailure();
      });
      if (HasFailure()) return;
      const auto filled = read(target);
      EXPECT_EQ(filled[0], std::byte{7});
      EXPECT_EQ(filled[2 * (k_filled_row + 64)], std::byte{7});
    }
    EXPECT_TRUE(eventually([&] {
      pool.trim();  // what the pool keeps counts as live
      return pool.usage().held == 0;
    }));
  }
}

// Drops buffers with pending operations. Their memory is freed in any case.
TEST_P(no_memory_later, a_buffer_may_be_dropped) {
  for (const im::kind kind : kinds()) {
    fail_each_allocation([&](long served, shortage of) {
      const watchdog guard{"drop, " + describe(served, of)};
      const im::host_event gate;
      bool failed = false;
      im::buffer dropped(k_later_bytes, kind, {.queue = queue_});
      const im::event filled = im::fill_async(dropped, std::byte{1}, {.after = {gate}});
      {
        const without_memory later{served, of};
        isthmus_buffer_free(dropped.get());
        failed = without_memory::failed();
      }
      gate.complete();
      filled.wait();
      return failed;
    });
  }
}

// Calls `subscribe(event)` for an operation's event and for a host event, with too little memory and
// then again, while both are pending. Calls `seen(status)` after each call.
template <class Subscribe, class Seen>
bool fails_to_subscribe(const im::queue& on, Subscribe subscribe, Seen seen, long served,
                        shortage of) {
  const watchdog guard{"subscribe, " + describe(served, of)};
  const im::buffer target(k_later_bytes, im::kind::host, {.queue = on});
  const im::host_event gate;
  const im::event filled = im::fill_async(target, std::byte{1}, {.after = {gate}});
  bool failed = false;
  for (const im::event& event : {filled, im::event{gate}}) {
    isthmus_status_t status = ISTHMUS_OK;
    {
      const without_memory later{served, of};
      status = subscribe(event);
      failed = failed || without_memory::failed();
    }
    seen(status);
    if (status != ISTHMUS_OK) {
      EXPECT_EQ(status, ISTHMUS_ERROR_OUT_OF_MEMORY) << isthmus_error_message();
      EXPECT_EQ(status = subscribe(event), ISTHMUS_OK) << isthmus_error_message();
      seen(status);
    }
  }
  gate.complete();
  EXPECT_NO_THROW(filled.wait());
  return failed && !testing::Test::HasFailure();
}

// The owner is released exactly once: when the event completes, or immediately by a call that
// fails.
TEST_P(no_memory_later, any_allocation_of_a_continuation_may_fail) {
  fail_each_allocation([&](long served, shortage of) {
    std::atomic<int> released{0};
    int owners = 0, refused = 0;
    const bool failed = fails_to_subscribe(
        queue_,
        [&](const im::event& event) {
          ++owners;
          return isthmus_event_then(
              event.get(), {&released, [](void* it) { ++*static_cast<std::atomic<int>*>(it); }});
        },
        [&](isthmus_status_t status) {
          refused += status == ISTHMUS_OK ? 0 : 1;
          EXPECT_EQ(released, refused);
        },
        served, of);
    EXPECT_TRUE(eventually([&] { return released == owners; })) << released << " of " << owners;
    return failed;
  });
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all{"/proc/self/fd"};
  return std::distance(begin(all), end(all));
}

TEST_P(no_memory_later, any_allocation_of_a_notification_may_fail) {
  fail_each_allocation([&](long served, shortage of) {
    const int notifier = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    auto expected = open_descriptors();
    const bool failed = fails_to_subscribe(
        queue_, [&](const im::event& event) { return isthmus_event_notify(event.get(), notifier); },
        [&](isthmus_status_t status) {
          expected += status == ISTHMUS_OK ? 1 : 0;
          EXPECT_EQ(open_descriptors(), expected);
        },
        served, of);
    std::uint64_t times = 0;
    EXPECT_TRUE(eventually([&] {
      std::uint64_t more = 0;
      if (::read(notifier, &more, sizeof more) == sizeof more) times += more;
      return times == 2;
    })) << times;
    close(notifier);
    return failed;
  });
}

}  // namespace
