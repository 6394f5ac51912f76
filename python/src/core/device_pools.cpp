// SPDX-License-Identifier: Apache-2.0
#include "core/device_pools.hpp"

#include "core/errors.hpp"
#include "core/gil.hpp"

namespace isthmus::python {
namespace {

// Releases the interpreter's lock: a new pool probes the driver, and creating it may destroy other
// pools.
Resource make_pool(isthmus_kind_t kind, isthmus_queue_t* queue, PoolUse use) {
  Resource pool;
  check(without_lock([&] {
    return isthmus_default_pool(
        queue, kind, use == PoolUse::arrays ? ISTHMUS_DEFAULT_POOL_OF_ARRAYS : 0, pool.raw.out());
  }));
  pool.kind = kind;
  pool.is_pool = true;
  return pool;
}

}  // namespace

void DevicePools::trim() noexcept {
  const HeldGilRelease released;
  for (const auto& each : entries_) {
    static_cast<void>(isthmus_resource_trim(each.pool->raw.get(), 0, nullptr));
  }
}

const Resource& DevicePools::make(isthmus_kind_t kind, isthmus_queue_t* queue, PoolUse use) {
  const auto info = read_info<isthmus_queue_info_t>(isthmus_queue_info, queue);
  const auto context_key = isthmus_context_key(info.context);
  auto created = std::make_unique<Resource>(make_pool(kind, queue, use));
  if (const auto* found = find(kind, context_key, use)) {
    return *found;  // created by another thread meanwhile
  }
  if (entries_.size() >= k_max_pools) {
    drop_empty();
  }
  return *entries_.emplace_back(kind, use, context_key, std::move(created)).pool;
}

void DevicePools::drop_empty() noexcept {
  std::erase_if(entries_, [](const Entry& each) {
    auto info = sized<isthmus_resource_info_t>();
    return isthmus_resource_info(each.pool->raw.get(), &info) == ISTHMUS_OK && info.held_bytes == 0;
  });
}

}  // namespace isthmus::python
