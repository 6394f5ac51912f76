#include "core/threads.hpp"

namespace isthmus {
namespace {

thread_local bool is_library_thread = false;

}  // namespace

signals_blocked::signals_blocked() noexcept {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

signals_blocked::~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool on_library_thread() noexcept { return is_library_thread; }

void detail::mark_library_thread() noexcept { is_library_thread = true; }

}  // namespace isthmus
