// SPDX-License-Identifier: Apache-2.0
// Uploads of many buffers in one call.

#include <algorithm>

#include "core/undo.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// Locks the buffers in the order of their addresses, so that two of these calls cannot deadlock.
Result<void> UnifiedBuffer::to_device(std::span<UnifiedBuffer* const> each, Queue* queue) {
  std::vector<UnifiedBuffer*> all{each.begin(), each.end()};
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<Lock> held;
  held.reserve(all.size());
  std::vector<tracking::TrackedMemory::Taking> looks;
  looks.reserve(all.size());
  Undo not_seen{[&] {
    for (auto* one : all) {
      one->unseen_.store(true, std::memory_order_seq_cst);
    }
  }};
  for (std::size_t i = 0; i < all.size(); ++i) {
    held.push_back(all[i]->enter());
    if (auto bad = all[i]->refuse(all[i]->all())) {
      return bad;
    }
    ISTHMUS_TRY(all[i]->settle());
    if (all[i]->must_look()) {
      all[i]->unseen_.store(false, std::memory_order_seq_cst);
      looks.push_back({all[i]->host_.get(), &all[i]->found_});
    }
  }
  tracking::TrackedMemory::take_all(looks);
  Result<void> outcome;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (auto taken = all[i]->take_in_found(); !taken && outcome) {
      outcome = taken.take_error();
    }
  }
  ISTHMUS_TRY(outcome);
  not_seen.dismiss();
  return upload_all(all, queue);
}

// Submits all uploads before it waits for the first.
Result<void> UnifiedBuffer::upload_all(std::span<UnifiedBuffer* const> each, Queue* queue) {
  std::vector<Ref<Event>> sent;
  Result<void> outcome;
  for (auto* one : each) {
    auto ended = one->upload_known({one->all(), queue, Waiting::by_caller});
    if (!ended && outcome) {
      outcome = ended.take_error();
    }
    if (ended && *ended) {
      sent.push_back(*std::move(ended));
    }
  }
  auto ended = end_all(sent);
  return outcome ? std::move(ended) : std::move(outcome);
}

}  // namespace isthmus
