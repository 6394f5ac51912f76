// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 that forwards every call to the library named by ISTHMUS_TEST_CUDA_DRIVER
// (default: libcuda.so.1), except calls that a test makes fail, and counts all of them. So failures
// can be tested with a real driver too. ISTHMUS_CUDA_LIBRARY selects it.

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <string_view>

#include "../../src/backend/cuda/api.hpp"
#include "interpreter.hpp"

using namespace isthmus::cuda;

namespace {

namespace cu = isthmus::cuda::cu;

#define RELAY_ALL(X)        \
  ISTHMUS_CUDA_CORE(X)      \
  ISTHMUS_CUDA_CAPTURES(X)  \
  ISTHMUS_CUDA_VIRTUAL(X)   \
  ISTHMUS_CUDA_LOCATIONS(X) \
  ISTHMUS_CUDA_ORDINALS(X)  \
  ISTHMUS_CUDA_IPC(X)

enum call : std::size_t {
#define RELAY_NUMBER(member, name, ...) k_##name,
  RELAY_ALL(RELAY_NUMBER) k_calls
};
constexpr std::array<std::string_view, k_calls> k_names{
#define RELAY_NAME(member, name, ...) #name,
    RELAY_ALL(RELAY_NAME)};

void* driver() {
  static void* const opened = [] {
    const char* named = std::getenv("ISTHMUS_TEST_CUDA_DRIVER");
    void* found = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) {
      std::fprintf(stderr, "cuda_relay: %s\n", dlerror());
    }
    return found;
  }();
  return opened;
}

std::array<void*, k_calls> theirs{};
std::array<std::atomic<long>, k_calls> succeeded{};
std::array<std::atomic<long>, k_calls> taken{};  // ns
std::array<std::atomic<long>, k_calls> under_interpreter{};

// The kinds of calls, as far as a program whose calls fail is concerned.
enum class sort { asks, takes, gives_back };

constexpr bool is_any(std::string_view name, std::initializer_list<std::string_view> of) {
  for (const auto each : of) {
    if (name == each) {
      return true;
    }
  }
  return false;
}
// An event's query counts as a query: it fails only with the error that broke the context.
constexpr sort sort_of(std::string_view name) {
  if (name.starts_with("cuDeviceGet") || name.starts_with("cuCtx") ||
      is_any(name, {"cuInit", "cuDriverGetVersion", "cuDeviceTotalMem_v2", "cuEventQuery",
                    "cuStreamSynchronize", "cuPointerGetAttributes", "cuMemGetInfo_v2",
                    "cuThreadExchangeStreamCaptureMode", "cuMemGetAllocationGranularity",
                    "cuDeviceCanAccessPeer"})) {
    return sort::asks;
  }
  return is_any(name, {"cuMemFree_v2", "cuMemFreeHost", "cuStreamDestroy_v2", "cuEventDestroy_v2",
                       "cuMemAddressFree", "cuMemRelease", "cuMemUnmap", "cuIpcCloseMemHandle"})
             ? sort::gives_back
             : sort::takes;
}

// Calls that the driver may answer only when work on the device has ended: frees by their contract,
// allocations and mappings where it has to synchronize, copies from or to pageable memory; and a
// query that takes the locks which such calls hold.
constexpr bool may_wait(std::string_view name) {
  return name == "cuMemGetInfo_v2" ||
         is_any(name,
                {"cuMemFree_v2", "cuMemFreeHost", "cuMemHostUnregister", "cuMemUnmap",
                 "cuMemRelease", "cuIpcCloseMemHandle", "cuStreamSynchronize", "cuCtxSynchronize",
                 "cuMemAlloc_v2", "cuMemAllocManaged", "cuMemHostAlloc", "cuMemHostRegister_v2",
                 "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuIpcOpenMemHandle_v2",
                 "cuModuleLoadData", "cuMemcpyAsync", "cuMemcpy2DAsync_v2"});
}

// Remaining calls of the chosen kind before one fails; negative: none does.
std::atomic<long> before_failure{-1};
std::atomic<sort> failing{sort::takes};
std::atomic<CUresult> failure{cu::k_error_OUT_OF_MEMORY};
// Remaining calls that allocate, submit or release before the device is lost; negative: never.
std::atomic<long> before_loss{-1};

// Ensures that no call reaches the driver once the device is lost.
std::shared_mutex losing;

