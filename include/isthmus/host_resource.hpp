// SPDX-License-Identifier: Apache-2.0
// host_resource gives standard containers (std::pmr) memory that both the host and the device can
// access.
//
//   auto shared = isthmus::resource::provider(queue, isthmus::kind::shared);
//   isthmus::host_resource memory(shared, queue);
//   std::pmr::vector<float> values(1000, &memory);
//
// isthmus.hpp does not include this header: <memory_resource> would take longer to compile than any
// other part of it.
//
// Cost: that of the resource. Thread-safe.
#pragma once

#include <isthmus/resource.hpp>

#include <algorithm>
#include <cstdio>
#include <memory_resource>
#include <new>

namespace isthmus {
inline namespace v1 {

// Thrown by host_resource if no memory is left. Any other failure is an isthmus::error.
class bad_alloc : public std::bad_alloc {
 public:
  explicit bad_alloc(const error& cause) noexcept : cause_(cause) {}
  [[nodiscard]] const char* what() const noexcept override { return cause_.what(); }

 private:
  error cause_;
};

// A std::pmr::memory_resource over a resource of shared or host kind. Failures to deallocate are
// logged to standard error, since containers deallocate in destructors.
class host_resource final : public std::pmr::memory_resource {
 public:
  // Throws unsupported if `upstream` may provide device memory, which the host cannot access.
  host_resource(resource upstream, isthmus::queue queue)
      : upstream_(std::move(upstream)), queue_(std::move(queue)) {
    const auto info =
        detail::read<isthmus_resource_info_t>(isthmus_resource_info, upstream_.require());
    if ((info.kinds & 1U << ISTHMUS_KIND_DEVICE) != 0) {
      raise(status::unsupported,
            "host_resource: the host cannot access memory of device kind; use a resource of shared "
            "or host memory only");
    }
  }

  [[nodiscard]] const resource& upstream() const noexcept { return upstream_; }

 private:
  // Containers may allocate and deallocate 0 bytes, which need a pointer too.
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
  // Containers deallocate in their destructors, from which no error can propagate.
  void do_deallocate(void* pointer, std::size_t nbytes, std::size_t alignment) override {
    try {
      upstream_.deallocate(pointer, at_least_one(nbytes), alignment, queue_);
    } catch (const error& problem) {
      std::fprintf(stderr, "isthmus: host_resource: %s\n", problem.what());
    }
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    const auto* other_resource = dynamic_cast<const host_resource*>(&other);
    return other_resource != nullptr && other_resource->upstream_ == upstream_ &&
           other_resource->queue_ == queue_;
  }

  resource upstream_;
  queue queue_;
};

static_assert(std::derived_from<host_resource, std::pmr::memory_resource>);
static_assert(std::derived_from<bad_alloc, std::bad_alloc> && !std::derived_from<bad_alloc, error>);

}  // namespace v1
}  // namespace isthmus
