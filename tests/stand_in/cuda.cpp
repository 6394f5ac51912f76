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
constexpr unsigned k_attribute_pool_handle_types = 119;

std::array<char, k_devices> primary_contexts;
CUcontext primary(CUdevice of) {
  return reinterpret_cast<CUcontext>(&primary_contexts.at(static_cast<std::size_t>(of)));
}
// In static TLS: LeakSanitizer of g++ 12 crashes on the dynamic TLS of libraries that were opened
// late.
[[gnu::tls_model("initial-exec")]] thread_local CUcontext current = nullptr;
// The device of the current context; the first device without one.
CUdevice device_here() {
  for (CUdevice each = 0; each < k_devices; ++each) {
    if (current == primary(each)) {
      return each;
    }
  }
  return 0;
}

stand_in::stream& legacy() {
  static auto* const all = [] {
    auto* const made = new std::array<std::unique_ptr<stand_in::stream>, k_devices>;
    for (CUdevice each = 0; each < k_devices; ++each) {
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

stand_in::stream& stream_of(CUstream handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (number <= cu::k_stream_legacy) {
    return legacy();
  }
  if (number != cu::k_stream_per_thread) {
    return *reinterpret_cast<stand_in::stream*>(handle);
  }
  auto& own = of_thread.at(static_cast<std::size_t>(device_here()));
  if (own == nullptr) {
    own = std::make_unique<stand_in::stream>(stand_in::manner::blocking, device_here());
  }
  return *own;
}
// Whether a query of the stream, or work on it, is an error because of a capture.
CUresult capture_of(CUstream on) {
  const auto& stream = stream_of(on);
  return &stream == &legacy() && stand_in::stream::any_is_captured(stream.device())
             ? cu::k_error_STREAM_CAPTURE_IMPLICIT
             : cu::k_success;
}
stand_in::event& event_of(CUevent handle) { return *reinterpret_cast<stand_in::event*>(handle); }

CUresult in_context() { return current != nullptr ? cu::k_success : cu::k_error_INVALID_CONTEXT; }
std::atomic<long> calls_before_failure{-1};
std::atomic<bool> node_is_full{false};
std::atomic<bool> exports_are_refused{false};
std::atomic<std::size_t> live_events{0};

CUresult may_begin() {
  if (in_context() != cu::k_success) {
    return in_context();
  }
  const bool fails = calls_before_failure >= 0 && calls_before_failure-- == 0;
  return fails ? cu::k_error_OUT_OF_MEMORY : cu::k_success;
}
CUresult if_true(bool right) { return right ? cu::k_success : cu::k_error_INVALID_VALUE; }

template <class Work>
CUresult push(CUstream on, Work work) {
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

bool may_touch(CUstream on, CUdeviceptr at, std::size_t nbytes) {
  return memory().may_touch(stream_of(on).device(), at, nbytes);
}

template <class T>
CUresult fill(CUdeviceptr at, std::size_t pitch, T value, std::size_t width, std::size_t height,
              CUstream on) {
  const auto extent = (height - 1) * pitch + width * sizeof value;
  if (at % sizeof value != 0 || memory().refuses_fill(at, extent) || !may_touch(on, at, extent)) {
    return cu::k_error_INVALID_VALUE;
  }
  return push(on, [=] {
    for (std::size_t row = 0; row < height; ++row) {
      auto* const start = static_cast<T*>(to_pointer(at + row * pitch));
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

CUresult allocate(CUdeviceptr* at, std::size_t nbytes, stand_in::sort of) {
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
void stand_in_let_peers(int may) { memory().enable_peers(may != 0); }
// The devices that may access what is mapped there, one bit each.
unsigned stand_in_users(const void* at) { return memory().users_of(to_deviceptr(at)); }
// The number of registered ranges of callers' memory.
std::size_t stand_in_registered() { return memory().registered(); }
// The number of events that were created and not destroyed.
std::size_t stand_in_events() { return live_events; }
int stand_in_is_write_combined(const void* at) {
  return memory().is_write_combined(to_deviceptr(at)) ? 1 : 0;
}

CUresult cuInit(unsigned) { return cu::k_success; }
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return cu::k_success;
}
CUresult cuDeviceGetCount(int* count) {
  *count = k_devices;
  return cu::k_success;
}
CUresult cuDeviceGet(CUdevice* found, int index) {
  *found = index;
  return cu::k_success;
}
CUresult cuDeviceGetName(char* name, int room, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(room), "a stand-in");
  return cu::k_success;
}
CUresult cuDeviceGetAttribute(int* value, unsigned what, CUdevice) {
  switch (what) {
    case cu::k_attribute_compute_mode:
    case cu::k_attribute_host_numa_id: *value = 0; break;
    case k_attribute_pool_handle_types:
      *value = std::getenv("STAND_IN_WITH_FABRIC") != nullptr ? 1 | 8 : 1;
      break;
    case cu::k_attribute_max_pitch: *value = 1 << 20; break;  // small, so that tests exceed it
    default: *value = 1;
  }
  return cu::k_success;
}
CUresult cuDeviceGetPCIBusId(char* address, int room, CUdevice of) {
  std::snprintf(address, static_cast<std::size_t>(room), "FFFF:%02d:00.0", of);  // no real device's
  return cu::k_success;
}
CUresult cuDeviceTotalMem_v2(std::size_t* nbytes, CUdevice) {
  *nbytes = stand_in::memory::k_device_bytes;
  return cu::k_success;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* made, CUdevice of) {
  *made = primary(of);
  return cu::k_success;
}
CUresult cuCtxGetCurrent(CUcontext* found) {
  *found = current;
  return cu::k_success;
}
CUresult cuCtxSetCurrent(CUcontext wanted) {
  current = wanted;
  return cu::k_success;
}
CUresult cuCtxSynchronize() {
  stand_in::stream::wait_for_all();
  return in_context();
}

CUresult cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = memory().free_bytes(device_here());
  *total_bytes = stand_in::memory::k_device_bytes;
  return in_context();
}
CUresult cuMemAlloc_v2(CUdeviceptr* at, std::size_t nbytes) {
  return allocate(at, nbytes, stand_in::sort::device);
}
CUresult cuMemAllocManaged(CUdeviceptr* at, std::size_t nbytes, unsigned) {
  return allocate(at, nbytes, stand_in::sort::managed);
}
CUresult cuMemHostAlloc(void** at, std::size_t nbytes, unsigned how) {
  CUdeviceptr made = 0;
  const auto outcome = allocate(&made, nbytes, stand_in::sort::host);
  *at = to_pointer(made);
  if (outcome == cu::k_success && (how & cu::k_host_write_combined) != 0) {
    memory().note_write_combined(made);
  }
  return outcome;
}
CUresult cuMemHostRegister_v2(void* at, std::size_t nbytes, unsigned how) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  switch (memory().add(to_deviceptr(at), nbytes, (how & cu::k_register_read_only) != 0)) {
    case stand_in::addition::made: return cu::k_success;
    case stand_in::addition::there_already: return cu::k_error_HOST_MEMORY_ALREADY_REGISTERED;
    default: return cu::k_error_INVALID_VALUE;
  }
}
CUresult cuMemHostUnregister(void* at) {
  if (in_context() != cu::k_success) {
    return in_context();
  }
  return memory().remove(to_deviceptr(at)) ? cu::k_success : cu::k_error_HOST_MEMORY_NOT_REGISTERED;
}
// Like the driver's, these wait for all work on the device.
CUresult cuMemFree_v2(CUdeviceptr at) {
  if (in_context() == cu::k_success) {
    stand_in::stream::wait_for_all();
  }
  return in_context() == cu::k_success ? if_true(memory().free(at)) : in_context();
}
CUresult cuMemFreeHost(void* at) { return cuMemFree_v2(to_deviceptr(at)); }

// The driver's memory pools, which programs create and the library does not.
struct pool_properties {
  int type, handle_types;
  struct {
    int type, id;
  } where;
};
CUresult cuMemPoolCreate(stand_in::memory_pool** made, const pool_properties* what) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  const bool is_managed = what->type == 2;
  *made =
      pools().add(what->where.id, is_managed ? stand_in::sort::managed : stand_in::sort::device);
  return cu::k_success;
}
CUresult cuMemPoolDestroy(stand_in::memory_pool* gone) { return if_true(pools().remove(gone)); }
CUresult cuDeviceGetDefaultMemPool(stand_in::memory_pool** found, CUdevice of) {
  *found = pools().default_of(of, stand_in::sort::device);
  return cu::k_success;
}
CUresult cuMemGetDefaultMemPool(stand_in::memory_pool** found, const int* where, int type) {
  *found =
      pools().default_of(where[1], type == 2 ? stand_in::sort::managed : stand_in::sort::device);
  return cu::k_success;
}
CUresult cuMemPoolSetAttribute(stand_in::memory_pool* of, int what, void* value) {
  auto* const known = pools().find(of);
  if (known == nullptr || what != 4) {
    return cu::k_error_INVALID_VALUE;
  }
  known->release_threshold = *static_cast<std::uint64_t*>(value);
  return cu::k_success;
}
CUresult cuMemPoolGetAttribute(stand_in::memory_pool* of, int what, void* value) {
  auto* const known = pools().find(of);
  if (known == nullptr || what != 4) {
    return cu::k_error_INVALID_VALUE;
  }
  *static_cast<std::uint64_t*>(value) = known->release_threshold;
  return cu::k_success;
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* at, std::size_t nbytes, stand_in::memory_pool* from,
                                 CUstream) {
  auto* const known = pools().find(from);
  return known == nullptr ? cu::k_error_INVALID_VALUE : allocate(at, nbytes, known->of);
}
CUresult cuMemFreeAsync(CUdeviceptr at, CUstream on) {
  return push(on, [at] { static_cast<void>(memory().free(at)); });
}

CUresult cuPointerGetAttributes(unsigned count, unsigned* what, void** answers, CUdeviceptr of) {
  std::uintptr_t base = 0;
  stand_in::block found;
  const bool known = memory().find(of, base, found);
  for (unsigned index = 0; index < count; ++index) {
    switch (what[index]) {
      case cu::k_pointer_memory_type:
        *static_cast<unsigned*>(answers[index]) = !known                 ? 0
                                                  : is_of_host(found.of) ? cu::k_memory_host
                                                                         : cu::k_memory_device;
        break;
      case cu::k_pointer_is_managed:
        *static_cast<unsigned*>(answers[index]) = known && found.of == stand_in::sort::managed;
        break;
      case cu::k_pointer_device_pointer:
        *static_cast<CUdeviceptr*>(answers[index]) = known ? of : 0;
        break;
      case cu::k_pointer_device_ordinal:
        *static_cast<CUdevice*>(answers[index]) = found.where;
        break;
      case cu::k_pointer_handle_types:
        *static_cast<unsigned*>(answers[index]) = known ? found.handle_types : 0;
        break;
      case cu::k_pointer_is_rdma_capable:
        *static_cast<unsigned*>(answers[index]) =
            known && (found.of == stand_in::sort::device || found.for_rdma);
        break;
      case cu::k_pointer_range_start: *static_cast<CUdeviceptr*>(answers[index]) = base; break;
      default: *static_cast<std::size_t*>(answers[index]) = found.nbytes;
    }
  }
  return in_context();
}

CUresult cuStreamCreate(CUstream* made, unsigned how) {
  const auto outcome = may_begin();
  if (outcome == cu::k_success) {
    *made = reinterpret_cast<CUstream>(new stand_in::stream{
        how == cu::k_stream_non_blocking ? stand_in::manner::apart : stand_in::manner::blocking,
        device_here()});
  }
  return outcome;
}
CUresult cuStreamDestroy_v2(CUstream gone) {
  delete &stream_of(gone);
  return in_context();
}
CUresult cuStreamGetCtx(CUstream of, CUcontext* home) {
  *home = primary(stream_of(of).device());
  return in_context();
}
CUresult cuStreamWaitEvent(CUstream on, CUevent before, unsigned) {
  auto last = event_of(before).last;
  return last == nullptr ? in_context() : push(on, [last] { last->wait(); });
}
CUresult cuStreamSynchronize(CUstream on) {
  stream_of(on).record()->wait();
  return in_context();
}
CUresult cuStreamIsCapturing(CUstream of, unsigned* state) {
  *state = stream_of(of).is_captured ? cu::k_capture_status_none + 1 : cu::k_capture_status_none;
  return in_context() == cu::k_success ? capture_of(of) : in_context();
}
// Also for tests. Nothing is recorded: a stream only refuses work while it is captured.
CUresult cuStreamBeginCapture_v2(CUstream of, unsigned) {
  stream_of(of).is_captured = true;
  return in_context();
}
CUresult cuStreamEndCapture(CUstream of, void** graph) {
  stream_of(of).is_captured = false;
  *graph = nullptr;
  return in_context();
}
// Not called by the library: lets tests keep a stream busy.
CUresult cuLaunchHostFunc(CUstream on, void (*call)(void*), void* with) {
  return push(on, [=] { call(with); });
}
CUresult cuEventCreate(CUevent* made, unsigned how) {
  const auto outcome = may_begin();
  if (outcome == cu::k_success) {
    *made = reinterpret_cast<CUevent>(
        new stand_in::event{device_here(), (how & cu::k_event_disable_timing) == 0, nullptr});
    ++live_events;
  }
  return outcome;
}
CUresult cuEventDestroy_v2(CUevent gone) {
  delete &event_of(gone);
  --live_events;
  return in_context();
}
CUresult cuEventRecord(CUevent what, CUstream on) {
  auto outcome = may_begin();
  if (outcome == cu::k_success && event_of(what).device != stream_of(on).device()) {
    outcome = cu::k_error_INVALID_HANDLE;
  }
  if (outcome == cu::k_success) {
    event_of(what).last = stream_of(on).record();
  }
  return outcome;
}
CUresult cuEventQuery(CUevent what) {
  const auto& last = event_of(what).last;
  return last == nullptr || last->is_set() ? in_context() : cu::k_error_NOT_READY;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
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

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t nbytes, CUstream on) {
  if (memory().goes_beyond(to, nbytes) || memory().goes_beyond(from, nbytes) ||
      !may_touch(on, to, nbytes) || !may_touch(on, from, nbytes)) {
    return cu::k_error_INVALID_VALUE;
  }
  return push(on, [=] { std::memmove(to_pointer(to), to_pointer(from), nbytes); });
}
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* how, CUstream on) {
  const auto extent = [&](std::size_t pitch) {
    return pitch * (how->Height - 1) + how->WidthInBytes;
  };
  const auto refuses = [&](unsigned type, CUdeviceptr at, std::size_t pitch) {
    return type == cu::k_memory_unified &&
           (memory().goes_beyond(at, extent(pitch)) || !may_touch(on, at, extent(pitch)));
  };
  if (refuses(how->dstMemoryType, how->dstDevice, how->dstPitch) ||
      refuses(how->srcMemoryType, how->srcDevice, how->srcPitch)) {
    return cu::k_error_INVALID_VALUE;
  }
  return push(on, [how = *how] {
    const auto to =
        how.dstMemoryType == cu::k_memory_host ? to_deviceptr(how.dstHost) : how.dstDevice;
    const auto from =
        how.srcMemoryType == cu::k_memory_host ? to_deviceptr(how.srcHost) : how.srcDevice;
    for (std::size_t row = 0; row < how.Height; ++row) {
      std::memmove(to_pointer(to + row * how.dstPitch), to_pointer(from + row * how.srcPitch),
                   how.WidthInBytes);
    }
  });
}
CUresult cuModuleLoadData(CUmodule* made, const void* image) {
  const auto outcome = may_begin();
  if (outcome != cu::k_success || std::getenv("STAND_IN_WITHOUT_KERNELS") != nullptr) {
    return outcome != cu::k_success ? outcome : cu::k_error_NOT_SUPPORTED;
  }
  const auto* const found = stand_in::kernel_in(static_cast<const char*>(image), device_here());
  *made = reinterpret_cast<CUmodule>(const_cast<stand_in::loaded_kernel*>(found));
  return if_true(found != nullptr);
}
CUresult cuModuleGetFunction(CUfunction* found, CUmodule in, const char* name) {
  const auto* const known = reinterpret_cast<const stand_in::loaded_kernel*>(in);
  *found = reinterpret_cast<CUfunction>(in);
  return name == known->what.name ? in_context() : cu::k_error_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction what, unsigned blocks, unsigned, unsigned, unsigned lanes,
                        unsigned rows, unsigned, unsigned, CUstream on, void** parameters, void**) {
  if (blocks == 0 || lanes < 32 || lanes * rows > 1024) {
    return cu::k_error_INVALID_VALUE;
  }
  const auto& known = *reinterpret_cast<const stand_in::loaded_kernel*>(what);
  if (known.device != device_here()) {
    return cu::k_error_INVALID_HANDLE;
  }
  return push(on, known.what.bind({memory(), known.device}, parameters));
}

CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t count, CUstream on) {
  return fill(at, 0, value, count, 1, on);
}
CUresult cuMemsetD16Async(CUdeviceptr at, unsigned short value, std::size_t count, CUstream on) {
  return fill(at, 0, value, count, 1, on);
}
CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, std::size_t count, CUstream on) {
  return fill(at, 0, value, count, 1, on);
}
CUresult cuMemsetD2D8Async(CUdeviceptr at, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream on) {
  return fill(at, pitch, value, width, height, on);
}
CUresult cuMemsetD2D16Async(CUdeviceptr at, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream on) {
  return fill(at, pitch, value, width, height, on);
}
CUresult cuMemsetD2D32Async(CUdeviceptr at, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream on) {
  return fill(at, pitch, value, width, height, on);
}

CUresult cuMemAddressReserve(CUdeviceptr* made, std::size_t nbytes, std::size_t alignment,
                             CUdeviceptr, Flags) {
  *made = memory().reserve(nbytes, alignment);
  return *made != 0 ? cu::k_success : cu::k_error_OUT_OF_MEMORY;
}
CUresult cuMemAddressFree(CUdeviceptr at, std::size_t nbytes) {
  return if_true(memory().release(at, nbytes));
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* made, std::size_t nbytes,
                     const CUmemAllocationProp* what, Flags) {
  const auto& where = what->location;
  const bool of_host = where.type == cu::k_location_host || where.type == cu::k_location_host_numa;
  const bool is_there =
      of_host ? where.id == 0
              : where.type == cu::k_location_device && where.id >= 0 && where.id < k_devices;
  if (!is_there || nbytes == 0 || nbytes % stand_in::memory::k_granularity != 0) {
    return cu::k_error_INVALID_VALUE;
  }
  if (where.type == cu::k_location_host_numa && node_is_full) {
    return cu::k_error_OUT_OF_MEMORY;
  }
  if (what->requestedHandleTypes != 0 && (exports_are_refused || of_host)) {
    return cu::k_error_NOT_SUPPORTED;
  }
  const int file = memory().create(nbytes, of_host, what->gpuDirectRDMACapable != 0, where.id,
                                   what->requestedHandleTypes);
  *made = static_cast<CUmemGenericAllocationHandle>(file);
  return file >= 0 ? cu::k_success : cu::k_error_OUT_OF_MEMORY;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle gone) {
  memory().release_handle(static_cast<int>(gone));
  return cu::k_success;
}
CUresult cuMemMap(CUdeviceptr at, std::size_t nbytes, std::size_t,
                  CUmemGenericAllocationHandle what, Flags) {
  return if_true(memory().map(at, nbytes, static_cast<int>(what)));
}
CUresult cuMemUnmap(CUdeviceptr at, std::size_t nbytes) {
  return if_true(memory().unmap(at, nbytes));
}
CUresult cuMemSetAccess(CUdeviceptr at, std::size_t nbytes, const CUmemAccessDesc* users,
                        std::size_t count) {
  stand_in::device_set devices = 0;
  bool host = false;
  std::for_each(users, users + count, [&](const CUmemAccessDesc& each) {
    host = host || each.location.type == cu::k_location_host;
    devices |= each.location.type == cu::k_location_device ? 1U << each.location.id : 0;
  });
  return if_true(
      memory().open(at, nbytes, devices, host, users[0].location.type == cu::k_location_device));
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  *can = memory().peers() ? 1 : 0;
  return cu::k_success;
}
CUresult cuMemGetAllocationGranularity(std::size_t* nbytes, const CUmemAllocationProp*, unsigned) {
  *nbytes = stand_in::memory::k_granularity;
  return cu::k_success;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle* made, CUdeviceptr at) {
  stand_in::ipc_name name;
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  const bool shared = memory().share(at, name);
  std::memcpy(made->reserved, &name, sizeof name);
  return if_true(shared);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* opened, CUipcMemHandle of, unsigned) {
  if (const auto outcome = may_begin(); outcome != cu::k_success) {
    return outcome;
  }
  stand_in::ipc_name name;
  std::memcpy(&name, of.reserved, sizeof name);
  if (name.sign == name.k_sign && name.process == getpid()) {
    return cu::k_error_INVALID_CONTEXT;
  }
  *opened = memory().open_shared(name, device_here());
  return if_true(*opened != 0);
}
CUresult cuIpcCloseMemHandle(CUdeviceptr at) {
  stand_in::stream::wait_for_all();
  return in_context() == cu::k_success ? if_true(memory().close_shared(at)) : in_context();
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr, std::size_t, CUmemLocation, unsigned, CUstream on) {
  return push(on, [] {});
}
CUresult cuMemAdvise_v2(CUdeviceptr, std::size_t, unsigned, CUmemLocation) { return in_context(); }

}  // extern "C"

#define STAND_IN_SAME(member, name, ...) \
  static_assert(std::is_same_v<decltype(&name), Api::Entry<__VA_ARGS__>>, #name);
ISTHMUS_CUDA_CORE(STAND_IN_SAME)
ISTHMUS_CUDA_VIRTUAL(STAND_IN_SAME)
ISTHMUS_CUDA_LOCATIONS(STAND_IN_SAME)
ISTHMUS_CUDA_IPC(STAND_IN_SAME)
