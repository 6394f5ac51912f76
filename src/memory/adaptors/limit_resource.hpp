#pragma once
// Refuses what would make more live than a limit, as requested. Costs two atomic operations on one
// shared counter for an allocation with its free.

#include <atomic>

#include "memory/adaptors/adaptor.hpp"

namespace isthmus {

class limit_resource final : public adaptor {
 public:
  limit_resource(memory_resource& upstream, std::uint64_t most) : adaptor{upstream}, most_{most} {}
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] void* allocate_warm(std::size_t nbytes, std::size_t alignment,
                                    queue* on) noexcept override;
  [[nodiscard]] bool deallocate_warm(void* pointer, std::size_t nbytes,
                                     queue* on) noexcept override;

  [[nodiscard]] std::uint64_t most() const noexcept { return most_; }
  [[nodiscard]] std::uint64_t in_use() const noexcept {
    return in_use_.load(std::memory_order_relaxed);
  }

 private:
  // What is in use if that leaves too little; taken if not.
  [[nodiscard]] bool take(std::uint64_t nbytes, std::uint64_t& in_use) noexcept;
  // Once upstream has it, never below 0: what another resource handed out may be freed here, and
  // must not make this one refuse everything.
  void give_back(std::uint64_t nbytes) noexcept;

  const std::uint64_t most_;
  std::atomic<std::uint64_t> in_use_{0};
};

}  // namespace isthmus
