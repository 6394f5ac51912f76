// The back-ends that a suite is instantiated for, and a fixture that counts what each test leaves.
//
// The names are fixed, so that a suite lists the same tests everywhere; one whose driver is not on
// this machine is skipped, but for Intel's OpenCL runtime where ISTHMUS_REQUIRE_OPENCL=1 says it
// must be there, one of SYCL's devices where ISTHMUS_REQUIRE_SYCL=1 does, and one of CUDA's where
// ISTHMUS_REQUIRE_CUDA=1 does.
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

#include "support/patiently.hpp"
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

// Which of the OpenCL names a device goes by: those that are neither Intel's nor PoCL's are
// "opencl".
// A driver that cannot stop what waits for a failed event (PoCL 3.1) says so in the message of the
// dependent's failure, and then the dependent has run.
inline bool ran_all_the_same() { return contains(isthmus_error_message(), "so it ran"); }

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

// An empty device where the driver is not there. Simulated ones are new each time.
inline im::device open_backend(const std::string& name) {
  if (name == "host") return im::device("host");
  if (name == "sim") return im::sim_device("");
  if (name == "sim_late") return im::sim_device("effect=late");
  if (name == "cuda" || name == "sycl") return find_first(name);
  return find_opencl(name);
}

// Whether its queues hold back what waits for the host: once such a queue is lent, others' work may
// come before that, and who has memory next may put some there.
inline bool holds_back(std::string_view name) { return name == "cuda" || name == "sycl"; }

// The variable that makes the absence of a back-end a failure; "" where none does.
inline std::string_view required_by(const std::string& name) {
  if (name == "intel") return "ISTHMUS_REQUIRE_OPENCL";
  if (name == "sycl") return "ISTHMUS_REQUIRE_SYCL";
  return name == "cuda" ? "ISTHMUS_REQUIRE_CUDA" : "";
}

inline bool must_be_there(const std::string& name) {
  const char* asked = std::getenv(std::string(required_by(name)).c_str());
  return asked != nullptr && std::string_view(asked) == "1";
}

// What is live at the end of a test is what was at its start, once operations in flight have ended.
class leak_checked : public ::testing::Test {
 protected:
  void SetUp() override { before_ = settled(&without_pools, 20ms); }
  void TearDown() override {
    const auto patience = std::chrono::steady_clock::now() + 5s;
    im::live_memory now = without_pools();
    while ((now.count != before_.count || now.bytes != before_.bytes) &&
           std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(1ms);
      now = without_pools();
    }
    EXPECT_EQ(now.count, before_.count) << "allocations left";
    EXPECT_EQ(now.bytes, before_.bytes) << "bytes left";
  }

 private:
  // Default pools keep what is free.
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
      if (must_be_there(GetParam()))
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

  // Kinds that this device has.
  std::vector<im::kind> kinds() const {
    std::vector<im::kind> result;
    for (im::kind one : {im::kind::device, im::kind::shared, im::kind::host}) {
      if (device_.offers(one)) result.push_back(one);
    }
    return result;
  }
  bool can(im::capability what) const { return device_.can(what); }
  // The driver's own memory, which im::live counts by the allocation.
  im::buffer make_unpooled(std::size_t nbytes, im::kind of) const {
    return im::buffer(
        nbytes, of, {.on = queue_, .from = im::resource::provider(queue_.context(), of, device_)});
  }
  im::buffer make(std::size_t nbytes, im::kind of, std::int64_t alignment = 0) const {
    return im::buffer(nbytes, of, {.on = queue_, .alignment = alignment});
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
