// SPDX-License-Identifier: Apache-2.0
#include "unified/unified_list.hpp"

#include "backend/device.hpp"
#include "core/lock_guard.hpp"
#include "core/never_destroyed.hpp"
#include "memory/base/oom_callbacks.hpp"
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
  static NeverDestroyed<UnifiedList> list;
  return *list;
}

UnifiedList::UnifiedList() {
  process_oom_callbacks().add(make_ref<OomCallback>(&release_for_request, Owner{}));
}

void UnifiedList::add(ListedBuffer& buffer) {
  const LockGuard guard{lock_};
  buffers_.insert(&buffer);
}

void UnifiedList::remove(ListedBuffer& buffer) noexcept {
  if (os::is_forked_child()) {
    return;
  }
  const LockGuard guard{lock_};
  buffers_.erase(&buffer);
}

std::vector<Ref<ListedBuffer>> UnifiedList::live_buffers() {
  std::vector<Ref<ListedBuffer>> buffers;
  const LockGuard guard{lock_};
  buffers.reserve(buffers_.size());
  for (auto* buffer : buffers_) {
    if (buffer->try_retain()) {
      buffers.push_back(Ref<ListedBuffer>::adopt(buffer));
    }
  }
  return buffers;
}

std::uint64_t UnifiedList::release_device_copies(const Device& device,
                                                 std::uint64_t nbytes) noexcept {
  std::uint64_t released_bytes = 0;
  try {
    for (const auto& buffer : live_buffers()) {
      if (released_bytes >= nbytes) {
        break;
      }
      if (buffer->uses_device(device)) {
        released_bytes += buffer->release_device_copy();
      }
    }
  } catch (const std::bad_alloc&) {
    return released_bytes;  // there is no host memory for the search
  }
  return released_bytes;
}

}  // namespace isthmus
