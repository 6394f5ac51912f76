#pragma once
// A reference to an out-of-order queue which nothing more is put to by us (backend/lingering.hpp).

#include "backend/opencl/context.hpp"
#include "backend/opencl/farewell.hpp"

namespace isthmus::opencl {

class lingering_queue final : public in_farewell {
 public:
  // Takes over the reference, which is given back a while after `running` have ended, and whatever
  // others have put there who let go of the queue meanwhile. Throws std::bad_alloc, and then it is
  // never given back.
  static void begin(ref<context> home, const device& where, queue_handle handle, wait_list running);

  // By `begin` alone. `is_over`: nothing is put there any more, by nobody.
  lingering_queue(ref<context> home, const device& where, queue_handle handle,
                  bool is_over) noexcept;
  ~lingering_queue();

  [[nodiscard]] const api& calls() const noexcept { return home_->driver().calls(); }
  [[nodiscard]] queue_handle handle() const noexcept { return handle_; }
  // Whether nothing can be pending: others' work may be.
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
