// SPDX-License-Identifier: Apache-2.0
#include "frameworks/stream_allocator.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/cuda_streams.hpp"
#include "core/gil.hpp"
#include "frameworks/deferred_frees.hpp"
#include "frameworks/stream_uses.hpp"

namespace isthmus::python {
namespace {

// Never destroyed: blocks are freed after everything else is destroyed.
template <class T>
T& immortal() {
  static T& only = *new T;
  return only;
}

// Declares to the library that the stream outlives its use.
constexpr isthmus_owner_t k_no_owner{nullptr, [](void*) {}};

struct StreamKey {
  int device;
  CudaStream stream;
  bool operator==(const StreamKey&) const noexcept = default;
};
struct StreamHash {
  std::size_t operator()(const StreamKey& key) const noexcept {
    return std::hash<void*>{}(key.stream) * 31 + static_cast<std::size_t>(key.device);
  }
};
struct StreamQueues {
  std::mutex lock;
  std::unordered_map<StreamKey, isthmus_queue_t*, StreamHash> all;
};

device device_of_number(int number) { return device{"cuda:" + std::to_string(number)}; }

// Rejects the per-thread stream, since any thread may process deferred frees and recorded uses.
isthmus_queue_t* adopt_stream(int device, CudaStream stream) {
  if (stream == reinterpret_cast<void*>(std::uintptr_t{2})) {
    throw std::runtime_error(
        "CU_STREAM_PER_THREAD (2) is a different stream in each thread, and PyTorch does not "
        "report which one memory belongs to: use a stream of torch.cuda.Stream()");
  }
  auto* const handle = stream != nullptr ? stream : reinterpret_cast<void*>(std::uintptr_t{1});
  isthmus_queue_t* queue = nullptr;
  isthmus::detail::check(
      isthmus_queue_adopt(device_of_number(device).get(), handle, k_no_owner, &queue));
  return queue;
}

isthmus_resource_info_t info_of(isthmus_resource_t* resource) {
  return isthmus::detail::read<isthmus_resource_info_t>(isthmus_resource_info, resource);
}

struct CachedPointer {
  const StreamAllocator* allocator = nullptr;
  CudaStream stream = nullptr;
  int device = -1;
  StreamAllocator::Target target{};
};
constexpr std::size_t k_cached = 8;  // a power of two
thread_local constinit std::array<CachedPointer, k_cached> cached{};

// Stream handles are addresses of objects larger than a cache line.
CachedPointer& cached_for(int device, CudaStream stream) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(stream);
  return cached[(bits >> 6 ^ bits >> 12 ^ static_cast<unsigned>(device)) % k_cached];
}

std::size_t index_of(int device) {
  if (device < 0 || device >= StreamAllocator::k_max_devices) {
    throw std::runtime_error("device " + std::to_string(device) + " is out of range: use 0 to " +
                             std::to_string(StreamAllocator::k_max_devices - 1));
  }
  return static_cast<std::size_t>(device);
}

}  // namespace

struct FollowedResources {
  std::mutex lock;
  std::array<resource, StreamAllocator::k_max_devices> serving;
  std::unordered_map<void*, resource> owners;  // of live blocks
};

isthmus_queue_t* queue_of_stream_number(int device, CudaStream stream) {
  auto& queues = immortal<StreamQueues>();
  const StreamKey key{device, stream};
  const std::lock_guard hold{queues.lock};
  if (const auto found = queues.all.find(key); found != queues.all.end()) {
    return found->second;
  }
  auto* const queue = adopt_stream(device, stream);
  queues.all.emplace(key, queue);
  return queue;
}

void StreamAllocator::set_resource(isthmus_resource_t* resource) {
  isthmus_resource_retain(resource);
  custom_resource_ = resource;
  custom_device_ = number_of_cuda_device(info_of(resource).device);
}

