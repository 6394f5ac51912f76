// SPDX-License-Identifier: Apache-2.0
#pragma once
// The first CUDA device, for tests. They are skipped where there is none, and fail instead with
// ISTHMUS_REQUIRE_CUDA=1.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "backend/cuda/context.hpp"
#include "backend/cuda/current.hpp"
#include "backend/cuda/queue.hpp"
#include "backend/drivers.hpp"
#include "os/library.hpp"
#include "unit/backend/blocks.hpp"

namespace isthmus::cuda_test {

using namespace backend_test;

// Driver functions that the library itself does not call.
struct more_calls {
  cuda::CUresult (*create_context)(cuda::CUcontext*, unsigned, cuda::CUdevice) = nullptr;
  cuda::CUresult (*destroy_context)(cuda::CUcontext) = nullptr;
  cuda::CUresult (*begin_capture)(cuda::CUstream, unsigned mode) = nullptr;
  cuda::CUresult (*end_capture)(cuda::CUstream, void** graph) = nullptr;
  cuda::CUresult (*load_module)(void** module, const void* image) = nullptr;
  cuda::CUresult (*get_function)(void** function, void* module, const char* name) = nullptr;
  cuda::CUresult (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                           unsigned, unsigned shared, cuda::CUstream, void** parameters,
                           void** extra) = nullptr;
};

class cuda_test : public ::testing::Test {
 protected:
  void SetUp() override {
    auto found = find_device("cuda");
    if (!found) {
      const char* required = std::getenv("ISTHMUS_REQUIRE_CUDA");
      if (required != nullptr && std::string_view{required} == "1") {
        FAIL() << found.failure().message();
      }
      GTEST_SKIP() << "no CUDA device";
    }
    device_ = static_cast<cuda::Device*>(*found);
    context_ = *device_->platform().default_context();
    queue_ = *Queue::create(*context_, *device_);
  }

  [[nodiscard]] cuda::Device& test_device() const { return *device_; }
  [[nodiscard]] Context& test_context() const { return *context_; }
  [[nodiscard]] Queue& test_queue() const { return *queue_; }
  [[nodiscard]] const cuda::Api& calls() const { return device_->calls(); }
  [[nodiscard]] cuda::CUcontext primary() const { return *device_->primary(); }
  // A stream created with the driver's own functions, as a program that uses CUDA would.
  [[nodiscard]] cuda::CUstream foreign_stream() const {
    const cuda::ContextGuard here{calls(), primary()};
    cuda::CUstream stream = nullptr;
    EXPECT_EQ(calls().create_stream(&stream, cuda::cu::k_stream_non_blocking), 0U);
    return stream;
  }

 private:
  cuda::Device* device_ = nullptr;
  Ref<Context> context_;
  Ref<Queue> queue_;
};

// Tests that need driver functions beyond those of the library, and a real card.
class cuda_gpu : public cuda_test {
 protected:
  void SetUp() override {
    cuda_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    library_ = *os::open_library(test_device().platform().properties().library.c_str());
    if (os::find_symbol(library_, "stand_in_fail_after") != nullptr) {
      GTEST_SKIP() << "a stand-in for the driver";
    }
  }

  [[nodiscard]] more_calls more_driver_calls() const {
    more_calls found;
    const auto look_up = [&](auto& member, const char* name) {
      member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(
          os::find_symbol(library_, name));
      EXPECT_NE(member, nullptr) << name;
    };
    look_up(found.create_context, "cuCtxCreate_v2");
    look_up(found.destroy_context, "cuCtxDestroy_v2");
    look_up(found.begin_capture, "cuStreamBeginCapture_v2");
    look_up(found.end_capture, "cuStreamEndCapture");
    look_up(found.load_module, "cuModuleLoadData");
    look_up(found.get_function, "cuModuleGetFunction");
    look_up(found.launch, "cuLaunchKernel");
    return found;
  }

 private:
  void* library_ = nullptr;
};

inline bool mentions(const Error& failure, std::string_view part) {
  return std::string_view{failure.message()}.find(part) != std::string_view::npos;
}

}  // namespace isthmus::cuda_test
