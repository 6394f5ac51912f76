// SPDX-License-Identifier: Apache-2.0
// The backends that a suite is instantiated for, and fixtures that check each test for leaks.
//
// The list of names is fixed, so that a suite lists the same tests on every machine. The tests of a
// backend whose driver is absent are skipped. They fail instead if an environment variable requires
// the driver: ISTHMUS_REQUIRE_OPENCL=1 Intel's OpenCL runtime, ISTHMUS_REQUIRE_SYCL=1 a SYCL
// device, ISTHMUS_REQUIRE_CUDA=1 a CUDA device.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <isthmus/isthmus.hpp>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/eventually.hpp"
#include "support/sizes.hpp"

namespace support {

namespace im = isthmus;
using namespace std::chrono_literals;

inline const std::vector<std::string>& backend_names() {
  static const std::vector<std::string> names{"host", "sim",    "sim_late", "intel",
                                              "pocl", "opencl", "sycl",     "cuda"};
  return names;
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Whether the operation that just failed with DEPENDENCY ran all the same: a driver that cannot
// cancel operations (PoCL 3.1) runs them, and the message says so.
inline bool ran_despite_failure() { return contains(isthmus_error_message(), "cannot cancel"); }

inline std::string opencl_name(const im::device& device) {
  const im::platform platform = device.platform();
  const im::platform_info info = platform.info();
  if (contains(info.vendor, "Intel") || contains(info.name, "Intel")) return "intel";
  if (contains(info.name, "Portable Computing Language")) return "pocl";
  return "opencl";
}

inline im::device find_opencl(std::string_view name) {
  for (const im::device& device : im::devices()) {
    if (device.info().backend == "opencl" && opencl_name(device) == name) return device;
  }
  return {};
}

inline im::device find_first(const std::string& backend) try {
  return im::device(backend);
} catch (const im::error&) {
  return {};
}

// An empty device if the driver is absent. Simulated devices are new for each call.
inline im::device open_backend(const std::string& name) {
  if (name == "host") return im::device("host");
  if (name == "sim") return im::sim_device("");
  if (name == "sim_late") return im::sim_device("effect=late");
  if (name == "cuda" || name == "sycl") return find_first(name);
  return find_opencl(name);
}

// Whether the backend's queues defer operations that wait for the host. After the handle of such a
// queue was exported, external work may be submitted ahead of a deferred operation, on memory that
// the next owner of a block uses.
inline bool defers_host_waits(std::string_view name) { return name == "cuda" || name == "sycl"; }

// The environment variable that makes the absence of a backend a failure, or "" if there is none.
inline std::string_view required_by(const std::string& name) {
  if (name == "intel") return "ISTHMUS_REQUIRE_OPENCL";
  if (name == "sycl") return "ISTHMUS_REQUIRE_SYCL";
  return name == "cuda" ? "ISTHMUS_REQUIRE_CUDA" : "";
}

inline bool is_required(const std::string& name) {
  const char* required = std::getenv(std::string(required_by(name)).c_str());
  return required != nullptr && std::string_view(required) == "1";
}

// Fails a test that ends with more live memory than it started with. Waits up to 5 seconds for
// operations in flight and deferred releases. Free memory of default pools is not counted.
class leak_checked : public ::testing::Test {
 protected:
  void SetUp() override { before_ = wait_until_stable(&without_pools, 20ms); }
  void TearDown() override {
    const auto deadline = std::chrono::steady_clock::now() + 5s;
    im::live_memory now = without_pools();
    while ((now.count != before_.count || now.bytes != before_.bytes) &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(1ms);
      now = without_pools();
    }
    EXPECT_EQ(now.count, before_.count) << "allocations left";
    EXPECT_EQ(now.bytes, before_.bytes) << "bytes left";
  }

 private:
  // Trims the default pools first, because the free memory that they keep counts as live.
  static im::live_memory without_pools() {
    EXPECT_EQ(isthmus_default_pools_trim(nullptr), ISTHMUS_OK);
    return im::live();
  }
  im::live_memory before_;
};

class on_backend : public leak_checked, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    device_ = open_backend(GetParam());
    if (!device_) {
      if (is_required(GetParam()))
        FAIL() << required_by(GetParam()) << "=1, and no device of " << GetParam();
      GTEST_SKIP() << "no " << GetParam() << " on this machine";
    }
    queue_ = im::queue(device_);
  }
  void TearDown() override {
    if (queue_ && !HasFatalFailure()) {
      EXPECT_TRUE(queue_.fence().wait_for(30s)) << "the queue hangs";
    }
    queue_ = {};
    device_ = {};
    leak_checked::TearDown();
  }

  // The USM kinds that this device supports.
  std::vector<im::kind> kinds() const {
    std::vector<im::kind> result;
    for (im::kind one : {im::kind::device, im::kind::shared, im::kind::host}) {
      if (device_.offers(one)) result.push_back(one);
    }
    return result;
  }
  bool can(im::capability what) const { return device_.can(what); }
  // Allocated directly from the driver. im::live counts each such allocation, and not those of a
  // pool.
  im::buffer make_unpooled(std::size_t nbytes, im::kind kind) const {
    return im::buffer(
        nbytes, kind,
        {.queue = queue_, .resource = im::resource::provider(queue_.context(), kind, device_)});
  }
  im::buffer make(std::size_t nbytes, im::kind kind, std::size_t alignment = 0) const {
    return im::buffer(nbytes, kind, {.queue = queue_, .alignment = alignment});
  }

  im::device device_;
  im::queue queue_;
};

inline std::string backend_label(const ::testing::TestParamInfo<std::string>& instance) {
  return instance.param;
}

#define INSTANTIATE_ON_BACKENDS(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(backends, suite, ::testing::ValuesIn(::support::backend_names()), \
                           ::support::backend_label)

}  // namespace support
