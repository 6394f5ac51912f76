// SPDX-License-Identifier: Apache-2.0
// A stand-in for libcuda.so.1 without a card: its devices' memory is host memory, and its streams
// are threads. The suites run on it where there is no GPU, through ISTHMUS_CUDA_LIBRARY.
//
// Like the driver, it refuses calls of a thread without a current context, and calls that mix
// objects of two devices. As a driver may, it also refuses work of one device that accesses
// another's memory. A test can make one call fail, of those that allocate, create streams and
// events, or submit.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <type_traits>

#include "../../src/backend/cuda/api.hpp"
#include "cuda_kernels.hpp"
#include "cuda_memory.hpp"
#include "cuda_pools.hpp"
#include "cuda_streams.hpp"

using namespace isthmus::cuda;

namespace {

namespace cu = isthmus::cuda::cu;

// Never destroyed: threads that use it outlive `main`.
stand_in::memory& memory() {
  static auto* const only = new stand_in::memory;
  return *only;
}
stand_in::memory_pools& pools() {
  static auto* const only = new stand_in::memory_pools;
  return *only;
}
constexpr int k_devices = stand_in::memory::k_devices;
constexpr Number k_attribute_pool_handle_types = 119;

std::array<char, k_devices> primary_contexts;
ContextHandle primary(Ordinal of) {
  return reinterpret_cast<ContextHandle>(&primary_contexts.at(static_cast<std::size_t>(of)));
}
// In static TLS: LeakSanitizer of g++ 12 crashes on the dynamic TLS of libraries that were opened
// late.
[[gnu::tls_model("initial-exec")]] thread_local ContextHandle current = nullptr;
// The device of the current context; the first device without one.
Ordinal device_here() {
  for (Ordinal each = 0; each < k_devices; ++each) {
    if (current == primary(each)) {
      return each;
    }
  }
  return 0;
}

stand_in::stream& legacy() {
  static auto* const all = [] {
    auto* const made = new std::array<std::unique_ptr<stand_in::stream>, k_devices>;
    for (Ordinal each = 0; each < k_devices; ++each) {
      made->at(static_cast<std::size_t>(each)) =
          std::make_unique<stand_in::stream>(stand_in::manner::legacy, each);
    }
    return made;
  }();
  return *all->at(static_cast<std::size_t>(device_here()));
}

// The per-thread default streams, destroyed with their thread.
[[gnu::tls_model("initial-exec")]] thread_local std::array<std::unique_ptr<stand_in::stream>,
                                                           k_devices> of_thread;

stand_in::stream& stream_of(StreamHandle handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= cu::k_stream_legacy) {
    return legacy();
  }
  if (number != cu::k_stream_of_each_thread) {
    return *reinterpret_cast<stand_in::stream*>(handle);
  }
  auto& own = of_thread.at(static_cast<std::size_t>(device_here()));
  if (own == nullptr) {
    own = std::make_unique<stand_in::stream>(stand_in::manner::blocking, device_here());
  }
  return *own;
}
// Whether a query of the stream, or work on it, is an error because of a capture.
Code capture_of(StreamHandle on) {
  const auto& stream = stream_of(on);
  return &stream == &legacy() && stand_in::stream::any_is_captured(stream.device())
             ? cu::k_error_STREAM_CAPTURE_IMPLICIT
             : cu::k_success;
}
stand_in::event& event_of(EventHandle handle) {
  return *reinterpret_cast<stand_in::event*>(handle);
}

Code in_context() { return current != nullptr ? cu::k_success : cu::k_error_INVALID_CONTEXT; }
std::atomic<long> calls_before_failure{-1};
std::atomic<bool> node_is_full{false};
std::atomic<bool> exports_are_refused{false};

Code may_begin() {
  if (in_context() != cu::k_success) {
    return in_context();
  }
  const bool fails = calls_before_failure >= 0 && calls_before_failure-- == 0;
  return fails ? cu::k_error_OUT_OF_MEMORY : cu::k_success;
}
Code if_true(bool right) { return right ? cu::k_success : cu::k_error_INVALID_VALUE; }

