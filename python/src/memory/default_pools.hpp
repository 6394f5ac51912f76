// SPDX-License-Identifier: Apache-2.0
#pragma once
// The default pools of buffers and arrays, for requests without a named or current resource. These
// are cached by device (device_pools.hpp), so a reference to one is valid until other Python code
// runs or the interpreter's lock is released. Needs that lock.

#include "core/device_pools.hpp"
#include "core/objects.hpp"

namespace isthmus::python {

[[nodiscard]] const Resource& make_default_pool(isthmus_kind_t kind, const Queue& queue,
                                                PoolUse use);
[[nodiscard]] inline const Resource& default_pool(isthmus_kind_t kind, const Queue& queue,
                                                  PoolUse use) {
  const auto* const pools = nb::inst_ptr<Device>(queue.device_object)->pools.get();
  const auto* const pool = pools != nullptr ? pools->find(kind, queue.context_key, use) : nullptr;
  return pool != nullptr ? *pool : make_default_pool(kind, queue, use);
}

// The PoolResource of a pool that the library or a framework created; a new one if it has none, or
// if that was destroyed. `decay` in seconds, or None.
[[nodiscard]] ISTHMUS_EXPORTED nb::object wrap_pool(ResourceHandle raw, isthmus_kind_t kind,
                                                    nb::object queue, nb::object decay);

}  // namespace isthmus::python
