// SPDX-License-Identifier: Apache-2.0
#include "memory/resources/statistics_resource.hpp"

#include <utility>

#include "core/tls.hpp"

namespace isthmus {
namespace {

thread_local constinit StatisticsScope* thread_scope ISTHMUS_TLS_MODEL = nullptr;

}  // namespace

StatisticsScope::StatisticsScope(StatisticsResource& resource, StatisticsScope* outer)
    : resource_{&resource}, outer_{outer}, next_{innermost_of(resource, outer)} {}

// Destroys the outer scopes in a loop. If each were destroyed as the last reference of its inner
// scope, the stack would be as deep as the scopes are nested, and nesting is unlimited: each task
// may start another one.
StatisticsScope::~StatisticsScope() {
  auto outer = std::move(outer_);
  while (outer && outer->unique()) {
    auto further = std::move(outer->outer_);
    outer = std::move(further);
  }
}

StatisticsScope* StatisticsScope::innermost_of(const StatisticsResource& resource,
                                               StatisticsScope* scope) noexcept {
  while (scope != nullptr && scope->resource_.get() != &resource) {
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
void StatisticsScope::remove_foreign(std::size_t nbytes, const StatisticsScope* scope) noexcept {
  for (auto* each = this; each != nullptr && !each->encloses(scope); each = each->next_) {
    each->net_.remove(nbytes);
  }
}

void StatisticsScope::restore_foreign(std::size_t nbytes, const StatisticsScope* scope) noexcept {
  for (auto* each = this; each != nullptr && !each->encloses(scope); each = each->next_) {
    each->net_.restore(nbytes);
  }
}

Result<void*> StatisticsResource::allocate(std::size_t nbytes, std::size_t alignment,
                                           Queue& queue) {
  auto scope = StatisticsScope::current_of(*this);
  auto memory = Adaptor::allocate(nbytes, alignment, queue);
  ISTHMUS_TRY(memory);
  if (scope) [[unlikely]] {
    try {
      scopes_.insert(*memory, scope);
    } catch (const std::bad_alloc&) {
      static_cast<void>(Adaptor::deallocate(*memory, nbytes, &queue));
      throw;
    }
    scope->add(nbytes);
  }
  counter_.add(nbytes);
  return memory;
}

Result<void> StatisticsResource::deallocate(void* pointer, std::size_t nbytes,
                                            Queue* after) noexcept {
  auto pending = pending_.extract(pointer);
  auto counted = pending.empty() ? count_free(pointer, nbytes) : CountedFree{};
  auto freed = Adaptor::deallocate(pointer, nbytes, after);
  if (!freed && pending.empty()) {
    undo(std::move(counted), nbytes);
  } else if (!freed) {
    pending_.reinsert(std::move(pending));
  }
  return freed;
}

// Records the block before it counts the free, since this count cannot fail and is never undone.
void StatisticsResource::freed(const void* pointer, std::size_t nbytes) noexcept try {
  Adaptor::freed(pointer, nbytes);
  if (!pending_.has(pointer)) {
    pending_.insert(pointer, {});
    static_cast<void>(count_free(pointer, nbytes));
  }
} catch (const std::bad_alloc&) {
  // The block counts as live until its memory is returned.
}

auto StatisticsResource::count_free(const void* pointer,
                                    std::size_t nbytes) noexcept -> CountedFree {
  CountedFree counted{scopes_.extract(pointer), StatisticsScope::current_of(*this)};
  counter_.remove(nbytes);
  if (!counted.entry.empty()) {
    counted.entry.mapped()->remove(nbytes);
  }
  if (counted.scope) {
    counted.scope->remove_foreign(nbytes,
                                  counted.entry.empty() ? nullptr : counted.entry.mapped().get());
  }
  return counted;
}

void StatisticsResource::undo(CountedFree freed, std::size_t nbytes) noexcept {
  counter_.restore(nbytes);
  if (!freed.entry.empty()) {
    freed.entry.mapped()->restore(nbytes);
  }
  if (freed.scope) {
    freed.scope->restore_foreign(nbytes,
                                 freed.entry.empty() ? nullptr : freed.entry.mapped().get());
  }
  scopes_.reinsert(std::move(freed.entry));
}

// Over a pool, all calls in the fast paths are tail calls, so that the fast paths save no
// registers. The slower cases are therefore separate functions.
void* StatisticsResource::allocate_fast(std::size_t nbytes, std::size_t alignment,
                                        Queue* queue) noexcept {
  if (StatisticsScope::thread_is_in_any()) [[unlikely]] {
    return nullptr;
  }
  auto* const pool = upstream_pool();
  if (pool == nullptr) [[unlikely]] {
    return allocate_through(nbytes, alignment, queue);
  }
  void* const block = pool->allocate_fast(nbytes, alignment, queue);
  if (block == nullptr) {
    return block;
  }
  const auto rest = counter_.try_add(nbytes);
  return rest == UsageCounter::Rest::none ? block : finish(block, nbytes, rest);
}

void* StatisticsResource::allocate_through(std::size_t nbytes, std::size_t alignment,
                                           Queue* queue) noexcept {
  void* const block = upstream().allocate_fast(nbytes, alignment, queue);
  if (block != nullptr) [[likely]] {
    counter_.add(nbytes);
  }
  return block;
}

void* StatisticsResource::finish(void* block, std::size_t nbytes,
                                 UsageCounter::Rest rest) noexcept {
  counter_.finish_add(nbytes, rest);
  return block;
}

bool StatisticsResource::deallocate_fast(void* pointer, std::size_t nbytes, Queue* queue) noexcept {
  if (!scopes_.is_empty() || StatisticsScope::thread_is_in_any()) [[unlikely]] {
    return false;
  }
  auto* const pool = upstream_pool();
  const auto rest = counter_.try_remove(nbytes);
  if (rest != UsageCounter::Rest::none) [[unlikely]] {
    return finish_deallocate(pointer, nbytes, queue, rest);
  }
  if (pool == nullptr) [[unlikely]] {
    return deallocate_through(pointer, nbytes, queue);
  }
  return pool->deallocate_fast(pointer, nbytes, queue) || restore(nbytes);
}

bool StatisticsResource::finish_deallocate(void* pointer, std::size_t nbytes, Queue* queue,
                                           UsageCounter::Rest rest) noexcept {
  counter_.finish_remove(nbytes, rest);
  return deallocate_through(pointer, nbytes, queue);
}

bool StatisticsResource::deallocate_through(void* pointer, std::size_t nbytes,
                                            Queue* queue) noexcept {
  return upstream().deallocate_fast(pointer, nbytes, queue) || restore(nbytes);
}

bool StatisticsResource::restore(std::size_t nbytes) noexcept {
  counter_.restore(nbytes);
  return false;
}

}  // namespace isthmus
