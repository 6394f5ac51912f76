#pragma once
// The provider: raw driver allocations, counted, and refused before the machine runs out of memory.

#include "memory/memory_resource.hpp"

namespace isthmus {

// The driver's memory. OUT_OF_MEMORY also where the driver would promise more of the host's memory
// than there is: drivers do, and the kernel then kills the process on the first touch.
[[nodiscard]] result<void*> provider_allocate(context& home, device& where,
                                              const allocation_request& request);
void provider_deallocate(context& home, device& where, usm_kind kind, void* pointer,
                         std::size_t nbytes) noexcept;

class provider final : public memory_resource {
 public:
  using memory_resource::memory_resource;
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  [[nodiscard]] memory_usage usage() noexcept override;

 private:
  std::atomic<std::size_t> held_{0};
  std::atomic<std::uint64_t> maps_{0};
  std::atomic<std::uint64_t> unmaps_{0};
};

}  // namespace isthmus