template <class Work>
Code push(StreamHandle on, Work work) {
  auto outcome = may_begin();
  if (outcome == cu::k_success && stream_of(on).device() != device_here()) {
    outcome = cu::k_error_INVALID_HANDLE;
  }
  if (outcome == cu::k_success) {
    outcome = stream_of(on).is_captured ? cu::k_error_STREAM_CAPTURE_UNSUPPORTED : capture_of(on);
  }
  if (outcome == cu::k_success) {
    stream_of(on).push(std::move(work));
  }
  return outcome;
}

bool may_touch(StreamHandle on, Place at, std::size_t nbytes) {
  return memory().may_touch(stream_of(on).device(), at, nbytes);
}

template <class T>
Code fill(Place at, std::size_t pitch, T value, std::size_t width, std::size_t height,
          StreamHandle on) {
  const auto extent = (height - 1) * pitch + width * sizeof value;
  if (at % sizeof value != 0 || memory().refuses_fill(at, extent) || !may_touch(on, at, extent)) {
    return cu::k_error_INVALID_VALUE;
  }
  return push(on, [=] {
    for (std::size_t row = 0; row < height; ++row) {
      auto* const start = static_cast<T*>(pointer_to(at + row * pitch));
      for (std::size_t column = 0; column < width; ++column) {
        start[column] = value;
      }
    }
  });
}

bool is_of_host(stand_in::sort of) {
  return of == stand_in::sort::host || of == stand_in::sort::registered ||
         of == stand_in::sort::mapped_host;
}

Code allocate(Place* at, std::size_t nbytes, stand_in::sort of) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  *at = memory().allocate(nbytes, of, device_here());
  return *at != 0 ? cu::k_success : cu::k_error_OUT_OF_MEMORY;
}

}  // namespace

extern "C" {

// Makes the call after the next `calls` fail; negative: none. Returns how many calls remained.
long stand_in_fail_after(long calls) { return calls_before_failure.exchange(calls); }
// Makes the next `count` mappings of memory at an address fail.
void stand_in_refuse_maps(long count) { memory().refuse_maps(count); }
// Leaves no free memory on the host's NUMA node near the device.
void stand_in_fill_node(int is_full) { node_is_full = is_full != 0; }
// Makes the driver refuse to create exportable memory.
void stand_in_refuse_exports(int refuses) { exports_are_refused = refuses != 0; }
// Lets each device access the other's memory where it was given access.
void stand_in_let_peers(int may) { memory().let_peers(may != 0); }
// The devices that may access what is mapped there, one bit each.
unsigned stand_in_users(const void* at) { return memory().users_of(place_of(at)); }
// The number of registered ranges of callers' memory.
std::size_t stand_in_registered() { return memory().registered(); }
int stand_in_is_write_combined(const void* at) {
  return memory().is_write_combined(place_of(at)) ? 1 : 0;
}

Code cuInit(Number) { return cu::k_success; }
Code cuDriverGetVersion(int* version) {
  *version = 13000;
  return cu::k_success;
}
Code cuDeviceGetCount(int* count) {
  *count = k_devices;
  return cu::k_success;
}
Code cuDeviceGet(Ordinal* found, int index) {
  *found = index;
  return cu::k_success;
}
Code cuDeviceGetName(char* name, int room, Ordinal) {
  std::snprintf(name, static_cast<std::size_t>(room), "a stand-in");
  return cu::k_success;
}
Code cuDeviceGetAttribute(int* value, Number what, Ordinal) {
  switch (what) {
    case cu::k_attribute_compute_mode:
    case cu::k_attribute_host_node: *value = 0; break;
    case k_attribute_pool_handle_types:
      *value = std::getenv("STAND_IN_WITH_FABRIC") != nullptr ? 1 | 8 : 1;
      break;
    case cu::k_attribute_max_pitch: *value = 1 << 20; break;  // small, so that tests exceed it
    default: *value = 1;
  }
  return cu::k_success;
}
Code cuDeviceGetPCIBusId(char* address, int room, Ordinal of) {
  std::snprintf(address, static_cast<std::size_t>(room), "FFFF:%02d:00.0", of);  // no real device's
  return cu::k_success;
}
Code cuDeviceTotalMem_v2(std::size_t* nbytes, Ordinal) {
  *nbytes = stand_in::memory::k_device_bytes;
  return cu::k_success;
}
Code cuDevicePrimaryCtxRetain(ContextHandle* made, Ordinal of) {
  *made = primary(of);
  return cu::k_success;
}
Code cuCtxGetCurrent(ContextHandle* found) {
  *found = current;
  return cu::k_success;
}
Code cuCtxSetCurrent(ContextHandle wanted) {
  current = wanted;
  return cu::k_success;
}
Code cuCtxSynchronize() {
  stand_in::stream::wait_for_all();
  return in_context();
}

Code cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = memory().free_bytes(device_here());
  *total_bytes = stand_in::memory::k_device_bytes;
  return in_context();
}
Code cuMemAlloc_v2(Place* at, std::size_t nbytes) {
  return allocate(at, nbytes, stand_in::sort::device);
}
Code cuMemAllocManaged(Place* at, std::size_t nbytes, Number) {
  return allocate(at, nbytes, stand_in::sort::managed);
}
Code cuMemHostAlloc(void** at, std::size_t nbytes, Number how) {
  Place made = 0;
  const auto outcome = allocate(&made, nbytes, stand_in::sort::host);
  *at = pointer_to(made);
  if (outcome == cu::k_success && (how & cu::k_host_write_combined) != 0) {
    memory().note_write_combined(made);
  }
  return outcome;
}
Code cuMemHostRegister_v2(void* at, std::size_t nbytes, Number how) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  switch (memory().add(place_of(at), nbytes, (how & cu::k_register_read_only) != 0)) {
    case stand_in::addition::made: return cu::k_success;
    case stand_in::addition::there_already: return cu::k_error_HOST_MEMORY_ALREADY_REGISTERED;
    default: return cu::k_error_INVALID_VALUE;
  }
}
Code cuMemHostUnregister(void* at) {
  if (in_context() != cu::k_success) {
    return in_context();
  }
  return memory().remove(place_of(at)) ? cu::k_success : cu::k_error_HOST_MEMORY_NOT_REGISTERED;
}
// Like the driver's, these wait for all work on the device.
Code cuMemFree_v2(Place at) {
  if (in_context() == cu::k_success) {
    stand_in::stream::wait_for_all();
  }
  return in_context() == cu::k_success ? if_true(memory().free(at)) : in_context();
}
Code cuMemFreeHost(void* at) { return cuMemFree_v2(place_of(at)); }

