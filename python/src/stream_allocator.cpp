// SPDX-License-Identifier: Apache-2.0
#include "stream_allocator.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>

#include "gil.hpp"
#include "late_frees.hpp"
#include "stream_notes.hpp"

namespace isthmus::python {
namespace {

// Never destroyed: blocks are freed after everything else is gone.
template <class T>
T& immortal() {
  static T& only = *new T;
  return only;
}

void check(isthmus_status_t status, const char* name = "") {
  if (status != ISTHMUS_OK) [[unlikely]] {
    throw_last_failure(name);
  }
}

// Promises the library that the stream outlives its use.
constexpr isthmus_owner_t k_nobody{nullptr, [](void*) {}};

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
struct KnownQueues {
  std::mutex lock;
  std::unordered_map<StreamKey, isthmus_queue_t*, StreamHash> all;
};

struct LetGo {
  void operator()(isthmus_device_t* device) const noexcept { isthmus_device_release(device); }
  void operator()(isthmus_context_t* context) const noexcept { isthmus_context_release(context); }
};
using DeviceReference = std::unique_ptr<isthmus_device_t, LetGo>;
using ContextReference = std::unique_ptr<isthmus_context_t, LetGo>;

DeviceReference find_device_number(int device) {
  isthmus_device_t* found = nullptr;
  check(isthmus_device_find(("cuda:" + std::to_string(device)).c_str(), &found));
  return DeviceReference{found};
}

ContextReference default_context_of(isthmus_device_t* device) {
  isthmus_context_t* found = nullptr;
  check(isthmus_context_default(device, &found));
  return ContextReference{found};
}

// This number means another stream on each thread, while deferred frees and notes of streams are
// processed by any thread.
isthmus_queue_t* adopt_stream(int device, CudaStream stream) {
  if (stream == reinterpret_cast<void*>(std::uintptr_t{2})) {
    throw AllocatorFailure(
        "CU_STREAM_PER_THREAD (2) is a different stream in each thread, and PyTorch does not "
        "report which one memory belongs to: use a stream of torch.cuda.Stream()");
  }
  const auto where = find_device_number(device);
  auto* const handle = stream != nullptr ? stream : reinterpret_cast<void*>(std::uintptr_t{1});
  isthmus_queue_t* made = nullptr;
  check(isthmus_queue_adopt(where.get(), handle, k_nobody, &made));
  return made;
}

isthmus_resource_info_t info_of(isthmus_resource_t* resource) {
  isthmus_resource_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_resource_query(resource, &info));
  return info;
}

// A thread's cached lookup: of which allocator, with which result.
struct CachedPlace {
  const StreamAllocator* of = nullptr;
  CudaStream stream = nullptr;
  int device = -1;
  StreamAllocator::Place found{};
};
constexpr std::size_t k_cached = 8;  // a power of two
thread_local constinit std::array<CachedPlace, k_cached> cached{};

// Stream handles are addresses of objects larger than a cache line.
CachedPlace& cached_for(int device, CudaStream stream) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(stream);
  return cached[(bits >> 6 ^ bits >> 12 ^ static_cast<unsigned>(device)) % k_cached];
}

std::uint64_t bytes_of(isthmus_device_t* device) {
  isthmus_device_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_device_info(device, &info));
  return info.memory_bytes;
}

struct LetResourceGo {
  void operator()(isthmus_resource_t* resource) const noexcept {
    isthmus_resource_release(resource);
  }
};
using ResourceReference = std::unique_ptr<isthmus_resource_t, LetResourceGo>;

}  // namespace

struct FollowedResources {
  std::mutex lock;
  std::array<ResourceReference, StreamAllocator::k_most_devices> serving;
  std::unordered_map<void*, ResourceReference> owners;  // of live blocks
};

void throw_last_failure(const char* name) {
  throw AllocatorFailure(std::string(name) + isthmus_error_message());
}

isthmus_queue_t* queue_of_stream_number(int device, CudaStream stream) {
  auto& known = immortal<KnownQueues>();
  const StreamKey key{device, stream};
  const std::lock_guard hold{known.lock};
  if (const auto found = known.all.find(key); found != known.all.end()) {
    return found->second;
  }
  auto* const made = adopt_stream(device, stream);
  known.all.emplace(key, made);
  return made;
}

int number_of_cuda_device(const isthmus_device_t* device) noexcept {
  isthmus_device_info_t info{};
  info.struct_size = sizeof info;
  if (device == nullptr || isthmus_device_info(device, &info) != ISTHMUS_OK ||
      std::strcmp(info.backend, "cuda") != 0) {
    return -1;
  }
  return std::atoi(std::strrchr(info.filter, ':') + 1);
}

