// SPDX-License-Identifier: Apache-2.0
#pragma once
// Polls events that have continuations, for drivers without suitable completion callbacks. A single
// thread serves the process; it is started for the first such event and never ends.
//
// Between polls the thread sleeps, longer each time while no event completes. It detects completion
// with a delay of about 0.1 ms or an eighth of the operation's duration, whichever is longer, but
// at most 1 ms. Without events to poll it sleeps until one is added. Thread-safe.

#include "os/futex.hpp"

namespace isthmus {

// An object that is polled until it has completed.
class Pollable {
 public:
  Pollable() noexcept = default;
  Pollable(const Pollable&) = delete;
  Pollable& operator=(const Pollable&) = delete;

 protected:
  virtual ~Pollable() = default;

 private:
  friend class PollList;
  virtual void begin_polling() noexcept = 0;  // takes a reference
  // Queries the driver. Returns whether the object is still pending. Never blocks.
  [[nodiscard]] virtual bool poll_once() noexcept = 0;
  virtual void end_polling() noexcept = 0;  // releases the reference

  Pollable* next_polled_ = nullptr;
};

// Polls the object until it has completed, and holds a reference to it for that time. Allocates
// nothing and never blocks. If the polling thread cannot be started now, a later call of this
// function or of `ensure_poller_started` tries again. Called at most once for each object.
void poll_until_complete(Pollable& pending) noexcept;
// Starts the thread if an earlier attempt failed. Otherwise costs a single load.
void ensure_poller_started() noexcept;
// Returns the time until which a thread that waits for an event should sleep. That is `until`, or
// an earlier time while there is no polling thread. In that case the caller polls all registered
// events itself after its sleep (`poll_without_thread`) and sleeps again.
[[nodiscard]] os::Deadline next_poll_deadline(const os::Deadline& until) noexcept;
void poll_without_thread() noexcept;

}  // namespace isthmus
