// SPDX-License-Identifier: Apache-2.0
#pragma once
// A resource that counts the memory allocated through it, in total and within scopes.
//
// A block that is allocated within a scope is recorded by address, so that its free is counted in
// that scope on any thread. A free is counted before the block returns to upstream, where it may be
// reused immediately. If upstream refuses the block, the count is undone. If the memory is returned
// later, the free is counted when the caller frees the block.

#include "memory/resources/adaptor.hpp"
#include "memory/resources/pointer_table.hpp"
#include "memory/resources/usage_counter.hpp"

namespace isthmus {

class StatisticsResource;

class StatisticsScope final : public RefCounted {
 public:
  // Keeps alive `outer`, which may be null, and the scopes that enclose it.
  StatisticsScope(StatisticsResource& resource, StatisticsScope* outer);

  // Sets the scope of this thread and returns the previous one; null: none. The caller keeps `next`
  // alive.
  static StatisticsScope* swap_current(StatisticsScope* next) noexcept;
  // The innermost scope of `resource` that this thread is in. Returns a reference, since the thread
  // may leave the scope while it allocates memory.
  [[nodiscard]] static Ref<StatisticsScope> current_of(const StatisticsResource& resource) noexcept;
  [[nodiscard]] static bool thread_is_in_any() noexcept;

  void add(std::size_t nbytes) noexcept;
  void remove(std::size_t nbytes) noexcept;
  void restore(std::size_t nbytes) noexcept;
  // Counts the free, by a thread in this scope, of a block that was counted in `scope` (may be
  // null). Changes only net counts, and not those of `scope` and the scopes that enclose it.
  void remove_foreign(std::size_t nbytes, const StatisticsScope* scope) noexcept;
  void restore_foreign(std::size_t nbytes, const StatisticsScope* scope) noexcept;
  [[nodiscard]] UsageCounter::Counts read() noexcept { return counter_.read(); }
  // The counts less the memory that threads in the scope freed but that was not allocated in it.
  // May be below 0.
  [[nodiscard]] UsageCounter::Counts read_net() noexcept { return net_.read_signed(); }

 private:
  ~StatisticsScope() override;
  // Whether this scope is `inner` (may be null) or encloses it, and so counts everything that
  // `inner` counts.
  [[nodiscard]] bool encloses(const StatisticsScope* inner) const noexcept;
  [[nodiscard]] static StatisticsScope* innermost_of(const StatisticsResource& resource,
                                                     StatisticsScope* scope) noexcept;

  const Ref<StatisticsResource> resource_;
  Ref<StatisticsScope> outer_;
  StatisticsScope* const next_;  // the innermost enclosing one of the same resource
  UsageCounter counter_;
  UsageCounter net_;
};

class StatisticsResource final : public Adaptor {
 public:
  using Adaptor::Adaptor;
  [[nodiscard]] Result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       Queue& queue) override;
  Result<void> deallocate(void* pointer, std::size_t nbytes, Queue* after) noexcept override;
  [[nodiscard]] void* allocate_fast(std::size_t nbytes, std::size_t alignment,
                                    Queue* queue) noexcept override;
  [[nodiscard]] bool deallocate_fast(void* pointer, std::size_t nbytes,
                                     Queue* queue) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override;

  [[nodiscard]] UsageCounter::Counts read() noexcept { return counter_.read(); }
  void reset() noexcept { counter_.reset(); }

 private:
  [[gnu::noinline]] void* allocate_through(std::size_t nbytes, std::size_t alignment,
                                           Queue* queue) noexcept;
  [[gnu::noinline]] void* finish(void* block, std::size_t nbytes, UsageCounter::Rest rest) noexcept;
  // Frees a block whose free was counted. If that fails, undoes the count and returns false.
  [[gnu::noinline]] bool deallocate_through(void* pointer, std::size_t nbytes,
                                            Queue* queue) noexcept;
  [[gnu::noinline]] bool finish_deallocate(void* pointer, std::size_t nbytes, Queue* queue,
                                           UsageCounter::Rest rest) noexcept;
  [[gnu::noinline]] bool restore(std::size_t nbytes) noexcept;

  // The effects of a counted free, for `undo`.
  struct CountedFree {
    PointerTable<Ref<StatisticsScope>>::Entry entry;  // may be empty
    Ref<StatisticsScope> scope;                       // may be null
  };
  [[nodiscard]] CountedFree count_free(const void* pointer, std::size_t nbytes) noexcept;
  void undo(CountedFree freed, std::size_t nbytes) noexcept;

  UsageCounter counter_;
  PointerTable<Ref<StatisticsScope>> scopes_;
  struct Nothing {};
  PointerTable<Nothing> pending_;  // counted as freed, but not returned yet
};

}  // namespace isthmus
