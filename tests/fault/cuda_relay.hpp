// SPDX-License-Identifier: Apache-2.0
#pragma once
// Test control of the library in front of the CUDA driver (stand_in/cuda_relay.cpp).

#include "relay.hpp"
#include "support/backends.hpp"

namespace support {

enum class relayed { takes = 1, gives_back = 2 };

inline constexpr int k_unknown = 999;  // CUDA_ERROR_UNKNOWN

class cuda_relay : public relay {
 public:
  cuda_relay() : relay("ISTHMUS_CUDA_LIBRARY") {
    find("relay_fail_after", fail_after_);
    find("relay_lose_after", lose_after_);
    find("relay_name", name_);
    find("relay_succeeded", succeeded_);
  }
  [[nodiscard]] bool is_loaded() const { return succeeded_ != nullptr; }

  // Makes the call after `calls` others fail. Returns how many calls were left of the previous
  // setting; negative: that call was reached.
  long fail_after(long calls, relayed what, int code) const {
    return fail_after_(calls, static_cast<int>(what), code);
  }
  void fail_none() const { fail_after_(-1, 1, 2); }
  long lose_after(long calls) const { return lose_after_(calls); }
  // How often each call has succeeded.
  [[nodiscard]] std::map<std::string, long> succeeded() const { return by_name(name_, succeeded_); }

 private:
  long (*fail_after_)(long, int, int) = nullptr;
  long (*lose_after_)(long) = nullptr;
  const char* (*name_)(std::size_t) = nullptr;
  long (*succeeded_)(std::size_t) = nullptr;
};

// Tests on a CUDA device with the relay in front of the driver. Skipped without it.
class on_cuda_relay : public leak_checked {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    device_ = find_first("cuda");
    relay_ = cuda_relay();
    if (device_ && relay_.is_loaded()) return;
    device_ = {};
    GTEST_SKIP() << "ISTHMUS_CUDA_LIBRARY does not name libcuda_relay.so in front of a driver";
  }
  void TearDown() override {
    if (relay_.is_loaded()) {
      relay_.fail_none();
      relay_.lose_after(-1);
    }
    device_ = {};
    leak_checked::TearDown();
  }

  im::device device_;
  cuda_relay relay_;
};

}  // namespace support
