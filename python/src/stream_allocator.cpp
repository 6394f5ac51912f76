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

void check(isthmus_status_t status, const char* what = "") {
  if (status != ISTHMUS_OK) [[unlikely]] {
    throw_last_failure(what);
  }
}

// Promises the library that the stream outlives its use.
constexpr isthmus_owner_t k_nobody{nullptr, [](void*) {}};

struct stream_key {
  int device;
  cuda_stream stream;
  bool operator==(const stream_key&) const noexcept = default;
};
struct stream_hash {
  std::size_t operator()(const stream_key& key) const noexcept {
    return std::hash<void*>{}(key.stream) * 31 + static_cast<std::size_t>(key.device);
  }
};
struct known_queues {
  std::mutex lock;
  std::unordered_map<stream_key, isthmus_queue_t*, stream_hash> all;
};

struct let_go {
  void operator()(isthmus_device_t* device) const noexcept { isthmus_device_release(device); }
  void operator()(isthmus_context_t* context) const noexcept { isthmus_context_release(context); }
};
using device_reference = std::unique_ptr<isthmus_device_t, let_go>;
using context_reference = std::unique_ptr<isthmus_context_t, let_go>;

device_reference find_device_number(int device) {
  isthmus_device_t* found = nullptr;
  check(isthmus_device_find(("cuda:" + std::to_string(device)).c_str(), &found));
  return device_reference{found};
}

context_reference default_context_of(isthmus_device_t* device) {
  isthmus_context_t* found = nullptr;
  check(isthmus_context_default(device, &found));
  return context_reference{found};
}

