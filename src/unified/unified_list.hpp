// SPDX-License-Identifier: Apache-2.0
#pragma once
// The list of all unified buffers of the process. When device memory is short it releases device
// copies whose contents the host copy also holds. Thread-safe.

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "core/mutex.hpp"
#include "core/ref.hpp"
#include "core/thread_safety.hpp"

namespace isthmus {

class Device;

// The functions of a unified buffer that the list calls.
class ListedBuffer : public RefCounted {
 public:
  [[nodiscard]] virtual bool uses_device(const Device& device) const noexcept = 0;
  // Releases the device copy if the host copy has the same contents and nothing uses it. Returns
  // the number of bytes released.
  [[nodiscard]] virtual std::uint64_t release_device_copy() = 0;
};

// Never destroyed. Thread-safe.
class UnifiedList {
 public:
  // Adds an out-of-memory callback. It runs after those that the program has added before.
  UnifiedList();
  // Throws std::bad_alloc.
  void add(ListedBuffer& buffer);
  void remove(ListedBuffer& buffer) noexcept;
  // Releases device copies on that device until `nbytes` are released or none is left. Returns the
  // number of bytes released.
  std::uint64_t release_device_copies(const Device& device, std::uint64_t nbytes) noexcept;

 private:
  [[nodiscard]] std::vector<Ref<ListedBuffer>> live_buffers();

  Mutex lock_;
  std::unordered_set<ListedBuffer*> buffers_ ISTHMUS_GUARDED_BY(lock_);
};
[[nodiscard]] UnifiedList& process_unified_buffers();

}  // namespace isthmus
