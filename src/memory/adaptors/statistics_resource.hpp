#pragma once
// Counts what goes through it, and what is allocated within scopes.
//
// A block that is allocated within a scope is noted by its address, so that its end is the scope's
// wherever it comes. A free is counted before upstream has the block, which may be somebody else's
// at once, and taken back where upstream refuses it.

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
  [[nodiscard]] usage_counter::counts read() noexcept { return counter_.read(); }

 private:
  ~statistics_scope() override;
  [[nodiscard]] static statistics_scope* innermost_of(const statistics_resource& of,
                                                      statistics_scope* from) noexcept;

  const ref<statistics_resource> of_;
  ref<statistics_scope> outer_;
  statistics_scope* const next_;  // the innermost of the same resource around it
  usage_counter counter_;
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

  usage_counter counter_;
  pointer_table<ref<statistics_scope>> scopes_;
};

}  // namespace isthmus
