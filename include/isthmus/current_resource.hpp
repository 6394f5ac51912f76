// SPDX-License-Identifier: Apache-2.0
// The current resource serves buffers, arrays and unified buffers that name no resource, in every
// language of the process. Unless a program sets one, that is the default pool.
//
//   isthmus::set_resource(pool);                     // for the process
//   {
//     const isthmus::using_resource block(counted);  // for this thread, until the end of the scope
//     isthmus::buffer buffer(1000);                  // from `counted`
//   }
//   isthmus::set_resource({});                       // the default pools again
//
// A resource serves requests of its kind in its context on its device; of host kind, those on any
// device of the context. Others are served as if it were not set. A unified buffer keeps the
// resource that was current when it was created. While a resource calls a function of the program
// (a custom resource, a failure callback, an out-of-memory callback), the thread has no current
// resource, except in blocks that the function enters.
//
// Cost: one load while no resource is set anywhere; otherwise 10 to 20 ns, as long as finding the
// default pool. Thread-safe.
#pragma once

#include <isthmus/default_pool.hpp>

namespace isthmus {
inline namespace v1 {

namespace detail {

[[nodiscard]] inline resource find_current_resource(isthmus::kind kind, isthmus_queue_t* queue,
                                                    pool_use use) {
  const std::uint32_t flags = use == pool_use::arrays ? ISTHMUS_DEFAULT_POOL_OF_ARRAYS : 0;
  return make<resource>(isthmus_current_resource, queue, static_cast<isthmus_kind_t>(kind), flags);
}

class using_block
    : public handle<using_block, isthmus_using_t, isthmus_using_retain, isthmus_using_release> {};

}  // namespace detail

// The resource that serves requests of a kind that name none, in the context of a queue on its
// device ({}: the default queue of the default device): that of the thread's innermost
// using_resource that serves them, or else the one set for the process, or else the default pool,
// which `use` selects as for default_pool(). Throws unsupported for a kind that the device lacks.
[[nodiscard]] inline resource current_resource(isthmus::kind kind = isthmus::kind::device,
                                               queue_choice queue = {},
                                               pool_use use = pool_use::arrays) {
  return detail::find_current_resource(kind, queue.get(), use);
}

// Makes `resource` the current one of the process for its kind, context and device, in place of the
// previous one. The library keeps it and its context alive until it is replaced or reset. An empty
// `resource` restores the default pools of every kind, context and device.
inline void set_resource(const resource& resource) {
  detail::check(isthmus_current_resource_set(resource.get()));
}

// Restores the default pool of the process for one kind in the context of a queue on its device.
// Does nothing if no resource was set. Throws unsupported for a kind that the device lacks.
inline void reset_resource(isthmus::kind kind, queue_choice queue = {}) {
  detail::check(isthmus_current_resource_reset(queue.get(), static_cast<isthmus_kind_t>(kind)));
}

// While an object of this class exists, `resource` is current on this thread for the requests that
// it serves, in place of the one of the process and of enclosing blocks. An empty `resource`: the
// default pools serve all requests. Must be destroyed on the thread that created it, in reverse
// order of creation, so declare it as a local variable, but not in a coroutine.
class [[nodiscard]] using_resource {
 public:
  explicit using_resource(const resource& resource)
      : block_(detail::make<detail::using_block>(isthmus_using_create, resource.get())),
        outer_(isthmus_using_swap(block_.get())) {}
  using_resource(const using_resource&) = delete;
  using_resource& operator=(const using_resource&) = delete;
  ~using_resource() { isthmus_using_swap(outer_); }

 private:
  detail::using_block block_;
  isthmus_using_t* outer_;
};

}  // namespace v1
}  // namespace isthmus