// This number means another stream on each thread, while deferred frees and notes of streams are
// processed by any thread.
isthmus_queue_t* adopt_stream(int device, cuda_stream stream) {
  if (stream == reinterpret_cast<void*>(std::uintptr_t{2})) {
    throw allocator_failure(
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
struct cached_place {
  const stream_allocator* of = nullptr;
  cuda_stream stream = nullptr;
  int device = -1;
  stream_allocator::place found{};
};
constexpr std::size_t k_cached = 8;  // a power of two
thread_local constinit std::array<cached_place, k_cached> cached{};

// Stream handles are addresses of objects larger than a cache line.
cached_place& cached_for(int device, cuda_stream stream) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(stream);
  return cached[(bits >> 6 ^ bits >> 12 ^ static_cast<unsigned>(device)) % k_cached];
}

std::uint64_t bytes_of(isthmus_device_t* device) {
  isthmus_device_info_t info{};
  info.struct_size = sizeof info;
  check(isthmus_device_info(device, &info));
  return info.memory_bytes;
}

struct let_resource_go {
  void operator()(isthmus_resource_t* resource) const noexcept {
    isthmus_resource_release(resource);
  }
};
using resource_reference = std::unique_ptr<isthmus_resource_t, let_resource_go>;

}  // namespace

struct followed_resources {
  std::mutex lock;
  std::array<resource_reference, stream_allocator::k_most_devices> serving;
  std::unordered_map<void*, resource_reference> owners;  // of live blocks
};

void throw_last_failure(const char* what) {
  throw allocator_failure(std::string(what) + isthmus_error_message());
}

isthmus_queue_t* queue_of_stream_number(int device, cuda_stream stream) {
  auto& known = immortal<known_queues>();
  const stream_key key{device, stream};
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

void stream_allocator::serve_with(isthmus_resource_t* resource) {
  isthmus_resource_retain(resource);
  given_ = resource;
  given_device_ = number_of_cuda_device(info_of(resource).device);
}

void stream_allocator::follow(int device, isthmus_resource_t* resource) {
  if (device < 0 || device >= k_most_devices) {
    return;
  }
  if (followed_.load(std::memory_order_acquire) == nullptr) {
    auto made = std::make_unique<followed_resources>();
    followed_resources* none = nullptr;
    if (followed_.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) {
      static_cast<void>(made.release());
    }
  }
  if (resource != nullptr) {
    isthmus_resource_retain(resource);
  }
  resource_reference next{resource};
  auto& known = *followed_.load(std::memory_order_acquire);
  const std::lock_guard hold{known.lock};
  // The previous one is released outside of the lock.
  std::swap(known.serving[static_cast<std::size_t>(device)], next);
}

isthmus_resource_t* stream_allocator::followed(int device) noexcept {
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

void* stream_allocator::allocate_followed(std::size_t nbytes, int device, cuda_stream stream) {
  auto at = find(device, stream);
  resource_reference serving{followed(device)};
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
    throw allocator_failure("not enough host memory to record a block");
  }
  return made;
}

void stream_allocator::deallocate_followed(void* pointer, std::size_t nbytes, cuda_stream stream,
                                           int device) {
  auto& known = *followed_.load(std::memory_order_acquire);
  resource_reference owner;
  {
    const std::lock_guard hold{known.lock};
    if (const auto found = known.owners.find(pointer); found != known.owners.end()) {
      owner = std::move(found->second);
      known.owners.erase(found);
    }
  }
  const auto [resource, queue] = find(device, stream);
  late_frees::try_one();
  late_frees::free({owner ? owner.get() : resource, queue, pointer, nbytes});
}

void stream_allocator::make_pool(served& of, int device) const {
  const auto where = find_device_number(device);
  const auto home = default_context_of(where.get());
  // The budget only records the peak, unless its limit is less than all of the memory.
  const auto& share = shares_[static_cast<std::size_t>(device)];
  const auto limit =
      share ? static_cast<std::uint64_t>(static_cast<double>(bytes_of(where.get())) * *share)
            : UINT64_MAX / 2;
  check(isthmus_budget_create(std::max<std::uint64_t>(limit, 1), &of.budget));
  isthmus_pool_options_t options{};
  options.struct_size = sizeof options;
  options.budget = of.budget;
  check(isthmus_resource_pool(home.get(), where.get(), ISTHMUS_KIND_DEVICE, &options, &of.from));
}

const stream_allocator::served* stream_allocator::make(int device) const {
  auto made = std::make_unique<served>();
  if (device == given_device_) {
    made->from = given_;
  } else {
    make_pool(*made, device);
  }
  check(isthmus_resource_statistics(made->from, &made->counted));
  return made.release();
}

const stream_allocator::served& stream_allocator::serve(int device) {
  if (device < 0 || device >= k_most_devices) {
    throw allocator_failure("device " + std::to_string(device) + " is out of range: use 0 to " +
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

stream_allocator::place stream_allocator::find(int device, cuda_stream stream) {
  auto& last = cached_for(device, stream);
  if (last.of == this && last.stream == stream && last.device == device) [[likely]] {
    return last.found;
  }
  if (is_forked_child()) {  // a thread that the child lacks may hold the locks
    throw allocator_failure("a forked child cannot use the memory of its parent's device");
  }
  const place found{serve(device).counted, queue_of_stream_number(device, stream)};
  last = {this, stream, device, found};
  return found;
}

void* stream_allocator::allocate_from(const place& at, std::size_t nbytes) {
  late_frees::try_one();
  void* made = nullptr;
  auto status = isthmus_resource_allocate(at.resource, nbytes, 0, at.queue, &made);
  if (status == ISTHMUS_ERROR_OUT_OF_MEMORY && late_frees::try_all()) {
    status = isthmus_resource_allocate(at.resource, nbytes, 0, at.queue, &made);
  }
  if (status != ISTHMUS_OK) [[unlikely]] {
    // Programs recognize this text, whatever the exception class.
    throw_last_failure(status == ISTHMUS_ERROR_OUT_OF_MEMORY ? "CUDA out of memory. " : "");
  }
  return made;
}

void* stream_allocator::allocate(std::size_t nbytes, int device, cuda_stream stream) {
  if (followed_.load(std::memory_order_acquire) != nullptr) [[unlikely]] {
    return allocate_followed(nbytes, device, stream);
  }
  return allocate_from(find(device, stream), nbytes);
}

void stream_allocator::deallocate(void* pointer, std::size_t nbytes, int device,
                                  cuda_stream stream) noexcept try {
  if (pointer == nullptr || is_forked_child()) {
    return;
  }
  if (followed_.load(std::memory_order_acquire) != nullptr) [[unlikely]] {
    deallocate_followed(pointer, nbytes, stream, device);
    return;
  }
  const auto [resource, queue] = find(device, stream);
  late_frees::try_one();
  late_frees::free({resource, queue, pointer, nbytes});
} catch (const std::exception& problem) {
  std::fprintf(stderr, "isthmus: %zu bytes at %p on stream %p of device %d were not freed: %s\n",
               nbytes, pointer, stream, device, problem.what());
}

void stream_allocator::trim() {
  late_frees::try_all();
  for (int device = 0; device < k_most_devices; ++device) {
    if (const resource_reference serving{followed(device)}) {
      check(isthmus_resource_trim(serving.get(), 0, nullptr));
    }
  }
  for (auto& slot : devices_) {
    if (const auto* const serving = slot.load(std::memory_order_acquire)) {
      check(isthmus_resource_trim(serving->counted, 0, nullptr));
    }
  }
}

void stream_allocator::limit(double share, int device) {
  if (device < 0 || device >= k_most_devices) {
    throw allocator_failure("device " + std::to_string(device) + " is out of range: use 0 to " +
                            std::to_string(k_most_devices - 1));
  }
  const std::lock_guard hold{making_};
  if (device == given_device_) {
    throw allocator_failure(
        "the memory fraction of a custom resource cannot be set: create its pool with limit_bytes");
  }
  if (devices_[static_cast<std::size_t>(device)].load(std::memory_order_acquire) != nullptr) {
    throw allocator_failure("the memory fraction of device " + std::to_string(device) +
                            " can only be set before the first allocation on it");
  }
  shares_[static_cast<std::size_t>(device)] = share;
}

allocator_usage stream_allocator::usage(int device) {
  const auto& of = serve(device);
  allocator_usage told{};
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

void note_stream(void* pointer, cuda_stream stream) {
  isthmus_pointer_info_t known{};
  known.struct_size = sizeof known;
  if (pointer == nullptr || isthmus_pointer_query(nullptr, pointer, &known) != ISTHMUS_OK ||
      known.state != ISTHMUS_MEMORY_LIVE) {
    return;
  }
  auto* const queue = queue_of_stream_number(number_of_cuda_device(known.device), stream);
  // The free itself takes care of the block's own stream.
  if (isthmus_queue_key(queue) != known.queue_key) {
    stream_notes::add(known.base != nullptr ? known.base : pointer, queue);
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
