#include "transfer/ordering.hpp"

#include "backend/queue.hpp"

namespace isthmus {

bool endpoint::in_context_of(const queue& on) const noexcept {
  return memory && memory->home().key() == on.home().key();
}

byte_range endpoint::range(std::size_t nbytes) const noexcept {
  const auto begin = address(pointer) - address(memory->what().base);
  return {begin, begin + nbytes};
}

void touched_memory::add(const endpoint& side, std::size_t nbytes, bool writes) {
  if (side.memory) {
    touches_.at(count_++) = {side.memory.get(), side.range(nbytes), writes, 0};
  }
}

void touched_memory::collect(const queue* on, std::vector<ref<event>>& after) {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& each = touches_.at(index);
    each.began_at = each.memory->uses().begin();
    each.memory->uses().collect({on, each.range, each.writes}, after);
  }
}

void touched_memory::fence_lent_queues(std::vector<ref<event>>& after) {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& on = touches_.at(index).memory->on();
    if (on.lent()) {
      if (auto fence = on.fence_for_free()) {
        after.push_back(std::move(fence));
      }
    }
  }
}

void touched_memory::publish(const queue* on, const ref<event>& ended) {
  for (std::size_t index = 0; index < count_; ++index) {
    const auto& each = touches_.at(index);
    each.memory->uses().add({on, each.range, each.writes}, ended, each.began_at);
  }
}

result<void> wait_for_all(wait_list events) {
  for (const auto& before : events) {
    if (auto ended = before->wait(std::nullopt); !ended) {
      return fail(ISTHMUS_ERROR_DEPENDENCY, "not run, since an event that it waited for had failed: {}",
                  ended.failure().message());
    }
  }
  return {};
}

namespace {

class kept_owners final : public continuation {
 public:
  explicit kept_owners(std::vector<owner> owners) : owners_{std::move(owners)} {}
  void run(event&) noexcept override { delete this; }

 private:
  std::vector<owner> owners_;
};

}  // namespace

void keep_until(event& ended, std::vector<owner> owners) {
  if (!owners.empty()) {
    ended.on_complete(*new kept_owners{std::move(owners)});
  }
}

}  // namespace isthmus
