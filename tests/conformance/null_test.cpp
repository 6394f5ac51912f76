// SPDX-License-Identifier: Apache-2.0
// NULL for every pointer parameter: an error and never a crash. Only retain and release accept it.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr isthmus_status_t k_invalid = ISTHMUS_ERROR_INVALID_ARGUMENT;

int released = 0;
isthmus_owner_t counted() {
  return {&released, [](void* object) { ++*static_cast<int*>(object); }};
}

class null : public leak_checked {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    device_ = im::device("host");
    queue_ = im::queue(device_);
    buffer_ = im::buffer(100, im::kind::host, {.queue = queue_});
    place_.buffer = buffer_.get();
  }
  void TearDown() override {
    buffer_ = {};
    queue_ = {};
    leak_checked::TearDown();
  }

  im::device device_;
  im::queue queue_;
  im::buffer buffer_;
  isthmus_endpoint_t place_{};
};

TEST_F(null, references) {
  isthmus_platform_retain(nullptr), isthmus_platform_release(nullptr);
  isthmus_device_retain(nullptr), isthmus_device_release(nullptr);
  isthmus_context_retain(nullptr), isthmus_context_release(nullptr);
  isthmus_queue_retain(nullptr), isthmus_queue_release(nullptr);
  isthmus_event_retain(nullptr), isthmus_event_release(nullptr);
  isthmus_resource_retain(nullptr), isthmus_resource_release(nullptr);
  isthmus_buffer_retain(nullptr), isthmus_buffer_release(nullptr);
  isthmus_buffer_free(nullptr);
  isthmus_buffer_unexport(nullptr);
  isthmus_result_free(nullptr);
  isthmus_pin_remove(nullptr, 1), isthmus_pin_remove(nullptr, 0);
}

