// SPDX-License-Identifier: Apache-2.0
// Uploads of many buffers in one call.

#include <algorithm>

#include "core/undo.hpp"
#include "tracking/take_all.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// Locks the buffers in the order of their addresses, so that two of these calls cannot deadlock.
Result<void> UnifiedBuffer::to_device(std::span<UnifiedBuffer* const> buffers, Queue* queue) {
  std::vector<UnifiedBuffer*> all{buffers.begin(), buffers.end()};
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<Lock> held;
  held.reserve(all.size());
  std::vector<tracking::TrackedMemory::Taking> requests;
  requests.reserve(all.size());
  Undo restore_unscanned{[&] {
    for (auto* buffer : all) {
      buffer->has_unscanned_writes_.store(true, std::memory_order_seq_cst);
    }
  }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    held.push_back(all[i]->enter());
    if (auto error = all[i]->validate(all[i]->all())) {
      return error;
    }
    ISTHMUS_TRY(all[i]->complete_and_report());
    if (all[i]->needs_scan()) {
      all[i]->has_unscanned_writes_.store(false, std::memory_order_seq_cst);
      requests.push_back({all[i]->host_.get(), &all[i]->found_});
    }
  }
  tracking::take_all(requests);
  Result<void> outcome;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (auto status = all[i]->add_found_writes(); !status && outcome) {
      outcome = status.take_error();
    }
  }
  ISTHMUS_TRY(outcome);
  restore_unscanned.dismiss();
  return upload_all(all, queue);
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
