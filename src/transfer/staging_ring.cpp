// SPDX-License-Identifier: Apache-2.0
#include "transfer/staging_ring.hpp"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "backend/platform.hpp"
#include "core/never_destroyed.hpp"
#include "memory/host_memory.hpp"

namespace isthmus {
namespace {

constexpr AllocationRequest k_lane{ISTHMUS_KIND_HOST,
                                   StagingRing::k_slots* StagingRing::k_slot_bytes, 0};

struct RingList {
  std::mutex lock;
  std::unordered_map<Device*, std::unique_ptr<StagingRing>> rings;
};

}  // namespace

StagingRing& StagingRing::of(Device& device) {
  static NeverDestroyed<RingList> only;
  auto& all = *only;
  const std::lock_guard hold{all.lock};
  auto& found = all.rings[&device];
  if (!found) {
    found = std::make_unique<StagingRing>(device);
  }
  return *found;
}

StagingRing::StagingRing(Device& device)
    : device_{&device}, near_{os::processors_near(device.properties().pci_address, "")} {}

StagingRing::~StagingRing() {
  for (auto& each : lanes_) {
    if (each.queue) {
      each.queue->context().deallocate(each.slots.front().memory, k_lane.kind, k_lane.nbytes);
      HostMemory::only().give_back(*device_, k_lane.nbytes);
    }
  }
}

// Pre: taken, so that no other thread accesses it.
Result<void> StagingRing::make(SlotPair& empty) {
  auto home = device_->platform().default_context();
  ISTHMUS_TRY(home);
  auto on = (*home)->create_queue(*device_);
  ISTHMUS_TRY(on);
  ISTHMUS_TRY(HostMemory::only().take(*device_, k_lane));
  auto memory = (*home)->allocate(*device_, k_lane);
  if (!memory) {
    HostMemory::only().give_back(*device_, k_lane.nbytes);
    return memory.take_error();
  }
  for (std::size_t i = 0; i < k_slots; ++i) {
    empty.slots[i].memory = static_cast<std::byte*>(*memory) + i * k_slot_bytes;
  }
  empty.queue = *std::move(on);
  is_there_.store(true, std::memory_order_release);
  return {};
}

StagingRing::SlotPair* StagingRing::claim(bool made) noexcept {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [made](const SlotPair& each) {
    return !each.taken && static_cast<bool>(each.queue) == made;
  });
  if (found == lanes_.end()) {
    return nullptr;
  }
  found->taken = true;
  return &*found;
}

StagingRing::SlotPair* StagingRing::reserve() noexcept {
  const std::lock_guard hold{lock_};
  auto* const made = claim(true);
  return made != nullptr ? made : claim(false);
}

bool StagingRing::make_ready(SlotPair& reserved) noexcept try {
  return reserved.queue || make(reserved);
} catch (const std::bad_alloc&) {
  return false;
}

StagingRing::SlotPair* StagingRing::try_take() noexcept {
  auto* const found = reserve();
  if (found == nullptr || make_ready(*found)) {
    return found;
  }
  give_back(*found);
  return nullptr;
}

bool StagingRing::is_there() noexcept {
  if (!is_there_.load(std::memory_order_acquire)) {
    if (auto* const first = try_take()) {
      give_back(*first);
    }
  }
  return is_there_.load(std::memory_order_acquire);
}

StagingRing::SlotPair& StagingRing::take() noexcept {
  for (;;) {
    if (auto* const found = try_take()) {
      return *found;
    }
    std::unique_lock hold{lock_};
    waiting_.fetch_add(1, std::memory_order_relaxed);
    freed_.wait(hold, [this] {
      return std::any_of(lanes_.begin(), lanes_.end(),
                         [](const SlotPair& each) { return !each.taken && each.queue; });
    });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void StagingRing::give_back(SlotPair& used) noexcept {
  {
    const std::lock_guard hold{lock_};
    used.taken = false;
    promised_ -= promised_ != 0 ? 1 : 0;
  }
  freed_.notify_one();
}

bool StagingRing::asks_for_one() noexcept {
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const std::lock_guard hold{lock_};
  if (waiting_.load(std::memory_order_relaxed) <= promised_) {
    return false;
  }
  ++promised_;
  return true;
}

}  // namespace isthmus
