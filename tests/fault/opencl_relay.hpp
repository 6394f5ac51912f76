#pragma once
// The library in front of OpenCL's (stand_in/opencl_relay.cpp), as the tests steer it.

#include "relay.hpp"
#include "support/backends.hpp"

namespace support {

class opencl_relay : public relay {
 public:
  opencl_relay() : relay("ISTHMUS_OPENCL_LIBRARY") {
    find("opencl_relay_refuse_after", refuse_after_);
  }
  [[nodiscard]] bool is_there() const { return refuse_after_ != nullptr; }

  void refuse_after(long commands) const { refuse_after_(commands); }
  // Whether one was refused.
  bool refuse_none() const { return refuse_after_(-1) < 0; }

 private:
  long (*refuse_after_)(long) = nullptr;
};

// On OpenCL's first device with the relay in front of it; skipped without.
class on_opencl_relay : public leak_checked {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    const char* named = std::getenv("ISTHMUS_OPENCL_LIBRARY");
    if (named == nullptr || !contains(named, "libopencl_relay")) {
      GTEST_SKIP() << "ISTHMUS_OPENCL_LIBRARY does not name libopencl_relay.so";
    }
    device_ = find_first("opencl");
    if (!device_ && !must_be_there("intel")) {
      GTEST_SKIP() << "no OpenCL device, by what ISTHMUS_TEST_OPENCL_LIBRARY names";
    }
    ASSERT_TRUE(device_);
    relay_ = opencl_relay();
    ASSERT_TRUE(relay_.is_there());
    queue_ = im::queue(device_);
  }
  void TearDown() override {
    if (relay_.is_there()) relay_.refuse_none();
    queue_ = {};
    device_ = {};
    leak_checked::TearDown();
  }

  im::device device_;
  im::queue queue_;
  opencl_relay relay_;
};

}  // namespace support
