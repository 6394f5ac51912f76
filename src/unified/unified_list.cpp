// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_list.hpp"

#include "core/never_destroyed.hpp"
#include "memory/oom_callbacks.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

std::uint64_t give_up_for(void*, const isthmus_reclaim_request_t* request) {
  const auto& where = *reinterpret_cast<const Device*>(request->device);
  return request->kind == ISTHMUS_KIND_DEVICE
             ? process_unified_buffers().give_up(where, request->nbytes)
             : 0;
}

}  // namespace

UnifiedList& process_unified_buffers() {
  static NeverDestroyed<UnifiedList> all;
  return *all;
}

UnifiedList::UnifiedList() {
  process_reclaimers().add(make_ref<OomCallback>(&give_up_for, Owner{}));
}

void UnifiedList::add(UnifiedBuffer& made) {
  const std::lock_guard held{lock_};
  all_.insert(&made);
}

void UnifiedList::remove(UnifiedBuffer& gone) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard held{lock_};
  all_.erase(&gone);
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

std::uint64_t UnifiedList::give_up(const Device& device, std::uint64_t nbytes) noexcept {
  std::uint64_t given = 0;
  try {
    for (const auto& each : alive()) {
      if (given >= nbytes) {
        break;
      }
      if (each->is_on(device)) {
        given += each->give_up_device();
      }
    }
  } catch (const std::bad_alloc&) {
    return given;  // the host has no memory for the search
  }
  return given;
}

// Keeps the device copy if the buffer is in use, even by the call of this thread whose request
// found no memory.
std::uint64_t UnifiedBuffer::give_up_device() {
  const Lock held{lock_, std::try_to_lock};
  if (!held || !device_ || !device_is_there_ || one_memory_ || !device_writes_.empty() ||
      (!host_is_there_ && !device_holds_nothing_)) {
    return 0;
  }
  if (!device_->unique() || device_->exports() != 0 || !land_all() || !flights_.empty() ||
      !look() || !owed_host_.empty()) {
    return 0;
  }
  if (!owed_device_.empty() && !drop_host_writes(RangeSet{owed_device_})) {
    return 0;
  }
  owed_device_.clear();
  owed_again_.clear();
  device_has_.clear();
  device_is_there_ = false;
  device_ = {};
  return wanted_.nbytes;
}

}  // namespace isthmus
