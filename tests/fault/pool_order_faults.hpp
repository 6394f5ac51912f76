// SPDX-License-Identifier: Apache-2.0
#pragma once
// Failures in the model of pool ordering: driver calls, one at a time, and events of other
// libraries.

#include <random>
#include <vector>

#include "support/backends.hpp"

namespace support {

class model_faults {
 public:
  virtual ~model_faults() = default;

  // Makes one of the next calls or operations fail, unless one is already set to fail.
  virtual void arm(std::minstd_rand& random) = 0;
  // Stops the failures. Returns whether one occurred since the last call.
  virtual bool disarm() = 0;
  // Whether an event or a call must report that failure. The library may handle others by itself.
  [[nodiscard]] virtual bool is_reported() const = 0;
  // Whether a failed operation has moved no bytes, even if only a later one of its driver calls
  // failed.
  [[nodiscard]] virtual bool moves_nothing() const = 0;
};

// Host events that block operations, and that complete or fail.
class model_gates {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  isthmus_event_t* add() { return all_.emplace_back().event.get(); }
  [[nodiscard]] isthmus_event_t* event(std::size_t index) const { return all_[index].event.get(); }
  [[nodiscard]] bool failed(std::size_t index) const { return all_[index].state == state::failed; }
  // No effect on a gate that was resolved before.
  void resolve(std::size_t index, bool well) {
    gate& one = all_[index];
    if (one.state != state::pending) return;
    one.state = well ? state::completed : state::failed;
    well ? one.event.complete() : one.event.fail("another library's work failed");
  }

 private:
  enum class state { pending, completed, failed };
  struct gate {
    im::host_event event;
    model_gates::state state = state::pending;
  };
  std::vector<gate> all_;
};

}  // namespace support
