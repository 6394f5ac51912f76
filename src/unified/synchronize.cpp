// SPDX-License-Identifier: Apache-2.0
// Uploads of many buffers in one call.

#include <algorithm>

#include "core/undo.hpp"
#include "tracking/take_all.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// Locks the buffers in the order of their addresses, so that two of these calls cannot deadlock.
Result<void> UnifiedBuffer::to_device(std::span<UnifiedBuffer* const> buffers, Queue* queue) {
  std::vector<UnifiedBuffer*> sorted_buffers{buffers.begin(), buffers.end()};
  std::ranges::sort(sorted_buffers);
  sorted_buffers.erase(std::unique(sorted_buffers.begin(), sorted_buffers.end()),
                       sorted_buffers.end());
  std::vector<Lock> locks;
  locks.reserve(sorted_buffers.size());
  std::vector<tracking::TrackedMemory::Taking> requests;
  requests.reserve(sorted_buffers.size());
  Undo restore_unscanned{[&] {
    for (auto* buffer : sorted_buffers) {
      buffer->has_unscanned_writes_.store(true, std::memory_order_seq_cst);
    }
  }};
  for (std::size_t i = 0; i < sorted_buffers.size(); ++i) {
    locks.push_back(sorted_buffers[i]->enter());
    if (auto error = sorted_buffers[i]->validate(sorted_buffers[i]->all())) {
      return error;
    }
    ISTHMUS_TRY(sorted_buffers[i]->complete_and_report());
    if (sorted_buffers[i]->needs_scan()) {
      sorted_buffers[i]->has_unscanned_writes_.store(false, std::memory_order_seq_cst);
      requests.push_back({sorted_buffers[i]->host_.get(), &sorted_buffers[i]->found_writes_});
    }
  }
  tracking::take_all(requests);
  Result<void> outcome;
  for (std::size_t i = 0; i < sorted_buffers.size(); ++i) {
    if (auto status = sorted_buffers[i]->add_found_writes(); !status && outcome) {
      outcome = status.take_error();
    }
  }
  ISTHMUS_TRY(outcome);
  restore_unscanned.dismiss();
  return upload_all(sorted_buffers, queue);
}

// Submits all uploads before waiting for the first.
Result<void> UnifiedBuffer::upload_all(std::span<UnifiedBuffer* const> buffers, Queue* queue) {
  std::vector<Ref<Event>> events;
  Result<void> outcome;
  for (auto* buffer : buffers) {
    auto event = buffer->upload_known({buffer->all(), queue, Waiting::by_caller});
    if (!event && outcome) {
      outcome = event.take_error();
    }
    if (event && *event) {
      events.push_back(*std::move(event));
    }
  }
  auto status = wait_for_events(events);
  return outcome ? std::move(status) : std::move(outcome);
}

}  // namespace isthmus
