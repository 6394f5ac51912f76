// SPDX-License-Identifier: Apache-2.0
#pragma once
// A kernel of this library. The driver compiles it from PTX text for its device.

#include <atomic>

#include "backend/cuda/api.hpp"
#include "core/mutex.hpp"
#include "core/thread_safety.hpp"
#include "os/futex.hpp"

namespace isthmus::cuda {

// Together 2,048 threads, the most that a multiprocessor can hold. The kernels loop over work that
// exceeds one launch.
constexpr unsigned k_threads_per_block = 256;
constexpr unsigned k_max_blocks_per_multiprocessor = 8;

class Kernel {
 public:
  // `text` and `name` are string literals.
  Kernel(const char* text, const char* name) noexcept : text_{text}, name_{name} {}

  // Returns null if the driver does not accept the kernel, or failed to load it within the last 100
  // ms. The first call loads the kernel, which takes some milliseconds. Thread-safe. The
  // device's context is current.
  [[nodiscard]] CUfunction get_function(const Api& calls) noexcept;

 private:
  [[nodiscard]] CUresult load(const Api& calls, CUfunction& function) noexcept
      ISTHMUS_REQUIRES(load_lock_);

  const char* const text_;
  const char* const name_;
  Mutex load_lock_;
  CUmodule module_ ISTHMUS_GUARDED_BY(load_lock_) = nullptr;
  os::Clock::time_point next_attempt_ ISTHMUS_GUARDED_BY(load_lock_){};
  // True once the outcome is final. Stored with release after `function_`, under `load_lock_`; a
  // thread that reads true with acquire also reads the final `function_`.
  std::atomic<bool> resolved_{false};
  std::atomic<CUfunction> function_{nullptr};
};

}  // namespace isthmus::cuda
