#pragma once
// The host's memory that drivers have handed out: counted, and refused where there is no more.
// Drivers promise more than they can keep, and the kernel kills who touches it.

#include <atomic>
#include <cstddef>

#include "backend/context.hpp"
#include "os/available_memory.hpp"

namespace isthmus {

// All that there is for one kind on a device: its own, or what of the host's the process may have.
[[nodiscard]] std::size_t memory_for(const device& where, usm_kind kind);

// Safe for threads.
class host_memory {
 public:
  // Promises `total` bytes at most, and no more at a time than `bounds` leave.
  host_memory(const os::memory_bounds& bounds, std::size_t total) noexcept
      : bounds_{bounds}, total_{total} {}
  // The process'.
  [[nodiscard]] static host_memory& only();

  // Shared and host kind lie in the host's memory; what CPU drivers call device memory does too.
  [[nodiscard]] static bool holds(const device& where, usm_kind kind) noexcept;

  // Before the driver is asked; OUT_OF_MEMORY, and then nothing is counted. Pre: it `holds`.
  [[nodiscard]] result<void> take(const device& where, const allocation_request& request);
  void give_back(const device& where, std::size_t nbytes) noexcept;

 private:
  [[nodiscard]] result<void> look(const device& where, const allocation_request& request);
  void forget(const device& where, std::size_t nbytes) noexcept;
  void count_elsewhere(const device& where, std::size_t more) noexcept;
  [[nodiscard]] bool ride(std::size_t nbytes) noexcept;

  const os::memory_bounds& bounds_;
  const std::size_t total_;
  std::atomic<std::size_t> promised_{0};
  std::atomic<std::size_t> elsewhere_{0};  // of those, not on CPUs: no pages of this process
  std::atomic<std::size_t> allowance_{0};  // what small requests may take till the next look
};

}  // namespace isthmus
