// The host has no memory left in the midst of an asynchronous call, or when what it waits for ends:
// the call fails and can be made again, nothing is half done, nothing hangs. On back-ends that are
// the library's own: drivers may fail otherwise.
#include <utility>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/patiently.hpp"
#include "support/watchdog.hpp"
#include "support/without_memory.hpp"

namespace {

using namespace support;

constexpr std::size_t k_later_bytes = 8192;

// Two queues of maybe two devices, and what a call gets.
struct later_call {
  im::queue queue;
  im::queue other;
  im::buffer target;
  im::buffer source;  // on the other
  bytes plain;
  isthmus_event_t* after = nullptr;

  [[nodiscard]] isthmus_operation_t operation() const noexcept {
    isthmus_operation_t made{};
    made.struct_size = sizeof made;
    made.after = &after;
    made.after_count = after != nullptr ? 1 : 0;
    return made;
  }
};

isthmus_status_t does_nothing_later(void*, const isthmus_view_t*, std::size_t, const char**) {
  return ISTHMUS_OK;
}

using later_function = isthmus_status_t (*)(const later_call&, isthmus_event_t**);
struct later_form {
  const char* name;
  later_function make;
  bool writes;  // the target becomes what the source is
};

const std::vector<later_form>& later_forms() {
  static const std::vector<later_form> all{
      {"copy",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const isthmus_place_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy(to.queue.get(), &target, &source, k_later_bytes, &operation, event);
       },
       true},
      {"copy on the source's queue",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const isthmus_place_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy(to.other.get(), &target, &source, k_later_bytes, &operation, event);
       },
       true},
      {"copy from the host",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const isthmus_place_t source{nullptr, const_cast<std::byte*>(to.plain.data()), 0};
         const auto operation = to.operation();
         return isthmus_copy(to.queue.get(), &target, &source, k_later_bytes, &operation, event);
       },
       true},
      {"rows",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const isthmus_place_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy_2d(to.queue.get(), &target, 64, &source, 64, 64, k_later_bytes / 64,
                                &operation, event);
       },
       true},
      {"ranges",
       [](const later_call& to, isthmus_event_t** event) {
         static constexpr isthmus_range_t k_all[] = {{4096, 4096, 4096}, {0, 0, 1}, {1, 1, 4095}};
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const isthmus_place_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy_ranges(to.queue.get(), &target, &source, k_all, 3, &operation, event);
       },
       true},
      {"an array",
       [](const later_call& to, isthmus_event_t** event) {
         static constexpr std::size_t k_strides[] = {4, 1024, 64}, k_shape[] = {16, 8, 16};
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const isthmus_place_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy_nd(to.queue.get(), &target, k_strides, &source, k_strides, k_shape, 3,
                                4, &operation, event);
       },
       true},
      {"fill",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_fill(to.queue.get(), &target, to.plain.data(), 1, k_later_bytes, &operation,
                             event);
       },
       false},
      {"prefetch",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_prefetch(to.queue.get(), &target, k_later_bytes, 0, &operation, event);
       },
       false},
      {"advise",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_place_t target{to.target.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_advise(to.queue.get(), &target, k_later_bytes, 0, &operation, event);
       },
       false},
      {"a function",
       [](const later_call& to, isthmus_event_t** event) {
         return isthmus_queue_submit(to.queue.get(), &does_nothing_later, {}, nullptr, 0, &to.after,
                                     1, event);
       },
       false},
      {"a fence",
       [](const later_call& to, isthmus_event_t** event) {
         return isthmus_queue_fence(to.queue.get(), &to.after, 1, event);
       },
       false},
      {"record of an event",
       [](const later_call& to, isthmus_event_t** event) {
         const auto status = isthmus_buffer_record_event(to.target.get(), to.after);
         return status == ISTHMUS_OK ? isthmus_buffer_pending(to.target.get(), event) : status;
       },
       false},
      {"record of a queue",
       [](const later_call& to, isthmus_event_t** event) {
         const auto status = isthmus_buffer_record_queue(to.target.get(), to.queue.get());
         return status == ISTHMUS_OK ? isthmus_buffer_pending(to.target.get(), event) : status;
       },
       false},
  };
  return all;
}

