// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/caching_adaptor.hpp"

#include "core/never_destroyed.hpp"
#include "os/process.hpp"

namespace isthmus {

void CachingAdaptor::note_memory() noexcept {
  if (!is_listed_.load(std::memory_order_relaxed)) {
    process_caching_adaptors().join(*this);
  }
}

void CachingAdaptor::leave_list() noexcept { process_caching_adaptors().leave(*this); }

void CachingAdaptor::last_reference_gone() noexcept {
  leave_list();
  Adaptor::last_reference_gone();
}

// In a forked child the lock may be held by a thread that does not exist there.
void CachingAdaptors::join(CachingAdaptor& made) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard hold{lock_};
  if (made.is_listed_.exchange(true, std::memory_order_relaxed)) {
    return;  // another thread did it meanwhile
  }
  made.older_ = newest_;
  if (newest_ != nullptr) {
    newest_->newer_ = &made;
  }
  newest_ = &made;
}

void CachingAdaptors::leave(CachingAdaptor& gone) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard hold{lock_};
  if (!gone.is_listed_.exchange(false, std::memory_order_relaxed)) {
    return;
  }
  (gone.newer_ != nullptr ? gone.newer_->older_ : newest_) = gone.older_;
  if (gone.older_ != nullptr) {
    gone.older_->newer_ = gone.newer_;
  }
  gone.newer_ = gone.older_ = nullptr;
}

CachingAdaptors& process_caching_adaptors() noexcept {
  static NeverDestroyed<CachingAdaptors> only;
  return *only;
}

}  // namespace isthmus
