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

inline const std::vector<ref<platform>>& opencl_platforms() {
  static const auto* const found = [] {
    auto opened = opencl::open();
    os::watch_process();
    if (!opened) {
      std::printf("no OpenCL: %s\n", opened.failure().message());
    }
    return new std::vector<ref<platform>>(opened ? *std::move(opened)
                                                 : std::vector<ref<platform>>{});
  }();
  return *found;
}

inline std::vector<device*> opencl_devices() {
  std::vector<device*> all;
  for (const auto& home : opencl_platforms()) {
    for (const auto& member : home->devices()) {
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
    auto made = device_->default_queue();
    ASSERT_TRUE(made) << made.failure().message();
    queue_ = *std::move(made);
  }

  [[nodiscard]] device& where() const { return *device_; }
  [[nodiscard]] queue& line() const { return *queue_; }
  [[nodiscard]] context& home() const { return queue_->home(); }
  [[nodiscard]] const opencl::api& calls() const {
    return static_cast<opencl::platform&>(device_->home()).calls();
  }
  [[nodiscard]] const opencl::device_traits& traits() const {
    return static_cast<opencl::device*>(device_)->traits();
  }
  [[nodiscard]] ref<queue> another_queue() const {
    auto made = home().create_queue(where());
    EXPECT_TRUE(made) << made.failure().message();
    return *std::move(made);
  }
  // A queue created with the driver's own functions, as a program that uses OpenCL would.
  [[nodiscard]] opencl::queue_handle foreign_queue(opencl::bits properties) const {
    opencl::code outcome = 0;
    auto* made = calls().create_queue(static_cast<opencl::context_handle>(home().native()),
                                      static_cast<opencl::device_handle>(where().native()),
                                      properties, &outcome);
    EXPECT_EQ(outcome, 0);
    return made;
  }

 private:
  device* device_ = nullptr;
  ref<queue> queue_;
};

}  // namespace isthmus::opencl_test
