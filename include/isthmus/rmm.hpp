// SPDX-License-Identifier: Apache-2.0
// A memory resource for RMM over a resource of Isthmus: rmm::device_buffer, cuDF and everything
// else that takes an rmm::device_async_resource_ref then allocate from Isthmus.
//
//   const isthmus::device gpu("cuda:0");
//   const auto pool = isthmus::resource::pool(isthmus::context::of(gpu), isthmus::kind::device);
//   rmm::mr::set_current_device_resource(isthmus::rmm_resource(pool));
//
// Not included by isthmus.hpp: it needs RMM's headers (26.08 or later, with CCCL's) and its
// library, whose exceptions it throws.
//
// Streams. Memory freed on the default stream is reused there at once, and elsewhere once the work
// before the free has completed. By default memory freed on any other stream waits for that work on
// the same stream too, because the stream may be destroyed before the resource needs it again. If
// all streams live as long as the upstream resource, as those of an rmm::cuda_stream_pool do, pass
// streams::persistent: all streams are then treated like the default stream. A stream that is
// destroyed earlier would then be used after its destruction, which is undefined behavior in CUDA.
// cudaStreamPerThread is the calling thread's stream.
//
// Cost, in addition to that of the upstream resource: a lookup of the stream, without a lock; with
// streams::transient a queue created for the call. Thread-safe. Copies share all state.
#pragma once

#include <isthmus/resource.hpp>

#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <rmm/error.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace isthmus {
inline namespace v1 {

// The lifetime of the program's streams: persistent streams live as long as the upstream resource,
// transient streams may be destroyed earlier.
enum class streams { persistent, transient };

// A model of cuda::mr::resource over a resource of a CUDA device.
class rmm_resource {
 public:
  // Throws unsupported for a resource that is not of a CUDA device, or that may provide memory that
  // the device cannot access.
  explicit rmm_resource(const resource& upstream, streams lifetime = streams::transient)
      : state_(std::make_shared<state>(upstream, lifetime)) {}

  [[nodiscard]] const resource& upstream() const noexcept { return state_->upstream; }

  // Allocates and deallocates, ordered by a stream. Throws rmm::out_of_memory, or rmm::bad_alloc
  // for any other failure. 0 bytes return NULL. Failures to deallocate are logged to standard
  // error.
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t nbytes,
                               std::size_t alignment = k_alignment) {
    return state_->allocate(nbytes, alignment, stream.get());
  }
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t nbytes,
                  std::size_t alignment = k_alignment) noexcept {
    state_->deallocate(pointer, nbytes, alignment, stream.get());
  }
  // The same without a stream. The memory may be used at once; deallocate it only when no work uses
  // it any more.
  [[nodiscard]] void* allocate_sync(std::size_t nbytes, std::size_t alignment = k_alignment) {
    return state_->allocate_unordered(nbytes, alignment);
  }
  void deallocate_sync(void* pointer, std::size_t nbytes,
                       std::size_t alignment = k_alignment) noexcept {
    state_->deallocate_unordered(pointer, nbytes, alignment);
  }

  friend bool operator==(const rmm_resource& a, const rmm_resource& b) noexcept {
    return a.state_ == b.state_ || a.upstream() == b.upstream();
  }
  friend void get_property(const rmm_resource& /*of*/, cuda::mr::device_accessible) noexcept {}

 private:
  static constexpr std::size_t k_alignment = 256;  // RMM's default alignment
  static constexpr std::uintptr_t k_legacy = 1;    // CU_STREAM_LEGACY
  // CU_STREAM_PER_THREAD: a different stream on each thread.
  static constexpr std::uintptr_t k_per_thread = 2;
  // The meaning of a NULL stream depends on whether the including program defines this macro.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  static constexpr std::uintptr_t k_null = k_per_thread;
#else
  static constexpr std::uintptr_t k_null = k_legacy;
