// SPDX-License-Identifier: Apache-2.0
#pragma once
// The default pools of one device that were used so far: the library's (isthmus_default_pool),
// cached for each kind of memory in a context. Guarded by the interpreter's lock.
//
// Programs create and destroy contexts, so before an entry beyond `k_max_pools` is added, all
// entries whose pools hold no memory are dropped. A reference to an entry is valid until other
// Python code runs or the interpreter's lock is released.

#include <memory>
#include <vector>

#include "core/common.hpp"
#include "core/resource_objects.hpp"

namespace isthmus::python {

// The use of a default pool: see isthmus_default_pool.
enum class PoolUse : std::uint8_t { arrays, buffers };

// The default pools of one device, cached for as long as the device has a Python object. Memory
// from a pool keeps the pool alive.
class DevicePools {
 public:
  DevicePools() = default;
  DevicePools(const DevicePools&) = delete;
  DevicePools& operator=(const DevicePools&) = delete;
  ~DevicePools() = default;

  // Trims the pools of a device that can no longer be found. Releases the interpreter's lock.
  void trim() noexcept;
  // Returns the cached pool, or nullptr if none was created yet.
  [[nodiscard]] const Resource* find(isthmus_kind_t kind, std::uintptr_t context_key,
                                     PoolUse use) const noexcept {
    for (const auto& each : entries_) {
      if (each.kind == kind && each.use == use && each.context_key == context_key) {
        return each.pool.get();
      }
    }
    return nullptr;
  }
  // Creates and caches a pool for the device and context of `queue`. Throws the driver's error if
  // the driver does not provide memory of that kind. May release the interpreter's lock.
  // Called after `find` has returned nullptr.
  [[nodiscard]] const Resource& make(isthmus_kind_t kind, isthmus_queue_t* queue, PoolUse use);

 private:
  static constexpr std::size_t k_max_pools = 32;
  void drop_empty() noexcept;
  struct Entry {
    isthmus_kind_t kind;
    PoolUse use;
    std::uintptr_t context_key;
    std::unique_ptr<Resource> pool;
  };
  std::vector<Entry> entries_;
};

}  // namespace isthmus::python