void StreamAllocator::serve_with(isthmus_resource_t* resource) {
  isthmus_resource_retain(resource);
  given_ = resource;
  given_device_ = number_of_cuda_device(info_of(resource).device);
}

void StreamAllocator::follow(int device, isthmus_resource_t* resource) {
  if (device < 0 || device >= k_most_devices) {
    return;
  }
  if (followed_.load(std::memory_order_acquire) == nullptr) {
    auto made = std::make_unique<FollowedResources>();
    FollowedResources* none = nullptr;
    if (followed_.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
      static_cast<void>(made.release());
    }
  }
  if (resource != nullptr) {
    isthmus_resource_retain(resource);
  }
  ResourceReference next{resource};
  auto& known = *followed_.load(std::memory_order_acquire);
  const std::lock_guard hold{known.lock};
  // The previous one is released outside of the lock.
  std::swap(known.serving[static_cast<std::size_t>(device)], next);
}

isthmus_resource_t* StreamAllocator::followed(int device) noexcept {
  auto* const known = followed_.load(std::memory_order_acquire);
  if (known == nullptr || device < 0 || device >= k_most_devices) {
    return nullptr;
  }
  const std::lock_guard hold{known->lock};
  auto* const found = known->serving[static_cast<std::size_t>(device)].get();
  if (found != nullptr) {
    isthmus_resource_retain(found);
  }
  return found;
}

void* StreamAllocator::allocate_followed(std::size_t nbytes, int device, CudaStream stream) {
  auto at = find(device, stream);
  ResourceReference serving{followed(device)};
  if (serving) {
    at.resource = serving.get();
  } else {
    isthmus_resource_retain(at.resource);
    serving.reset(at.resource);
  }
  void* const made = allocate_from(at, nbytes);
  auto& known = *followed_.load(std::memory_order_acquire);
  try {
    const std::lock_guard hold{known.lock};
    known.owners.insert_or_assign(made, std::move(serving));
  } catch (const std::bad_alloc&) {
    static_cast<void>(isthmus_resource_deallocate(at.resource, made, nbytes, 0, at.queue));
    throw AllocatorFailure("not enough host memory to record a block");
  }
  return made;
}

void StreamAllocator::deallocate_followed(void* pointer, std::size_t nbytes, CudaStream stream,
                                          int device) {
  auto& known = *followed_.load(std::memory_order_acquire);
  ResourceReference owner;
  {
    const std::lock_guard hold{known.lock};
    if (const auto found = known.owners.find(pointer); found != known.owners.end()) {
      owner = std::move(found->second);
      known.owners.erase(found);
    }
  }
  const auto [resource, queue] = find(device, stream);
  LateFrees::try_one();
  LateFrees::free({owner ? owner.get() : resource, queue, pointer, nbytes});
}

void StreamAllocator::make_pool(Served& served, int device) const {
  const auto where = find_device_number(device);
  const auto home = default_context_of(where.get());
  // The budget only records the peak, unless its limit is less than all of the memory.
  const auto& share = shares_[static_cast<std::size_t>(device)];
  const auto limit =
      share ? static_cast<std::uint64_t>(static_cast<double>(bytes_of(where.get())) * *share)
            : UINT64_MAX / 2;
  check(isthmus_budget_create(std::max<std::uint64_t>(limit, 1), &served.budget));
  isthmus_pool_options_t options{};
  options.struct_size = sizeof options;
  options.budget = served.budget;
  check(
      isthmus_resource_pool(home.get(), where.get(), ISTHMUS_KIND_DEVICE, &options, &served.from));
}

const StreamAllocator::Served* StreamAllocator::make(int device) const {
  auto made = std::make_unique<Served>();
  if (device == given_device_) {
    made->from = given_;
  } else {
    make_pool(*made, device);
  }
  check(isthmus_resource_statistics(made->from, &made->counted));
  return made.release();
}

const StreamAllocator::Served& StreamAllocator::serve(int device) {
  if (device < 0 || device >= k_most_devices) {
    throw AllocatorFailure("device " + std::to_string(device) + " is out of range: use 0 to " +
                           std::to_string(k_most_devices - 1));
  }
  auto& slot = devices_[static_cast<std::size_t>(device)];
  if (const auto* found = slot.load(std::memory_order_acquire)) {
    return *found;
  }
  const std::lock_guard hold{making_};
  if (const auto* found = slot.load(std::memory_order_acquire)) {
    return *found;
  }
  const auto* const made = make(device);
  slot.store(made, std::memory_order_release);
  return *made;
}