#endif

  // The queues of streams that outlive the resource, by handle: a hash table of linked lists.
  // Readers take no lock: nodes are immutable, are never removed before the destructor, and are
  // published with a release store to the head of their list, which readers load with acquire.
  // Writers hold `lock_`.
  class stream_queues {
   public:
    stream_queues() = default;
    stream_queues(const stream_queues&) = delete;
    stream_queues& operator=(const stream_queues&) = delete;
    ~stream_queues() {
      for (auto& first : table_) {
        for (auto* node = first.load(); node != nullptr;) delete std::exchange(node, node->next);
      }
    }

    template <class Adopt>
    [[nodiscard]] const queue& find(void* handle, const Adopt& adopt) {
      auto& first = table_[std::hash<void*>{}(handle) / 16 % table_.size()];
      if (const auto* entry = find_in_list(handle, first)) return entry->queue;
      const std::lock_guard guard(lock_);
      if (const auto* entry = find_in_list(handle, first)) return entry->queue;
      auto* const entry =
          new list_node{handle, adopt(handle), first.load(std::memory_order_relaxed)};
      first.store(entry, std::memory_order_release);
      return entry->queue;
    }

   private:
    struct list_node {
      void* handle;
      isthmus::queue queue;
      list_node* next;
    };
    static const list_node* find_in_list(void* handle,
                                         const std::atomic<list_node*>& first) noexcept {
      const auto* node = first.load(std::memory_order_acquire);
      while (node != nullptr && node->handle != handle) node = node->next;
      return node;
    }

    std::array<std::atomic<list_node*>, 64> table_{};
    std::mutex lock_;
  };

  struct state {
    state(const resource& source, streams stream_lifetime)
        : upstream(source),
          cuda_device(device_of(source)),
          idle_queue(cuda_device),
          lifetime(stream_lifetime) {}

    static device device_of(const resource& source) {
      const auto info = detail::read<isthmus_resource_info_t>(isthmus_resource_info, source.get());
      auto result = device::share(info.device);
      if (result.info().backend != "cuda") {
        raise(status::unsupported, "rmm_resource: RMM supports only CUDA devices, not " +
                                       std::string(result.info().filter));
      }
      return result;
    }

    [[nodiscard]] queue adopt_permanent(void* handle) const {
      struct no_owner {};  // the stream outlives the queue
      return queue::adopt(cuda_device, handle, no_owner{});
    }
    // A thread that is ending no longer has a per-thread stream. The legacy default stream replaces
    // it: CUDA orders it after the work of all per-thread streams.
    [[nodiscard]] queue of_this_thread(void* handle) try {
      return queue::adopt(cuda_device, handle);
    } catch (const closed&) {
      return queues.find(reinterpret_cast<void*>(k_legacy),
                         [&](void* stream_handle) { return adopt_permanent(stream_handle); });
    }
    template <class Work>
    decltype(auto) on_queue(void* stream, const Work& work) {
      auto* const handle = stream != nullptr ? stream : reinterpret_cast<void*>(k_null);
      const auto number = reinterpret_cast<std::uintptr_t>(handle);
      if (number == k_per_thread) return work(of_this_thread(handle));
      if (number != k_legacy && lifetime == streams::transient) {
        return work(queue::adopt(cuda_device, handle));
      }
      return work(
          queues.find(handle, [&](void* stream_handle) { return adopt_permanent(stream_handle); }));
    }

    [[nodiscard]] void* allocate(std::size_t nbytes, std::size_t alignment, void* stream) {
      return translate_errors([&] {
        return on_queue(stream, [&](const queue& order) {
          return upstream.allocate(nbytes, alignment, order);
        });
      });
    }
    [[nodiscard]] void* allocate_unordered(std::size_t nbytes, std::size_t alignment) {
      return translate_errors([&] {
        void* const pointer = upstream.allocate(nbytes, alignment, idle_queue);
        idle_queue.wait();  // a pool may have ordered the memory after other work
        return pointer;
      });
    }
    template <class Work>
    static void* translate_errors(const Work& work) try {
      return work();
    } catch (const out_of_memory& problem) {
      throw ::rmm::out_of_memory(problem.what());
    } catch (const error& problem) {
      throw ::rmm::bad_alloc(problem.what());
    }

    void deallocate(void* pointer, std::size_t nbytes, std::size_t alignment,
                    void* stream) noexcept {
      log_errors([&] {
        on_queue(stream, [&](const queue& order) {
          upstream.deallocate(pointer, nbytes, alignment, order);
        });
      });
    }
    void deallocate_unordered(void* pointer, std::size_t nbytes, std::size_t alignment) noexcept {
      log_errors([&] { upstream.deallocate(pointer, nbytes, alignment, queue()); });
    }
    template <class Work>
    static void log_errors(const Work& work) noexcept {
      try {
        work();
      } catch (const std::exception& problem) {
        std::fprintf(stderr, "isthmus: rmm_resource: %s\n", problem.what());
      }
    }

    const resource upstream;
    const device cuda_device;
    const queue idle_queue;  // no work is ever submitted to it
    const streams lifetime;
    stream_queues queues;
  };

  std::shared_ptr<state> state_;
};

static_assert(std::copyable<rmm_resource> && std::equality_comparable<rmm_resource>);
static_assert(cuda::mr::resource_with<rmm_resource, cuda::mr::device_accessible>);

}  // namespace v1
}  // namespace isthmus
