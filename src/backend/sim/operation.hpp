// SPDX-License-Identifier: Apache-2.0
#pragma once
// An operation of a simulated queue, which is its own event.
//
// It goes through three stages, led by the engine of its device. It is submitted. It passes: its
// effect happens (the bytes move), its times are known, and operations that wait for it may
// continue. It ends, once the virtual clock has reached its end time, and completes as an event.

#include <memory>
#include <string>
#include <vector>

#include "backend/event.hpp"
#include "backend/queue.hpp"
#include "backend/sim/memory.hpp"
#include "backend/sim/timeline.hpp"
#include "core/chain.hpp"

namespace isthmus::sim {

class engine;
struct lane;

enum class action : std::uint8_t { nothing, copy, copy_ranges, fill };

// What an operation does. A plain copy or fill has one row.
struct work {
  action what = action::nothing;
  place destination;
  place source;
  std::size_t destination_pitch = 0;
  std::size_t source_pitch = 0;
  std::size_t width = 0;
  std::size_t height = 1;
  std::vector<copy_range> ranges;
  fill_pattern pattern;
  route over = route::none;
  std::size_t nbytes = 0;  // that the timing model counts
};

// Moves the bytes.
void perform(const work& todo) noexcept;

class operation;

// A demand for the effect of an operation and of everything that it waits for; with `to_the_end`,
// for its end as well.
struct demanded {
  ref<operation> wanted;
  bool to_the_end = false;
  demanded* next = nullptr;
};

// Reports to an operation that an event it waits for has passed. One per event is allocated when
// the operation is submitted.
struct passed_event {
  ref<operation> waiting;
  bool foreign = false;
  bool order_only = false;          // a failure of the event does not propagate
  std::uint64_t not_before_ns = 0;  // on the clock of the waiting operation's device
  error failure;                    // of the event
  ref<isthmus::queue> kept;         // released with this object
  passed_event* next = nullptr;
};

// An entry of a wait list, as seen by a simulated queue.
struct awaited_event {
  operation* simulated = nullptr;  // null for events that are not simulated
  bool order_only = false;         // its failure does not propagate

  [[nodiscard]] static awaited_event of(event& listed) noexcept;
};

class operation final : public event {
 public:
  operation(std::shared_ptr<engine> home, std::shared_ptr<lane> on, work todo)
      : home_{std::move(home)}, lane_{std::move(on)}, work_{std::move(todo)} {}

  [[nodiscard]] result<event_times> times() override;
  [[nodiscard]] const void* clock() const noexcept override { return home_.get(); }
  [[nodiscard]] engine& home() const noexcept { return *home_; }

 protected:
  void refresh() noexcept override;
  void arm() noexcept override;
  void arm_at_leisure() noexcept override {}
  void block(const os::deadline& until) noexcept override;

 private:
  friend class engine;
  friend class agenda;
  friend class ended_list;
  // Completes the event. Called once, with no lock held.
  void end() noexcept;

  const std::shared_ptr<engine> home_;
  const std::shared_ptr<lane> lane_;

  // Guarded by the engine's lock until the operation has ended, and not written afterwards.
  work work_;
  std::uint64_t number_ = 0;    // in its lane
  std::uint32_t blockers_ = 1;  // events that have not passed, and the submission itself
  std::uint32_t foreign_ = 0;   // those of them that are not simulated
  std::uint32_t looks_ = 0;
  bool early_ = true;
  bool awaited_ = false;  // a thread waits: the clock advances to the end
  bool passed_ = false;   // the effect has happened, or never will
  std::uint64_t ready_ns_ = 0;
  event_times times_;
  error failure_;
  error broken_;                    // failure of an event that it waits for
  chain<demanded> waits_;           // simulated events waited for, until they are demanded
  chain<passed_event> dependents_;  // operations that wait for this one to pass
  // Keeps the queue, and so its device, alive while this operation waits for the host, which the
  // engine cannot hurry.
  ref<isthmus::queue> keep_;
  ref<isthmus::queue> kept_;  // `keep_` of an operation that ended first; released outside the lock
  operation* next_ = nullptr;  // link in the list of ending or of ended operations
};

}  // namespace isthmus::sim
