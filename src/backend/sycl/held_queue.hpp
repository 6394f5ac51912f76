// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reference to a SYCL queue, registered so that the queue is drained at exit (farewell.hpp).

#include "backend/sycl/farewell.hpp"
#include "backend/sycl/reference.hpp"
#include "os/process.hpp"

namespace isthmus::sycl {

class held_queue {
 public:
  held_queue(const api& calls, owned_queue reference)
      : calls_{calls}, reference_{std::move(reference)}, place_{farewell::only().add(*this)} {}
  ~held_queue() {
    if (!os::is_forked_child()) {
      farewell::only().remove(place_);
    }
  }
  held_queue(const held_queue&) = delete;
  held_queue& operator=(const held_queue&) = delete;

  [[nodiscard]] const api& calls() const noexcept { return calls_; }
  [[nodiscard]] queue_reference get() const noexcept { return reference_.get(); }
  // The reference is never released.
  void abandon() noexcept { reference_.abandon(); }

 private:
  const api& calls_;
  owned_queue reference_;
  farewell::place place_;
};

}  // namespace isthmus::sycl
