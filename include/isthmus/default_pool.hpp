// The pools that memory comes from where no resource is named: one for each kind of memory of a
// device in a context, of the whole process and all languages (isthmus_default_pool).
//
//   isthmus::default_pool(isthmus::kind::device, queue).trim();   // gives back what is free
//
// What was not needed for 10 s goes back to the driver by itself. Cost: a look-up under a lock,
// some ten nanoseconds. Threads: any. A pool stays while a resource refers to it or its memory is
// in use.
#pragma once

#include <isthmus/resource.hpp>

namespace isthmus {
inline namespace v1 {

// Buffers and arrays have one pool, except on devices that share memory with other processes and
// whose memory can move (CUDA): there it does not move where buffers have it from.
enum class pool_use { arrays, buffers };

namespace detail {

// The queue itself, or the default one.
[[nodiscard]] inline queue chosen_queue(queue_choice on) {
  return on.get() != nullptr
             ? queue::share(on.get())
             : make<queue>(isthmus_queue_default, static_cast<isthmus_device_t*>(nullptr));
}

[[nodiscard]] inline resource find_default_pool(kind of, isthmus_queue_t* on, pool_use use) {
  const std::uint32_t flags = use == pool_use::arrays ? ISTHMUS_DEFAULT_POOL_OF_ARRAYS : 0;
  return make<resource>(isthmus_default_pool, on, static_cast<isthmus_kind_t>(of), flags);
}

}  // namespace detail

// Throws unsupported for a kind that the device has not.
[[nodiscard]] inline resource default_pool(kind of = kind::device, queue_choice on = {},
                                           pool_use use = pool_use::arrays) {
  return detail::find_default_pool(of, on.get(), use);
}

}  // namespace v1
}  // namespace isthmus
