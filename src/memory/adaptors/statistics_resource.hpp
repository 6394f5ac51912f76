// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts what goes through it, and what is allocated within scopes.
//
// A block that is allocated within a scope is recorded by address, so that its free counts for that
// scope wherever it happens. A free is counted before upstream has the block, which may be reused
// at once, and this is undone if upstream refuses it. If the memory is returned later, the free is
// counted when the caller frees.

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/adaptors/usage_counter.hpp"

namespace isthmus {

class statistics_resource;

class statistics_scope final : public ref_counted {
 public:
  // Keeps `outer` (may be null) alive, and the scopes around it.
  statistics_scope(statistics_resource& of, statistics_scope* outer);

  // Sets the scope of this thread and returns the one before; null: none. The caller keeps `next`
  // alive.
  static statistics_scope* swap_current(statistics_scope* next) noexcept;
  // The innermost scope of `of` that this thread is in. A reference, since the scope may be left
  // while memory is being allocated.
  [[nodiscard]] static ref<statistics_scope> current_of(const statistics_resource& of) noexcept;
  [[nodiscard]] static bool thread_is_in_any() noexcept;

  void add(std::size_t nbytes) noexcept;
  void remove(std::size_t nbytes) noexcept;
  void restore(std::size_t nbytes) noexcept;
  // For a block that was counted in `noted` (may be null) and is freed by a thread in this scope:
  // changes only net counts, and not those of scopes that enclose `noted`.
  void remove_foreign(std::size_t nbytes, const statistics_scope* noted) noexcept;
  void restore_foreign(std::size_t nbytes, const statistics_scope* noted) noexcept;
  [[nodiscard]] usage_counter::counts read() noexcept { return counter_.read(); }
  // Less what threads in the scope freed of memory that was not allocated in it: may be below 0.
  [[nodiscard]] usage_counter::counts read_net() noexcept { return net_.read_signed(); }

 private:
  ~statistics_scope() override;
  // Whether this scope counts what `inner` (may be null) counts: it is that scope, or encloses it.
  [[nodiscard]] bool encloses(const statistics_scope* inner) const noexcept;
  [[nodiscard]] static statistics_scope* innermost_of(const statistics_resource& of,
                                                      statistics_scope* from) noexcept;

  const ref<statistics_resource> of_;
  ref<statistics_scope> outer_;
  statistics_scope* const next_;  // the innermost one around it, of the same resource
  usage_counter counter_;
  usage_counter net_;
};

class statistics_resource final : public adaptor {
 public:
  using adaptor::adaptor;
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override;
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override;
  void freed(const void* pointer, std::size_t nbytes) noexcept override;

  [[nodiscard]] usage_counter::counts read() noexcept { return counter_.read(); }
  void reset() noexcept { counter_.reset(); }

 private:
  [[gnu::noinline]] void* allocate_through(std::size_t nbytes, std::size_t alignment,
                                           queue* on) noexcept;
  [[gnu::noinline]] void* finish(void* block, std::size_t nbytes,
                                 usage_counter::rest left) noexcept;
  // Frees what was counted as freed. If that fails, undoes the count and returns false.
  [[gnu::noinline]] bool deallocate_through(void* pointer, std::size_t nbytes, queue* on) noexcept;
  [[gnu::noinline]] bool finish_deallocate(void* pointer, std::size_t nbytes, queue* on,
                                           usage_counter::rest left) noexcept;
  [[gnu::noinline]] bool restore(std::size_t nbytes) noexcept;

  // What a free changed, to undo it.
  struct counted_free {
    pointer_table<ref<statistics_scope>>::entry noted;  // may be empty
    ref<statistics_scope> within;                       // may be null
  };
  [[nodiscard]] counted_free count_free(const void* pointer, std::size_t nbytes) noexcept;
  void undo(counted_free of, std::size_t nbytes) noexcept;

  usage_counter counter_;
  pointer_table<ref<statistics_scope>> scopes_;
  struct nothing {};
  pointer_table<nothing> late_;  // counted as freed, but not returned yet
};

}  // namespace isthmus
