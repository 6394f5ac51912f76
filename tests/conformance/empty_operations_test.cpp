// SPDX-License-Identifier: Apache-2.0
// Operations that move no bytes are still ordered by their queue and wait for their dependencies.
#include <functional>
#include <utility>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr std::size_t k_beside_nothing = 4096;

// The operands and arguments of all forms.
struct empty_call {
  isthmus_queue_t* queue = nullptr;
  isthmus_endpoint_t here{};
  isthmus_endpoint_t there{};
  isthmus_endpoint_t plain{};
  isthmus_endpoint_t none{};  // in an empty buffer
  isthmus_buffer_t* nothing = nullptr;
  isthmus_operation_t operation{};
  isthmus_event_t** event = nullptr;
};

isthmus_status_t does_nothing_to_nothing(void*, const isthmus_view_t*, std::size_t, const char**) {
  return ISTHMUS_OK;
}

// An array of no rows of four elements.
isthmus_array_t no_rows_of(const isthmus_endpoint_t& at, isthmus_dtype_t dtype) {
  static constexpr std::int64_t k_shape[] = {0, 4};
  static constexpr std::int64_t k_strides[] = {64, 8};
  return {at, dtype, 2, k_shape, k_strides};
}

isthmus_status_t copy_no_rows(const empty_call& to, const isthmus_endpoint_t& from,
                              isthmus_dtype_t dtype) {
  const auto target = no_rows_of(to.here, ISTHMUS_FLOAT32);
  const auto start = no_rows_of(from, dtype);
  return isthmus_copy_array(to.queue, &target, &start, ISTHMUS_CASTING_UNSAFE, &to.operation,
                            to.event);
}

using empty_form = std::function<isthmus_status_t(const empty_call&)>;

const std::vector<std::pair<const char*, empty_form>>& empty_forms() {
  static constexpr std::size_t k_strides[] = {64, 4};
  static constexpr std::size_t k_no_rows[] = {0, 4};
  static constexpr isthmus_range_t k_empty[] = {{0, 8, 0}, {16, 0, 0}};
  static const std::vector<std::pair<const char*, empty_form>> all{
      {"copy",
       [](const empty_call& to) {
         return isthmus_copy(to.queue, &to.here, &to.there, 0, &to.operation, to.event);
       }},
      {"copy from the host",
       [](const empty_call& to) {
         return isthmus_copy(to.queue, &to.here, &to.plain, 0, &to.operation, to.event);
       }},
      {"copy to the host",
       [](const empty_call& to) {
         return isthmus_copy(to.queue, &to.plain, &to.here, 0, &to.operation, to.event);
       }},
      {"rows of no bytes",
       [](const empty_call& to) {
         return isthmus_copy_2d(to.queue, &to.here, 8, &to.there, 8, 0, 4, &to.operation, to.event);
       }},
      {"no rows",
       [](const empty_call& to) {
         return isthmus_copy_2d(to.queue, &to.here, 8, &to.there, 8, 8, 0, &to.operation, to.event);
       }},
      {"no ranges",
       [](const empty_call& to) {
         return isthmus_copy_ranges(to.queue, &to.here, &to.there, nullptr, 0, &to.operation,
                                    to.event);
       }},
      {"empty ranges",
       [](const empty_call& to) {
         return isthmus_copy_ranges(to.queue, &to.here, &to.there, k_empty, 2, &to.operation,
                                    to.event);
       }},
      {"an array of no rows",
       [](const empty_call& to) {
         return isthmus_copy_nd(to.queue, &to.here, k_strides, &to.there, k_strides, k_no_rows, 2,
                                4, &to.operation, to.event);
       }},
      {"an array without elements",
       [](const empty_call& to) { return copy_no_rows(to, to.there, ISTHMUS_FLOAT32); }},
      {"an array without elements, converted",
       [](const empty_call& to) { return copy_no_rows(to, to.there, ISTHMUS_INT64); }},
      {"an array without elements, from the host",
       [](const empty_call& to) { return copy_no_rows(to, to.plain, ISTHMUS_FLOAT32); }},
      {"fill of an array without elements",
       [](const empty_call& to) {
         const auto target = no_rows_of(to.here, ISTHMUS_FLOAT32);
         constexpr float k_value = 1;
         return isthmus_fill_array(to.queue, &target, &k_value, ISTHMUS_FLOAT32, ISTHMUS_CASTING_NO,
                                   &to.operation, to.event);
       }},
      {"copy from the host into nothing, on its queue",
       [](const empty_call& to) {
         return isthmus_copy(nullptr, &to.none, &to.plain, 0, &to.operation, to.event);
       }},
      {"rows from the host into nothing, on its queue",
       [](const empty_call& to) {
         return isthmus_copy_2d(nullptr, &to.none, 8, &to.plain, 8, 0, 0, &to.operation, to.event);
       }},
      {"no ranges from the host into nothing, on its queue",
       [](const empty_call& to) {
         return isthmus_copy_ranges(nullptr, &to.none, &to.plain, nullptr, 0, &to.operation,
                                    to.event);
       }},
      {"fill",
       [](const empty_call& to) {
         return isthmus_fill(to.queue, &to.here, "x", 1, 0, &to.operation, to.event);
       }},
      {"prefetch",
       [](const empty_call& to) {
         return isthmus_prefetch(to.queue, &to.here, 0, 0, &to.operation, to.event);
       }},
      {"advise",
       [](const empty_call& to) {
         return isthmus_advise(to.queue, &to.here, 0, 0, &to.operation, to.event);
       }},
      {"a function on nothing",
       [](const empty_call& to) {
         return isthmus_queue_submit(to.queue, &does_nothing_to_nothing, {}, &to.nothing, 1,
                                     to.operation.after, to.operation.after_count, to.event);
       }},
      {"a function without buffers",
       [](const empty_call& to) {
         return isthmus_queue_submit(to.queue, &does_nothing_to_nothing, {}, nullptr, 0,
                                     to.operation.after, to.operation.after_count, to.event);
       }},
  };
  return all;
}

