// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test control of the library in front of OpenCL (stand_in/opencl_relay.cpp).

#include "relay.hpp"
#include "support/backends.hpp"
#include "support/status_of.hpp"

namespace support {

class opencl_relay : public relay {
 public:
  opencl_relay() : relay("ISTHMUS_OPENCL_LIBRARY") {
    find("opencl_relay_refuse_after", refuse_after_);
    find("opencl_relay_late_fills", late_fills_);
  }
  [[nodiscard]] bool is_loaded() const { return refuse_after_ != nullptr; }

  void refuse_after(long commands) const { refuse_after_(commands); }
  // Stops the failures. Returns whether a command was made to fail.
  bool refuse_none() const { return refuse_after_(-1) < 0; }
  // How many fills read their pattern when they began; negative: the relay is not set to do that.
  long late_fills() const { return late_fills_(); }

 private:
  long (*refuse_after_)(long) = nullptr;
  long (*late_fills_)() = nullptr;
};

// Tests on the first OpenCL device with the relay in front of it. Skipped without it.
class on_opencl_relay : public leak_checked {
 protected:
  // The status that a call throws, and the one that its event reports, if it returned one.
  struct reported {
    im::status call_status = im::status::ok;
    im::status event_status = im::status::ok;
    bool was_refused = false;

    [[nodiscard]] bool any() const {
      return call_status != im::status::ok || event_status != im::status::ok;
    }
  };
  // Makes `call` with the command after `n` others failing, while the queue is blocked by `gate`.
  template <class Call>
  reported refuse_after(long n, const im::host_event& gate, Call call) {
    reported outcome;
    im::event event;
    relay_.refuse_after(n);
    outcome.call_status = status_of([&] { event = call(); });
    outcome.was_refused = relay_.refuse_none();
    gate.complete();
    if (event) outcome.event_status = status_of([&] { event.wait(); });
    queue_.wait();
    return outcome;
  }
  static void expect_driver_error(const reported& seen) {
    EXPECT_EQ(seen.any(), seen.was_refused);
    for (const auto status : {seen.call_status, seen.event_status}) {
      EXPECT_TRUE(status == im::status::ok || status == im::status::driver);
    }
  }

  void SetUp() override {
    leak_checked::SetUp();
    const char* named = std::getenv("ISTHMUS_OPENCL_LIBRARY");
    if (named == nullptr || !contains(named, "libopencl_relay")) {
      GTEST_SKIP() << "ISTHMUS_OPENCL_LIBRARY does not name libopencl_relay.so";
    }
    device_ = find_first("opencl");
    if (!device_ && !is_required("intel")) {
      GTEST_SKIP() << "no OpenCL device, by what ISTHMUS_TEST_OPENCL_LIBRARY names";
    }
    ASSERT_TRUE(device_);
    relay_ = opencl_relay();
    ASSERT_TRUE(relay_.is_loaded());
    queue_ = im::queue(device_);
  }
  void TearDown() override {
    if (relay_.is_loaded()) relay_.refuse_none();
    queue_ = {};
    device_ = {};
    leak_checked::TearDown();
  }

  im::device device_;
  im::queue queue_;
  opencl_relay relay_;
};

}  // namespace support
