// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/caching_adaptor.hpp"

#include "core/never_destroyed.hpp"
#include "os/process.hpp"

namespace isthmus {

void CachingAdaptor::ensure_listed() noexcept {
  if (!is_listed_.load(std::memory_order_relaxed)) {
    process_caching_adaptors().add(*this);
  }
}

void CachingAdaptor::unlist() noexcept { process_caching_adaptors().remove(*this); }

void CachingAdaptor::on_last_release() noexcept {
  unlist();
  Adaptor::on_last_release();
}

// In a forked child the lock may be held by a thread that does not exist there.
void CachingAdaptors::add(CachingAdaptor& adaptor) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard hold{lock_};
  if (adaptor.is_listed_.exchange(true, std::memory_order_relaxed)) {
    return;  // another thread has added it meanwhile
  }
  adaptor.older_ = newest_;
  if (newest_ != nullptr) {
    newest_->newer_ = &adaptor;
  }
  newest_ = &adaptor;
}

void CachingAdaptors::remove(CachingAdaptor& adaptor) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard hold{lock_};
  if (!adaptor.is_listed_.exchange(false, std::memory_order_relaxed)) {
    return;
  }
  (adaptor.newer_ != nullptr ? adaptor.newer_->older_ : newest_) = adaptor.older_;
  if (adaptor.older_ != nullptr) {
    adaptor.older_->newer_ = adaptor.newer_;
  }
  adaptor.newer_ = adaptor.older_ = nullptr;
}

CachingAdaptors& process_caching_adaptors() noexcept {
  static NeverDestroyed<CachingAdaptors> only;
  return *only;
}

}  // namespace isthmus
