// SPDX-License-Identifier: Apache-2.0
// A memory resource allocates memory of one kind, ordered by a queue. Use it to write containers or
// allocators; for everything else buffers are simpler. For standard containers (std::pmr) see
// host_resource.hpp.
//
//   auto pool = isthmus::resource::pool(queue, isthmus::kind::device);   // or of a device
//   void* const block = pool.allocate(1000);
//   pool.deallocate(block, 1000);
//
// Cost: a provider takes a driver call (2 to 15 us with Intel's CPU runtime), a pool takes about 10
// ns. Thread-safe.
#pragma once

#include <isthmus/budget.hpp>
#include <isthmus/queue.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v1 {

class resource;
// A size limit and a resource, for resource::binning().
struct bin;

// A user-defined allocator, for resource::custom().
//
// `allocate` returns memory of the resource's kind, aligned as requested. If no memory is left it
// throws out_of_memory or std::bad_alloc. `deallocate` is called on any thread, once no work uses
// the memory any more. Its queue may be empty, and it must not wait for work. Several threads may
// call both at once. If the type has noexcept members usage() and trim(keep_bytes), the resource's
// functions of these names call them.
template <class T>
concept memory_source =
    requires(T& source, void* pointer, std::size_t number, const isthmus::queue& queue) {
      { source.allocate(number, number, queue) } -> std::same_as<void*>;
      { source.deallocate(pointer, number, queue) } noexcept;
    } && std::is_nothrow_destructible_v<T>;

// Options of resource::pool(). Sizes are in bytes.
struct pool_options {
  std::uint64_t initial_bytes = 0;  // obtained from the driver at once
  // Minimum request to the driver; 0: the default of isthmus_pool_options_t.
  std::uint64_t growth_bytes = 0;
  std::uint64_t limit_bytes = 0;  // maximum of held bytes; 0: no limit
  bool checked = true;            // detects misuse of small blocks too; takes about 3 ns
  // Moves free memory to other addresses to serve larger requests, if the device can.
  bool remap = true;
  // Above this size the pool releases its free memory before it requests more; 0: none.
  std::uint64_t soft_limit_bytes = 0;
  isthmus::budget budget = {};  // limits the memory of several pools together
  // Free memory that was not used for this time is returned to the driver; 0: never.
  std::chrono::nanoseconds decay{0};
  // Maximum wait of a request for memory that pending work still uses, before it throws
  // out_of_memory; 0: no wait.
  std::chrono::nanoseconds wait = std::chrono::seconds{1};
  // If nothing else is free, makes the request's queue wait on the device for such work. This
  // precedes a wait of the host.
  bool device_wait = false;
};

// Options of resource::tracking().
struct tracking_options {
  std::uint32_t frames = 0;  // native stack frames to record per allocation; at most 64
};

// The memory that a resource holds from the driver.
struct memory_usage {
  std::uint64_t held = 0;    // bytes
  std::uint64_t free = 0;    // of these, neither in use nor in a cache of a thread or size class
  std::uint64_t maps = 0;    // how often the driver provided or mapped memory
  std::uint64_t unmaps = 0;  // how often memory was returned or unmapped
};

template <>
inline constexpr const char* detail::class_name<isthmus_resource_t> = "resource";

// Where a resource allocates: in a context, on one of its devices. A queue selects its own context
// and device, a device its default context, and a context its first device.
class memory_scope {
 public:
  memory_scope(const isthmus::context& context) : context_(context) {
    static_cast<void>(context.require());
  }
  memory_scope(const isthmus::device& device)
      : context_(isthmus::context::of(device)), device_(device) {}
  memory_scope(const isthmus::queue& queue) : context_(queue.context()), device_(queue.device()) {}

  [[nodiscard]] isthmus_context_t* context() const noexcept { return context_.get(); }
  // The handle of `chosen` unless it is empty, else that of this object's device, else NULL.
  [[nodiscard]] isthmus_device_t* device(const isthmus::device& chosen) const noexcept {
    return chosen ? chosen.get() : device_.get();
  }

