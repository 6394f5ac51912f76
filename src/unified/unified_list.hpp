// SPDX-License-Identifier: Apache-2.0
#pragma once
// The list of all unified buffers of the process. When device memory is short it releases device
// copies whose contents the host copy has too. Thread-safe.

#include <mutex>
#include <unordered_set>

#include "core/ref.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus {

// One per process; never destroyed.
class UnifiedList {
 public:
  // Adds an out-of-memory callback, which runs after those that the program has added before.
  UnifiedList();
  // Throws std::bad_alloc.
  void add(UnifiedBuffer& buffer);
  void remove(UnifiedBuffer& buffer) noexcept;
  // Releases device copies on `device` until `nbytes` bytes are released or no copy is left.
  // Returns the number of released bytes.
  std::uint64_t release_device_copies(const Device& device, std::uint64_t nbytes) noexcept;

 private:
  [[nodiscard]] std::vector<Ref<UnifiedBuffer>> alive();

  std::mutex lock_;
  std::unordered_set<UnifiedBuffer*> all_;
};
[[nodiscard]] UnifiedList& process_unified_buffers();

}  // namespace isthmus
