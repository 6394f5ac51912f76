// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts the memory that is allocated through it, in total and within scopes.
//
// A block that is allocated within a scope is recorded by address, so that its free counts for that
// scope wherever it happens. A free is counted before upstream has the block, which may be reused
// at once, and this is undone if upstream refuses it. If the memory is returned later, the free is
// counted when the caller frees.

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/adaptors/usage_counter.hpp"

namespace isthmus {

class StatisticsResource;

class StatisticsScope final : public RefCounted {
 public:
  // Keeps `outer` (may be null) alive, and the scopes around it.
  StatisticsScope(StatisticsResource& resource, StatisticsScope* outer);

  // Sets the scope of this thread and returns the one before; null: none. The caller keeps `next`
  // alive.
  static StatisticsScope* swap_current(StatisticsScope* next) noexcept;
  // The innermost scope of `resource` that this thread is in. A reference, since the scope may be
  // left while memory is being allocated.
  [[nodiscard]] static Ref<StatisticsScope> current_of(const StatisticsResource& resource) noexcept;
  [[nodiscard]] static bool thread_is_in_any() noexcept;

  void add(std::size_t nbytes) noexcept;
  void remove(std::size_t nbytes) noexcept;
  void restore(std::size_t nbytes) noexcept;
  // For a block that was counted in `scope` (may be null) and is freed by a thread in this scope:
  // changes only net counts, and not those of scopes that enclose `scope`.
  void remove_foreign(std::size_t nbytes, const StatisticsScope* scope) noexcept;
  void restore_foreign(std::size_t nbytes, const StatisticsScope* scope) noexcept;
  [[nodiscard]] UsageCounter::Counts read() noexcept { return counter_.read(); }
  // Less what threads in the scope freed of memory that was not allocated in it: may be below 0.
  [[nodiscard]] UsageCounter::Counts read_net() noexcept { return net_.read_signed(); }

 private:
  ~StatisticsScope() override;
  // Whether this scope counts what `inner` (may be null) counts: it is that scope, or encloses it.
  [[nodiscard]] bool encloses(const StatisticsScope* inner) const noexcept;
  [[nodiscard]] static StatisticsScope* innermost_of(const StatisticsResource& resource,
                                                     StatisticsScope* scope) noexcept;

  const Ref<StatisticsResource> resource_;
  Ref<StatisticsScope> outer_;
  StatisticsScope* const next_;  // the innermost one around it, of the same resource
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
  // Frees what was counted as freed. If that fails, undoes the count and returns false.
  [[gnu::noinline]] bool deallocate_through(void* pointer, std::size_t nbytes,
                                            Queue* queue) noexcept;
  [[gnu::noinline]] bool finish_deallocate(void* pointer, std::size_t nbytes, Queue* queue,
                                           UsageCounter::Rest rest) noexcept;
  [[gnu::noinline]] bool restore(std::size_t nbytes) noexcept;

  // What a free changed, to undo it.
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
