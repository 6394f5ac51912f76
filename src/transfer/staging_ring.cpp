#include "transfer/staging_ring.hpp"

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "backend/platform.hpp"
#include "core/never_destroyed.hpp"

namespace isthmus {
namespace {

struct ring_list {
  std::mutex lock;
  std::unordered_map<device*, std::unique_ptr<staging_ring>> rings;
};

ring_list& process_rings() noexcept {
  static never_destroyed<ring_list> only;
  return *only;
}

}  // namespace

staging_ring& staging_ring::of(device& where) {
  auto& all = process_rings();
  const std::lock_guard hold{all.lock};
  auto& found = all.rings[&where];
  if (!found) {
    found = std::make_unique<staging_ring>(where);
  }
  return *found;
}

std::size_t staging_ring::most_lanes() noexcept {
  constexpr unsigned k_most = 8;
  static const auto most = std::clamp(std::thread::hardware_concurrency(), 1U, k_most);
  return most;
}

result<staging_ring::lane*> staging_ring::make_lane() {
  if (lanes_.size() == most_lanes()) {
    return nullptr;
  }
  spare_.reserve(most_lanes());
  lanes_.reserve(most_lanes());
  auto home = where_->home().default_context();
  ISTHMUS_TRY(home);
  auto made = std::make_unique<lane>();
  auto on = (*home)->create_queue(*where_);
  ISTHMUS_TRY(on);
  made->on = *std::move(on);
  auto memory = (*home)->allocate(*where_, {ISTHMUS_KIND_HOST, k_slots * k_slot_bytes, 0});
  ISTHMUS_TRY(memory);
  for (std::size_t i = 0; i < k_slots; ++i) {
    made->slots[i].memory = static_cast<std::byte*>(*memory) + i * k_slot_bytes;
  }
  return lanes_.emplace_back(std::move(made)).get();
}

result<staging_ring::lane*> staging_ring::take() {
  std::unique_lock hold{lock_};
  if (spare_.empty()) {
    auto made = make_lane();
    if (made && *made != nullptr) {
      return made;
    }
    if (lanes_.empty()) {
      return made;
    }
    freed_.wait(hold, [this] { return !spare_.empty(); });
  }
  auto* const found = spare_.back();
  spare_.pop_back();
  return found;
}

staging_ring::lane* staging_ring::try_take() {
  const std::lock_guard hold{lock_};
  if (spare_.empty()) {
    auto made = make_lane();
    return made ? *made : nullptr;
  }
  auto* const found = spare_.back();
  spare_.pop_back();
  return found;
}

void staging_ring::give_back(lane& used) noexcept {
  {
    const std::lock_guard hold{lock_};
    spare_.push_back(&used);
  }
  freed_.notify_one();
}

}  // namespace isthmus