class no_memory_later : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (IsSkipped()) return;
    if (!can(im::capability::wait_for_host))
      GTEST_SKIP() << "the device cannot wait for an event of the host";
  }
  // On one device, and from one to another of the same back-end.
  std::vector<im::queue> others() const {
    std::vector<im::queue> all{queue_, im::queue{queue_.context(), device_}};
    if (std::string_view{GetParam()} != "host") all.emplace_back(open_backend(GetParam()));
    return all;
  }
  later_call make_all(const im::queue& other, im::kind of) const {
    later_call made{queue_, other, im::buffer(k_later_bytes, of, {.on = queue_}),
                    im::buffer(k_later_bytes, of, {.on = other}), noise(k_later_bytes)};
    write(made.target, bytes(k_later_bytes));
    write(made.source, made.plain);
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(backends, no_memory_later, testing::Values("host", "sim", "sim_late"),
                         backend_label);

// Makes the call with memory for `served` allocations while the event that it waits for is pending;
// whether that was not enough.
bool fails_later_after(const later_form& what, const later_call& all, long served) {
  const im::host_event gate;
  later_call to = all;
  to.after = gate.get();
  isthmus_event_t* made = nullptr;
  isthmus_status_t status = ISTHMUS_OK;
  bool failed = false;
  {
    const without_memory later{served};
    status = what.make(to, &made);
    failed = without_memory::failed();
  }
  if (status != ISTHMUS_OK && status != ISTHMUS_ERROR_UNSUPPORTED) {
    EXPECT_EQ(status, ISTHMUS_ERROR_OUT_OF_MEMORY) << isthmus_error_message();
    EXPECT_TRUE(failed);
  }
  gate.complete();
  if (status == ISTHMUS_OK) {  // no thread for a copy that goes by way of the host: its event fails
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
  const auto expected =
      what.writes ? all.plain
                  : bytes(k_later_bytes,
                          std::string_view{what.name} == "fill" ? all.plain[0] : std::byte{0});
  EXPECT_TRUE(same(read(all.target), expected));
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
        bool fails = true;
        for (long served = 0; fails; ++served) {
          SCOPED_TRACE(std::string{what.name} + " after " + std::to_string(served));
          const watchdog guard{std::string{what.name} + " after " + std::to_string(served)};
          const auto all = make_all(other, kind);  // fresh: the first use of its memory
          fails = fails_later_after(what, all, served);
          make_later_again(what, all);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// What happens when an event completes needs no memory; a function without a thread to run on
// fails.
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

// Three rows that are filled one by one, and elements in between that are filled from a row.
struct parts_to_fill {
  const char* name;
  std::int64_t shape[2];
  std::int64_t strides[2];
};
constexpr std::int64_t k_filled_row = k_mib;
constexpr parts_to_fill k_parts[] = {
    {"rows", {3, k_filled_row / 4}, {k_filled_row + 64, 4}},
    {"every other element", {3, k_filled_row / 8}, {k_filled_row + 64, 8}}};

// The call alone; the event that it waits for is the caller's to complete.
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

// A later part may be refused when an earlier one is in flight: the event of the whole fails then.
TEST_P(no_memory_later, any_allocation_of_a_fill_in_parts_may_fail) {
  for (const im::kind kind : kinds()) {
    const im::resource pool = im::default_pool(kind, queue_);
    for (const auto& what : k_parts) {
      const im::buffer target(3 * (k_filled_row + 64), kind, {.on = queue_, .from = pool});
      bool failed = true;
      for (long served = 0; failed; ++served) {
        SCOPED_TRACE(std::string{what.name} + " after " + std::to_string(served));
        const watchdog guard{std::string{what.name} + " after " + std::to_string(served)};
        const im::host_event gate;
        isthmus_event_t* made = nullptr;
        isthmus_status_t status = ISTHMUS_OK;
        {
          const without_memory later{served};
          status = fill_parts(what, queue_, target, gate.get(), &made);
          failed = without_memory::failed();
        }
        gate.complete();
        if (status == ISTHMUS_OK) status = isthmus_event_wait(made, -1);
        EXPECT_TRUE(status == ISTHMUS_OK || (failed && status == ISTHMUS_ERROR_OUT_OF_MEMORY))
            << isthmus_error_message();
        isthmus_event_release(made);
        queue_.wait();
        if (HasFailure()) return;
      }
      const auto filled = read(target);
      EXPECT_EQ(filled[0], std::byte{7});
      EXPECT_EQ(filled[2 * (k_filled_row + 64)], std::byte{7});
    }
    EXPECT_TRUE(patiently([&] {
      pool.trim();  // what it keeps counts as live
      return pool.usage().held == 0;
    }));
  }
}

// Drops buffers whose operations are pending: the memory goes back all the same.
TEST_P(no_memory_later, a_buffer_may_be_dropped) {
  for (const im::kind kind : kinds()) {
    bool failed = true;
    for (long served = 0; failed; ++served) {
      const watchdog guard{"drop after " + std::to_string(served)};
      const im::host_event gate;
      im::buffer dropped(k_later_bytes, kind, {.on = queue_});
      const im::event filled = im::fill_async(dropped, std::byte{1}, {.after = {gate}});
      {
        const without_memory later{served};
        isthmus_buffer_free(dropped.get());
        failed = without_memory::failed();
      }
      gate.complete();
      filled.wait();
    }
  }
}

TEST_P(no_memory_later, a_unified_buffer_synchronizes_when_there_is_memory_again) {
  bool failed = true;
  for (long served = 0; failed; ++served) {
    const watchdog guard{"unified after " + std::to_string(served)};
    isthmus_unified_options_t options{};
    options.struct_size = sizeof options;
    options.separate = 1;
    isthmus_unified_t* made = nullptr;
    ASSERT_EQ(isthmus_unified_create(k_later_bytes, queue_.get(), &options, &made), ISTHMUS_OK)
        << isthmus_error_message();
    void* host = nullptr;
    ASSERT_EQ(isthmus_unified_host(made, 0, k_later_bytes, &host), ISTHMUS_OK);
    const bytes data = noise(k_later_bytes);
    std::copy(data.begin(), data.end(), static_cast<std::byte*>(host));
    isthmus_unified_end_host(made);
    isthmus_event_t* sent = nullptr;
    isthmus_status_t status = ISTHMUS_OK;
    {
      const without_memory later{served};
      status = isthmus_unified_to_device(made, queue_.get(), 0, k_later_bytes, &sent);
      failed = without_memory::failed();
    }
    EXPECT_TRUE(status == ISTHMUS_OK || status == ISTHMUS_ERROR_OUT_OF_MEMORY)
        << isthmus_error_message();
    EXPECT_EQ(sent == nullptr ? ISTHMUS_OK : isthmus_event_wait(sent, -1), ISTHMUS_OK);
    isthmus_event_release(sent);
    isthmus_buffer_t* device = nullptr;
    ASSERT_EQ(isthmus_unified_device(made, queue_.get(), 0, k_later_bytes, &device), ISTHMUS_OK)
        << isthmus_error_message();
    bytes got(k_later_bytes);
    const isthmus_place_t from{device, nullptr, 0};
    const isthmus_place_t to{nullptr, got.data(), 0};
    EXPECT_EQ(isthmus_copy(queue_.get(), &to, &from, k_later_bytes, nullptr, nullptr), ISTHMUS_OK);
    EXPECT_TRUE(same(got, data)) << "after " << served;
    isthmus_buffer_release(device);
    isthmus_unified_release(made);
  }
}

}  // namespace
