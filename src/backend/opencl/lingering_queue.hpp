// SPDX-License-Identifier: Apache-2.0
#pragma once
// Keeps a reference to an out-of-order queue to which this library submits nothing more, until its
// work has ended (backend/lingering.hpp).

#include "backend/opencl/context.hpp"
#include "backend/opencl/farewell.hpp"

namespace isthmus::opencl {

class lingering_queue final : public in_farewell {
 public:
  // Takes over the reference. It is released some time after `running` have ended, and after the
  // work of other code that released the queue in the meantime. Throws std::bad_alloc, and then the
  // reference is leaked.
  static void begin(ref<context> home, const device& where, queue_handle handle, wait_list running);

  // Called by `begin` alone. `is_over`: no code submits work to the queue any more.
  lingering_queue(ref<context> home, const device& where, queue_handle handle,
                  bool is_over) noexcept;
  ~lingering_queue();

  [[nodiscard]] const api& calls() const noexcept { return home_->driver().calls(); }
  [[nodiscard]] queue_handle handle() const noexcept { return handle_; }
  // Whether nothing can be pending. Always false, since work of other code may be.
  [[nodiscard]] static bool quiet() noexcept { return false; }

 private:
  static void begin(ref<context> home, const device& where, queue_handle handle, wait_list running,
                    bool is_over);
  [[nodiscard]] bool is_last() const noexcept;
  void begin_again() noexcept;

  ref<context> home_;
  const device& where_;
  queue_handle handle_;
  const bool is_over_;
};

}  // namespace isthmus::opencl