// Work in flight on a lost device is over. Here it must end before calls report the loss.
void end_what_is_in_flight() {
  const auto find = [](const char* name) { return dlsym(driver(), name); };
  const auto retain =
      reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(find("cuDevicePrimaryCtxRetain"));
  const auto current = reinterpret_cast<CUresult (*)(CUcontext*)>(find("cuCtxGetCurrent"));
  const auto set_current = reinterpret_cast<CUresult (*)(CUcontext)>(find("cuCtxSetCurrent"));
  const auto synchronize = reinterpret_cast<CUresult (*)()>(find("cuCtxSynchronize"));
  CUcontext primary = nullptr;
  CUcontext before = nullptr;
  if (retain(&primary, 0) != cu::k_success || current(&before) != cu::k_success ||
      set_current(primary) != cu::k_success || synchronize() != cu::k_success ||
      set_current(before) != cu::k_success) {
    std::fprintf(stderr, "cuda_relay: what is in flight cannot be waited for\n");
    std::abort();
  }
}

// Returns true for one call only, whichever threads call at once: 0 becomes -1.
bool counts_down(std::atomic<long>& left) {
  auto now = left.load();
  while (now >= 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
  return now == 0;
}

void count_towards_loss(sort what) {
  if (what == sort::asks || before_loss <= 0) {
    return;
  }
  const std::unique_lock hold{losing};
  if (before_loss > 0 && --before_loss == 0) {
    end_what_is_in_flight();
  }
}

CUresult refuse(std::string_view name, sort what) {
  if (before_loss == 0 && !name.starts_with("cuCtx")) {
    return cu::k_error_LAUNCH_FAILED;
  }
  if (what == failing && counts_down(before_failure)) {
    return failure;
  }
  return cu::k_success;
}

template <call Call, class Signature>
struct relayed;
template <call Call, class... Parameters>
struct relayed<Call, CUresult(Parameters...)> {
  static CUresult put(Parameters... arguments) {
    constexpr auto what = sort_of(k_names[Call]);
    if (may_wait(k_names[Call]) && stand_in::interpreter_is_held()) {
      ++under_interpreter[Call];
    }
    count_towards_loss(what);
    const std::shared_lock hold{losing};
    if (const auto refused = refuse(k_names[Call], what); refused != cu::k_success) {
      // The memory of a lost device is freed with its context. The real driver lost nothing: free
      // it.
      if (before_loss == 0 && what == sort::gives_back) {
        reinterpret_cast<CUresult (*)(Parameters...)>(theirs[Call])(arguments...);
      }
      return refused;
    }
    const auto began = std::chrono::steady_clock::now();
    const auto outcome = reinterpret_cast<CUresult (*)(Parameters...)>(theirs[Call])(arguments...);
    taken[Call] += std::chrono::nanoseconds{std::chrono::steady_clock::now() - began}.count();
    if (outcome == cu::k_success) {
      ++succeeded[Call];
    }
    return outcome;
  }
};

// A function that the driver lacks is missing here too.
template <call Call, class Signature>
Signature* resolve() {
  theirs[Call] = driver() != nullptr ? dlsym(driver(), k_names[Call].data()) : nullptr;
  return theirs[Call] != nullptr ? &relayed<Call, Signature>::put : nullptr;
}

}  // namespace

extern "C" {

// Makes the call of kind `of` (1: those that allocate or submit, 2: those that release) after the
// next `calls` of that kind fail with `with`; negative: none. Returns how many calls remained.
long relay_fail_after(long calls, int of, CUresult with) {
  failing = static_cast<sort>(of);
  failure = with;
  return before_failure.exchange(calls);
}
// Makes every call fail as if the context were broken, after `calls` more that allocate, submit or
// release; negative: none. Returns 0 if that had already happened.
long relay_lose_after(long calls) { return before_loss.exchange(calls + (calls < 0 ? 0 : 1)); }
// The name of a call. Null after the last one.
const char* relay_name(std::size_t number) {
  return number < k_calls ? k_names[number].data() : nullptr;
}
// How often the driver's call of that number succeeded.
long relay_succeeded(std::size_t number) { return succeeded[number]; }
// Whether a call of that number may wait for the device.
int relay_may_wait(std::size_t number) { return may_wait(k_names[number]) ? 1 : 0; }
// How many calls of that number, if it may wait, were made while holding the interpreter's lock.
long relay_under_interpreter(std::size_t number) { return under_interpreter[number]; }
// The total time of all calls of that number, in nanoseconds.
long relay_taken(std::size_t number) { return taken[number]; }

// One symbol for each call, of which only the type is known. Its address is resolved once.
#define RELAY_ENTRY(member, name, ...)                                                     \
  using name##_type = __VA_ARGS__;                                                         \
  [[gnu::used]] name##_type* resolve_##name() { return resolve<k_##name, name##_type>(); } \
  name##_type name __attribute__((ifunc("resolve_" #name)));
RELAY_ALL(RELAY_ENTRY)

}  // extern "C"
