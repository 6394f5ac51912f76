// SPDX-License-Identifier: Apache-2.0
#pragma once
// A scenario with objects that another library created through dpctl and Isthmus adopts: a context,
// an out-of-order queue, an event, memory. Any call of it may fail.

#include <dlfcn.h>

#include "steps.hpp"
#include "support/bytes.hpp"

namespace support {

// Calls dpctl directly, without the relay.
template <class Result, class... Arguments>
Result call_dpctl(const char* name, Arguments... arguments) {
  void* library = dlopen(std::getenv("ISTHMUS_TEST_SYCL_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Result (*)(Arguments...)>(dlsym(library, name))(arguments...);
}

// Objects of another library, in the default context of the platform's devices.
class foreign_objects {
 public:
  explicit foreign_objects(const im::device& device)
      : context_(im::context::of(device).native()),
        queue_(call_dpctl<void*>("DPCTLQueue_Create", context_, device.native(),
                                 static_cast<void (*)(int)>(nullptr), 0)),
        event_(call_dpctl<void*>("DPCTLQueue_SubmitBarrier", queue_)),
        memory_(call_dpctl<void*>("DPCTLmalloc_device", k_memory_bytes, queue_)) {}
  ~foreign_objects() {
    call_dpctl<void>("DPCTLfree_with_queue", memory_, queue_);
    call_dpctl<void>("DPCTLEvent_Delete", event_);
    call_dpctl<void>("DPCTLQueue_Delete", queue_);
  }
  foreign_objects(const foreign_objects&) = delete;
  foreign_objects& operator=(const foreign_objects&) = delete;

  static constexpr std::size_t k_memory_bytes = 1000;

  [[nodiscard]] void* context() const { return context_; }
  [[nodiscard]] void* queue() const { return queue_; }
  [[nodiscard]] void* event() const { return event_; }
  [[nodiscard]] void* memory() const { return memory_; }

 private:
  void* context_;
  void* queue_;
  void* event_;
  void* memory_;
};

// Every step may throw, and the following ones run anyway.
class foreign_scenario : public steps {
 public:
  explicit foreign_scenario(im::device device) : device_(std::move(device)), foreign_(device_) {}

  void run() {
    attempt([&] { queue_ = im::queue(device_); });
    attempt([&] { context_ = im::context::adopt(device_, foreign_.context()); });
    attempt([&] { adopted_ = im::queue::adopt(device_, foreign_.queue()); });
    if (context_) adopt_event_and_memory();
    if (queue_ && adopted_) use();
  }

 private:
  // The library queries the driver about memory that it did not allocate. If the query fails the
  // memory is unknown.
  void adopt_event_and_memory() {
    EXPECT_EQ(context_.devices().size(), im::context::of(device_).devices().size());
    attempt([&] { end(im::event::adopt(context_, foreign_.event())); });
    attempt([&] {
      const auto known = im::query(foreign_.memory(), context_);
      if (known.kind != im::kind::unknown && known.device) {
        EXPECT_EQ(known.kind, im::kind::device);
        EXPECT_EQ(known.device, device_);
      }
    });
  }
  // Operations on the out-of-order queue that take several commands but are a single operation.
  void use() {
    EXPECT_EQ(adopted_.context().devices().size(), im::context::of(device_).devices().size());
    attempt([&] {
      const im::buffer there(k_nbytes, im::kind::device, {.queue = adopted_});
      const im::buffer here(k_nbytes, im::kind::shared, {.queue = queue_});
      bytes want = noise(k_nbytes);
      im::copy(there, std::span(want));
      const im::event filled = im::fill_async(here, std::byte{7});
      end(im::copy_bytes_async(im::at(there, 100), here, 2000,
                               {.queue = adopted_, .after = filled}));
      std::fill_n(want.begin() + 100, 2000, std::byte{7});
      end(im::fill_async(there.slice(3, 80), 1.25));
      const double value = 1.25;
      for (std::size_t i = 0; i < 10; ++i) std::memcpy(want.data() + 3 + 8 * i, &value, 8);
      bytes got(k_nbytes);
      im::copy(std::span(got), there);
      EXPECT_TRUE(same(got, want));
    });
    attempt([&] { adopted_.wait(); });
  }

  static constexpr std::size_t k_nbytes = 5000;

  im::device device_;
  foreign_objects foreign_;
  im::queue queue_;
  im::context context_;
  im::queue adopted_;
};

}  // namespace support
