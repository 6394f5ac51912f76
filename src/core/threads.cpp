// SPDX-License-Identifier: Apache-2.0
#include "core/threads.hpp"

namespace isthmus {
namespace {

thread_local bool is_library_thread = false;
thread_local sigset_t starters_signals;

}  // namespace

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t sent;
  sigfillset(&sent);
  for (const int own_fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    sigdelset(&sent, own_fault);
  }
  pthread_sigmask(SIG_BLOCK, &sent, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

SignalsOfStarter::SignalsOfStarter() noexcept {
  if (is_library_thread) {
    pthread_sigmask(SIG_SETMASK, &starters_signals, &before_);
  }
}

SignalsOfStarter::~SignalsOfStarter() {
  if (is_library_thread) {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

bool on_library_thread() noexcept { return is_library_thread; }

void detail::mark_library_thread(const sigset_t& signals_of_starter) noexcept {
  is_library_thread = true;
  starters_signals = signals_of_starter;
}

}  // namespace isthmus