 private:
  isthmus::context context_;
  isthmus::device device_;
};

// A counted reference to a memory resource. Blocks are freed through the resource that allocated
// them.
class resource : public detail::handle<resource, isthmus_resource_t, isthmus_resource_retain,
                                       isthmus_resource_release> {
 public:
  resource() noexcept = default;

  // The driver's allocator of one kind. `scope` is a queue, a device or a context; for a context of
  // several devices, `device` selects one of them. Throws unsupported for a kind that the device
  // lacks.
  [[nodiscard]] static resource provider(const memory_scope& scope, isthmus::kind kind,
                                         const isthmus::device& device = isthmus::device()) {
    return detail::make<resource>(isthmus_resource_provider, scope.context(), scope.device(device),
                                  static_cast<isthmus_kind_t>(kind));
  }

  // The provider of write-combined memory of host kind, which bypasses the host's caches. Use it
  // for data that the host writes once, sequentially, and a device reads. Host reads take about a
  // hundred times as long. Throws unsupported without capability::write_combine.
  [[nodiscard]] static resource write_combined(const memory_scope& scope,
                                               const isthmus::device& device = isthmus::device()) {
    return detail::make<resource>(isthmus_resource_write_combined, scope.context(),
                                  scope.device(device));
  }

  // A pool over the driver: caches freed memory and sub-allocates, see isthmus_resource_pool.
  // Throws out_of_memory if the driver cannot provide `initial_bytes`.
  [[nodiscard]] static resource pool(const memory_scope& scope, isthmus::kind kind,
                                     const pool_options& settings = {},
                                     const isthmus::device& device = isthmus::device()) {
    const auto options = options_of(settings);
    return detail::make<resource>(isthmus_resource_pool, scope.context(), scope.device(device),
                                  static_cast<isthmus_kind_t>(kind), &options);
  }
  // A pool over another resource instead of the driver, see isthmus_resource_pool_over. Throws
  // unsupported for an upstream that is built on a pool, that provides several kinds, or that is
  // monotonic.
  [[nodiscard]] static resource pool(const resource& upstream, const pool_options& settings = {}) {
    const auto options = options_of(settings);
    return detail::make<resource>(isthmus_resource_pool_over, upstream.require(), &options);
  }

  // Adaptors and custom resources. Described and defined in adaptors.hpp and tracking.hpp.
  [[nodiscard]] static resource statistics(const resource& upstream);
  [[nodiscard]] static resource limit(const resource& upstream, std::uint64_t limit_bytes);
  [[nodiscard]] static resource fallback(const resource& first, const resource& second);
  [[nodiscard]] static resource aligned(const resource& upstream, std::size_t alignment,
                                        std::size_t min_bytes = 0);
  [[nodiscard]] static resource binning(const resource& upstream, const std::vector<bin>& bins);
  [[nodiscard]] static resource prefetch(const resource& upstream);
  [[nodiscard]] static resource log(const resource& upstream, const std::string& path);
  [[nodiscard]] static resource tracking(const resource& upstream,
                                         const tracking_options& options = {});
  [[nodiscard]] static resource debug(const resource& upstream,
                                      std::uint64_t kept_bytes = std::uint64_t{16} << 20);
  [[nodiscard]] static resource monotonic(const resource& upstream, std::size_t first_bytes = 0);
  [[nodiscard]] static resource fixed_size(const resource& upstream, std::size_t block_bytes,
                                           std::size_t blocks = 0);
  [[nodiscard]] static resource arena(const resource& upstream, std::uint64_t limit_bytes = 0);
  template <class Function>
    requires std::is_invocable_r_v<bool, std::decay_t<Function>&, std::size_t>
  [[nodiscard]] static resource failure_callback(const resource& upstream, Function&& function);
  template <class Source>
    requires memory_source<std::decay_t<Source>>
  [[nodiscard]] static resource custom(const memory_scope& scope, isthmus::kind kind,
                                       Source&& source,
                                       const isthmus::device& device = isthmus::device());

  // Allocates `nbytes`, ordered by `queue`, a queue of the resource's context. `alignment` is a
  // power of two, or 0 for the device's base alignment. 0 bytes return NULL. Throws out_of_memory,
  // wrong_context, invalid_argument.
  [[nodiscard]] void* allocate(std::size_t nbytes, std::size_t alignment,
                               const isthmus::queue& queue) const {
    void* pointer = nullptr;
    const isthmus_status_t code =
        isthmus_resource_allocate(get(), nbytes, alignment, queue.get(), &pointer);
    if (code != ISTHMUS_OK) [[unlikely]] {
      static_cast<void>(queue.require());
      raise_failure(code);
    }
    return pointer;
  }
  // The same on the default queue of the resource's device, which is queried first: pass a queue in
  // hot code. Throws wrong_context for a resource of another context than the device's default one.
  [[nodiscard]] void* allocate(std::size_t nbytes, std::size_t alignment = 0) const {
    return allocate(nbytes, alignment, default_queue());
  }
  // Frees memory of allocate(), after the work on the queue `queue`. `nbytes` and `alignment` are
  // those of the allocation. Throws invalid_argument, without effect, for memory that was not
  // allocated here or was already freed.
  void deallocate(void* pointer, std::size_t nbytes, std::size_t alignment,
                  const isthmus::queue& queue) const {
    const isthmus_status_t code =
        isthmus_resource_deallocate(get(), pointer, nbytes, alignment, queue.get());
    if (code != ISTHMUS_OK) [[unlikely]]
      raise_failure(code);
  }
  // The same for memory that was allocated without a queue.
  void deallocate(void* pointer, std::size_t nbytes, std::size_t alignment = 0) const {
    deallocate(pointer, nbytes, alignment, default_queue());
  }

  // Declares that external work uses the block that contains `pointer`. Until `work`, or all work
  // submitted to that queue so far, has completed, the block is not reused, even if it is freed.
  // Throws not_found for memory that is not the library's.
  void record(const void* pointer, const event& work) const {
    detail::check(isthmus_record_event(pointer, work.require()));
  }
  void record(const void* pointer, const queue& work) const {
    detail::check(isthmus_record_queue(pointer, work.require()));
  }

  // Returns free memory to the driver until `keep_bytes` or less are held. Returns the bytes
  // released.
  std::uint64_t trim(std::uint64_t keep_bytes = 0) const {
    std::uint64_t released_bytes = 0;
    detail::check(isthmus_resource_trim(require(), keep_bytes, &released_bytes));
    return released_bytes;
  }
  // The memory that the resource holds now; for an adaptor, the memory that its upstream holds.
  [[nodiscard]] memory_usage usage() const {
    const auto info = detail::read<isthmus_resource_info_t>(isthmus_resource_info, require());
    return {info.held_bytes, info.free_bytes, info.maps, info.unmaps};
  }
  // Verifies the records of the resource and of its upstreams. Throws invalid_argument with the
  // damage that a debug() resource found, now or before; an error with status::internal if the
  // records of a pool contradict one another. Takes long, and blocks other threads meanwhile.
  void verify() const { detail::check(isthmus_resource_verify(require())); }

  friend bool operator==(const resource& a, const resource& b) noexcept {
    return a.get() == b.get();
  }

 private:
  // Throws the error of a call, or one that names the class if this handle is empty: tested after
  // the call, which refuses an empty handle itself, so that the common path has no second test.
  [[noreturn, gnu::cold, gnu::noinline]] void raise_failure(isthmus_status_t code) const {
    static_cast<void>(require());
    raise(static_cast<v1::status>(code), isthmus_error_message());
  }
  // The default queue of the device that this resource allocates on.
  [[nodiscard]] isthmus::queue default_queue() const {
    const auto info = detail::read<isthmus_resource_info_t>(isthmus_resource_info, require());
    return detail::make<isthmus::queue>(isthmus_queue_default, info.device);
  }
  [[nodiscard]] static isthmus_pool_options_t options_of(const pool_options& settings) {
    isthmus_pool_options_t options{};
    options.struct_size = sizeof options;
    options.initial_bytes = settings.initial_bytes;
    options.growth_bytes = settings.growth_bytes;
    options.limit_bytes = settings.limit_bytes;
    options.flags = (settings.checked ? 0U : std::uint32_t{ISTHMUS_POOL_UNCHECKED}) |
                    (settings.remap ? 0U : std::uint32_t{ISTHMUS_POOL_NO_REMAP}) |
                    (settings.device_wait ? std::uint32_t{ISTHMUS_POOL_DEVICE_WAIT} : 0U);
    options.soft_limit_bytes = settings.soft_limit_bytes;
    options.budget = settings.budget.get();
    if (settings.decay.count() < 0)
      raise(status::invalid_argument, "a pool's decay must be 0 or more, not " +
                                          std::to_string(settings.decay.count()) + " ns");
    options.decay_ns = static_cast<std::uint64_t>(settings.decay.count());
    options.wait_ns = settings.wait.count() > 0 ? settings.wait.count() : -1;
    return options;
  }
};