class empty_operations : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && !can(im::capability::wait_for_host))
      GTEST_SKIP() << "the device cannot wait for an event of the host";
  }
  void TearDown() override {
    here_ = {};
    there_ = {};
    nothing_ = {};
    on_backend::TearDown();
  }
  // Makes the call of one form, after `after` if it is given.
  isthmus_status_t call(const empty_form& what, isthmus_event_t** event,
                        const im::host_event* after = nullptr) {
    empty_call to;
    isthmus_event_t* const before = after != nullptr ? after->get() : nullptr;
    to.queue = queue_.get();
    to.here.buffer = here_.get();
    to.there.buffer = there_.get();
    to.plain.pointer = plain_.data();
    to.none.buffer = nothing_.get();
    to.nothing = nothing_.get();
    to.operation.struct_size = sizeof to.operation;
    to.operation.after = &before;
    to.operation.after_count = after != nullptr ? 1 : 0;
    to.event = event;
    return what(to);
  }
  // Calls each form after a gate: it is pending until `open` completes the gate, and then has
  // `outcome`.
  template <class Open>
  void expect_after_gate(const Open& open, isthmus_status_t outcome);
  void make_buffers(im::kind of) {
    here_ = make(k_beside_nothing, of);
    there_ = make(k_beside_nothing, of);
    nothing_ = make(0, kinds().back());
  }

  im::buffer here_;
  im::buffer there_;
  im::buffer nothing_;
  bytes plain_ = bytes(64);
};
INSTANTIATE_ON_BACKENDS(empty_operations);

bool is_offered(isthmus_status_t made) { return made != ISTHMUS_ERROR_UNSUPPORTED; }

TEST_P(empty_operations, come_after_what_is_on_their_queue) {
  for (const im::kind kind : kinds()) {
    make_buffers(kind);
    for (const auto& [name, what] : empty_forms()) {
      SCOPED_TRACE(name);
      const im::host_event gate;
      const im::event before = im::fill_async(here_, std::byte{7}, {.after = {gate}});
      isthmus_event_t* made = nullptr;
      const auto status = call(what, &made);
      if (is_offered(status)) {
        ASSERT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
        for (int look = 0; look < 10; ++look) {
          EXPECT_EQ(isthmus_event_status(made), ISTHMUS_PENDING);
        }
      }
      gate.complete();
      EXPECT_EQ(made == nullptr ? ISTHMUS_OK : isthmus_event_wait(made, -1), ISTHMUS_OK)
          << isthmus_error_message();
      EXPECT_TRUE(made == nullptr || before.done());
      before.wait();
      isthmus_event_release(made);
    }
  }
}

template <class Open>
void empty_operations::expect_after_gate(const Open& open, isthmus_status_t outcome) {
  for (const im::kind kind : kinds()) {
    make_buffers(kind);
    for (const auto& [name, what] : empty_forms()) {
      SCOPED_TRACE(name);
      const im::host_event gate;
      isthmus_event_t* made = nullptr;
      const auto status = call(what, &made, &gate);
      if (is_offered(status)) {
        ASSERT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
        EXPECT_EQ(isthmus_event_status(made), ISTHMUS_PENDING);
      }
      open(gate);
      if (is_offered(status)) {
        EXPECT_EQ(isthmus_event_wait(made, -1), outcome);
      }
      isthmus_event_release(made);
    }
  }
}

TEST_P(empty_operations, wait_for_what_they_are_to_wait_for) {
  expect_after_gate([](const im::host_event& gate) { gate.complete(); }, ISTHMUS_OK);
}

TEST_P(empty_operations, fail_with_what_they_wait_for) {
  expect_after_gate(
      [](const im::host_event& gate) {
        isthmus_event_complete(gate.get(), ISTHMUS_ERROR_INTERNAL, "the gate's own failure");
      },
      ISTHMUS_ERROR_DEPENDENCY);
  queue_.wait();
}

// A blocking call also returns only after the operations ahead of it on the queue.
TEST_P(empty_operations, that_block_come_after_what_is_on_their_queue) {
  make_buffers(kinds().front());
  for (const auto& [name, what] : empty_forms()) {
    SCOPED_TRACE(name);
    const im::host_event gate;
    const im::event before = im::fill_async(here_, std::byte{7}, {.after = {gate}});
    std::thread opens{[&] {
      std::this_thread::sleep_for(2ms);
      gate.complete();
    }};
    const auto status = call(what, nullptr);
    if (is_offered(status) && !std::string_view{name}.starts_with("a function")) {
      EXPECT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
      EXPECT_TRUE(before.done());
    }
    opens.join();
    before.wait();
  }
}

}  // namespace
