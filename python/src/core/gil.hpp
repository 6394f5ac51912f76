// SPDX-License-Identifier: Apache-2.0
#pragma once
// Releases and takes the interpreter's lock.
//
// Up to Python 3.13 a thread that takes the lock while the interpreter ends is killed by
// pthread_exit, whose forced unwinding must not reach a noexcept frame. It is caught where it
// starts (nothing else is thrown there), and the thread sleeps until the process ends, as in 3.14.

#include <Python.h>
#include <isthmus/isthmus.h>
#include <unistd.h>

#include <atomic>

#include "core/exported.hpp"

namespace isthmus::python {

template <class Take>
auto acquire_or_hang(Take acquire) -> decltype(acquire()) {
  try {
    return acquire();
  } catch (...) {
    for (;;) {
      pause();
    }
  }
}

// Whether this thread is inside a function of the module that released the lock.
extern ISTHMUS_EXPORTED thread_local constinit bool lock_is_released;

class GilRelease {
 public:
  explicit GilRelease(bool enabled = true) : state_{enabled ? PyEval_SaveThread() : nullptr} {
    if (enabled) {
      lock_is_released = true;
    }
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() {
    if (state_ != nullptr) {
      lock_is_released = false;
      acquire_or_hang([this] { PyEval_RestoreThread(state_); });
    }
  }

 private:
  PyThreadState* state_;
};

// Makes a call with the lock released, and returns its result.
template <class Call>
auto without_lock(Call call, bool enabled = true) {
  const GilRelease released{enabled};
  return call();
}

// Like GilRelease, for destructors that other libraries call: the caller may not hold the lock, and
// the interpreter may have ended.
class HeldGilRelease : public GilRelease {
 public:
  explicit HeldGilRelease(bool enabled = true) : GilRelease{enabled && is_held()} {}

 private:
  [[nodiscard]] static bool is_held() noexcept {
    return Py_IsInitialized() != 0 && PyGILState_GetThisThreadState() != nullptr &&
           PyGILState_Check() != 0;
  }
};

// While an object of this class exists, requests of the thread neither wait nor call functions that
// may need the interpreter's lock. With `cached_only` they do not call the driver either: a driver
// that runs a function of the program may hold its own locks until that function gets the
// interpreter's lock.
class NoWaits {
 public:
  explicit NoWaits(bool cached_only) : previous_{isthmus_no_wait_swap(cached_only ? 2 : 1)} {}
  NoWaits(const NoWaits&) = delete;
  NoWaits& operator=(const NoWaits&) = delete;
  ~NoWaits() { isthmus_no_wait_swap(previous_); }

 private:
  const int previous_;
};

// Counts the threads inside the gate; once it is closed no thread can enter. Code that takes the
// interpreter's lock on a library thread, or calls the interpreter without the lock, runs inside a
// gate that is closed before the interpreter ends.
//
// enter() increments and then reads `closed_`; the closing thread stores `closed_` and then reads
// the count. With sequentially consistent order at least one of the two sees the other, so that no
// thread is inside once the gate is closed and empty.
class Gate {
 public:
  [[nodiscard]] bool enter() noexcept {
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (!closed_.load(std::memory_order_seq_cst)) {
      return true;
    }
    leave();
    return false;
  }
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_seq_cst); }
  void close() noexcept { closed_.store(true, std::memory_order_seq_cst); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool empty() const noexcept { return inside_.load(std::memory_order_seq_cst) == 0; }

 private:
  std::atomic<int> inside_{0};
  std::atomic<bool> closed_{false};
};

// Calls from the library into Python.
extern Gate callbacks_gate;

// Holds the interpreter's lock during a call from the library into Python. Converts to false once
// the interpreter is ending. A thread with a thread state does not enter the gate: it delays the
// end of the interpreter no more than any other Python thread, and the interpreter stops it too
// when it takes the lock.
class CallbackLock {
 public:
  CallbackLock() noexcept
      : is_known_thread_{PyGILState_GetThisThreadState() != nullptr},
        entered_{is_known_thread_ ? !callbacks_gate.closed() : callbacks_gate.enter()},
        was_released_{lock_is_released} {
    if (entered_) {
      state_ = acquire_or_hang([] { return PyGILState_Ensure(); });
      lock_is_released = false;
    }
  }
  CallbackLock(const CallbackLock&) = delete;
  CallbackLock& operator=(const CallbackLock&) = delete;
  ~CallbackLock() {
    if (entered_) {
      PyGILState_Release(state_);
      lock_is_released = was_released_;
    }
    if (entered_ && !is_known_thread_) {
      callbacks_gate.leave();
    }
  }
  [[nodiscard]] explicit operator bool() const noexcept { return entered_; }

 private:
  const bool is_known_thread_;
  const bool entered_;
  const bool was_released_;
  PyGILState_STATE state_{};
};

// Whether this is a forked child of the process that imported the module.
[[nodiscard]] ISTHMUS_EXPORTED bool is_forked_child() noexcept;

}  // namespace isthmus::python
