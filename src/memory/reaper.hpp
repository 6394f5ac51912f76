#pragma once
// Lets go, on a thread of the library, of what operations in flight still used when nobody referred
// to it any more: a driver's callback must not call the driver.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/queue.hpp"
#include "core/interrupt.hpp"
#include "os/futex.hpp"

namespace isthmus {

class reclaimable {
 public:
  virtual ~reclaimable() = default;
  // Once nothing uses it, or to find out what does. Never blocks.
  virtual void let_go() noexcept = 0;
  // Where that can be found out with one question only, whom to ask: a queue, all of whose work so
  // far may use it. It is asked once for many.
  [[nodiscard]] virtual ref<queue> only_user() noexcept { return {}; }
  // Whether to find that out, a queue is asked that is to be asked on demand.
  [[nodiscard]] virtual bool goes_on_demand() noexcept { return false; }
  // What stays in memory till it goes.
  [[nodiscard]] virtual std::size_t nbytes() const noexcept { return 0; }
  // The same as `let_go` once that work has ended.
  virtual void let_go_unused() noexcept { let_go(); }
  // That one cannot tell now, and nobody knows when it can.
  virtual void put_off() noexcept {}
  // That it goes once the work has ended which is known now.
  virtual void be_expected() noexcept {}

 private:
  friend class reaper;
  reclaimable* next_ready_ = nullptr;
};

// Lets `what` go once all of `running` have completed. Never blocks. Throws std::bad_alloc, and
// then nothing is done.
void reclaim_after(reclaimable& what, const std::vector<ref<event>>& running);
// Lets it go as soon as may be: for a thread that must not ask a driver what is running.
void retire_later(reclaimable& what) noexcept;
// The same once what kept it from going may be over: memory that there was not, a driver that
// could not tell. Tried again after a millisecond, and then after twice as long each time, up to a
// second.
void let_go_again(reclaimable& what) noexcept;
// Where there was no memory for the thread that does all this, it is started now; else a load. For
// whoever asks for memory, or for it to go back.
void start_letting_go() noexcept;
// Lets go of what goes on demand, and waits till it has been asked for, at most 4 ms; false where
// there is none, and on a thread of the library. For whoever is in a call of the program that asks
// for memory or for it to go back, and holds no lock. `wait_for_reclaim` does so too. Looks at what
// lingers as well (backend/lingering.hpp).
bool let_go_on_demand() noexcept;
// The same once that is 64 MiB, each thing counted as 1 MiB at least; else a load. For what is
// called again and again: asking takes some 0.1 ms.
bool let_much_go_on_demand() noexcept;
// How many were let go.
[[nodiscard]] std::uint64_t reclaims() noexcept;
// Returns once more than `seen` were let go; false where no more is to come, or at `until`, and on
// the thread that does it.
[[nodiscard]] bool sleep_for_reclaim(std::uint64_t seen, const os::deadline& until) noexcept;
// The same; CALLBACK where the thread's interrupt function ended the wait.
[[nodiscard]] inline result<bool> wait_for_reclaim(std::uint64_t seen, const os::deadline& until) {
  bool came = false;
  auto over = wait_in_slices(until, [&](const os::deadline& slice) {
    came = sleep_for_reclaim(seen, slice);
    return came || !slice || os::clock::now() < *slice;  // early: no more is to come
  });
  ISTHMUS_TRY(over);
  return came;
}

}  // namespace isthmus