// The driver's memory pools, which programs create and the library does not.
struct pool_properties {
  int type, handle_types;
  struct {
    int type, id;
  } where;
};
Code cuMemPoolCreate(stand_in::memory_pool** made, const pool_properties* what) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  const bool is_managed = what->type == 2;
  *made =
      pools().add(what->where.id, is_managed ? stand_in::sort::managed : stand_in::sort::device);
  return cu::k_success;
}
Code cuMemPoolDestroy(stand_in::memory_pool* gone) { return if_true(pools().remove(gone)); }
Code cuDeviceGetDefaultMemPool(stand_in::memory_pool** found, Ordinal of) {
  *found = pools().default_of(of, stand_in::sort::device);
  return cu::k_success;
}
Code cuMemGetDefaultMemPool(stand_in::memory_pool** found, const int* where, int type) {
  *found =
      pools().default_of(where[1], type == 2 ? stand_in::sort::managed : stand_in::sort::device);
  return cu::k_success;
}
Code cuMemPoolSetAttribute(stand_in::memory_pool* of, int what, void* value) {
  auto* const known = pools().find(of);
  if (known == nullptr || what != 4) {
    return cu::k_error_INVALID_VALUE;
  }
  known->release_threshold = *static_cast<std::uint64_t*>(value);
  return cu::k_success;
}
Code cuMemPoolGetAttribute(stand_in::memory_pool* of, int what, void* value) {
  auto* const known = pools().find(of);
  if (known == nullptr || what != 4) {
    return cu::k_error_INVALID_VALUE;
  }
  *static_cast<std::uint64_t*>(value) = known->release_threshold;
  return cu::k_success;
}
Code cuMemAllocFromPoolAsync(Place* at, std::size_t nbytes, stand_in::memory_pool* from,
                             StreamHandle) {
  auto* const known = pools().find(from);
  return known == nullptr ? cu::k_error_INVALID_VALUE : allocate(at, nbytes, known->of);
}
Code cuMemFreeAsync(Place at, StreamHandle on) {
  return push(on, [at] { static_cast<void>(memory().free(at)); });
}

