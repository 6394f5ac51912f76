// SPDX-License-Identifier: Apache-2.0
#include "memory/adaptors/statistics_resource.hpp"

#include <utility>

#include "core/tls.hpp"

namespace isthmus {
namespace {

thread_local constinit statistics_scope* thread_scope ISTHMUS_TLS_MODEL = nullptr;

}  // namespace

statistics_scope::statistics_scope(statistics_resource& of, statistics_scope* outer)
    : of_{&of}, outer_{outer}, next_{innermost_of(of, outer)} {}

// Destroys the outer scopes one after the other: each as the last reference of the next would take
// a stack as deep as they are nested, and tasks that each start another nest without limit.
statistics_scope::~statistics_scope() {
  auto outer = std::move(outer_);
  while (outer && outer->unique()) {
    auto further = std::move(outer->outer_);
    outer = std::move(further);
  }
}

statistics_scope* statistics_scope::innermost_of(const statistics_resource& of,
                                                 statistics_scope* from) noexcept {
  while (from != nullptr && from->of_.get() != &of) {
    from = from->outer_.get();
  }
  return from;
}

statistics_scope* statistics_scope::swap_current(statistics_scope* next) noexcept {
  return std::exchange(thread_scope, next);
}

ref<statistics_scope> statistics_scope::current_of(const statistics_resource& of) noexcept {
  return ref<statistics_scope>{innermost_of(of, thread_scope)};
}

bool statistics_scope::thread_is_in_any() noexcept { return thread_scope != nullptr; }

void statistics_scope::add(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.add(nbytes);
    each->net_.add(nbytes);
  }
}

void statistics_scope::remove(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.remove(nbytes);
    each->net_.remove(nbytes);
  }
}

void statistics_scope::restore(std::size_t nbytes) noexcept {
  for (auto* each = this; each != nullptr; each = each->next_) {
    each->counter_.restore(nbytes);
    each->net_.restore(nbytes);
  }
}

bool statistics_scope::encloses(const statistics_scope* inner) const noexcept {
  while (inner != nullptr && inner != this) {
    inner = inner->next_;
  }
  return inner != nullptr;
}

// The cost grows with the nesting of scopes, which is seldom more than a few levels.
void statistics_scope::remove_foreign(std::size_t nbytes, const statistics_scope* noted) noexcept {
  for (auto* each = this; each != nullptr && !each->encloses(noted); each = each->next_) {
    each->net_.remove(nbytes);
  }
}

void statistics_scope::restore_foreign(std::size_t nbytes, const statistics_scope* noted) noexcept {
  for (auto* each = this; each != nullptr && !each->encloses(noted); each = each->next_) {
    each->net_.restore(nbytes);
  }
}

result<void*> statistics_resource::allocate(std::size_t nbytes, std::size_t alignment, queue& on) {
  auto within = statistics_scope::current_of(*this);
  auto memory = adaptor::allocate(nbytes, alignment, on);
  ISTHMUS_TRY(memory);
  if (within) [[unlikely]] {
    try {
      scopes_.put(*memory, within);
    } catch (const std::bad_alloc&) {
      static_cast<void>(adaptor::deallocate(*memory, nbytes, &on));
      throw;
    }
    within->add(nbytes);
  }
  counter_.add(nbytes);
  return memory;
}

result<void> statistics_resource::deallocate(void* pointer, std::size_t nbytes,
                                             queue* behind) noexcept {
  auto late = late_.take(pointer);
  auto counted = late.empty() ? count_free(pointer, nbytes) : counted_free{};
  auto freed = adaptor::deallocate(pointer, nbytes, behind);
  if (!freed && late.empty()) {
    undo(std::move(counted), nbytes);
  } else if (!freed) {
    late_.put_back(std::move(late));
  }
  return freed;
}

// Recorded before it is counted: this count cannot fail and is never undone.
void statistics_resource::freed(const void* pointer, std::size_t nbytes) noexcept try {
  adaptor::freed(pointer, nbytes);
  if (!late_.has(pointer)) {
    late_.put(pointer, {});
    static_cast<void>(count_free(pointer, nbytes));
  }
} catch (const std::bad_alloc&) {
  // It counts until the memory is returned.
}

auto statistics_resource::count_free(const void* pointer,
                                     std::size_t nbytes) noexcept -> counted_free {
  counted_free of{scopes_.take(pointer), statistics_scope::current_of(*this)};
  counter_.remove(nbytes);
  if (!of.noted.empty()) {
    of.noted.mapped()->remove(nbytes);
  }
  if (of.within) {
    of.within->remove_foreign(nbytes, of.noted.empty() ? nullptr : of.noted.mapped().get());
  }
  return of;
}

void statistics_resource::undo(counted_free of, std::size_t nbytes) noexcept {
  counter_.restore(nbytes);
  if (!of.noted.empty()) {
    of.noted.mapped()->restore(nbytes);
  }
  if (of.within) {
    of.within->restore_foreign(nbytes, of.noted.empty() ? nullptr : of.noted.mapped().get());
  }
  scopes_.put_back(std::move(of.noted));
}

// Over a pool, warm paths contain no call that returns to them and save no registers: longer parts
// are tail calls.
void* statistics_resource::allocate_warm(std::size_t nbytes, std::size_t alignment,
                                         queue* on) noexcept {
  if (statistics_scope::thread_is_in_any()) [[unlikely]] {
    return nullptr;
  }
  auto* const lowest = upstream_pool();
  if (lowest == nullptr) [[unlikely]] {
    return allocate_through(nbytes, alignment, on);
  }
  void* const block = lowest->allocate_warm(nbytes, alignment, on);
  if (block == nullptr) {
    return block;
  }
  const auto left = counter_.try_add(nbytes);
  return left == usage_counter::rest::nothing ? block : finish(block, nbytes, left);
}

void* statistics_resource::allocate_through(std::size_t nbytes, std::size_t alignment,
                                            queue* on) noexcept {
  void* const block = upstream().allocate_warm(nbytes, alignment, on);
  if (block != nullptr) [[likely]] {
    counter_.add(nbytes);
  }
  return block;
}

void* statistics_resource::finish(void* block, std::size_t nbytes,
                                  usage_counter::rest left) noexcept {
  counter_.finish_add(nbytes, left);
  return block;
}

bool statistics_resource::deallocate_warm(void* pointer, std::size_t nbytes, queue* on) noexcept {
  if (!scopes_.is_empty() || statistics_scope::thread_is_in_any()) [[unlikely]] {
    return false;
  }
  auto* const lowest = upstream_pool();
  const auto left = counter_.try_remove(nbytes);
  if (left != usage_counter::rest::nothing) [[unlikely]] {
    return finish_deallocate(pointer, nbytes, on, left);
  }
  if (lowest == nullptr) [[unlikely]] {
    return deallocate_through(pointer, nbytes, on);
  }
  return lowest->deallocate_warm(pointer, nbytes, on) || restore(nbytes);
}

bool statistics_resource::finish_deallocate(void* pointer, std::size_t nbytes, queue* on,
                                            usage_counter::rest left) noexcept {
  counter_.finish_remove(nbytes, left);
  return deallocate_through(pointer, nbytes, on);
}

bool statistics_resource::deallocate_through(void* pointer, std::size_t nbytes,
                                             queue* on) noexcept {
  return upstream().deallocate_warm(pointer, nbytes, on) || restore(nbytes);
}

bool statistics_resource::restore(std::size_t nbytes) noexcept {
  counter_.restore(nbytes);
  return false;
}

}  // namespace isthmus
