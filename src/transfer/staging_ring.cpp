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

constexpr allocation_request k_lane{ISTHMUS_KIND_HOST,
                                    staging_ring::k_slots* staging_ring::k_slot_bytes, 0};

struct ring_list {
  std::mutex lock;
  std::unordered_map<device*, std::unique_ptr<staging_ring>> rings;
};

}  // namespace

staging_ring& staging_ring::of(device& where) {
  static never_destroyed<ring_list> only;
  auto& all = *only;
  const std::lock_guard hold{all.lock};
  auto& found = all.rings[&where];
  if (!found) {
    found = std::make_unique<staging_ring>(where);
  }
  return *found;
}

staging_ring::staging_ring(device& where)
    : where_{&where}, near_{os::processors_near(where.properties().pci_address, "")} {}

staging_ring::~staging_ring() {
  for (auto& each : lanes_) {
    if (each.on) {
      each.on->home().deallocate(each.slots.front().memory, k_lane.kind, k_lane.nbytes);
      host_memory::only().give_back(*where_, k_lane.nbytes);
    }
  }
}

// Pre: taken, so that no other thread accesses it.
result<void> staging_ring::make(lane& empty) {
  auto home = where_->home().default_context();
  ISTHMUS_TRY(home);
  auto on = (*home)->create_queue(*where_);
  ISTHMUS_TRY(on);
  ISTHMUS_TRY(host_memory::only().take(*where_, k_lane));
  auto memory = (*home)->allocate(*where_, k_lane);
  if (!memory) {
    host_memory::only().give_back(*where_, k_lane.nbytes);
    return memory.take_error();
  }
  for (std::size_t i = 0; i < k_slots; ++i) {
    empty.slots[i].memory = static_cast<std::byte*>(*memory) + i * k_slot_bytes;
  }
  empty.on = *std::move(on);
  is_there_.store(true, std::memory_order_release);
  return {};
}

staging_ring::lane* staging_ring::claim(bool made) noexcept {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [made](const lane& each) {
    return !each.taken && static_cast<bool>(each.on) == made;
  });
  if (found == lanes_.end()) {
    return nullptr;
  }
  found->taken = true;
  return &*found;
}

staging_ring::lane* staging_ring::reserve() noexcept {
  const std::lock_guard hold{lock_};
  auto* const made = claim(true);
  return made != nullptr ? made : claim(false);
}

bool staging_ring::make_ready(lane& reserved) noexcept try {
  return reserved.on || make(reserved);
} catch (const std::bad_alloc&) {
  return false;
}

staging_ring::lane* staging_ring::try_take() noexcept {
  auto* const found = reserve();
  if (found == nullptr || make_ready(*found)) {
    return found;
  }
  give_back(*found);
  return nullptr;
}

bool staging_ring::is_there() noexcept {
  if (!is_there_.load(std::memory_order_acquire)) {
    if (auto* const first = try_take()) {
      give_back(*first);
    }
  }
  return is_there_.load(std::memory_order_acquire);
}

staging_ring::lane& staging_ring::take() noexcept {
  for (;;) {
    if (auto* const found = try_take()) {
      return *found;
    }
    std::unique_lock hold{lock_};
    waiting_.fetch_add(1, std::memory_order_relaxed);
    freed_.wait(hold, [this] {
      return std::any_of(lanes_.begin(), lanes_.end(),
                         [](const lane& each) { return !each.taken && each.on; });
    });
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void staging_ring::give_back(lane& used) noexcept {
  {
    const std::lock_guard hold{lock_};
    used.taken = false;
    promised_ -= promised_ != 0 ? 1 : 0;
  }
  freed_.notify_one();
}

bool staging_ring::asks_for_one() noexcept {
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