Code cuPointerGetAttributes(Number count, Number* what, void** answers, Place of) {
  std::uintptr_t base = 0;
  stand_in::block found;
  const bool known = memory().find(of, base, found);
  for (Number index = 0; index < count; ++index) {
    switch (what[index]) {
      case cu::k_pointer_memory_type:
        *static_cast<Number*>(answers[index]) = !known                 ? 0
                                                : is_of_host(found.of) ? cu::k_memory_host
                                                                       : cu::k_memory_device;
        break;
      case cu::k_pointer_is_managed:
        *static_cast<Number*>(answers[index]) = known && found.of == stand_in::sort::managed;
        break;
      case cu::k_pointer_on_device: *static_cast<Place*>(answers[index]) = known ? of : 0; break;
      case cu::k_pointer_device: *static_cast<Ordinal*>(answers[index]) = found.where; break;
      case cu::k_pointer_handle_types:
        *static_cast<Number*>(answers[index]) = known ? found.handle_types : 0;
        break;
      case cu::k_pointer_is_for_rdma:
        *static_cast<Number*>(answers[index]) =
            known && (found.of == stand_in::sort::device || found.for_rdma);
        break;
      case cu::k_pointer_base: *static_cast<Place*>(answers[index]) = base; break;
      default: *static_cast<std::size_t*>(answers[index]) = found.nbytes;
    }
  }
  return in_context();
}

Code cuStreamCreate(StreamHandle* made, Number how) {
  const auto outcome = may_begin();
  if (outcome == cu::k_success) {
    *made = reinterpret_cast<StreamHandle>(new stand_in::stream{
        how == cu::k_stream_non_blocking ? stand_in::manner::apart : stand_in::manner::blocking,
        device_here()});
  }
  return outcome;
}
Code cuStreamDestroy_v2(StreamHandle gone) {
  delete &stream_of(gone);
  return in_context();
}
Code cuStreamGetCtx(StreamHandle of, ContextHandle* home) {
  *home = primary(stream_of(of).device());
  return in_context();
}
Code cuStreamWaitEvent(StreamHandle on, EventHandle before, Number) {
  auto last = event_of(before).last;
  return last == nullptr ? in_context() : push(on, [last] { last->wait(); });
}
Code cuStreamSynchronize(StreamHandle on) {
  stream_of(on).record()->wait();
  return in_context();
}
Code cuStreamIsCapturing(StreamHandle of, Number* state) {
  *state = stream_of(of).is_captured ? cu::k_not_capturing + 1 : cu::k_not_capturing;
  return in_context() == cu::k_success ? capture_of(of) : in_context();
}
// Also for tests. Nothing is recorded: a stream only refuses work while it is captured.
Code cuStreamBeginCapture_v2(StreamHandle of, Number) {
  stream_of(of).is_captured = true;
  return in_context();
}
Code cuStreamEndCapture(StreamHandle of, void** graph) {
  stream_of(of).is_captured = false;
  *graph = nullptr;
  return in_context();
}
// Not called by the library: lets tests keep a stream busy.
Code cuLaunchHostFunc(StreamHandle on, void (*call)(void*), void* with) {
  return push(on, [=] { call(with); });
}
Code cuEventCreate(EventHandle* made, Number how) {
  const auto outcome = may_begin();
  if (outcome == cu::k_success) {
    *made = reinterpret_cast<EventHandle>(
        new stand_in::event{device_here(), (how & cu::k_event_without_times) == 0, nullptr});
  }
  return outcome;
}
Code cuEventDestroy_v2(EventHandle gone) {
  delete &event_of(gone);
  return in_context();
}
Code cuEventRecord(EventHandle what, StreamHandle on) {
  auto outcome = may_begin();
  if (outcome == cu::k_success && event_of(what).device != stream_of(on).device()) {
    outcome = cu::k_error_INVALID_HANDLE;
  }
  if (outcome == cu::k_success) {
    event_of(what).last = stream_of(on).record();
  }
  return outcome;
}
Code cuEventQuery(EventHandle what) {
  const auto& last = event_of(what).last;
  return last == nullptr || last->is_set() ? in_context() : cu::k_error_NOT_READY;
}

Code cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  for (const auto* each : {&event_of(from), &event_of(to)}) {
    if (!each->knows_time || each->last == nullptr) {
      return cu::k_error_INVALID_HANDLE;
    }
    if (!each->last->is_set()) {
      return cu::k_error_NOT_READY;
    }
  }
  using wide = std::chrono::duration<float, std::milli>;
  *milliseconds = wide{event_of(to).last->at() - event_of(from).last->at()}.count();
  return in_context();
}

