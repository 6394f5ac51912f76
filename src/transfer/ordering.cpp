// SPDX-License-Identifier: Apache-2.0
#include "transfer/ordering.hpp"

#include <new>
#include <utility>

#include "backend/order_only.hpp"
#include "backend/queue.hpp"
#include "core/expects.hpp"

namespace isthmus {

namespace {

std::uint64_t serial_of(const Queue* queue) noexcept {
  return queue == nullptr ? 0 : queue->serial();
}

}  // namespace

void TouchedMemory::add(const Endpoint& endpoint, std::size_t nbytes, bool writes) {
  if (endpoint.memory) {
    touches_.at(count_++) = {endpoint.memory.get(), endpoint.range(nbytes), writes, !writes};
  }
}

void TouchedMemory::add_read_and_written(const Endpoint& endpoint, std::size_t nbytes) {
  if (endpoint.memory) {
    touches_.at(count_++) = {endpoint.memory.get(), endpoint.range(nbytes), true, true};
  }
}

void TouchedMemory::reserve() {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& each = touches_.at(index);
    each.began_at = each.memory->uses().begin();
    each.is_reserved = true;
  }
}

void TouchedMemory::cancel() noexcept {
  for (auto& each : touches_) {
    if (std::exchange(each.is_reserved, false)) {
      each.memory->uses().cancel();
    }
  }
}

void TouchedMemory::add_contents(TransferOptions& options) {
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

void note_overwritten(const Endpoint& endpoint, std::size_t nbytes,
                      const Ref<Event>& written) noexcept try {
  if (endpoint.memory && endpoint.memory->uses().contents().any()) {
    auto& contents = endpoint.memory->uses().contents();
    const RangeSet all{endpoint.range(nbytes)};
    written ? contents.replace(all, written) : contents.forget(all);
  }
} catch (const std::bad_alloc&) {
  // The operation was submitted and is in flight, so the caller must not receive an error.
}

void TouchedMemory::collect(const Queue* queue, std::vector<Ref<Event>>& after) {
  for (std::size_t index = 0; index < count_; ++index) {
    const auto& each = touches_.at(index);
    each.memory->uses().collect({serial_of(queue), each.range, each.writes}, after);
  }
}

Result<void> TouchedMemory::collect_queues(Queue* queue, std::vector<Ref<Event>>& after) {
  if (queue != nullptr) {
    ISTHMUS_TRY(queue->unfinished(after));
  }
  return collect_exported(queue, after);
}

Result<void> TouchedMemory::collect_exported(const Queue* queue, std::vector<Ref<Event>>& after) {
  for (std::size_t index = 0; index < count_; ++index) {
    ISTHMUS_TRY(touches_.at(index).memory->unfinished_on_exported(queue, after));
  }
  return {};
}

Result<void> TouchedMemory::order_after_conflicts(const Queue* queue,
                                                  std::vector<Ref<Event>>& after) {
  ISTHMUS_EXPECTS(is_reserved());
  std::vector<Ref<Event>> conflicts;
  collect(queue, conflicts);
  ISTHMUS_TRY(collect_exported(queue, conflicts));
  for (const auto& each : conflicts) {
    after.push_back(order_only(each));
  }
  follows_conflicts_ = true;
  return {};
}

bool TouchedMemory::is_known_idle() {
  for (std::size_t index = 0; index < count_; ++index) {
    auto& memory = *touches_.at(index).memory;
    if (memory.has_exported_queue() || !memory.uses().is_known_idle()) {
      return false;
    }
  }
  return true;
}

void TouchedMemory::publish(const Queue* queue, const Ref<Event>& event) noexcept {
  ISTHMUS_EXPECTS(is_reserved());
  for (std::size_t index = 0; index < count_; ++index) {
    auto& each = touches_.at(index);
    each.is_reserved = false;
    each.memory->uses().add({serial_of(queue), each.range, each.writes, false, follows_conflicts_,
                             queue == nullptr ? nullptr : &queue->device(),
                             queue == nullptr ? nullptr : &queue->context()},
                            event, each.began_at);
  }
}

struct OwnerKeeper::OwnerHolder final : Continuation {
  explicit OwnerHolder(std::vector<Owner> owners) : held_owners{std::move(owners)} {}
  void run(Event&) noexcept override { delete this; }

  std::vector<Owner> held_owners;
};

OwnerKeeper::OwnerKeeper(std::vector<Owner> owners) {
  if (!owners.empty()) {
    holder_.reset(new OwnerHolder{std::move(owners)});
  }
}

void OwnerKeeper::keep_until(Event& event) noexcept {
  if (holder_) {
    event.on_complete_lazily(*holder_.release());
  }
}

void OwnerKeeper::Deleter::operator()(OwnerHolder* unused) const noexcept { delete unused; }

}  // namespace isthmus
