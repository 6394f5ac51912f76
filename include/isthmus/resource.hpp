// A memory resource: hands out memory of one kind, ordered by a queue. Choose it to write
// containers or allocators of your own; buffers are simpler for everything else. host_resource
// gives standard containers (std::pmr) memory that both the host and the device can touch.
//
//   auto shared = isthmus::resource::provider(queue.context(), isthmus::kind::shared);
//   isthmus::host_resource memory(shared, queue);
//   std::pmr::vector<float> values(1000, &memory);
//
// Cost: a provider's is the driver's own (2 to 15 us on Intel's CPU runtime). Threads: any.
#pragma once

#include <isthmus/queue.hpp>

#include <algorithm>
#include <memory_resource>
#include <new>

namespace isthmus {
inline namespace v1 {

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

  // `alignment` 0 (the device's own) or a power of two. 0 bytes give NULL.
  [[nodiscard]] void* allocate(std::size_t nbytes, std::size_t alignment, const queue& on) const {
    void* pointer = nullptr;
    detail::check(isthmus_resource_allocate(get(), nbytes, alignment, on.get(), &pointer));
    return pointer;
  }
  // Behind the work on the queue; with the numbers that allocate was given.
  void deallocate(void* pointer, std::size_t nbytes, std::size_t alignment,
                  const queue& on) const noexcept {
    isthmus_resource_deallocate(get(), pointer, nbytes, alignment, on.get());
  }

  friend bool operator==(const resource& a, const resource& b) noexcept {
    return a.get() == b.get();
  }
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
  // Throws unsupported when the host cannot touch the resource's memory.
  host_resource(resource upstream, queue on)
      : upstream_(std::move(upstream)), queue_(std::move(on)) {
    void* probe = upstream_.allocate(1, 1, queue_);
    isthmus_pointer_info_t info{};
    info.struct_size = sizeof info;
    const isthmus_status_t known = isthmus_pointer_query(queue_.context().get(), probe, &info);
    upstream_.deallocate(probe, 1, 1, queue_);
    detail::check(known);
    if (info.kind != ISTHMUS_KIND_SHARED && info.kind != ISTHMUS_KIND_HOST) {
      raise(status::unsupported,
            "host_resource: the host cannot touch memory of device kind; "
            "use a resource of kind shared or host");
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
  void do_deallocate(void* pointer, std::size_t nbytes, std::size_t alignment) override {
    upstream_.deallocate(pointer, at_least_one(nbytes), alignment, queue_);
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

// What is known of a pointer, an inner one too; `base` and `nbytes` are its allocation's.
struct pointer_info {
  v1::kind kind = v1::kind::unknown;
  void* base = nullptr;
  std::size_t nbytes = 0;
  v1::device device;
};
// An empty context asks the registry alone.
[[nodiscard]] inline pointer_info query(const void* pointer, const context& asked = context()) {
  isthmus_pointer_info_t raw{};
  raw.struct_size = sizeof raw;
  detail::check(isthmus_pointer_query(asked.get(), pointer, &raw));
  return {static_cast<kind>(raw.kind), raw.base, raw.nbytes, device::share(raw.device)};
}

static_assert(std::copyable<resource> && std::equality_comparable<resource>);
static_assert(std::is_nothrow_move_constructible_v<resource>);
static_assert(std::derived_from<host_resource, std::pmr::memory_resource>);

}  // namespace v1
}  // namespace isthmus