Code cuMemcpyAsync(Place to, Place from, std::size_t nbytes, StreamHandle on) {
  if (memory().goes_beyond(to, nbytes) || memory().goes_beyond(from, nbytes) ||
      !may_touch(on, to, nbytes) || !may_touch(on, from, nbytes)) {
    return cu::k_error_INVALID_VALUE;
  }
  return push(on, [=] { std::memmove(pointer_to(to), pointer_to(from), nbytes); });
}
Code cuMemcpy2DAsync_v2(const Copy2dParameters* how, StreamHandle on) {
  const auto extent = [&](std::size_t pitch) { return pitch * (how->height - 1) + how->width; };
  const auto refuses = [&](Number type, Place at, std::size_t pitch) {
    return type == cu::k_memory_unified &&
           (memory().goes_beyond(at, extent(pitch)) || !may_touch(on, at, extent(pitch)));
  };
  if (refuses(how->destination_type, how->destination, how->destination_pitch) ||
      refuses(how->source_type, how->source, how->source_pitch)) {
    return cu::k_error_INVALID_VALUE;
  }
  return push(on, [how = *how] {
    const auto to = how.destination_type == cu::k_memory_host ? place_of(how.destination_host)
                                                              : how.destination;
    const auto from = how.source_type == cu::k_memory_host ? place_of(how.source_host) : how.source;
    for (std::size_t row = 0; row < how.height; ++row) {
      std::memmove(pointer_to(to + row * how.destination_pitch),
                   pointer_to(from + row * how.source_pitch), how.width);
    }
  });
}
Code cuModuleLoadData(ModuleHandle* made, const void* image) {
  const auto outcome = may_begin();
  if (outcome != cu::k_success || std::getenv("STAND_IN_WITHOUT_KERNELS") != nullptr) {
    return outcome != cu::k_success ? outcome : cu::k_error_NOT_SUPPORTED;
  }
  const auto* const found = stand_in::kernel_in(static_cast<const char*>(image), device_here());
  *made = reinterpret_cast<ModuleHandle>(const_cast<stand_in::loaded_kernel*>(found));
  return if_true(found != nullptr);
}
Code cuModuleGetFunction(FunctionHandle* found, ModuleHandle in, const char* name) {
  const auto* const known = reinterpret_cast<const stand_in::loaded_kernel*>(in);
  *found = reinterpret_cast<FunctionHandle>(in);
  return name == known->what.name ? in_context() : cu::k_error_NOT_FOUND;
}
Code cuLaunchKernel(FunctionHandle what, Number blocks, Number, Number, Number lanes, Number rows,
                    Number, Number, StreamHandle on, void** parameters, void**) {
  if (blocks == 0 || lanes < 32 || lanes * rows > 1024) {
    return cu::k_error_INVALID_VALUE;
  }
  const auto& known = *reinterpret_cast<const stand_in::loaded_kernel*>(what);
  if (known.device != device_here()) {
    return cu::k_error_INVALID_HANDLE;
  }
  return push(on, known.what.bind({memory(), known.device}, parameters));
}

Code cuMemsetD8Async(Place at, unsigned char value, std::size_t count, StreamHandle on) {
  return fill(at, 0, value, count, 1, on);
}
Code cuMemsetD16Async(Place at, unsigned short value, std::size_t count, StreamHandle on) {
  return fill(at, 0, value, count, 1, on);
}
Code cuMemsetD32Async(Place at, unsigned value, std::size_t count, StreamHandle on) {
  return fill(at, 0, value, count, 1, on);
}
Code cuMemsetD2D8Async(Place at, std::size_t pitch, unsigned char value, std::size_t width,
                       std::size_t height, StreamHandle on) {
  return fill(at, pitch, value, width, height, on);
}
Code cuMemsetD2D16Async(Place at, std::size_t pitch, unsigned short value, std::size_t width,
                        std::size_t height, StreamHandle on) {
  return fill(at, pitch, value, width, height, on);
}
Code cuMemsetD2D32Async(Place at, std::size_t pitch, unsigned value, std::size_t width,
                        std::size_t height, StreamHandle on) {
  return fill(at, pitch, value, width, height, on);
}

