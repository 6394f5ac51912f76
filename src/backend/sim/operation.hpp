#pragma once
// An operation of a simulated queue, which is its own event.
//
// It goes through three moments: it is submitted; its effect happens (the bytes move, its times are
// known, what stands behind it may go on); it ends, once the virtual clock has come to its end, and
// completes as an event. The engine of its device leads it through them.

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

// What an operation does. A plain copy or fill is one row.
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
  std::size_t nbytes = 0;  // what the model charges for
};

// Moves the bytes.
void perform(const work& todo) noexcept;

class operation;

// The effect of an operation is wanted, and with it all that it waits for; `to_the_end`: its end as
// well.
struct demanded {
  ref<operation> wanted;
  bool to_the_end = false;
  demanded* next = nullptr;
};

// An operation has one event less to wait for. Made for each when the operation is submitted.
struct passed_event {
  ref<operation> waiting;
  bool foreign = false;
  bool order_only = false;          // the event's failure is not the operation's
  std::uint64_t not_before_ns = 0;  // on its own device's clock
  error failure;                    // of the event
  ref<isthmus::queue> kept;         // dropped with it
  passed_event* next = nullptr;
};

// An operation that another one waits for, as a wait list names it.
struct awaited_event {
  operation* simulated = nullptr;  // null: of none of these devices
  bool order_only = false;         // its failure is not the other's

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
  // Makes it complete as an event; called once, with no lock held.
  void end() noexcept;

  const std::shared_ptr<engine> home_;
  const std::shared_ptr<lane> lane_;

  // Guarded by the engine's lock up to the end; from then on nobody writes.
  work work_;
  std::uint64_t number_ = 0;    // in its lane
  std::uint32_t blockers_ = 1;  // events not passed yet, and the submission itself
  std::uint32_t foreign_ = 0;   // of these, the ones that are not simulated
  std::uint32_t looks_ = 0;
  bool early_ = true;
  bool awaited_ = false;  // somebody waits: the clock goes on to its end
  bool passed_ = false;   // the effect has happened, or never will
  std::uint64_t ready_ns_ = 0;
  event_times times_;
  error failure_;
  error broken_;                    // an event that it waits for had failed
  chain<demanded> waits_;           // simulated ones, up to the moment when they are wanted
  chain<passed_event> dependents_;  // waiting for it to pass
  // While it waits for the host, which nothing here can hurry, its device must not go.
  ref<isthmus::queue> keep_;
  ref<isthmus::queue> kept_;   // by one that ends before the host came: dropped outside the lock
  operation* next_ = nullptr;  // of the list that it is in: those that end, or have ended
};

}  // namespace isthmus::sim
