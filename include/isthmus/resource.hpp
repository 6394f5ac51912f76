// A memory resource: hands out memory of one kind, ordered by a queue. Choose it to write
// containers or allocators of your own; buffers are simpler for everything else. host_resource
// gives standard containers (std::pmr) memory that both the host and the device can touch.
//
//   auto shared = isthmus::resource::provider(queue.context(), isthmus::kind::shared);
//   isthmus::host_resource memory(shared, queue);
//   std::pmr::vector<float> values(1000, &memory);
//
// Cost: a provider's is the driver's own (2 to 15 us on Intel's CPU runtime), a pool's some ten
// nanoseconds. Threads: any.
#pragma once

#include <isthmus/budget.hpp>
#include <isthmus/queue.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory_resource>
#include <new>
#include <string>
#include <vector>

namespace isthmus {
inline namespace v1 {

class resource;
// Requests of at most `most_bytes` go to `from`.
struct bin;

// What resource::custom() takes. `allocate` gives memory of the resource's kind, aligned, or
// throws: out_of_memory or std::bad_alloc where none is left. `deallocate` is called when no work
// uses the memory any more, on any thread; its queue may be empty, and it must not wait for work.
// Both may be called on several threads at a time. Members usage() and trim(keep_bytes), noexcept,
// are the resource's where there are any.
template <class T>
concept memory_source = requires(T& source, void* pointer, std::size_t number, const queue& on) {
  { source.allocate(number, number, on) } -> std::same_as<void*>;
  { source.deallocate(pointer, number, on) } noexcept;
} && std::is_nothrow_destructible_v<T>;

struct pool_options {
  std::uint64_t initial_bytes = 0;     // asked of the driver at once
  std::uint64_t growth_bytes = 0;      // asked at a time, at least; 0: isthmus_pool_options_t says
  std::uint64_t limit_bytes = 0;       // never held more; 0: no limit
  bool checked = true;                 // looks for misuse of small blocks too; some 3 ns
  bool remap = true;                   // moves free memory to where it is needed, if the device can
  std::uint64_t soft_limit_bytes = 0;  // beyond it free memory goes back before more is asked for
  budget share = {};                   // held together with other pools
  std::chrono::nanoseconds decay{0};   // what was not needed for so long goes back; 0: never
  // That a request waits for work that freed memory lies behind, before there is none; 0: not.
  std::chrono::nanoseconds wait = std::chrono::seconds{1};
  // Before that, the request's queue waits for such work on the device, and the host does not.
  bool device_wait = false;
};

struct tracking_options {
  std::uint32_t frames = 0;  // of native code that are kept of an allocation; at most 64
};

// What a resource has of the driver's.
struct memory_usage {
  std::uint64_t held = 0;  // bytes
  std::uint64_t free = 0;  // of those, what no caller, thread or size class has
  std::uint64_t maps = 0;  // times that the driver gave memory, or mapped some where it was needed
  std::uint64_t unmaps = 0;  // times that it got some back, or took some from where it was
};

class resource : public detail::handle<resource, isthmus_resource_t, isthmus_resource_retain,
                                       isthmus_resource_release> {
 public:
  resource() noexcept = default;

  // The driver's own allocator of one kind, on `where` or else the context's first device.
  [[nodiscard]] static resource provider(const context& context, kind of,
                                         const device& where = device()) {
    return detail::make<resource>(isthmus_resource_provider, context.get(), where.get(),
                                  static_cast<isthmus_kind_t>(of));
  }

  // The same of host kind, past the host's caches: for what the host writes once, in order, and a
  // device reads. To read it takes the host some hundred times as long.
  [[nodiscard]] static resource write_combined(const context& context,
                                               const device& where = device()) {
    return detail::make<resource>(isthmus_resource_write_combined, context.get(), where.get());
  }

  // Keeps what is freed for what comes next (isthmus_resource_pool says how).
  [[nodiscard]] static resource pool(const context& context, kind of, const pool_options& how = {},
                                     const device& where = device()) {
    const auto options = options_of(how);
    return detail::make<resource>(isthmus_resource_pool, context.get(), where.get(),
                                  static_cast<isthmus_kind_t>(of), &options);
  }
  // The same over a resource in place of the driver (isthmus_resource_pool_over).
  [[nodiscard]] static resource pool(const resource& upstream, const pool_options& how = {}) {
    const auto options = options_of(how);
    return detail::make<resource>(isthmus_resource_pool_over, upstream.get(), &options);
  }

  // Resources over others, and of your own: adaptors.hpp; tracking.hpp.
  [[nodiscard]] static resource statistics(const resource& upstream);
  [[nodiscard]] static resource limit(const resource& upstream, std::uint64_t limit_bytes);
  [[nodiscard]] static resource fallback(const resource& first, const resource& second);
  [[nodiscard]] static resource aligned(const resource& upstream, std::size_t alignment,
                                        std::size_t from_bytes = 0);
  [[nodiscard]] static resource binning(const resource& upstream, const std::vector<bin>& bins);
  [[nodiscard]] static resource prefetch(const resource& upstream);
  [[nodiscard]] static resource log(const resource& upstream, const std::string& path);
  [[nodiscard]] static resource tracking(const resource& upstream,
                                         const tracking_options& how = {});
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
  [[nodiscard]] static resource custom(const context& context, kind of, Source&& source,
                                       const device& where = device());

  // `alignment` 0 (the device's own) or a power of two. 0 bytes give NULL.
  [[nodiscard]] void* allocate(std::size_t nbytes, std::size_t alignment, const queue& on) const {
    void* pointer = nullptr;
    detail::check(isthmus_resource_allocate(get(), nbytes, alignment, on.get(), &pointer));
    return pointer;
  }
  // Behind the work on the queue; with the numbers that allocate was given. Throws
  // invalid_argument for what did not come from here, or was deallocated before.
  void deallocate(void* pointer, std::size_t nbytes, std::size_t alignment, const queue& on) const {
    detail::check(isthmus_resource_deallocate(get(), pointer, nbytes, alignment, on.get()));
  }

  // The block is in use by work that the library does not know: until `work`, or all now on that
  // queue, has completed, it is not reused, though it be freed. Throws not_found for memory that is
  // none of the library's.
  void record(const void* pointer, const event& work) const {
    detail::check(isthmus_record_event(pointer, work.get()));
  }
  void record(const void* pointer, const queue& work) const {
    detail::check(isthmus_record_queue(pointer, work.get()));
  }

  // Gives what is free back to the driver while more than `keep_bytes` are held; bytes given back.
  std::uint64_t trim(std::uint64_t keep_bytes = 0) const {
    std::uint64_t given_back = 0;
    detail::check(isthmus_resource_trim(get(), keep_bytes, &given_back));
    return given_back;
  }
  [[nodiscard]] memory_usage usage() const {
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    detail::check(isthmus_resource_query(get(), &info));
    return {info.held_bytes, info.free_bytes, info.maps, info.unmaps};
  }
  // Looks at all that the resource, and those that it stands on, know of themselves. Throws
  // invalid_argument with what a debug() resource found, now or before; internal for records of a
  // pool that contradict one another. Takes long.
  void verify() const { detail::check(isthmus_resource_verify(get())); }

  friend bool operator==(const resource& a, const resource& b) noexcept {
    return a.get() == b.get();
  }

 private:
  [[nodiscard]] static isthmus_pool_options_t options_of(const pool_options& how) {
    isthmus_pool_options_t options{};
    options.struct_size = sizeof options;
    options.initial_bytes = how.initial_bytes;
    options.growth_bytes = how.growth_bytes;
    options.limit_bytes = how.limit_bytes;
    options.flags = (how.checked ? 0U : std::uint32_t{ISTHMUS_POOL_UNCHECKED}) |
                    (how.remap ? 0U : std::uint32_t{ISTHMUS_POOL_NO_REMAP}) |
                    (how.device_wait ? std::uint32_t{ISTHMUS_POOL_DEVICE_WAIT} : 0U);
    options.soft_limit_bytes = how.soft_limit_bytes;
    options.budget = how.share.get();
    if (how.decay.count() < 0) raise(status::invalid_argument, "a pool's decay must be 0 or more");
    options.decay_ns = static_cast<std::uint64_t>(how.decay.count());
    options.wait_ns = how.wait.count() > 0 ? how.wait.count() : -1;
    return options;
  }
};

struct bin {
  std::size_t most_bytes = 0;
  resource from;
};

// What host_resource throws for lack of memory; any other failure is its isthmus::error.
class bad_alloc : public std::bad_alloc {
 public:
  explicit bad_alloc(const error& cause) noexcept : cause_(cause) {}
  [[nodiscard]] const char* what() const noexcept override { return cause_.what(); }

 private:
  error cause_;
};

// A std::pmr::memory_resource over a resource of shared or host kind.
class host_resource final : public std::pmr::memory_resource {
 public:
  // Throws unsupported when the host cannot touch all memory that the resource may give.
  host_resource(resource upstream, queue on)
      : upstream_(std::move(upstream)), queue_(std::move(on)) {
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    detail::check(isthmus_resource_query(upstream_.get(), &info));
    if ((info.kinds & 1U << ISTHMUS_KIND_DEVICE) != 0) {
      raise(status::unsupported,
            "host_resource: the host cannot touch memory of device kind; "
            "use a resource that gives shared or host memory alone");
    }
  }

  [[nodiscard]] const resource& upstream() const noexcept { return upstream_; }

 private:
  // A container may ask for 0 bytes and give them back, and needs a pointer for them.
  static std::size_t at_least_one(std::size_t nbytes) noexcept {
    return std::max<std::size_t>(nbytes, 1);
  }
  void* do_allocate(std::size_t nbytes, std::size_t alignment) override {
    try {
      return upstream_.allocate(at_least_one(nbytes), alignment, queue_);
    } catch (const out_of_memory& problem) {
      throw bad_alloc(problem);
    }
  }
  // Containers free in their destructors, where an error has nowhere to go.
  void do_deallocate(void* pointer, std::size_t nbytes, std::size_t alignment) override {
    try {
      upstream_.deallocate(pointer, at_least_one(nbytes), alignment, queue_);
    } catch (const error& problem) {
      std::fprintf(stderr, "isthmus: host_resource: %s\n", problem.what());
    }
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* same = dynamic_cast<const host_resource*>(&other);
    return same != nullptr && same->upstream_ == upstream_ && same->queue_ == queue_;
  }

  resource upstream_;
  queue queue_;
};

// Live allocations of one kind in the whole process, and their bytes; unknown: of all kinds.
struct live_memory {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};
[[nodiscard]] inline live_memory live(kind of = kind::unknown) noexcept {
  live_memory result;
  isthmus_live(static_cast<isthmus_kind_t>(of), &result.count, &result.bytes);
  return result;
}

// What is known of a pointer, an inner one too; `base` and `nbytes` are its allocation's. How it
// was asked for is known of the driver's memory, of a pool's above 256 KiB and of what came through
// a tracking resource; else 0. Of what waits or is free in a pool the state alone is told.
struct pointer_info {
  v1::kind kind = v1::kind::unknown;
  void* base = nullptr;
  std::size_t nbytes = 0;
  v1::device device;
  std::size_t requested_bytes = 0;
  std::uintptr_t queue_key = 0;  // of the queue that it was allocated on
  v1::context context;           // that it belongs to
  v1::resource resource;         // that it goes back to; empty: not known, or the driver's own
  memory_state state = memory_state::unknown;
};
// An empty context asks the registry alone.
[[nodiscard]] inline pointer_info query(const void* pointer, const context& asked = context()) {
  isthmus_pointer_info_t raw{};
  raw.struct_size = sizeof raw;
  detail::check(isthmus_pointer_query(asked.get(), pointer, &raw));
  isthmus_context_t* home = nullptr;
  isthmus_resource_t* from = nullptr;
  if (raw.context != nullptr) detail::check(isthmus_pointer_origin(pointer, &home, &from));
  pointer_info known{static_cast<kind>(raw.kind),
                     raw.base,
                     raw.nbytes,
                     device::share(raw.device),
                     raw.requested_bytes,
                     raw.queue_key,
                     context::take(home),
                     resource::take(from),
                     static_cast<memory_state>(raw.state)};
  if (raw.context == asked.get()) known.context = asked;  // which alone may know of the memory
  return known;
}

static_assert(std::copyable<resource> && std::equality_comparable<resource>);
static_assert(std::is_nothrow_move_constructible_v<resource>);
static_assert(std::derived_from<host_resource, std::pmr::memory_resource>);

}  // namespace v1
}  // namespace isthmus
