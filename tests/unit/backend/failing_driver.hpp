// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes chosen calls of the CUDA stand-in driver fail.

#include "os/library.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {

class failing_driver {
 public:
  failing_driver() = default;
  explicit failing_driver(const cuda::Device& test_device) {
    auto* const library = *os::open_library(test_device.platform().properties().library.c_str());
    fail_after_ = reinterpret_cast<long (*)(long)>(os::find_symbol(library, "stand_in_fail_after"));
    registered_ =
        reinterpret_cast<std::size_t (*)()>(os::find_symbol(library, "stand_in_registered"));
  }

  // False for a driver that cannot be made to fail.
  explicit operator bool() const noexcept { return fail_after_ != nullptr; }
  void fail_after(long calls) const { fail_after_(calls); }
  // Makes the driver call after the first `calls` fail while `scenario` runs. True if it made that
  // many calls, so that one did fail.
  template <class Scenario>
  [[nodiscard]] bool fails_at(long calls, Scenario&& scenario) const {
    fail_after_(calls);
    scenario();
    return fail_after_(-1) < 0;
  }
  // The number of pinned ranges of pageable memory.
  [[nodiscard]] std::size_t registered() const { return registered_(); }

 private:
  long (*fail_after_)(long) = nullptr;
  std::size_t (*registered_)() = nullptr;
};

}  // namespace isthmus::cuda_test
