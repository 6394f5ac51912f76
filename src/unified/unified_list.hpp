// SPDX-License-Identifier: Apache-2.0
#pragma once
// All unified buffers of the process. When device memory is short they release device copies whose
// contents the host copy has too.

#include <mutex>
#include <unordered_set>

#include "core/ref.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// Never destroyed. Thread-safe.
class UnifiedList {
 public:
  // Adds an out-of-memory callback, after those that the program has added so far.
  UnifiedList();
  // Throws std::bad_alloc.
  void add(UnifiedBuffer& buffer);
  void remove(UnifiedBuffer& buffer) noexcept;
  // Releases device copies on that device until `nbytes` are released or none is left. Returns the
  // bytes.
  std::uint64_t release_device_copies(const Device& device, std::uint64_t nbytes) noexcept;

 private:
  [[nodiscard]] std::vector<Ref<UnifiedBuffer>> alive();

  std::mutex lock_;
  std::unordered_set<UnifiedBuffer*> all_;
};
[[nodiscard]] UnifiedList& process_unified_buffers();

}  // namespace isthmus