void StreamAllocator::follow(int device, resource next) {
  if (device < 0 || device >= k_max_devices) {
    return;
  }
  if (followed_.load(std::memory_order_acquire) == nullptr) {
    auto created = std::make_unique<FollowedResources>();
    FollowedResources* none = nullptr;
    if (followed_.compare_exchange_strong(none, created.get(), std::memory_order_acq_rel)) {
      static_cast<void>(created.release());
    }
  }
  auto& resources = *followed_.load(std::memory_order_acquire);
  const std::lock_guard hold{resources.lock};
  // The previous one is released outside of the lock.
  std::swap(resources.serving[static_cast<std::size_t>(device)], next);
}

resource StreamAllocator::followed(int device) noexcept {
  auto* const resources = followed_.load(std::memory_order_acquire);
  if (resources == nullptr || device < 0 || device >= k_max_devices) {
    return {};
  }
  const std::lock_guard hold{resources->lock};
  return resources->serving[static_cast<std::size_t>(device)];
}

void* StreamAllocator::allocate_followed(std::size_t nbytes, int device, CudaStream stream) {
  auto target = find(device, stream);
  auto serving = followed(device);
  if (!serving) {
    serving = resource::share(target.resource);
  }
  target.resource = serving.get();
  void* const pointer = allocate_from(target, nbytes);
  auto& resources = *followed_.load(std::memory_order_acquire);
  try {
    const std::lock_guard hold{resources.lock};
    resources.owners.insert_or_assign(pointer, std::move(serving));
  } catch (const std::bad_alloc&) {
    static_cast<void>(
        isthmus_resource_deallocate(target.resource, pointer, nbytes, 0, target.queue));
    throw std::runtime_error("not enough host memory to record a block");
  }
  return pointer;
}

void StreamAllocator::deallocate_to_owner(void* pointer, std::size_t nbytes, CudaStream stream,
                                          int device) {
  auto& resources = *followed_.load(std::memory_order_acquire);
  resource owner;
  {
    const std::lock_guard hold{resources.lock};
    if (const auto found = resources.owners.find(pointer); found != resources.owners.end()) {
      owner = std::move(found->second);
      resources.owners.erase(found);
    }
  }
  const auto target = find(device, stream);
  DeferredFrees::retry_one();
  DeferredFrees::free({owner ? owner.get() : target.resource, target.queue, pointer, nbytes});
}

void StreamAllocator::make_pool(DeviceResources& served, int number) const {
  const auto device = device_of_number(number);
  // The budget only records the peak, unless its limit is less than all of the memory.
  const auto& share = shares_[static_cast<std::size_t>(number)];
  const auto limit =
      share ? static_cast<std::uint64_t>(static_cast<double>(device.info().memory_bytes) * *share)
            : UINT64_MAX / 2;
  served.budget = budget{std::max<std::uint64_t>(limit, 1)};
  served.upstream =
      resource::pool(context::of(device), kind::device, {.budget = served.budget}, device);
}

const StreamAllocator::DeviceResources* StreamAllocator::create_resources(int device) const {
  auto created = std::make_unique<DeviceResources>();
  if (device == custom_device_) {
    created->upstream = resource::share(custom_resource_);
  } else {
    make_pool(*created, device);
  }
  created->counted = resource::statistics(created->upstream);
  return created.release();
}

const StreamAllocator::DeviceResources& StreamAllocator::resources_for(int device) {
  auto& entry = devices_[index_of(device)];
  if (const auto* found = entry.load(std::memory_order_acquire)) {
    return *found;
  }
  const std::lock_guard hold{create_mutex_};
  if (const auto* found = entry.load(std::memory_order_acquire)) {
    return *found;
  }
  const auto* const created = create_resources(device);
  entry.store(created, std::memory_order_release);
  return *created;
}

StreamAllocator::Target StreamAllocator::find(int device, CudaStream stream) {
  auto& last = cached_for(device, stream);
  if (last.allocator == this && last.stream == stream && last.device == device) [[likely]] {
    return last.target;
  }
  if (is_forked_child()) {  // a thread that the child lacks may hold the locks
    throw std::runtime_error("a forked child cannot use the memory of its parent's device");
  }
  const Target target{resources_for(device).counted.get(), queue_of_stream_number(device, stream)};
  last = {this, stream, device, target};
  return target;
}

