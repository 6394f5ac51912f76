// SPDX-License-Identifier: Apache-2.0
// Memory without arrays: plain pointers, copies counted in elements, and command lists. The names
// are those of oneAPI.jl's low-level functions, without their exclamation marks.
//
//   namespace low = isthmus::low_level;
//   const auto ctx = low::context();
//   const auto dev = low::device();
//   void* p = low::device_alloc(ctx, dev, 1024, 8);
//   low::unsafe_copyto<float>(ctx, dev, p, values.data(), 256).wait();
//   low::free(ctx, p);
//
// "Unsafe", as in oneAPI.jl: plain host memory must have the stated length and live until the copy
// has completed. For memory that these functions allocated, the bounds are checked nevertheless
// (out_of_range), and operations are ordered with other work on the memory. Throws invalid_argument
// for an address in memory that was freed or that a pool has not allocated; and for plain host
// memory as the target of a prefetch, or of a fill by a device that cannot access it.
//
// Cost: an allocation from a pool takes about 10 ns; otherwise as for copies and fills.
// Thread-safe, except for command_list, which is like any plain object.
#pragma once

#include <isthmus/advice.hpp>
#include <isthmus/default_pool.hpp>
#include <isthmus/dtype.hpp>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace isthmus {
inline namespace v1 {
namespace low_level {

// The default device: the one that ISTHMUS_DEVICE names, otherwise the best with USM.
[[nodiscard]] inline v1::device device() { return detail::chosen_queue({}).device(); }
// The default context of the default device.
[[nodiscard]] inline v1::context context() { return detail::chosen_queue({}).context(); }

// The queue that all users of a device in a context share. In the device's default context it is
// the device's default queue. It is never destroyed. Throws wrong_context for a device that is not
// of the context.
[[nodiscard]] inline v1::queue global_queue(const v1::context& ctx, const v1::device& dev) {
  if (ctx == v1::context::of(dev)) return v1::queue::of(dev);
  struct table {
    std::mutex lock;
    std::map<std::pair<std::uintptr_t, isthmus_device_t*>, v1::queue> queues;
  };
  static auto* const instance = new table;  // never destroyed
  const std::lock_guard guard(instance->lock);
  v1::queue& entry = instance->queues[{isthmus_context_key(ctx.get()), dev.get()}];
  if (!entry) entry = v1::queue(ctx, dev);
  return entry;
}

// ---- memory ----

namespace detail {

[[nodiscard]] inline void* allocate(const v1::context& ctx, const v1::device& dev,
                                    isthmus::kind kind, std::size_t nbytes, std::size_t alignment) {
  const v1::queue queue = global_queue(ctx, dev);
  return v1::detail::find_default_pool(kind, queue.get(), pool_use::arrays)
      .allocate(nbytes, alignment <= 1 ? 0 : alignment, queue);
}
[[nodiscard]] inline v1::device first_device(const v1::context& ctx) {
  return ctx.devices().front();
}

}  // namespace detail

// Device memory, aligned to `alignment`, a power of two, from the default pool, whatever resource
// is current: free() has no size to pass to a resource. 0 bytes return NULL. Throws out_of_memory,
// unsupported for a kind that the device lacks.
[[nodiscard]] inline void* device_alloc(const v1::context& ctx, const v1::device& dev,
                                        std::size_t nbytes, std::size_t alignment = 1) {
  return detail::allocate(ctx, dev, kind::device, nbytes, alignment);
}
// Shared memory, which migrates to where it is used. Otherwise as device_alloc().
[[nodiscard]] inline void* shared_alloc(const v1::context& ctx, const v1::device& dev,
                                        std::size_t nbytes, std::size_t alignment = 1) {
  return detail::allocate(ctx, dev, kind::shared, nbytes, alignment);
}
// Host memory that all devices of the context can access. Otherwise as device_alloc().
[[nodiscard]] inline void* host_alloc(const v1::context& ctx, std::size_t nbytes,
                                      std::size_t alignment = 1) {
  return detail::allocate(ctx, detail::first_device(ctx), kind::host, nbytes, alignment);
}
// Frees memory of these functions, after the work on it that is known to the library, without
// blocking. NULL does nothing. Throws invalid_argument for other memory, for an inner pointer and
// for a second free; wrong_context for memory of another context.
inline void free(const v1::context& ctx, void* pointer) {
  if (pointer == nullptr) return;
  isthmus_context_t* raw_context = nullptr;
  isthmus_resource_t* raw_resource = nullptr;
  v1::detail::check(isthmus_pointer_origin(pointer, &raw_context, &raw_resource));
  const auto owner_context = v1::context::take(raw_context);
  const auto owner_resource = resource::take(raw_resource);
  if (!owner_resource) {
    raise(status::invalid_argument,
          "low_level::free needs memory of device_alloc, shared_alloc or host_alloc that was not "
          "freed before");
  }
  if (owner_context != ctx) {
    raise(status::wrong_context, "the memory belongs to another context: free it in that context");
  }
  v1::detail::check(isthmus_resource_deallocate(owner_resource.get(), pointer, 0, 0, nullptr));
}

// ---- queries ----

// One of a device's memories; all sizes in bytes.
struct memory_properties_t {
  std::uint64_t total_size = 0;
  std::optional<std::uint64_t> free_size;  // currently; empty where the driver does not report it
  std::uint64_t max_allocation = 0;        // the largest possible size
  std::size_t base_alignment = 0;          // of an allocation without an alignment
  std::size_t max_alignment = 0;
};
// The memories of a device; every backend reports exactly one.
[[nodiscard]] inline std::vector<memory_properties_t> memory_properties(const v1::device& dev) {
  const device_info info = dev.info();
  memory_properties_t properties{info.memory_bytes, std::nullopt, info.max_allocation_bytes,
                                 info.base_alignment, info.max_alignment};
  if (dev.can(capability::query_free_memory)) properties.free_size = dev.memory().free_bytes;
  return {properties};
}

// How a device can access a kind of memory, with Level Zero's numbers; 0: not at all.
enum access : std::uint32_t {
  no_access = 0,
  rw = 1,
  atomic = 2,
  concurrent = 4,
  concurrent_atomic = 8
};
// The access of a device to the kinds of memory: rw or no_access. Backends do not query atomic and
// concurrent access, so these are reported only where the device is the host itself.
struct memory_access_properties_t {
  std::uint32_t host = no_access;
  std::uint32_t device = no_access;
  std::uint32_t shared_single_device = no_access;
  std::uint32_t shared_cross_device = no_access;  // shared memory of another device of its context
  std::uint32_t shared_system = no_access;        // any memory of the process, including malloc's
};
[[nodiscard]] inline memory_access_properties_t memory_access_properties(const v1::device& dev) {
  constexpr std::uint32_t k_all = rw | atomic | concurrent | concurrent_atomic;
  if (dev.info().backend == "host") return {k_all, k_all, k_all, k_all, k_all};
  const auto access_to = [&](kind usm_kind) {
    return dev.offers(usm_kind) ? std::uint32_t{rw} : 0U;
  };
  return {access_to(kind::host), access_to(kind::device), access_to(kind::shared), no_access,
          no_access};
}

// Kind, device and extent of the allocation that contains the address, which need not be its start:
// see query().
[[nodiscard]] inline pointer_info properties(const void* pointer) { return query(pointer); }
// The same, and queries the context's driver for memory that the library does not know.
[[nodiscard]] inline pointer_info lookup_alloc(const v1::context& ctx, const void* pointer) {
  return query(pointer, ctx);
}

// ---- copies and fills ----

namespace detail {

[[nodiscard]] inline std::size_t checked_bytes(std::size_t count, std::size_t item) {
  if (count > static_cast<std::size_t>(PTRDIFF_MAX) / item) {
    raise(status::invalid_argument, std::to_string(count) + " elements of " + std::to_string(item) +
                                        " bytes exceed the address space");
  }
  return count * item;
}
[[nodiscard]] inline isthmus_endpoint_t at(const void* pointer) noexcept {
  return {nullptr, const_cast<void*>(pointer), 0};
}
[[nodiscard]] inline event copy(const v1::queue& queue, void* destination, const void* source,
                                std::size_t nbytes) {
  const isthmus_endpoint_t destination_endpoint = at(destination), source_endpoint = at(source);
  return v1::detail::make<event>(isthmus_copy, queue.get(), &destination_endpoint, &source_endpoint,
                                 nbytes, static_cast<const isthmus_operation_t*>(nullptr));
}
[[nodiscard]] inline event fill(const v1::queue& queue, void* destination, const void* pattern,
                                std::size_t size, std::size_t nbytes) {
  const isthmus_endpoint_t destination_endpoint = at(destination);
  return v1::detail::make<event>(isthmus_fill, queue.get(), &destination_endpoint, pattern, size,
                                 nbytes, static_cast<const isthmus_operation_t*>(nullptr));
}

}  // namespace detail

// Copies `count` elements of T between USM and host memory in any combination, on global_queue(ctx,
// dev). Returns at once. Throws invalid_argument for more bytes than memory can hold.
template <class T>
  requires std::is_trivially_copyable_v<T>
event unsafe_copyto(const v1::context& ctx, const v1::device& dev, void* destination,
                    const void* source, std::size_t count) {
  return detail::copy(global_queue(ctx, dev), destination, source,
                      detail::checked_bytes(count, sizeof(T)));
}
// Writes `pattern` `count` times from `destination`, which is USM. The pattern is read before this
// returns. Returns at once.
template <fill_pattern T>
event unsafe_fill(const v1::context& ctx, const v1::device& dev, void* destination,
                  const std::type_identity_t<T>& pattern, std::size_t count) {
  return detail::fill(global_queue(ctx, dev), destination, &pattern, sizeof(T),
                      detail::checked_bytes(count, sizeof(T)));
}

// ---- lists of operations ----

// Collects operations for execute(), which may execute the list several times. Sizes are in bytes.
// Pointers are checked when the list is executed, and must stay valid until then.
class command_list {
 public:
  void append_copy(void* destination, const void* source, std::size_t nbytes) {
    commands_.push_back(
        [=](const v1::queue& queue) { return detail::copy(queue, destination, source, nbytes); });
  }
  template <fill_pattern T>
  void append_fill(void* destination, const T& pattern, std::size_t nbytes) {
    commands_.push_back([=](const v1::queue& queue) {
      return detail::fill(queue, destination, &pattern, sizeof pattern, nbytes);
    });
  }
  // Prefetches shared memory. A hint; execute() throws unsupported without capability::prefetch.
  void append_prefetch(const void* pointer, std::size_t nbytes,
                       prefetch_to target = prefetch_to::device) {
    commands_.push_back([=](const v1::queue& queue) {
      const isthmus_endpoint_t endpoint = detail::at(pointer);
      return v1::detail::make<event>(isthmus_prefetch, queue.get(), &endpoint, nbytes,
                                     target == prefetch_to::host ? 1 : 0,
                                     static_cast<const isthmus_operation_t*>(nullptr));
    });
  }
  // Throws unsupported for advice that the driver of `dev` does not have.
  void append_advise(const v1::device& dev, const void* pointer, std::size_t nbytes,
                     isthmus::advice advice) {
    const std::uint32_t number = v1::detail::require_advice(dev, advice);
    commands_.push_back([=](const v1::queue& queue) {
      const isthmus_endpoint_t endpoint = detail::at(pointer);
      return v1::detail::make<event>(isthmus_advise, queue.get(), &endpoint, nbytes, number,
                                     static_cast<const isthmus_operation_t*>(nullptr));
    });
  }

  [[nodiscard]] std::size_t size() const noexcept { return commands_.size(); }
  // Submits all operations in order. Returns the event of the last one, or a fence of the queue if
  // the list is empty.
  event submit_to(const v1::queue& queue) const {
    event last;
    for (const auto& command : commands_) last = command(queue);
    return last ? last : queue.fence();
  }

 private:
  std::vector<std::function<event(const v1::queue&)>> commands_;
};

// Calls `fill(list)`, then submits the operations that it appended to the queue, in order. Does not
// wait: returns the event of the last operation. If `fill` throws, nothing is submitted.
template <std::invocable<command_list&> Function>
event execute(const v1::queue& queue, Function&& fill) {
  command_list list;
  std::forward<Function>(fill)(list);
  return list.submit_to(queue);
}
inline event execute(const v1::queue& queue, const command_list& list) {
  return list.submit_to(queue);
}

// ---- hints ----

// Hints for memory at an address. These functions block until the hint has completed.
inline void prefetch(const v1::queue& queue, const void* pointer, std::size_t nbytes,
                     prefetch_to target = prefetch_to::device) {
  execute(queue, [&](command_list& list) { list.append_prefetch(pointer, nbytes, target); }).wait();
}
inline void advise(const v1::queue& queue, const void* pointer, std::size_t nbytes,
                   isthmus::advice advice) {
  execute(queue, [&](command_list& list) {
    list.append_advise(queue.device(), pointer, nbytes, advice);
  }).wait();
}
// Always throws unsupported: all allocated memory is resident, and no supported driver has a call
// to change that.
[[noreturn]] inline void make_resident(const v1::context&, const v1::device& dev, const void*,
                                       std::size_t) {
  raise(status::unsupported, "the driver of " + std::string(dev.info().filter) +
                                 " has no call for residency: all allocated memory is resident");
}
[[noreturn]] inline void evict(const v1::context& ctx, const v1::device& dev, const void* pointer,
                               std::size_t nbytes) {
  make_resident(ctx, dev, pointer, nbytes);
}

}  // namespace low_level
}  // namespace v1
}  // namespace isthmus
