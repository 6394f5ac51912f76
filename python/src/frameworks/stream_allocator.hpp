// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory for frameworks that identify CUDA devices by number and streams by handle. Maps a device
// to the resource that serves it, and a stream to a queue.
//
// Nothing here uses Python. The functions may be called by any thread, with or without the
// interpreter's lock, and after the interpreter has ended, because queues and resources are never
// destroyed. A thread caches its last lookups, so that a warm request takes only some nanoseconds
// more than the resource itself.
//
// A stream is identified by its device and handle, as in the frameworks. Before a stream is
// destroyed, the framework must free all memory that it allocated on the stream.

#include <isthmus/adaptors.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace isthmus::python {

// A CUDA stream as in the runtime API: null is the legacy default stream.
using CudaStream = void*;

// The queue of a stream, created on first use and never released. Throws isthmus::error and
// std::runtime_error.
[[nodiscard]] isthmus_queue_t* queue_of_stream_number(int device, CudaStream stream);

struct AllocatorUsage {
  statistics counts;
  memory_usage memory;
  std::optional<std::uint64_t> peak_held_bytes;  // of a pool of the allocator
};

struct FollowedResources;

class StreamAllocator {
 public:
  static constexpr int k_max_devices = 64;

  constexpr StreamAllocator() noexcept = default;
  StreamAllocator(const StreamAllocator&) = delete;
  StreamAllocator& operator=(const StreamAllocator&) = delete;

  // From this call on, the resource serves its device, in place of a pool of the allocator.
  // Called before the first request.
  void set_resource(isthmus_resource_t* resource);
  [[nodiscard]] isthmus_resource_t* custom_resource() const noexcept { return custom_resource_; }

  // From this call on, `next` (empty: a pool of the allocator) serves that device. From the
  // first call on, every block is returned to the resource that allocated it, even if another one
  // serves the device by then. Costs two additional locks for an allocation and one for a free.
  // Throws std::bad_alloc.
  void follow(int device, resource next);

  // All throw isthmus::error or another std::runtime_error, except `deallocate`, which reports
  // failures on the standard error stream.
  [[nodiscard]] void* allocate(std::size_t nbytes, int device, CudaStream stream);
  void deallocate(void* pointer, std::size_t nbytes, int device, CudaStream stream) noexcept;
  // Returns free memory to the driver.
  void trim();
  // Limits a pool of the allocator on that device to that share of the device's memory.
  // Called before the first request there.
  void limit(double share, int device);
  [[nodiscard]] AllocatorUsage usage(int device);
  // The resource that serves that device.
  [[nodiscard]] isthmus_resource_t* upstream_for(int device) {
    return resources_for(device).upstream.get();
  }

  struct Target {
    isthmus_resource_t* resource;
    isthmus_queue_t* queue;
  };
  // The resources that serve one device.
  struct DeviceResources {
    isthmus::resource counted;  // statistics adaptor over `upstream`
    isthmus::resource upstream;
    isthmus::budget budget;  // empty if `upstream` is a caller's resource
  };

 private:
  [[nodiscard]] Target find(int device, CudaStream stream);
  // The resource set by `follow`. Empty if none serves that device.
  [[nodiscard]] resource followed(int device) noexcept;
  [[nodiscard]] void* allocate_followed(std::size_t nbytes, int device, CudaStream stream);
  void deallocate_to_owner(void* pointer, std::size_t nbytes, CudaStream stream, int device);
  [[nodiscard]] void* allocate_from(const Target& target, std::size_t nbytes);
  [[nodiscard]] const DeviceResources& resources_for(int device);
  [[nodiscard]] const DeviceResources* create_resources(int device) const;
  void make_pool(DeviceResources& served, int number) const;

  // Guards the creation of entries of `devices_`. An entry is stored with release and loaded with
  // acquire order, so that a reader sees it complete; it is immutable and never destroyed.
  std::mutex create_mutex_;
  isthmus_resource_t* custom_resource_ = nullptr;
  int custom_device_ = -1;
  std::array<std::optional<double>, k_max_devices> shares_{};
  std::array<std::atomic<const DeviceResources*>, k_max_devices> devices_{};
  // Created by the first `follow`, by a compare-exchange, and never destroyed.
  std::atomic<FollowedResources*> followed_{nullptr};
};

// Records that the block is used on that stream too. The free of the block is then ordered after
// all work that the stream has at that time. Does nothing for memory that is not a live block.
void record_stream_use(void* pointer, CudaStream stream);
// Returns the start of the block that contains the address, and sets `nbytes`, unless it is null,
// to the size of the block. For an unknown address, returns the address and does not set `nbytes`.
[[nodiscard]] void* find_block(void* pointer, std::size_t* nbytes) noexcept;

}  // namespace isthmus::python
