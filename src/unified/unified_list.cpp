// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_list.hpp"

#include "core/never_destroyed.hpp"
#include "memory/oom_callbacks.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

std::uint64_t release_for_request(void*, const isthmus_oom_request_t* request) {
  const auto& device = *reinterpret_cast<const Device*>(request->device);
  return request->kind == ISTHMUS_KIND_DEVICE
             ? process_unified_buffers().release_device_copies(device, request->nbytes)
             : 0;
}

}  // namespace

UnifiedList& process_unified_buffers() {
  static NeverDestroyed<UnifiedList> all;
  return *all;
}

UnifiedList::UnifiedList() {
  process_oom_callbacks().add(make_ref<OomCallback>(&release_for_request, Owner{}));
}

void UnifiedList::add(UnifiedBuffer& buffer) {
  const std::lock_guard held{lock_};
  all_.insert(&buffer);
}

void UnifiedList::remove(UnifiedBuffer& buffer) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard held{lock_};
  all_.erase(&buffer);
}

std::vector<Ref<UnifiedBuffer>> UnifiedList::alive() {
  std::vector<Ref<UnifiedBuffer>> found;
  const std::lock_guard held{lock_};
  found.reserve(all_.size());
  for (auto* each : all_) {
    if (each->try_retain()) {
      found.push_back(Ref<UnifiedBuffer>::adopt(each));
    }
  }
  return found;
}

std::uint64_t UnifiedList::release_device_copies(const Device& device,
                                                 std::uint64_t nbytes) noexcept {
  std::uint64_t released = 0;
  try {
    for (const auto& each : alive()) {
      if (released >= nbytes) {
        break;
      }
      if (each->uses_device(device)) {
        released += each->release_device_copy();
      }
    }
  } catch (const std::bad_alloc&) {
    return released;  // there is no host memory for the search
  }
  return released;
}

// Does not release the device copy of a buffer that is in use, even if the user is the call of this
// thread whose allocation failed.
std::uint64_t UnifiedBuffer::release_device_copy() {
  const Lock held{lock_, std::try_to_lock};
  if (!held || !device_ || !device_is_valid_ || one_memory_ || !device_writes_.empty() ||
      (!host_is_valid_ && !device_holds_nothing_)) {
    return 0;
  }
  if (!device_->unique() || device_->exports() != 0 || !complete_all() || !inflight_.empty() ||
      !scan_host() || !device_dirty_.empty()) {
    return 0;
  }
  if (!host_dirty_.empty() && !drop_host_writes(RangeSet{host_dirty_})) {
    return 0;
  }
  host_dirty_.clear();
  host_dirty_again_.clear();
  device_held_.clear();
  device_is_valid_ = false;
  device_ = {};
  return request_.nbytes;
}

}  // namespace isthmus
