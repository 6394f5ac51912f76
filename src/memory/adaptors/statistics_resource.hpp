#pragma once
// Counts what goes through it, and what is allocated within scopes.
//
// Counts are exact, peaks of several threads too, since all threads share them: an allocation takes
// four atomic additions and a free two, and threads meet there. A block that is allocated within a
// scope is noted by its address, so that its end is the scope's wherever it comes.

#include "memory/adaptors/adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"

namespace isthmus {

class usage_counter {
 public:
  struct level {
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;
  };
  struct counts {
    level current, peak, total;
  };
  void add(std::size_t nbytes) noexcept;
  void remove(std::size_t nbytes) noexcept;
  [[nodiscard]] counts read() const noexcept;
  void reset() noexcept;

 private:
  struct flow {
    std::atomic<std::uint64_t> current{0}, peak{0}, total{0};

    void enter(std::uint64_t amount) noexcept;
    void reset() noexcept;
  };
  // Away from what threads only read.
  alignas(64) flow bytes_;
  flow count_;
};

class statistics_resource;

class counting_scope final : public ref_counted {
 public:
  counting_scope(statistics_resource& of, counting_scope* outer);

  // The one that this thread is in, kept alive by who put it there; null: none.
  static counting_scope* swap_current(counting_scope* next) noexcept;
  // The innermost scope of `of` that this thread is in.
  [[nodiscard]] static counting_scope* current_of(const statistics_resource& of) noexcept;

  void add(std::size_t nbytes) noexcept;
  void remove(std::size_t nbytes) noexcept;
  [[nodiscard]] usage_counter::counts read() const noexcept { return counter_.read(); }

 private:
  [[nodiscard]] static counting_scope* innermost_of(const statistics_resource& of,
                                                    counting_scope* from) noexcept;

  const ref<statistics_resource> of_;
  const ref<counting_scope> outer_;
  counting_scope* const next_;  // the innermost of the same resource around it
  usage_counter counter_;
};

class statistics_resource final : public adaptor {
 public:
  using adaptor::adaptor;
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;

  [[nodiscard]] usage_counter::counts read() const noexcept { return counter_.read(); }
  void reset() noexcept { counter_.reset(); }

 private:
  usage_counter counter_;
  pointer_table<ref<counting_scope>> scopes_;
};

}  // namespace isthmus
