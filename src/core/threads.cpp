// SPDX-License-Identifier: Apache-2.0
#include "core/threads.hpp"

namespace isthmus {
namespace {

thread_local bool is_library_thread = false;
thread_local sigset_t starter_signal_mask;

}  // namespace

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t mask;
  sigfillset(&mask);
  for (const int fault_signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&mask, fault_signal);
  }
  pthread_sigmask(SIG_BLOCK, &mask, &saved_mask_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &saved_mask_, nullptr); }

SignalsOfStarter::SignalsOfStarter() noexcept {
  if (is_library_thread) {
    pthread_sigmask(SIG_SETMASK, &starter_signal_mask, &saved_mask_);
  }
}

SignalsOfStarter::~SignalsOfStarter() {
  if (is_library_thread) {
    pthread_sigmask(SIG_SETMASK, &saved_mask_, nullptr);
  }
}

bool on_library_thread() noexcept { return is_library_thread; }

void detail::mark_library_thread(const sigset_t& starter_mask) noexcept {
  is_library_thread = true;
  starter_signal_mask = starter_mask;
}

}  // namespace isthmus
