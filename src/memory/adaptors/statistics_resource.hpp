#pragma once
// Counts what goes through it, and what is allocated within scopes.
//
// A block that is allocated within a scope is noted by its address, so that its end is the scope's
// wherever it comes. A free is counted before upstream has the block, which may be reused at once,
// and taken back where upstream refuses it; one whose memory goes back later is counted when the
// caller frees.

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/adaptors/usage_counter.hpp"

namespace isthmus {

class statistics_resource;

class statistics_scope final : public ref_counted {
 public:
  // Keeps `outer` (may be null) alive, and those around it.
  statistics_scope(statistics_resource& of, statistics_scope* outer);

  // The one that this thread is in, kept alive by who put it there; null: none.
  static statistics_scope* swap_current(statistics_scope* next) noexcept;
  // The innermost scope of `of` that this thread is in. Held: who put it there may leave it while
  // memory is looked for.
  [[nodiscard]] static ref<statistics_scope> current_of(const statistics_resource& of) noexcept;
  [[nodiscard]] static bool thread_is_in_any() noexcept;

  void add(std::size_t nbytes) noexcept;
  void remove(std::size_t nbytes) noexcept;
  void restore(std::size_t nbytes) noexcept;
  // Of a block that `noted` (may be null) has, freed by a thread that is in this one: the net
  // counts alone, and not of the scopes that `noted` has it for.
  void remove_foreign(std::size_t nbytes, const statistics_scope* noted) noexcept;
  void restore_foreign(std::size_t nbytes, const statistics_scope* noted) noexcept;
  [[nodiscard]] usage_counter::counts read() noexcept { return counter_.read(); }
  // Less what its threads freed in it of memory that is not its own: may be below 0.
  [[nodiscard]] usage_counter::counts read_net() noexcept { return net_.read_signed(); }

 private:
  ~statistics_scope() override;
  // Whether what `inner` (may be null) counts is counted here: it is this one, or lies within.
  [[nodiscard]] bool encloses(const statistics_scope* inner) const noexcept;
  [[nodiscard]] static statistics_scope* innermost_of(const statistics_resource& of,
                                                      statistics_scope* from) noexcept;

  const ref<statistics_resource> of_;
  ref<statistics_scope> outer_;
  statistics_scope* const next_;  // the innermost of the same resource around it
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
  // What was counted out goes back; false and counted in again if it does not.
  [[gnu::noinline]] bool deallocate_through(void* pointer, std::size_t nbytes, queue* on) noexcept;
  [[gnu::noinline]] bool finish_deallocate(void* pointer, std::size_t nbytes, queue* on,
                                           usage_counter::rest left) noexcept;
  [[gnu::noinline]] bool restore(std::size_t nbytes) noexcept;

  // A free as it was counted.
  struct counted_free {
    pointer_table<ref<statistics_scope>>::entry noted;  // may be empty
    ref<statistics_scope> within;                       // may be null
  };
  [[nodiscard]] counted_free count_free(const void* pointer, std::size_t nbytes) noexcept;
  void undo(counted_free of, std::size_t nbytes) noexcept;

  usage_counter counter_;
  pointer_table<ref<statistics_scope>> scopes_;
  struct nothing {};
  pointer_table<nothing> late_;  // counted as freed, and not gone back yet
};

}  // namespace isthmus
