// SPDX-License-Identifier: Apache-2.0
#pragma once
// The default pools of buffers and arrays, for requests without a named or current resource. These
// are the library's (isthmus_default_pool), cached for each kind of memory in a context of a
// device.
//
// Programs create and destroy contexts, so before an entry beyond `k_max_pools` is added, all
// entries whose pools hold no memory are dropped. A reference to an entry is valid until other
// Python code runs or the interpreter's lock is released.

#include <memory>
#include <vector>

#include "objects.hpp"

namespace isthmus::python {

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
  [[nodiscard]] const Resource* find(isthmus_kind_t kind, const Queue& queue,
                                     PoolUse use) const noexcept {
    for (const auto& each : entries_) {
      if (each.kind == kind && each.use == use && each.context_key == queue.context_key) {
        return each.pool.get();
      }
    }
    return nullptr;
  }
  // Creates and caches a pool. Throws the driver's error if the driver does not provide memory of
  // that kind. May release the interpreter's lock. Pre: `find` returns nullptr.
  [[nodiscard]] const Resource& make(isthmus_kind_t kind, const Queue& queue, PoolUse use);

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

[[nodiscard]] const Resource& make_default_pool(isthmus_kind_t kind, const Queue& queue,
                                                PoolUse use);
[[nodiscard]] inline const Resource& default_pool(isthmus_kind_t kind, const Queue& queue,
                                                  PoolUse use) {
  const auto* const pools = nb::inst_ptr<Device>(queue.device_object)->pools.get();
  const auto* const pool = pools != nullptr ? pools->find(kind, queue, use) : nullptr;
  return pool != nullptr ? *pool : make_default_pool(kind, queue, use);
}

void bind_array_pools(nb::module_& module);

}  // namespace isthmus::python
