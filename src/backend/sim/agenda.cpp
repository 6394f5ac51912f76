#include "backend/sim/agenda.hpp"

#include "backend/sim/engine.hpp"

namespace isthmus::sim {
namespace {

template <class T>
T take_first(std::deque<T>& from) {
  T first = std::move(from.front());
  from.pop_front();
  return first;
}

}  // namespace

// Demands go first: all that is wanted is known before any of it runs.
bool agenda::step() {
  if (!demands.empty()) {
    auto order = take_first(demands);
    order.wanted->home().hurry(order, *this);
  } else if (!releases.empty()) {
    auto passed = take_first(releases);
    passed.waiting->home().pass_event(passed, *this);
  } else if (!lanes.empty()) {
    const auto next = take_first(lanes);
    next.home->run(next.on, *this);
  } else if (!ended.empty()) {
    take_first(ended)->end();
  } else {
    return false;
  }
  return true;
}

void agenda::work_off() noexcept {
  while (step()) {
  }
  spent.clear();
  dropped.clear();
  kept.clear();
}

}  // namespace isthmus::sim
