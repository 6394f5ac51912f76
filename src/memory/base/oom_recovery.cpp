// SPDX-License-Identifier: Apache-2.0
#include "memory/base/oom_recovery.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "memory/base/deferred_release.hpp"
#include "memory/base/oom_callbacks.hpp"

namespace isthmus {
namespace {

bool has_pool_upstream(MemoryResource* resource) noexcept try {
  std::vector<MemoryResource*> bases;
  if (resource != nullptr) {
    resource->collect_bases(bases);
  }
  return std::any_of(bases.begin(), bases.end(),
                     [](const MemoryResource* each) { return each->is_pool(); });
} catch (const std::bad_alloc&) {
  return true;  // unknown
}

}  // namespace

bool OomRecovery::may_retry_after_release() const noexcept {
  return no_wait == 0 && !in_continuation() &&
         request_.nbytes <= device_.properties().max_allocation_bytes &&
         !has_pool_upstream(resource_);
}

Result<bool> OomRecovery::wait_for_releases(const os::Deadline& deadline) noexcept {
  const auto released = [this] { return device_.released_bytes(request_.kind); };
  for (;;) {
    const auto count_before = release_count();
    const bool has_pending = device_.has_pending_release(request_.kind);
    if (!has_pending || released() - released_bytes_ >= request_.nbytes) {
      break;
    }
    auto any = wait_for_release(count_before, deadline);
    ISTHMUS_TRY(any);
    if (!*any) {
      break;
    }
  }
  const auto released_now = released();
  return std::exchange(released_bytes_, released_now) != released_now;
}

bool OomRecovery::call_callbacks() const noexcept {
  const auto nbytes = driver_refused()
                          ? std::max<std::size_t>(request_.nbytes, driver_refused_bytes)
                          : request_.nbytes;
  return process_oom_callbacks().call_all(request_for(device_, request_.kind, nbytes)).bytes != 0;
}

}  // namespace isthmus
