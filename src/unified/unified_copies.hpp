// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two copies of a unified buffer, what is known of their contents, and the transfers between
// them. The parts of a unified buffer that transfer and record (uploader.hpp, downloader.hpp,
// transfer_completion.hpp, write_recorder.hpp) share it. The buffer's lock guards it, except where
// host_copy.hpp says otherwise.

#include <cstdint>

#include "unified/device_copy.hpp"
#include "unified/dirty_state.hpp"
#include "unified/exact_writes.hpp"
#include "unified/host_copy.hpp"
#include "unified/inflight_transfers.hpp"
#include "unified/requests.hpp"

namespace isthmus {

struct UnifiedCounts {
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t copies = 0;  // operations, each of any number of ranges
};

struct UnifiedCopies {
  UnifiedCopies(Queue& own_queue, const UnifiedRequest& own_request, MemoryResource* resource)
      : queue{&own_queue},
        request{own_request},
        is_one_memory{!own_request.separate && own_queue.device().reaches_host_memory()},
        device{own_queue, request, resource, is_one_memory},
        host{own_queue.device(), request, is_one_memory} {}

  [[nodiscard]] ByteRange all() const noexcept { return {0, request.nbytes}; }
  [[nodiscard]] Queue& queue_for(const SyncRequest& sync) const noexcept {
    return sync.queue != nullptr ? *sync.queue : *queue;
  }

  const Ref<Queue> queue;
  const UnifiedRequest request;
  // The device accesses host memory at full speed, so one memory serves as both copies.
  const bool is_one_memory;
  DirtyState state{request.nbytes, request.on_conflict, is_one_memory};
  ExactWrites writes;
  InflightTransfers inflight;
  UnifiedCounts counts;
  DeviceCopy device;
  HostCopy host;  // destroyed first, so that its pins end before the device copy is released
};

}  // namespace isthmus
