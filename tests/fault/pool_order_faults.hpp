#pragma once
// What fails in the model of pool ordering: calls of the driver, one at a time, and events of others.

#include <random>
#include <vector>

#include "support/backends.hpp"

namespace support {

class model_faults {
 public:
  virtual ~model_faults() = default;

  // Some call, or operation, of the next ones fails, if none is to fail already.
  virtual void arm(std::minstd_rand& random) = 0;
  // No call fails from here on; whether one did since the last time.
  virtual bool disarm() = 0;
  // Whether that failure is one that an event or a call has to report: others the library may
  // overcome by itself.
  [[nodiscard]] virtual bool is_reported() const = 0;
  // Whether what failed moved no bytes, also where its call was refused half way.
  [[nodiscard]] virtual bool moves_nothing() const = 0;
};

// Events of the host that hold work up, and end well or not.
class model_gates {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return all_.size(); }
  isthmus_event_t* add() { return all_.emplace_back().event.get(); }
  [[nodiscard]] isthmus_event_t* event(std::size_t index) const { return all_[index].event.get(); }
  [[nodiscard]] bool failed(std::size_t index) const { return all_[index].state == state::failed; }
  // Does nothing where it has ended.
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
