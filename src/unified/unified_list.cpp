// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_list.hpp"

#include "core/never_destroyed.hpp"
#include "memory/reclaimers.hpp"
#include "os/process.hpp"

namespace isthmus {
namespace {

std::uint64_t give_up_for(void*, const isthmus_reclaim_request_t* request) {
  const auto& where = *reinterpret_cast<const device*>(request->device);
  return request->kind == ISTHMUS_KIND_DEVICE
             ? process_unified_buffers().give_up(where, request->nbytes)
             : 0;
}

}  // namespace

unified_list& process_unified_buffers() {
  static never_destroyed<unified_list> all;
  return *all;
}

unified_list::unified_list() {
  process_reclaimers().add(make_ref<reclaimer>(&give_up_for, owner{}));
}

void unified_list::add(unified_buffer& made) {
  const std::lock_guard held{lock_};
  all_.insert(&made);
}

void unified_list::remove(unified_buffer& gone) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const std::lock_guard held{lock_};
  all_.erase(&gone);
}

std::vector<ref<unified_buffer>> unified_list::alive() {
  std::vector<ref<unified_buffer>> found;
  const std::lock_guard held{lock_};
  found.reserve(all_.size());
  for (auto* each : all_) {
    if (each->try_retain()) {
      found.push_back(ref<unified_buffer>::adopt(each));
    }
  }
  return found;
}

std::uint64_t unified_list::give_up(const device& where, std::uint64_t nbytes) noexcept {
  std::uint64_t given = 0;
  try {
    for (const auto& each : alive()) {
      if (given >= nbytes) {
        break;
      }
      if (each->is_on(where)) {
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
std::uint64_t unified_buffer::give_up_device() {
  const lock held{lock_, std::try_to_lock};
  if (!held || !device_ || !device_is_there_ || one_memory_ || !device_writes_.empty() ||
      (!host_is_there_ && !device_holds_nothing_)) {
    return 0;
  }
  if (!device_->unique() || device_->exports() != 0 || !land_all() || !flights_.empty() ||
      !look() || !owed_host_.empty()) {
    return 0;
  }
  if (!owed_device_.empty() && !drop_host_writes(range_set{owed_device_})) {
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
