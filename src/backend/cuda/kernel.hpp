#pragma once
// A kernel of the library's: text that the driver compiles for its device.

#include <atomic>
#include <mutex>

#include "backend/cuda/api.hpp"

namespace isthmus::cuda {

class device;

// A device's. Safe for threads.
class kernel {
 public:
  // Both live as long as it does.
  kernel(const char* text, const char* name) noexcept : text_{text}, name_{name} {}

  // Null where the driver does not take it. Loaded when it is first asked for, some milliseconds.
  // Pre: the device's context is current.
  [[nodiscard]] function_handle loaded(const api& calls) noexcept;

 private:
  const char* text_;
  const char* name_;
  std::mutex loading_;
  std::atomic<bool> asked_{false};
  std::atomic<function_handle> function_{nullptr};
};

[[nodiscard]] kernel make_fill_kernel() noexcept;

// Whether a kernel on the device may use `nbytes` there as they are addressed. Of the host's memory
// somebody may have pinned a part only. Pre: a context of it is current.
[[nodiscard]] bool kernels_reach(const device& where, const void* pointer,
                                 std::size_t nbytes) noexcept;

}  // namespace isthmus::cuda
