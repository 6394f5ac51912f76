#pragma once
// A reference to an out-of-order queue which nothing more is put to (backend/lingering.hpp).

#include "backend/opencl/api.hpp"
#include "backend/opencl/farewell.hpp"

namespace isthmus::opencl {

// Gives back a reference to an out-of-order queue, on a thread of the library: what its owner has
// put there, who has let go of it, is waited for first. Never blocks.
void finish_and_release(const api& calls, queue_handle handle) noexcept;

class lingering_queue final : public in_farewell {
 public:
  // `wants_farewell`: commands in flight there are a matter of the process' end.
  lingering_queue(const api& calls, queue_handle handle, bool wants_farewell) noexcept
      : calls_{calls}, handle_{handle} {
    if (wants_farewell) {
      farewell::only().add(*this);
    }
  }
  ~lingering_queue() {
    farewell::only().remove(*this);
    if (handle_ != nullptr) {
      finish_and_release(calls_, handle_);
    }
  }

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  [[nodiscard]] queue_handle handle() const noexcept { return handle_; }
  // It is never given back.
  void abandon() noexcept { handle_ = nullptr; }

 private:
  const api& calls_;
  queue_handle handle_;
};

}  // namespace isthmus::opencl
