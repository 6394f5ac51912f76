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
  cuda::Code (*create_context)(cuda::ContextHandle*, unsigned, cuda::Ordinal) = nullptr;
  cuda::Code (*destroy_context)(cuda::ContextHandle) = nullptr;
  cuda::Code (*begin_capture)(cuda::StreamHandle, unsigned mode) = nullptr;
  cuda::Code (*end_capture)(cuda::StreamHandle, void** graph) = nullptr;
  cuda::Code (*load_module)(void** module, const void* image) = nullptr;
  cuda::Code (*get_function)(void** function, void* module, const char* name) = nullptr;
  cuda::Code (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned shared, cuda::StreamHandle, void** parameters,
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
    home_ = *device_->platform().default_context();
    queue_ = *home_->create_queue(*device_);
  }

  [[nodiscard]] cuda::Device& where() const { return *device_; }
  [[nodiscard]] Context& home() const { return *home_; }
  [[nodiscard]] Queue& line() const { return *queue_; }
  [[nodiscard]] const cuda::Api& calls() const { return device_->calls(); }
  [[nodiscard]] cuda::ContextHandle primary() const { return *device_->primary(); }
  // A stream created with the driver's own functions, as a program that uses CUDA would.
  [[nodiscard]] cuda::StreamHandle foreign_stream() const {
    const cuda::MadeCurrent here{calls(), primary()};
    cuda::StreamHandle made = nullptr;
    EXPECT_EQ(calls().create_stream(&made, cuda::cu::k_stream_non_blocking), 0U);
    return made;
  }

 private:
  cuda::Device* device_ = nullptr;
  Ref<Context> home_;
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
    library_ = *os::open_library(where().platform().properties().library.c_str());
    if (os::find_symbol(library_, "stand_in_fail_after") != nullptr) {
      GTEST_SKIP() << "a stand-in for the driver";
    }
  }

  [[nodiscard]] more_calls others() const {
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

inline bool tells(const Error& failure, std::string_view part) {
  return std::string_view{failure.message()}.find(part) != std::string_view::npos;
}

}  // namespace isthmus::cuda_test
