// SPDX-License-Identifier: Apache-2.0
// The default pools, which serve requests that name no resource unless another resource is current
// (current_resource.hpp). There is one per context, device and kind of memory, for the whole
// process and all languages (isthmus_default_pool).
//
//   isthmus::default_pool(isthmus::kind::device, queue).trim();   // returns free memory
//
// A pool lives while a resource refers to it or its memory is in use. Memory that was not used for
// 10 s is returned to the driver automatically. Cost: a lookup under a lock, about 10 ns.
// Thread-safe.
#pragma once

#include <isthmus/resource.hpp>

namespace isthmus {
inline namespace v1 {

// Buffers and arrays share one pool, except on devices that can share memory with other processes
// and whose memory can move (CUDA). On those devices the pool of buffers does not move its memory.
enum class pool_use { arrays, buffers };

namespace detail {

// `queue` itself or, if none was chosen, the default queue of the default device.
[[nodiscard]] inline isthmus::queue chosen_queue(queue_choice queue) {
  return queue.get() != nullptr
             ? isthmus::queue::share(queue.get())
             : make<isthmus::queue>(isthmus_queue_default, static_cast<isthmus_device_t*>(nullptr));
}

[[nodiscard]] inline resource find_default_pool(isthmus::kind kind, isthmus_queue_t* queue,
                                                pool_use use) {
  const std::uint32_t flags = use == pool_use::arrays ? ISTHMUS_DEFAULT_POOL_OF_ARRAYS : 0;
  return make<resource>(isthmus_default_pool, queue, static_cast<isthmus_kind_t>(kind), flags);
}

}  // namespace detail

// The default pool of a kind, for the context and device of a queue ({}: the default queue of the
// default device). `use` is `arrays` by default, as in Python; isthmus_default_pool of the C
// interface selects the pool of buffers by default. Throws unsupported for a kind that the device
// lacks.
[[nodiscard]] inline resource default_pool(isthmus::kind kind = isthmus::kind::device,
                                           queue_choice queue = {},
                                           pool_use use = pool_use::arrays) {
  return detail::find_default_pool(kind, queue.get(), use);
}

}  // namespace v1
}  // namespace isthmus
