#pragma once
// The pattern of a fill that may not have begun. OpenCL lets the caller reuse the pattern's memory
// when the call returns. NVIDIA's driver (OpenCL 3.0 CUDA 13.0.98) does not copy it in a context of
// several devices: if a command ahead of the fill waits for a user event, the pattern is read when
// the fill begins, and whatever then lies at that address is written. So the pattern has memory of
// its own, which is freed once the fill has completed.

#include <memory>

#include "backend/event.hpp"
#include "core/bytes.hpp"

namespace isthmus::opencl {

class pending_pattern final : private continuation {
 public:
  explicit pending_pattern(const fill_pattern& pattern) noexcept : pattern_{pattern} {}

  [[nodiscard]] const std::byte* bytes() const noexcept { return pattern_.bytes; }
  // `fill` owns it from here on.
  static void keep_until_completed(std::unique_ptr<pending_pattern> kept, event& fill) noexcept {
    fill.on_complete(*kept.release());
  }

 private:
  // After an error of the driver the fill may still begin: the memory is then kept. A failed
  // predecessor (DEPENDENCY) is reported after the fill has ended.
  void run(event& fill) noexcept override {
    if (fill.succeeded() || fill.poll() == ISTHMUS_ERROR_DEPENDENCY) {
      delete this;
    }
  }

  fill_pattern pattern_;
};

}  // namespace isthmus::opencl