TEST_F(null, platforms_and_devices) {
  isthmus_platform_info_t platform{};
  platform.struct_size = sizeof platform;
  isthmus_device_info_t device{};
  device.struct_size = sizeof device;
  isthmus_device_t* found = nullptr;
  isthmus_device_memory_info_t memory{};
  memory.struct_size = sizeof memory;
  isthmus_absent_driver_info_t absent{};
  const im::platform host = device_.platform();
  std::uint64_t number = 0;
  EXPECT_TRUE(refused(isthmus_platform_count(nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_platform_get(0, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_platform_info(nullptr, &platform), k_invalid));
  EXPECT_TRUE(refused(isthmus_platform_info(host.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_platform_device(nullptr, 0, &found), k_invalid));
  EXPECT_TRUE(refused(isthmus_platform_device(host.get(), 0, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_absent_driver_count(nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_absent_driver_info(0, nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_absent_driver_info(0, &absent), k_invalid, {"struct_size"}));
  absent.struct_size = sizeof absent;
  EXPECT_TRUE(refused(isthmus_absent_driver_info(99, &absent), ISTHMUS_ERROR_OUT_OF_RANGE, {"99"}));
  EXPECT_TRUE(refused(isthmus_device_find("host", nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_device_find_native(nullptr, &number, &found), k_invalid));
  EXPECT_TRUE(refused(isthmus_device_find_native("host", nullptr, &found), k_invalid));
  EXPECT_TRUE(refused(isthmus_device_find_native("host", &number, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_device_info(nullptr, &device), k_invalid));
  EXPECT_TRUE(refused(isthmus_device_info(device_.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_device_memory_info(nullptr, &memory), k_invalid, {"device"}));
  EXPECT_TRUE(refused(isthmus_device_memory_info(device_.get(), nullptr), k_invalid, {"info"}));
  memory.struct_size -= 1;
  EXPECT_TRUE(
      refused(isthmus_device_memory_info(device_.get(), &memory), k_invalid, {"struct_size"}));
}

TEST_F(null, simulated_devices) {
  isthmus_device_t* made = nullptr;
  std::uint64_t number = 0;
  EXPECT_TRUE(refused(isthmus_sim_create("", nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_sim_create("nonsense", &made), k_invalid, {"nonsense"}));
  EXPECT_TRUE(refused(isthmus_sim_configure(nullptr, ""), k_invalid));
  EXPECT_TRUE(refused(isthmus_sim_calls(nullptr, "any", &number), k_invalid));
  isthmus_sim_info_t state{};
  EXPECT_TRUE(refused(isthmus_sim_info(nullptr, &state), k_invalid, {"device"}));
  EXPECT_TRUE(refused(isthmus_sim_info(device_.get(), nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_sim_info(device_.get(), &state), k_invalid, {"struct_size"}));
  EXPECT_TRUE(refused(isthmus_sim_configure(device_.get(), ""), k_invalid)) << "no simulation";
  EXPECT_TRUE(refused(isthmus_sim_calls(device_.get(), "any", &number), k_invalid));
  const im::sim_device sim;
  EXPECT_TRUE(refused(isthmus_sim_calls(sim.get(), nullptr, &number), k_invalid));
  EXPECT_TRUE(refused(isthmus_sim_calls(sim.get(), "nothing", &number), k_invalid, {"nothing"}));
  ASSERT_EQ(isthmus_sim_create(nullptr, &made), ISTHMUS_OK);
  isthmus_device_release(made);
}

TEST_F(null, contexts) {
  isthmus_context_t* made = nullptr;
  isthmus_device_t* device = device_.get();
  isthmus_device_t* none = nullptr;
  const im::context context = queue_.context();
  released = 0;
  EXPECT_TRUE(refused(isthmus_context_create(nullptr, 1, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_create(&none, 1, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_create(&device, 1, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_default(nullptr, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_default(device, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_adopt(nullptr, device, counted(), &made), k_invalid));
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(refused(isthmus_context_share(nullptr, device, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_share(context.get(), nullptr, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_share(context.get(), device, nullptr), k_invalid));
  isthmus_context_info_t info{};
  EXPECT_TRUE(refused(isthmus_context_info(nullptr, &info), k_invalid, {"context"}));
  EXPECT_TRUE(refused(isthmus_context_info(context.get(), nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_context_info(context.get(), &info), k_invalid, {"struct_size"}));
  EXPECT_TRUE(refused(isthmus_context_device(nullptr, 0, &device), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_device(context.get(), 0, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_context_device(context.get(), 99, &device),
                      ISTHMUS_ERROR_OUT_OF_RANGE, {"99"}));
  EXPECT_EQ(isthmus_context_key(nullptr), 0u);
}

TEST_F(null, queues) {
  isthmus_queue_t* made = nullptr;
  isthmus_event_t* event = nullptr;
  released = 0;
  EXPECT_TRUE(refused(isthmus_queue_create(nullptr, nullptr, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_create(nullptr, device_.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_default(device_.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_adopt(nullptr, device_.get(), counted(), &made), k_invalid));
  EXPECT_EQ(released, 1);
  isthmus_queue_info_t info{};
  EXPECT_TRUE(refused(isthmus_queue_info(nullptr, &info), k_invalid, {"queue"}));
  EXPECT_TRUE(refused(isthmus_queue_info(queue_.get(), nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_queue_info(queue_.get(), &info), k_invalid, {"struct_size"}));
  EXPECT_EQ(isthmus_queue_key(nullptr), 0u);
  void* native = &info;
  EXPECT_TRUE(refused(isthmus_queue_export_native(nullptr, &native), k_invalid, {"queue"}));
  EXPECT_TRUE(refused(isthmus_queue_export_native(queue_.get(), nullptr), k_invalid, {"native"}));
  EXPECT_EQ(native, &info);
  (void)isthmus_queue_idle(nullptr);
  EXPECT_TRUE(refused(isthmus_queue_wait(nullptr, 0), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_pending(nullptr, &event), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_pending(queue_.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_fence(nullptr, nullptr, 0, &event), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_fence(queue_.get(), nullptr, 1, &event), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_mark(nullptr, &event), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_mark(queue_.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_queue_close(nullptr), k_invalid));
}

TEST_F(null, functions) {
  isthmus_event_t* event = nullptr;
  isthmus_buffer_t* none = nullptr;
  const isthmus_function_t nothing = [](void*, const isthmus_view_t*, std::size_t, const char**) {
    return isthmus_status_t{ISTHMUS_OK};
  };
  released = 0;
  EXPECT_TRUE(
      refused(isthmus_queue_submit(nullptr, nothing, counted(), nullptr, 0, nullptr, 0, &event),
              k_invalid));
  EXPECT_TRUE(refused(
      isthmus_queue_submit(queue_.get(), nullptr, counted(), nullptr, 0, nullptr, 0, &event),
      k_invalid));
  EXPECT_TRUE(refused(
      isthmus_queue_submit(queue_.get(), nothing, counted(), nullptr, 1, nullptr, 0, &event),
      k_invalid));
  EXPECT_TRUE(
      refused(isthmus_queue_submit(queue_.get(), nothing, counted(), &none, 1, nullptr, 0, &event),
              k_invalid));
  EXPECT_TRUE(refused(
      isthmus_queue_submit(queue_.get(), nothing, counted(), nullptr, 0, nullptr, 1, &event),
      k_invalid));
  EXPECT_EQ(released, 5);
}

TEST_F(null, events) {
  released = 0;
  EXPECT_LT(isthmus_event_status(nullptr), 0);
  EXPECT_TRUE(refused(isthmus_event_wait(nullptr, 0), k_invalid));
  EXPECT_TRUE(refused(isthmus_event_notify(nullptr, 0), k_invalid));
  EXPECT_TRUE(refused(isthmus_event_then(nullptr, counted()), k_invalid));
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(refused(isthmus_event_create(nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_event_complete(nullptr, ISTHMUS_OK, nullptr), k_invalid));
  isthmus_event_times_info_t times{};
  EXPECT_TRUE(refused(isthmus_event_times_info(nullptr, &times), k_invalid, {"event"}));
  const im::event mark = queue_.mark();
  EXPECT_TRUE(refused(isthmus_event_times_info(mark.get(), &times), k_invalid, {"struct_size"}));
  std::int64_t elapsed = 0;
  EXPECT_TRUE(refused(isthmus_event_elapsed(nullptr, mark.get(), &elapsed), k_invalid));
  EXPECT_TRUE(refused(isthmus_event_elapsed(mark.get(), nullptr, &elapsed), k_invalid));
  EXPECT_TRUE(refused(isthmus_event_elapsed(mark.get(), mark.get(), nullptr), k_invalid));
  isthmus_event_info_t info{};
  EXPECT_TRUE(refused(isthmus_event_info(nullptr, &info), k_invalid, {"event"}));
  EXPECT_TRUE(refused(isthmus_event_info(mark.get(), nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_event_info(mark.get(), &info), k_invalid, {"struct_size"}));
}

TEST_F(null, live_memory) {
  isthmus_live_info_t live{};
  EXPECT_TRUE(refused(isthmus_live_info(ISTHMUS_KIND_UNKNOWN, nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_live_info(ISTHMUS_KIND_HOST, &live), k_invalid, {"struct_size"}));
  live.struct_size = sizeof live;
  EXPECT_TRUE(refused(isthmus_live_info(4, &live), k_invalid, {"kind is 4"}));
  EXPECT_EQ(isthmus_live_info(ISTHMUS_KIND_HOST, &live), ISTHMUS_OK);
}

TEST_F(null, memory) {
  isthmus_resource_t* resource = nullptr;
  void* pointer = nullptr;
  isthmus_pointer_info_t info{};
  info.struct_size = sizeof info;
  const im::resource host = im::resource::provider(queue_.context(), im::kind::host);
  const isthmus_kind_t kind = ISTHMUS_KIND_HOST;
  EXPECT_TRUE(refused(isthmus_resource_provider(nullptr, nullptr, kind, &resource), k_invalid));
  EXPECT_TRUE(refused(isthmus_resource_provider(queue_.context().get(), nullptr, kind, nullptr),
                      k_invalid));
  EXPECT_TRUE(refused(isthmus_resource_write_combined(nullptr, nullptr, &resource), k_invalid));
  EXPECT_TRUE(refused(isthmus_resource_write_combined(queue_.context().get(), nullptr, nullptr),
                      k_invalid));
  EXPECT_TRUE(refused(isthmus_resource_pool_over(nullptr, nullptr, &resource), k_invalid));
  EXPECT_TRUE(refused(isthmus_resource_allocate(nullptr, 1, 0, queue_.get(), &pointer), k_invalid));
  EXPECT_TRUE(refused(isthmus_resource_allocate(host.get(), 1, 0, nullptr, &pointer), k_invalid));
  EXPECT_TRUE(
      refused(isthmus_resource_allocate(host.get(), 1, 0, queue_.get(), nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_pointer_info(nullptr, nullptr, nullptr), k_invalid));
  isthmus_context_t* home = queue_.context().get();
  EXPECT_EQ(isthmus_pointer_origin(nullptr, &home, &resource), ISTHMUS_OK);
  EXPECT_EQ(home, nullptr);
  EXPECT_EQ(resource, nullptr);
  EXPECT_TRUE(refused(isthmus_result_allocate(10, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_result_allocate(SIZE_MAX, &pointer), ISTHMUS_ERROR_OUT_OF_MEMORY));
}

TEST_F(null, pins) {
  isthmus_pin_t* pin = nullptr;
  isthmus_pin_info_t info{};
  info.struct_size = sizeof info;
  EXPECT_TRUE(refused(isthmus_pin_add(device_.get(), &info, 8, 0, {}, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_pin_add(device_.get(), nullptr, 8, 0, {}, &pin), k_invalid));
  EXPECT_TRUE(refused(isthmus_pin_info(nullptr, &info), k_invalid, {"pin"}));
  EXPECT_TRUE(refused(isthmus_pin_wait(nullptr, 0), k_invalid, {"pin"}));
  ASSERT_EQ(isthmus_pin_add(nullptr, &info, sizeof info, 0, {}, &pin), ISTHMUS_OK);
  EXPECT_TRUE(refused(isthmus_pin_info(pin, nullptr), k_invalid, {"info"}));
  info.struct_size = 8;
  EXPECT_TRUE(refused(isthmus_pin_info(pin, &info), k_invalid, {"8"}));
  isthmus_pin_remove(pin, 1);
}

TEST_F(null, replays) {
  const im::resource host = im::resource::provider(queue_.context(), im::kind::host);
  isthmus_queue_t* queue = queue_.get();
  isthmus_queue_t* none = nullptr;
  const isthmus_trace_event_t event{8, 0, 0, ISTHMUS_TRACE_ALLOCATE};
  isthmus_replay_result_t seen{};
  seen.struct_size = sizeof seen;
  const auto play = [&](isthmus_resource_t* from, isthmus_queue_t* const* queues,
                        const isthmus_trace_event_t* events, isthmus_replay_result_t* result) {
    return isthmus_resource_replay(from, queues, 1, events, 1, nullptr, result);
  };
  EXPECT_TRUE(refused(play(nullptr, &queue, &event, &seen), k_invalid, {"resource"}));
  EXPECT_TRUE(refused(play(host.get(), nullptr, &event, &seen), k_invalid, {"queues"}));
  EXPECT_TRUE(refused(play(host.get(), &none, &event, &seen), k_invalid, {"queue"}));
  EXPECT_TRUE(refused(play(host.get(), &queue, nullptr, &seen), k_invalid, {"events"}));
  EXPECT_TRUE(refused(play(host.get(), &queue, &event, nullptr), k_invalid, {"result"}));
  seen.struct_size = sizeof seen - 1;
  EXPECT_TRUE(refused(play(host.get(), &queue, &event, &seen), k_invalid, {"39", "40"}));
  seen.struct_size = sizeof seen;
  EXPECT_EQ(isthmus_resource_replay(host.get(), nullptr, 0, nullptr, 0, nullptr, &seen),
            ISTHMUS_OK);
}

TEST_F(null, pressure) {
  const im::resource pool = im::resource::pool(queue_.context(), im::kind::host, {}, device_);
  isthmus_snapshot_t seen{};
  seen.struct_size = sizeof seen;
  EXPECT_TRUE(refused(isthmus_resource_snapshot(nullptr, &seen), k_invalid, {"resource"}));
  EXPECT_TRUE(refused(isthmus_resource_snapshot(pool.get(), nullptr), k_invalid, {"snapshot"}));
  isthmus_oom_stage_info_t stage{};
  EXPECT_TRUE(refused(isthmus_oom_stage_info(nullptr, 0, &stage), k_invalid, {"resource"}));
  EXPECT_TRUE(refused(isthmus_oom_stage_info(pool.get(), 0, nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_oom_stage_info(pool.get(), 0, &stage), k_invalid, {"struct_size"}));
  stage.struct_size = sizeof stage;
  EXPECT_EQ(isthmus_oom_stage_info(pool.get(), 0, &stage), ISTHMUS_OK);
  isthmus_limit_info_t limit{};
  EXPECT_TRUE(refused(isthmus_limit_info(nullptr, &limit), k_invalid, {"resource"}));
  EXPECT_TRUE(refused(isthmus_limit_info(pool.get(), nullptr), k_invalid, {"info"}));
  EXPECT_TRUE(refused(isthmus_limit_info(pool.get(), &limit), k_invalid, {"struct_size"}));
  limit.struct_size = sizeof limit;
  EXPECT_TRUE(refused(isthmus_limit_info(pool.get(), &limit), k_invalid, {"no limit"}));
  EXPECT_TRUE(refused(isthmus_record_queue(&seen, nullptr), k_invalid, {"queue"}));
  EXPECT_TRUE(refused(isthmus_record_event(&seen, nullptr), k_invalid, {"event"}));
  isthmus_oom_callback_t* made = nullptr;
  const auto gives_none = [](void*, const isthmus_oom_request_t*) { return std::uint64_t{0}; };
  released = 0;
  EXPECT_TRUE(
      refused(isthmus_oom_callback_add(nullptr, counted(), &made), k_invalid, {"function"}));
  EXPECT_TRUE(refused(isthmus_oom_callback_add(gives_none, counted(), nullptr), k_invalid));
  EXPECT_EQ(released, 2);
  EXPECT_EQ(isthmus_oom_callback_add(gives_none, counted(), &made), ISTHMUS_OK);
  isthmus_oom_callback_remove(made, 1);
  EXPECT_EQ(released, 3);
  isthmus_oom_callback_remove(nullptr, 1);
}

TEST_F(null, buffers) {
  isthmus_buffer_t* made = nullptr;
  isthmus_buffer_info_t info{};
  info.struct_size = sizeof info;
  void* pointer = nullptr;
  isthmus_owner_t owner{};
  isthmus_buffer_t* raw = buffer_.get();
  const isthmus_kind_t kind = ISTHMUS_KIND_HOST;
  released = 0;
  EXPECT_TRUE(
      refused(isthmus_buffer_create(1, kind, 0, queue_.get(), nullptr, nullptr), k_invalid));
  EXPECT_LT(isthmus_buffer_adopt(nullptr, 1, kind, 0, queue_.get(), counted(), &made), 0);
  EXPECT_EQ(released, 1);
  EXPECT_TRUE(refused(isthmus_buffer_slice(nullptr, 0, 0, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_slice(raw, 0, 0, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_on_queue(nullptr, queue_.get(), &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_on_queue(raw, nullptr, &made), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_info(nullptr, &info), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_info(raw, nullptr), k_invalid));
  EXPECT_EQ(isthmus_buffer_pointer(nullptr), nullptr);
  EXPECT_TRUE(refused(isthmus_buffer_wait(nullptr, 0), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_wait_for_writers(nullptr, 0), k_invalid));
  isthmus_event_t* ended = nullptr;
  EXPECT_TRUE(refused(isthmus_buffer_pending(nullptr, &ended), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_pending(raw, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_export(nullptr, &pointer), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_export(raw, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_export_to_queue(nullptr, nullptr, &pointer), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_export_to_queue(raw, nullptr, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_disown(nullptr, &pointer, &owner), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_disown(raw, nullptr, &owner), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_disown(raw, &pointer, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_record_event(raw, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_record_event(nullptr, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_record_queue(raw, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_buffer_record_queue(nullptr, queue_.get()), k_invalid));
}

TEST_F(null, transfers) {
  isthmus_endpoint_t* none = nullptr;
  EXPECT_TRUE(
      refused(isthmus_copy_2d(nullptr, none, 1, &place_, 1, 1, 1, nullptr, nullptr), k_invalid));
  EXPECT_TRUE(
      refused(isthmus_copy_2d(nullptr, &place_, 1, none, 1, 1, 1, nullptr, nullptr), k_invalid));
  const std::size_t some = 1;
  EXPECT_TRUE(
      refused(isthmus_copy_nd(nullptr, none, &some, &place_, &some, &some, 1, 1, nullptr, nullptr),
              k_invalid));
  EXPECT_TRUE(
      refused(isthmus_copy_nd(nullptr, &place_, &some, none, &some, &some, 1, 1, nullptr, nullptr),
              k_invalid));
  for (int which = 0; which < 3; ++which) {
    EXPECT_TRUE(refused(isthmus_copy_nd(nullptr, &place_, which == 0 ? nullptr : &some, &place_,
                                        which == 1 ? nullptr : &some, which == 2 ? nullptr : &some,
                                        1, 1, nullptr, nullptr),
                        k_invalid));
  }
  const isthmus_range_t one{0, 0, 1};
  EXPECT_TRUE(
      refused(isthmus_copy_ranges(nullptr, none, &place_, &one, 1, nullptr, nullptr), k_invalid));
  EXPECT_TRUE(
      refused(isthmus_copy_ranges(nullptr, &place_, none, &one, 1, nullptr, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_copy_ranges(nullptr, &place_, &place_, nullptr, 1, nullptr, nullptr),
                      k_invalid, {"ranges"}));
  EXPECT_TRUE(refused(isthmus_prefetch(nullptr, none, 1, 0, nullptr, nullptr), k_invalid));
  EXPECT_TRUE(refused(isthmus_advise(nullptr, none, 1, 0, nullptr, nullptr), k_invalid));
}

TEST_F(null, arrays) {
  EXPECT_TRUE(refused(isthmus_dtype_info(ISTHMUS_INT8, nullptr), k_invalid, {"info"}));
  isthmus_dtype_info_t info{};
  EXPECT_TRUE(refused(isthmus_dtype_info(ISTHMUS_INT8, &info), k_invalid, {"info"}));
  info.struct_size = sizeof info;
  EXPECT_TRUE(refused(isthmus_dtype_info(0, &info), k_invalid, {"0 is not a dtype"}));
  const isthmus_array_t one{place_, ISTHMUS_INT8, 0, nullptr, nullptr};
  const auto copy = [](const isthmus_array_t* to, const isthmus_array_t* from) {
    return isthmus_copy_array(nullptr, to, from, ISTHMUS_CASTING_NO, nullptr, nullptr);
  };
  EXPECT_EQ(copy(&one, &one), ISTHMUS_OK);
  EXPECT_TRUE(refused(copy(nullptr, &one), k_invalid, {"destination"}));
  EXPECT_TRUE(refused(copy(&one, nullptr), k_invalid, {"source"}));
  const std::int64_t some = 1;
  for (const bool shape : {true, false}) {
    const isthmus_array_t half{place_, ISTHMUS_INT8, 1, shape ? nullptr : &some,
                               shape ? &some : nullptr};
    const std::string missing = shape ? "shape is NULL" : "strides is NULL";
    EXPECT_TRUE(refused(copy(&half, &one), k_invalid, {"destination->" + missing}));
    EXPECT_TRUE(refused(copy(&one, &half), k_invalid, {"source->" + missing}));
    EXPECT_EQ(isthmus_arrays_overlap(&half, &one), 0);
  }
  const isthmus_array_t nowhere{{}, ISTHMUS_INT8, 0, nullptr, nullptr};
  EXPECT_TRUE(refused(copy(&nowhere, &one), k_invalid, {"neither a buffer nor a pointer"}));
  EXPECT_EQ(isthmus_arrays_overlap(&nowhere, &nowhere), 0);
  EXPECT_EQ(isthmus_arrays_overlap(nullptr, &one), 0);
  EXPECT_EQ(isthmus_arrays_overlap(&one, nullptr), 0);
  const auto fill = [](const isthmus_array_t* to, const void* value) {
    return isthmus_fill_array(nullptr, to, value, ISTHMUS_INT8, ISTHMUS_CASTING_NO, nullptr,
                              nullptr);
  };
  EXPECT_TRUE(refused(fill(nullptr, &some), k_invalid, {"destination"}));
  EXPECT_TRUE(refused(fill(&one, nullptr), k_invalid, {"value"}));
}

TEST_F(null, empty_handles_of_the_surface_throw) {
  EXPECT_THROW((void)im::device().info(), im::invalid_argument);
  EXPECT_THROW((void)im::buffer().size(), im::invalid_argument);
  EXPECT_THROW(im::event().wait(), im::invalid_argument);
  EXPECT_THROW(im::queue().wait(), im::invalid_argument);
  EXPECT_THROW(im::copy(im::buffer(), buffer_), im::invalid_argument);
}

}  // namespace