Code cuMemAddressReserve(Place* made, std::size_t nbytes, std::size_t alignment, Place, Flags) {
  *made = memory().reserve(nbytes, alignment);
  return *made != 0 ? cu::k_success : cu::k_error_OUT_OF_MEMORY;
}
Code cuMemAddressFree(Place at, std::size_t nbytes) {
  return if_true(memory().release(at, nbytes));
}
Code cuMemCreate(MemoryHandle* made, std::size_t nbytes, const AllocationProperties* what, Flags) {
  const auto& where = what->where;
  const bool of_host = where.type == cu::k_location_host || where.type == cu::k_location_host_node;
  const bool is_there =
      of_host ? where.id == 0
              : where.type == cu::k_location_device && where.id >= 0 && where.id < k_devices;
  if (!is_there || nbytes == 0 || nbytes % stand_in::memory::k_granularity != 0) {
    return cu::k_error_INVALID_VALUE;
  }
  if (where.type == cu::k_location_host_node && node_is_full) {
    return cu::k_error_OUT_OF_MEMORY;
  }
  if (what->handle_types != 0 && (exports_are_refused || of_host)) {
    return cu::k_error_NOT_SUPPORTED;
  }
  const int file =
      memory().create(nbytes, of_host, what->gpu_direct != 0, where.id, what->handle_types);
  *made = static_cast<MemoryHandle>(file);
  return file >= 0 ? cu::k_success : cu::k_error_OUT_OF_MEMORY;
}
Code cuMemRelease(MemoryHandle gone) {
  memory().release_handle(static_cast<int>(gone));
  return cu::k_success;
}
Code cuMemMap(Place at, std::size_t nbytes, std::size_t, MemoryHandle what, Flags) {
  return if_true(memory().map(at, nbytes, static_cast<int>(what)));
}
Code cuMemUnmap(Place at, std::size_t nbytes) { return if_true(memory().unmap(at, nbytes)); }
Code cuMemSetAccess(Place at, std::size_t nbytes, const AccessRights* users, std::size_t count) {
  stand_in::device_set devices = 0;
  bool host = false;
  std::for_each(users, users + count, [&](const AccessRights& each) {
    host = host || each.who.type == cu::k_location_host;
    devices |= each.who.type == cu::k_location_device ? 1U << each.who.id : 0;
  });
  return if_true(
      memory().open(at, nbytes, devices, host, users[0].who.type == cu::k_location_device));
}
Code cuDeviceCanAccessPeer(int* can, Ordinal, Ordinal) {
  *can = memory().peers() ? 1 : 0;
  return cu::k_success;
}
Code cuMemGetAllocationGranularity(std::size_t* nbytes, const AllocationProperties*, Number) {
  *nbytes = stand_in::memory::k_granularity;
  return cu::k_success;
}

Code cuIpcGetMemHandle(IpcHandle* made, Place at) {
  stand_in::ipc_name name;
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  const bool shared = memory().share(at, name);
  std::memcpy(made->bytes, &name, sizeof name);
  return if_true(shared);
}
Code cuIpcOpenMemHandle_v2(Place* opened, IpcHandle of, Number) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  stand_in::ipc_name name;
  std::memcpy(&name, of.bytes, sizeof name);
  if (name.sign == name.k_sign && name.process == getpid()) {
    return cu::k_error_INVALID_CONTEXT;
  }
  *opened = memory().open_shared(name, device_here());
  return if_true(*opened != 0);
}
Code cuIpcCloseMemHandle(Place at) {
  stand_in::stream::wait_for_all();
  return in_context() == cu::k_success ? if_true(memory().close_shared(at)) : in_context();
}

Code cuMemPrefetchAsync_v2(Place, std::size_t, Location, Number, StreamHandle on) {
  return push(on, [] {});
}
Code cuMemAdvise_v2(Place, std::size_t, Number, Location) { return in_context(); }

}  // extern "C"

#define STAND_IN_SAME(member, name, ...) \
  static_assert(std::is_same_v<decltype(&name), Api::Entry<__VA_ARGS__>>, #name);
ISTHMUS_CUDA_CORE(STAND_IN_SAME)
ISTHMUS_CUDA_VIRTUAL(STAND_IN_SAME)
ISTHMUS_CUDA_LOCATIONS(STAND_IN_SAME)
ISTHMUS_CUDA_IPC(STAND_IN_SAME)
