// A memory resource for RMM over one of Isthmus: rmm::device_buffer, cuDF and whatever else takes
// an rmm::device_async_resource_ref have their memory from a pool of Isthmus.
//
//   const isthmus::device gpu("cuda:0");
//   const auto pool = isthmus::resource::pool(isthmus::context::of(gpu), isthmus::kind::device);
//   rmm::mr::set_current_device_resource(isthmus::rmm_resource(pool));
//
// Not part of isthmus.hpp: it needs RMM's headers (26.08 or later, with CCCL's) and its library,
// whose exceptions it throws. Cost: a look-up of the stream, some ten nanoseconds, on top of the
// resource's own. Threads: any. A copy shares everything.
//
// A stream that memory is allocated or deallocated on lives as long as the resource, as those of an
// rmm::cuda_stream_pool do and the default ones; cudaStreamPerThread is the calling thread's. For
// streams that come and go there is streams::come_and_go: what is freed
// waits for its work's end then, on its own stream too.
#pragma once

#include <isthmus/resource.hpp>

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <rmm/error.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace isthmus {
inline namespace v1 {

enum class streams { stay, come_and_go };

class rmm_resource {
 public:
  // Throws unsupported for a resource that is not of a CUDA device, or gives memory that the device
  // may not touch.
  explicit rmm_resource(const resource& upstream, streams lives = streams::stay)
      : state_(std::make_shared<state>(upstream, lives)) {}

  [[nodiscard]] const resource& upstream() const noexcept { return state_->upstream; }

  // Throw rmm::out_of_memory, or rmm::bad_alloc for any other failure. 0 bytes give NULL.
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t nbytes,
                               std::size_t alignment = k_alignment) {
    return state_->allocate(nbytes, alignment, [&] { return state_->queue_of(stream.get()); });
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t nbytes,
                  std::size_t alignment = k_alignment) noexcept {
    state_->deallocate(pointer, nbytes, alignment, [&] { return state_->queue_of(stream.get()); });
  }
  // The same without a stream: nothing uses the memory then, nor when it goes back.
  [[nodiscard]] void* allocate_sync(std::size_t nbytes, std::size_t alignment = k_alignment) {
    void* const made = state_->allocate(nbytes, alignment, [&] { return state_->unused; });
    state_->unused.wait();  // for what a pool may have put there before the memory is good
    return made;
  }
  void deallocate_sync(void* pointer, std::size_t nbytes,
                       std::size_t alignment = k_alignment) noexcept {
    state_->deallocate(pointer, nbytes, alignment, [] { return queue(); });
  }

  friend bool operator==(const rmm_resource& a, const rmm_resource& b) noexcept {
    return a.state_ == b.state_ || a.upstream() == b.upstream();
  }
  friend void get_property(const rmm_resource& /*of*/, cuda::mr::device_accessible) noexcept {}

 private:
  static constexpr std::size_t k_alignment = 256;  // RMM's own
  static constexpr std::uintptr_t k_legacy = 1;    // CU_STREAM_LEGACY
  // CU_STREAM_PER_THREAD: another stream on each thread, which has one queue for it.
  static constexpr std::uintptr_t k_per_thread = 2;

  struct state {
    state(const resource& from, streams how)
        : upstream(from), where(device_of(from)), unused(where), lives(how) {}

    static device device_of(const resource& from) {
      isthmus_resource_info_t info{};
      info.struct_size = sizeof info;
      detail::check(isthmus_resource_query(from.get(), &info));
      auto found = device::share(info.device);
      if (found.info().backend != "cuda") {
        raise(status::unsupported,
              "rmm_resource: RMM is for CUDA devices, not " + std::string(found.info().filter));
      }
      return found;
    }

    [[nodiscard]] queue adopt(void* handle) const {
      struct stays {};  // an owner, for the stream lives as long as the queue
      return lives == streams::stay ? queue::adopt(where, handle, stays{})
                                    : queue::adopt(where, handle);
    }
    [[nodiscard]] queue queue_of(void* stream) {
      auto* const handle = stream != nullptr ? stream : reinterpret_cast<void*>(k_legacy);
      if (handle == reinterpret_cast<void*>(k_per_thread)) {
        return queue::adopt(where, handle);
      }
      if (lives == streams::come_and_go) return adopt(handle);
      const std::lock_guard hold(lock);
      auto& known = queues[handle];
      if (!known) known = adopt(handle);
      return known;
    }

    template <class On>
    [[nodiscard]] void* allocate(std::size_t nbytes, std::size_t alignment, On&& on) try {
      return upstream.allocate(nbytes, alignment, on());
    } catch (const out_of_memory& problem) {
      throw ::rmm::out_of_memory(problem.what());
    } catch (const error& problem) {
      throw ::rmm::bad_alloc(problem.what());
    }
    template <class On>
    void deallocate(void* pointer, std::size_t nbytes, std::size_t alignment, On&& on) noexcept {
      try {
        upstream.deallocate(pointer, nbytes, alignment, on());
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "isthmus: rmm_resource: %s\n", problem.what());
      }
    }

    const resource upstream;
    const device where;
    const queue unused;  // on which nothing ever is
    const streams lives;
    std::mutex lock;
    std::unordered_map<void*, queue> queues;
  };

  std::shared_ptr<state> state_;
};

static_assert(std::copyable<rmm_resource> && std::equality_comparable<rmm_resource>);
static_assert(cuda::mr::resource_with<rmm_resource, cuda::mr::device_accessible>);

}  // namespace v1
}  // namespace isthmus
