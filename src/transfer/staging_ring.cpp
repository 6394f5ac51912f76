// SPDX-License-Identifier: Apache-2.0
#include "transfer/staging_ring.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "backend/platform.hpp"
#include "core/expects.hpp"
#include "core/lock_guard.hpp"
#include "core/mutex.hpp"
#include "core/never_destroyed.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/host_memory.hpp"

namespace isthmus {
namespace {

constexpr AllocationRequest k_slot_pair{ISTHMUS_KIND_HOST,
                                        StagingRing::k_slots* StagingRing::k_slot_bytes, 0};

struct RingList {
  Mutex lock;
  std::unordered_map<Device*, std::unique_ptr<StagingRing>> rings ISTHMUS_GUARDED_BY(lock);
};

}  // namespace

StagingRing& StagingRing::of(Device& device) {
  static NeverDestroyed<RingList> list;
  auto& all = *list;
  const LockGuard hold{all.lock};
  auto& found = all.rings[&device];
  if (!found) {
    found = std::make_unique<StagingRing>(device);
  }
  return *found;
}

StagingRing::StagingRing(Device& device)
    : device_{&device},
      near_processors_{os::processors_near(device.properties().pci_address, "")} {}

StagingRing::~StagingRing() {
  for (auto& each : slot_pairs_) {
    if (each.queue) {
      each.queue->context().deallocate(each.slots.front().memory, k_slot_pair.kind,
                                       k_slot_pair.nbytes);
      HostMemory::only().release(*device_, k_slot_pair.nbytes);
    }
  }
}

// The pair is taken, so no other thread accesses it.
Result<void> StagingRing::create(SlotPair& empty) {
  ISTHMUS_EXPECTS(empty.taken && !empty.queue);
  auto context = device_->platform().default_context();
  ISTHMUS_TRY(context);
  auto queue = Queue::create(**context, *device_);
  ISTHMUS_TRY(queue);
  ISTHMUS_TRY(HostMemory::only().reserve(*device_, k_slot_pair));
  auto memory = (*context)->allocate(*device_, k_slot_pair);
  if (!memory) {
    HostMemory::only().release(*device_, k_slot_pair.nbytes);
    return memory.take_error();
  }
  for (std::size_t i = 0; i < k_slots; ++i) {
    empty.slots[i].memory = static_cast<std::byte*>(*memory) + i * k_slot_bytes;
  }
  empty.queue = *std::move(queue);
  is_available_.store(true, std::memory_order_release);
  return {};
}

StagingRing::SlotPair* StagingRing::claim(bool is_created) noexcept {
  const auto found =
      std::find_if(slot_pairs_.begin(), slot_pairs_.end(), [is_created](const SlotPair& each) {
        return !each.taken && static_cast<bool>(each.queue) == is_created;
      });
  if (found == slot_pairs_.end()) {
    return nullptr;
  }
  found->taken = true;
  return &*found;
}

bool StagingRing::has_free_pair() const noexcept {
  return std::any_of(slot_pairs_.begin(), slot_pairs_.end(),
                     [](const SlotPair& each) { return !each.taken && each.queue; });
}

StagingRing::SlotPair* StagingRing::reserve() noexcept {
  const LockGuard hold{lock_};
  auto* const created = claim(true);
  return created != nullptr ? created : claim(false);
}

bool StagingRing::make_ready(SlotPair& reserved) noexcept try {
  return reserved.queue || create(reserved);
} catch (const std::bad_alloc&) {
  return false;
}

StagingRing::SlotPair* StagingRing::try_acquire() noexcept {
  auto* const found = reserve();
  if (found == nullptr || make_ready(*found)) {
    return found;
  }
  release(*found);
  return nullptr;
}

bool StagingRing::is_available() noexcept {
  if (!is_available_.load(std::memory_order_acquire)) {
    if (auto* const first = try_acquire()) {
      release(*first);
    }
  }
  return is_available_.load(std::memory_order_acquire);
}

StagingRing::SlotPair& StagingRing::acquire() noexcept {
  ISTHMUS_EXPECTS(
      is_available_.load(std::memory_order_relaxed));  // else it could wait indefinitely
  for (;;) {
    if (auto* const found = try_acquire()) {
      return *found;
    }
    const LockGuard hold{lock_};
    waiting_.fetch_add(1, std::memory_order_relaxed);
    while (!has_free_pair()) {
      freed_.wait(lock_);
    }
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void StagingRing::release(SlotPair& pair) noexcept {
  {
    const LockGuard hold{lock_};
    pair.taken = false;
    promised_ -= promised_ != 0 ? 1 : 0;
  }
  freed_.notify_one();
}

bool StagingRing::must_release_one() noexcept {
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const LockGuard hold{lock_};
  if (waiting_.load(std::memory_order_relaxed) <= promised_) {
    return false;
  }
  ++promised_;
  return true;
}

}  // namespace isthmus
