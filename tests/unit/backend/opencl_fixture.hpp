// SPDX-License-Identifier: Apache-2.0
#pragma once
// All OpenCL devices found, for tests: Intel's CPU runtime, which is required with
// ISTHMUS_REQUIRE_OPENCL=1, and what else is installed (Debian: PoCL, without USM).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "backend/opencl/context.hpp"
#include "backend/opencl/open.hpp"
#include "backend/opencl/platform.hpp"
#include "backend/queue.hpp"
#include "os/process.hpp"
#include "unit/backend/blocks.hpp"

namespace isthmus::opencl_test {

using namespace backend_test;

inline bool opencl_is_required() {
  const char* required = std::getenv("ISTHMUS_REQUIRE_OPENCL");
  return required != nullptr && std::string_view{required} == "1";
}

inline const std::vector<Ref<Platform>>& opencl_platforms() {
  static const auto* const found = [] {
    auto opened = opencl::open();
    os::watch_process();
    if (!opened) {
      std::printf("no OpenCL: %s\n", opened.failure().message());
    }
    return new std::vector<Ref<Platform>>(opened ? *std::move(opened)
                                                 : std::vector<Ref<Platform>>{});
  }();
  return *found;
}

inline std::vector<Device*> opencl_devices() {
  std::vector<Device*> all;
  for (const auto& platform : opencl_platforms()) {
    for (const auto& member : platform->devices()) {
      all.push_back(member.get());
    }
  }
  return all;
}

class opencl_test : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    const auto all = opencl_devices();
    if (GetParam() >= all.size()) {
      GTEST_SKIP() << "no OpenCL device number " << GetParam();
    }
    device_ = all[GetParam()];
    auto made = Platform::default_queue(*device_);
    ASSERT_TRUE(made) << made.failure().message();
    queue_ = *std::move(made);
  }

  [[nodiscard]] Device& test_device() const { return *device_; }
  [[nodiscard]] Queue& test_queue() const { return *queue_; }
  [[nodiscard]] Context& test_context() const { return queue_->context(); }
  [[nodiscard]] const opencl::Api& calls() const {
    return static_cast<opencl::Platform&>(device_->platform()).calls();
  }
  [[nodiscard]] const opencl::DeviceTraits& traits() const {
    return static_cast<opencl::Device*>(device_)->traits();
  }
  [[nodiscard]] Ref<Queue> another_queue() const {
    auto queue = Queue::create(test_context(), test_device());
    EXPECT_TRUE(queue) << queue.failure().message();
    return *std::move(queue);
  }
  // A queue created with the driver's own functions, as a program that uses OpenCL would.
  [[nodiscard]] cl_command_queue foreign_queue(cl_command_queue_properties properties) const {
    cl_int outcome = 0;
    auto* queue = calls().create_queue(static_cast<cl_context>(test_context().native()),
                                       static_cast<cl_device_id>(test_device().native()),
                                       properties, &outcome);
    EXPECT_EQ(outcome, 0);
    return queue;
  }

 private:
  Device* device_ = nullptr;
  Ref<Queue> queue_;
};

}  // namespace isthmus::opencl_test
