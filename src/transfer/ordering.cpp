// SPDX-License-Identifier: Apache-2.0
#include "transfer/ordering.hpp"

#include <new>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/queue.hpp"

namespace isthmus {

namespace {

std::uint64_t serial_of(const queue* on) noexcept { return on == nullptr ? 0 : on->serial(); }

}  // namespace

bool endpoint::in_context_of(const queue& on) const noexcept {
  return memory && memory->home().is_same_as(on.home());
}

bool endpoint::reached_by(const queue& on) const noexcept {
  return host_can_touch() || (in_context_of(on) && &memory->where() == &on.where());
}

byte_range endpoint::range(std::size_t nbytes) const noexcept {
  const auto begin = address(pointer) - address(memory->start_of_uses());
  return {begin, begin + nbytes};
}

void touched_memory::add(const endpoint& side, std::size_t nbytes, bool writes) {
  if (side.memory) {
    touches_.at(count_++) = {side.memory.get(), side.range(nbytes), writes, !writes};
  }
}

void touched_memory::add_read_and_written(const endpoint& side, std::size_t nbytes) {
  if (side.memory) {
    touches_.at(count_++) = {side.memory.get(), side.range(nbytes), true, true};
  }
}

void touched_memory::reserve() {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& each = touches_.at(index);
    each.began_at = each.memory->uses().begin();
    each.is_reserved = true;
  }
}

void touched_memory::give_up() noexcept {
  for (auto& each : touches_) {
    if (std::exchange(each.is_reserved, false)) {
      each.memory->uses().give_up();
    }
  }
}

void touched_memory::add_contents(transfer_options& options) {
  if (!options.reads_contents) {
    return;
  }
  for (std::size_t index = 0; index < count_; ++index) {
    const auto& each = touches_.at(index);
    if (each.reads) {
      each.memory->uses().contents().collect(each.range, options.after);
    }
  }
}

void note_overwritten(const endpoint& side, std::size_t nbytes, const ref<event>& written) noexcept
    try {
  if (side.memory && side.memory->uses().contents().any()) {
    auto& contents = side.memory->uses().contents();
    const range_set all{side.range(nbytes)};
    written ? contents.replace(all, written) : contents.forget(all);
  }
} catch (const std::bad_alloc&) {
  // The operation was submitted and is in flight, so this must not be reported as a refusal.
}

void touched_memory::collect(const queue* on, std::vector<ref<event>>& after) {
  for (std::size_t index = 0; index < count_; ++index) {
    const auto& each = touches_.at(index);
    each.memory->uses().collect({serial_of(on), each.range, each.writes}, after);
  }
}

result<void> touched_memory::collect_queues(queue* on, std::vector<ref<event>>& after) {
  if (on != nullptr) {
    ISTHMUS_TRY(on->unfinished(after));
  }
  return collect_lent(on, after);
}

result<void> touched_memory::collect_lent(const queue* on, std::vector<ref<event>>& after) {
  for (std::size_t index = 0; index < count_; ++index) {
    ISTHMUS_TRY(touches_.at(index).memory->unfinished_on_lent(on, after));
  }
  return {};
}

result<void> touched_memory::order_after_conflicts(const queue* on,
                                                   std::vector<ref<event>>& after) {
  std::vector<ref<event>> conflicts;
  collect(on, conflicts);
  ISTHMUS_TRY(collect_lent(on, conflicts));
  for (const auto& each : conflicts) {
    after.push_back(order_only(each));
  }
  follows_conflicts_ = true;
  return {};
}

bool touched_memory::quiet() {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& memory = *touches_.at(index).memory;
    if (memory.lent() || !memory.uses().quiet()) {
      return false;
    }
  }
  return true;
}

void touched_memory::publish(const queue* on, const ref<event>& ended) noexcept {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& each = touches_.at(index);
    each.is_reserved = false;
    each.memory->uses().add(
        {serial_of(on), each.range, each.writes, false, follows_conflicts_,
         on == nullptr ? nullptr : &on->where(), on == nullptr ? nullptr : &on->home()},
        ended, each.began_at);
  }
}

struct owner_keeper::last_stop final : continuation {
  explicit last_stop(std::vector<owner> owners) : kept{std::move(owners)} {}
  void run(event&) noexcept override { delete this; }

  std::vector<owner> kept;
};

owner_keeper::owner_keeper(std::vector<owner> owners) {
  if (!owners.empty()) {
    kept_.reset(new last_stop{std::move(owners)});
  }
}

void owner_keeper::until(event& ended) noexcept {
  if (kept_) {
    ended.on_complete_at_leisure(*kept_.release());
  }
}

void owner_keeper::deleter::operator()(last_stop* unused) const noexcept { delete unused; }

}  // namespace isthmus
