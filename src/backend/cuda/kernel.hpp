#pragma once
// A kernel of the library's, which the driver compiles for its device out of text.

#include <atomic>
#include <mutex>

#include "backend/cuda/api.hpp"
#include "os/futex.hpp"

namespace isthmus::cuda {

// Threads of a block, and the blocks that a launch has for each multiprocessor at most.
constexpr number k_threads = 256;
constexpr number k_blocks_a_multiprocessor = 8;

class kernel {
 public:
  // Both as string literals.
  kernel(const char* text, const char* name) noexcept : text_{text}, name_{name} {}

  // Null where the driver does not take it, or failed within the last 100 ms. Loaded when it is
  // first asked for, some milliseconds.
  // Safe for threads. Pre: the device's context is current.
  [[nodiscard]] function_handle loaded(const api& calls) noexcept;

 private:
  // Pre: the lock is held.
  [[nodiscard]] code load(const api& calls, function_handle& found) noexcept;

  const char* const text_;
  const char* const name_;
  std::mutex loading_;
  module_handle module_ = nullptr;
  os::clock::time_point next_attempt_{};
  std::atomic<bool> asked_{false};
  std::atomic<function_handle> function_{nullptr};
};

}  // namespace isthmus::cuda
