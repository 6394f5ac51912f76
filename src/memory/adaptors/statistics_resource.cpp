// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/statistics_resource.hpp"

#include <utility>

#include "core/tls.hpp"

namespace isthmus {
namespace {

thread_local constinit StatisticsScope* thread_scope ISTHMUS_TLS_MODEL = nullptr;

}  // namespace

StatisticsScope::StatisticsScope(StatisticsResource& resource, StatisticsScope* outer)
    : of_{&resource}, outer_{outer}, next_{innermost_of(resource, outer)} {}

// Destroys the outer scopes one after the other: each as the last reference of the next would take
// a stack as deep as they are nested, and tasks that each start another nest without limit.
StatisticsScope::~StatisticsScope() {
  auto outer = std::move(outer_);
  while (outer && outer->unique()) {
    auto further = std::move(outer->outer_);
    outer = std::move(further);
  }
}

StatisticsScope* StatisticsScope::innermost_of(const StatisticsResource& resource,
                                               StatisticsScope* scope) noexcept {
  while (scope != nullptr && scope->of_.get() != &resource) {
    scope = scope->outer_.get();
  }
  return scope;
}

StatisticsScope* StatisticsScope::swap_current(StatisticsScope* next) noexcept {
  return std::exchange(thread_scope, next);
}

Ref<StatisticsScope> StatisticsScope::current_of(const StatisticsResource& resource) noexcept {
  return Ref<StatisticsScope>{innermost_of(resource, thread_scope)};
}

bool StatisticsScope::thread_is_in_any() noexcept { return thread_scope != nullptr; }

void StatisticsScope::add(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.add(nbytes);
    each->net_.add(nbytes);
  }
}

void StatisticsScope::remove(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.remove(nbytes);
    each->net_.remove(nbytes);
  }
}

void StatisticsScope::restore(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.restore(nbytes);
    each->net_.restore(nbytes);
  }
}

bool StatisticsScope::encloses(const StatisticsScope* inner) const noexcept {
  while (inner != nullptr && inner != this) {
    inner = inner->next_;
  }
  return inner != nullptr;
}

// The cost grows with the nesting of scopes, which is seldom more than a few levels.
void StatisticsScope::remove_foreign(std::size_t nbytes, const StatisticsScope* noted) noexcept {
  for (auto* each = this; each != nullptr && !each->encloses(noted); each = each->next_) {
    each->net_.remove(nbytes);
  }
}

void StatisticsScope::restore_foreign(std::size_t nbytes, const StatisticsScope* noted) noexcept {
  for (auto* each = this; each != nullptr && !each->encloses(noted); each = each->next_) {
    each->net_.restore(nbytes);
  }
}

Result<void*> StatisticsResource::allocate(std::size_t nbytes, std::size_t alignment,
                                           Queue& queue) {
  auto within = StatisticsScope::current_of(*this);
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  ISTHMUS_TRY(memory);
  if (within) [[unlikely]] {
    try {
      scopes_.put(*memory, within);
    } catch (const std::bad_alloc&) {
      static_cast<void>(Adaptor::deallocate(*memory, nbytes, &queue));
      throw;
    }
    within->add(nbytes);
  }
  counter_.add(nbytes);
  return memory;
}

Result<void> StatisticsResource::deallocate(void* pointer, std::size_t nbytes,
                                            Queue* behind) noexcept {
  auto late = late_.take(pointer);
  auto counted = late.empty() ? count_free(pointer, nbytes) : CountedFree{};
  auto freed = Adaptor::deallocate(pointer, nbytes, behind);
  if (!freed && late.empty()) {
    undo(std::move(counted), nbytes);
  } else if (!freed) {
    late_.put_back(std::move(late));
  }
  return freed;
}

// Recorded before it is counted: this count cannot fail and is never undone.
void StatisticsResource::freed(const void* pointer, std::size_t nbytes) noexcept try {
  Adaptor::freed(pointer, nbytes);
  if (!late_.has(pointer)) {
    late_.put(pointer, {});
    static_cast<void>(count_free(pointer, nbytes));
  }
} catch (const std::bad_alloc&) {
  // It counts until the memory is returned.
}

auto StatisticsResource::count_free(const void* pointer,
                                    std::size_t nbytes) noexcept -> CountedFree {
  CountedFree of{scopes_.take(pointer), StatisticsScope::current_of(*this)};
  counter_.remove(nbytes);
  if (!of.noted.empty()) {
    of.noted.mapped()->remove(nbytes);
  }
  if (of.within) {
    of.within->remove_foreign(nbytes, of.noted.empty() ? nullptr : of.noted.mapped().get());
  }
  return of;
}

void StatisticsResource::undo(CountedFree freed, std::size_t nbytes) noexcept {
  counter_.restore(nbytes);
  if (!freed.noted.empty()) {
    freed.noted.mapped()->restore(nbytes);
  }
  if (freed.within) {
    freed.within->restore_foreign(nbytes,
                                  freed.noted.empty() ? nullptr : freed.noted.mapped().get());
  }
  scopes_.put_back(std::move(freed.noted));
}

// Over a pool, warm paths contain no call that returns to them and save no registers: longer parts
// are tail calls.
void* StatisticsResource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                        Queue* queue) noexcept {
  if (StatisticsScope::thread_is_in_any()) [[unlikely]] {
    return nullptr;
  }
  auto* const lowest = upstream_pool();
  if (lowest == nullptr) [[unlikely]] {
    return allocate_through(nbytes, alignment, queue);
  }
  void* const block = lowest->allocate_warm(nbytes, alignment, queue);
  if (block == nullptr) {
    return block;
  }
  const auto left = counter_.try_add(nbytes);
  return left == UsageCounter::Rest::nothing ? block : finish(block, nbytes, left);
}

void* StatisticsResource::allocate_through(std::size_t nbytes, std::size_t alignment,
                                           Queue* queue) noexcept {
  void* const block = upstream().allocate_warm(nbytes, alignment, queue);
  if (block != nullptr) [[likely]] {
    counter_.add(nbytes);
  }
  return block;
}

void* StatisticsResource::finish(void* block, std::size_t nbytes,
                                 UsageCounter::Rest left) noexcept {
  counter_.finish_add(nbytes, left);
  return block;
}

bool StatisticsResource::deallocate_warm(void* pointer, std::size_t nbytes, Queue* queue) noexcept {
  if (!scopes_.is_empty() || StatisticsScope::thread_is_in_any()) [[unlikely]] {
    return false;
  }
  auto* const lowest = upstream_pool();
  const auto left = counter_.try_remove(nbytes);
  if (left != UsageCounter::Rest::nothing) [[unlikely]] {
    return finish_deallocate(pointer, nbytes, queue, left);
  }
  if (lowest == nullptr) [[unlikely]] {
    return deallocate_through(pointer, nbytes, queue);
  }
  return lowest->deallocate_warm(pointer, nbytes, queue) || restore(nbytes);
}

bool StatisticsResource::finish_deallocate(void* pointer, std::size_t nbytes, Queue* queue,
                                           UsageCounter::Rest left) noexcept {
  counter_.finish_remove(nbytes, left);
  return deallocate_through(pointer, nbytes, queue);
}

bool StatisticsResource::deallocate_through(void* pointer, std::size_t nbytes,
                                            Queue* queue) noexcept {
  return upstream().deallocate_warm(pointer, nbytes, queue) || restore(nbytes);
}

bool StatisticsResource::restore(std::size_t nbytes) noexcept {
  counter_.restore(nbytes);
  return false;
}

}  // namespace isthmus