void* StreamAllocator::allocate_from(const Target& target, std::size_t nbytes) {
  DeferredFrees::retry_one();
  void* pointer = nullptr;
  auto status = isthmus_resource_allocate(target.resource, nbytes, 0, target.queue, &pointer);
  if (status == ISTHMUS_ERROR_OUT_OF_MEMORY && DeferredFrees::retry_all()) {
    status = isthmus_resource_allocate(target.resource, nbytes, 0, target.queue, &pointer);
  }
  if (status != ISTHMUS_OK) [[unlikely]] {
    // Programs recognize this text, whatever the exception class.
    throw std::runtime_error{
        std::string{status == ISTHMUS_ERROR_OUT_OF_MEMORY ? "CUDA out of memory. " : ""} +
        isthmus_error_message()};
  }
  return pointer;
}

void* StreamAllocator::allocate(std::size_t nbytes, int device, CudaStream stream) {
  if (followed_.load(std::memory_order_acquire) != nullptr) [[unlikely]] {
    return allocate_followed(nbytes, device, stream);
  }
  return allocate_from(find(device, stream), nbytes);
}

void StreamAllocator::deallocate(void* pointer, std::size_t nbytes, int device,
                                 CudaStream stream) noexcept try {
  if (pointer == nullptr || is_forked_child()) {
    return;
  }
  if (followed_.load(std::memory_order_acquire) != nullptr) [[unlikely]] {
    deallocate_to_owner(pointer, nbytes, stream, device);
    return;
  }
  const auto [resource, queue] = find(device, stream);
  DeferredFrees::retry_one();
  DeferredFrees::free({resource, queue, pointer, nbytes});
} catch (const std::exception& problem) {
  std::fprintf(stderr, "isthmus: %zu bytes at %p on stream %p of device %d were not freed: %s\n",
               nbytes, pointer, stream, device, problem.what());
}

void StreamAllocator::trim() {
  DeferredFrees::retry_all();
  for (int device = 0; device < k_max_devices; ++device) {
    if (const auto serving = followed(device)) {
      serving.trim();
    }
  }
  for (auto& entry : devices_) {
    if (const auto* const serving = entry.load(std::memory_order_acquire)) {
      serving->counted.trim();
    }
  }
}

void StreamAllocator::limit(double share, int device) {
  const auto index = index_of(device);
  const std::lock_guard hold{create_mutex_};
  if (device == custom_device_) {
    throw std::runtime_error(
        "the memory fraction of a custom resource cannot be set: create its pool with limit_bytes");
  }
  if (devices_[index].load(std::memory_order_acquire) != nullptr) {
    throw std::runtime_error("the memory fraction of device " + std::to_string(device) +
                             " can only be set before the first allocation on it");
  }
  shares_[index] = share;
}

AllocatorUsage StreamAllocator::usage(int device) {
  const auto& resources = resources_for(device);
  AllocatorUsage usage{statistics_of(resources.counted), resources.counted.usage(), {}};
  if (resources.budget) {
    usage.peak_held_bytes = resources.budget.info().peak_held;
  }
  return usage;
}

void record_stream_use(void* pointer, CudaStream stream) {
  auto info = sized<isthmus_pointer_info_t>();
  if (pointer == nullptr || isthmus_pointer_info(nullptr, pointer, &info) != ISTHMUS_OK ||
      info.state != ISTHMUS_MEMORY_LIVE) {
    return;
  }
  auto* const queue = queue_of_stream_number(number_of_cuda_device(info.device), stream);
  // The free itself is ordered after work on the block's own stream.
  if (isthmus_queue_key(queue) != info.queue_key) {
    StreamUses::add(info.base != nullptr ? info.base : pointer, queue);
  }
}

void* find_block(void* pointer, std::size_t* nbytes) noexcept {
  auto info = sized<isthmus_pointer_info_t>();
  if (isthmus_pointer_info(nullptr, pointer, &info) != ISTHMUS_OK || info.base == nullptr) {
    return pointer;
  }
  if (nbytes != nullptr) {
    *nbytes = info.nbytes;
  }
  return info.base;
}

}  // namespace isthmus::python