StreamAllocator::Place StreamAllocator::find(int device, CudaStream stream) {
  auto& last = cached_for(device, stream);
  if (last.of == this && last.stream == stream && last.device == device) [[likely]] {
    return last.found;
  }
  if (is_forked_child()) {  // a thread that the child lacks may hold the locks
    throw AllocatorFailure("a forked child cannot use the memory of its parent's device");
  }
  const Place found{serve(device).counted, queue_of_stream_number(device, stream)};
  last = {this, stream, device, found};
  return found;
}

void* StreamAllocator::allocate_from(const Place& at, std::size_t nbytes) {
  LateFrees::try_one();
  void* made = nullptr;
  auto status = isthmus_resource_allocate(at.resource, nbytes, 0, at.queue, &made);
  if (status == ISTHMUS_ERROR_OUT_OF_MEMORY && LateFrees::try_all()) {
    status = isthmus_resource_allocate(at.resource, nbytes, 0, at.queue, &made);
  }
  if (status != ISTHMUS_OK) [[unlikely]] {
    // Programs recognize this text, whatever the exception class.
    throw_last_failure(status == ISTHMUS_ERROR_OUT_OF_MEMORY ? "CUDA out of memory. " : "");
  }
  return made;
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
    deallocate_followed(pointer, nbytes, stream, device);
    return;
  }
  const auto [resource, queue] = find(device, stream);
  LateFrees::try_one();
  LateFrees::free({resource, queue, pointer, nbytes});
} catch (const std::exception& problem) {
  std::fprintf(stderr, "isthmus: %zu bytes at %p on stream %p of device %d were not freed: %s\n",
               nbytes, pointer, stream, device, problem.what());
}

void StreamAllocator::trim() {
  LateFrees::try_all();
  for (int device = 0; device < k_most_devices; ++device) {
    if (const ResourceReference serving{followed(device)}) {
      check(isthmus_resource_trim(serving.get(), 0, nullptr));
    }
  }
  for (auto& slot : devices_) {
    if (const auto* const serving = slot.load(std::memory_order_acquire)) {
      check(isthmus_resource_trim(serving->counted, 0, nullptr));
    }
  }
}

void StreamAllocator::limit(double share, int device) {
  if (device < 0 || device >= k_most_devices) {
    throw AllocatorFailure("device " + std::to_string(device) + " is out of range: use 0 to " +
                           std::to_string(k_most_devices - 1));
  }
  const std::lock_guard hold{making_};
  if (device == given_device_) {
    throw AllocatorFailure(
        "the memory fraction of a custom resource cannot be set: create its pool with limit_bytes");
  }
  if (devices_[static_cast<std::size_t>(device)].load(std::memory_order_acquire) != nullptr) {
    throw AllocatorFailure("the memory fraction of device " + std::to_string(device) +
                           " can only be set before the first allocation on it");
  }
  shares_[static_cast<std::size_t>(device)] = share;
}

AllocatorUsage StreamAllocator::usage(int device) {
  const auto& of = serve(device);
  AllocatorUsage told{};
  told.counts.struct_size = sizeof told.counts;
  check(isthmus_statistics_query(of.counted, &told.counts));
  told.resource = info_of(of.counted);
  if (of.budget != nullptr) {
    isthmus_budget_info_t info{};
    info.struct_size = sizeof info;
    check(isthmus_budget_query(of.budget, &info));
    told.peak_held_bytes = info.peak_held_bytes;
    told.knows_peak = true;
  }
  return told;
}

void note_stream(void* pointer, CudaStream stream) {
  isthmus_pointer_info_t known{};
  known.struct_size = sizeof known;
  if (pointer == nullptr || isthmus_pointer_query(nullptr, pointer, &known) != ISTHMUS_OK ||
      known.state != ISTHMUS_MEMORY_LIVE) {
    return;
  }
  auto* const queue = queue_of_stream_number(number_of_cuda_device(known.device), stream);
  // The free itself takes care of the block's own stream.
  if (isthmus_queue_key(queue) != known.queue_key) {
    StreamNotes::add(known.base != nullptr ? known.base : pointer, queue);
  }
}

void* find_block(void* pointer, std::size_t* nbytes) noexcept {
  isthmus_pointer_info_t known{};
  known.struct_size = sizeof known;
  if (isthmus_pointer_query(nullptr, pointer, &known) != ISTHMUS_OK || known.base == nullptr) {
    return pointer;
  }
  if (nbytes != nullptr) {
    *nbytes = known.nbytes;
  }
  return known.base;
}

}  // namespace isthmus::python