// Requests of at most `max_bytes` go to `upstream`.
struct bin {
  std::size_t max_bytes = 0;
  resource upstream;
};

// The number and the bytes of live allocations in the whole process. isthmus_live_info describes
// which allocations are counted.
struct live_memory {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
// Counts the allocations of one kind; `unknown` counts all kinds.
[[nodiscard]] inline live_memory live(isthmus::kind kind = isthmus::kind::unknown) noexcept {
  isthmus_live_info_t info{};
  info.struct_size = sizeof info;
  static_cast<void>(isthmus_live_info(static_cast<isthmus_kind_t>(kind), &info));
  return {info.count, info.bytes};
}

// The properties of the allocation that contains a pointer, which may point anywhere into it. If
// the memory is waiting or free in a pool, only `state` is set.
struct pointer_info {
  v1::kind kind = v1::kind::unknown;
  // Start and size of the allocation, or NULL and 0 if unknown.
  void* base = nullptr;
  std::size_t nbytes = 0;
  // Empty if unknown.
  v1::device device;
  // As requested; known of driver allocations, of pool blocks above 256 KiB and of blocks of an
  // allocation tracker, otherwise 0.
  std::size_t requested_bytes = 0;
  std::uintptr_t queue_key = 0;  // of the queue that it was allocated on
  v1::context context;           // of the memory; empty if unknown
  // The resource that the memory is returned to; empty if unknown, or for the driver itself.
  v1::resource resource;
  memory_state state = memory_state::unknown;
};
// Queries the registry and then the driver of the `query_context`. An empty context queries the
// registry only.
[[nodiscard]] inline pointer_info query(const void* pointer,
                                        const context& query_context = context()) {
  const auto raw =
      detail::read<isthmus_pointer_info_t>(isthmus_pointer_info, query_context.get(), pointer);
  isthmus_context_t* raw_context = nullptr;
  isthmus_resource_t* raw_resource = nullptr;
  if (raw.context != nullptr)
    detail::check(isthmus_pointer_origin(pointer, &raw_context, &raw_resource));
  pointer_info info{static_cast<kind>(raw.kind),
                    raw.base,
                    raw.nbytes,
                    device::share(raw.device),
                    raw.requested_bytes,
                    raw.queue_key,
                    context::take(raw_context),
                    resource::take(raw_resource),
                    static_cast<memory_state>(raw.state)};
  if (raw.context == query_context.get())
    info.context = query_context;  // also for memory that only the driver knows
  return info;
}

}  // namespace v1
}  // namespace isthmus
