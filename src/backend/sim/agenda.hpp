#pragma once
// What is to be done once an engine's lock is given back.
//
// One engine's step allows others theirs, on other devices too. They are put down here and worked
// off in a loop: no engine's lock is taken under another's, nothing of the outside (continuations,
// destructors) runs under one, and a chain of any length needs no stack.

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "backend/sim/operation.hpp"

namespace isthmus::sim {

// An operation has one event less to wait for.
struct release {
  ref<operation> waiting;
  bool foreign = false;
  std::uint64_t not_before_ns = 0;  // on its own device's clock
  error failure;                    // of the event
};

// Its effect is wanted, and with it all that it waits for; `to_the_end`: its end as well.
struct demanded {
  ref<operation> wanted;
  bool to_the_end = false;
};

class agenda {
 public:
  // The lanes to go on with; whoever puts one here keeps the engine alive by the operation.
  struct runnable {
    std::shared_ptr<engine> home;
    std::shared_ptr<lane> on;
  };

  std::deque<demanded> demands;
  std::deque<release> releases;
  std::deque<runnable> lanes;
  std::deque<ref<operation>> ended;  // to complete, in this order
  // Let go of when all is done.
  std::vector<work> spent;
  std::vector<ref<operation>> dropped;
  std::vector<ref<isthmus::queue>> kept;

  agenda() = default;
  agenda(const agenda&) = delete;
  agenda& operator=(const agenda&) = delete;
  ~agenda() { work_off(); }

  // Pre: the caller holds no engine's lock. Post: nothing is left.
  void work_off() noexcept;

 private:
  [[nodiscard]] bool step();
};

}  // namespace isthmus::sim
