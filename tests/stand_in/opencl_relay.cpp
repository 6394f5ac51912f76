// SPDX-License-Identifier: Apache-2.0
// An OpenCL library that forwards every call to the library named by ISTHMUS_TEST_OPENCL_LIBRARY
// (default: libOpenCL.so.1), except commands that a test wants the driver to refuse. It counts
// calls that may wait for work. ISTHMUS_OPENCL_LIBRARY selects it.
//
// With OPENCL_RELAY_LATE_PATTERNS devices offer only SVM, as NVIDIA's do, and read the pattern of a
// fill when the fill begins.

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "../../src/backend/opencl/api.hpp"
#include "interpreter.hpp"

namespace {

#define RELAY_EXPORTED(X) \
  ISTHMUS_OPENCL_CORE(X)  \
  ISTHMUS_OPENCL_SVM(X)
#define RELAY_ALL(X) \
  RELAY_EXPORTED(X)  \
  ISTHMUS_OPENCL_USM(X)

enum call : std::size_t {
#define RELAY_NUMBER(member, name) k_##name,
  RELAY_ALL(RELAY_NUMBER) k_calls
};
constexpr std::array<std::string_view, k_calls> k_names{
#define RELAY_NAME(member, name) #name,
    RELAY_ALL(RELAY_NAME)};

void* library() {
  static void* const opened = [] {
    const char* named = std::getenv("ISTHMUS_TEST_OPENCL_LIBRARY");
    void* found = dlopen(named != nullptr ? named : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr) {
      std::fprintf(stderr, "opencl_relay: %s\n", dlerror());
    }
    return found;
  }();
  return opened;
}

std::array<std::atomic<void*>, k_calls> theirs{};
template <class Function>
Function real(call number) {
  return reinterpret_cast<Function>(theirs[number].load());
}

constexpr cl_int k_refused = CL_INVALID_OPERATION;

// Remaining commands before one is refused; negative: none is.
std::atomic<long> before_refusal{-1};

bool is_refused() {
  auto left = before_refusal.load();
  while (left >= 0 && !before_refusal.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0;
}

bool reads_patterns_late() {
  static const bool is_asked = std::getenv("OPENCL_RELAY_LATE_PATTERNS") != nullptr;
  return is_asked;
}

struct late_fill {
  std::byte* destination;
  const void* pattern;
  std::size_t pattern_bytes;
  std::size_t nbytes;
};
std::atomic<long> late_fills{0};

void fill_now(void* arguments) {
  const auto& what = *static_cast<const late_fill*>(arguments);
  for (std::size_t at = 0; at < what.nbytes; at += what.pattern_bytes) {
    std::memcpy(what.destination + at, what.pattern, what.pattern_bytes);
  }
  ++late_fills;
}

// Replaces the fill by a native kernel. Pre: the memory is the host's.
cl_int fill_late(cl_command_queue on, void* destination, const void* pattern,
                 std::size_t pattern_bytes, std::size_t nbytes, unsigned count,
                 const cl_event* after, cl_event* made) {
  late_fill what{static_cast<std::byte*>(destination), pattern, pattern_bytes, nbytes};
  return real<decltype(&::clEnqueueNativeKernel)>(k_clEnqueueNativeKernel)(
      on, fill_now, &what, sizeof what, 0, nullptr, nullptr, count, after, made);
}

// Calls that return only when work has ended, or may do so: frees and allocations at the driver's
// discretion, copies if their arguments say so.
constexpr bool is_any(call number, std::initializer_list<call> of) {
  for (const auto each : of) {
    if (number == each) {
      return true;
    }
  }
  return false;
}
constexpr bool says_whether_it_waits(call number) {
  return is_any(number, {k_clEnqueueMemcpyINTEL, k_clEnqueueSVMMemcpy});
}
constexpr bool may_wait(call number) {
  return says_whether_it_waits(number) ||
         is_any(number, {k_clFinish, k_clWaitForEvents, k_clMemFreeINTEL, k_clSVMFree,
                         k_clHostMemAllocINTEL, k_clDeviceMemAllocINTEL, k_clSharedMemAllocINTEL,
                         k_clSVMAlloc});
}
std::array<std::atomic<long>, k_calls> calls_made{};  // only calls that may wait
std::array<std::atomic<long>, k_calls> under_interpreter{};

// The library reads the outcome of events by waiting for them, which does not block if all ended.
bool any_pends(unsigned count, const cl_event* all) {
  const auto ask = real<decltype(&::clGetEventInfo)>(k_clGetEventInfo);
  for (unsigned each = 0; each < count; ++each) {
    cl_int reached = 1;
    if (ask == nullptr ||
        ask(all[each], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof reached, &reached, nullptr) !=
            CL_SUCCESS ||
        reached > CL_COMPLETE) {
      return true;
    }
  }
  return false;
}

void* extension(void* found, std::string_view name);

template <call Call, class Signature>
struct relayed;
template <call Call, class Result, class... Parameters>
struct relayed<Call, Result(Parameters...)> {
  static constexpr bool k_is_command =
      k_names[Call].starts_with("clEnqueue") && std::is_same_v<Result, cl_int>;

  static bool waits(const Parameters&... arguments) {
    if constexpr (says_whether_it_waits(Call)) {
      return std::get<1>(std::tie(arguments...)) != CL_FALSE;
    } else if constexpr (Call == k_clWaitForEvents) {
      return any_pends(arguments...);
    } else {
      return may_wait(Call);
    }
  }

  static Result put(Parameters... arguments) {
    if (waits(arguments...)) {
      ++calls_made[Call];
      under_interpreter[Call] += stand_in::interpreter_is_held() ? 1 : 0;
    }
    const auto function = real<Result (*)(Parameters...)>(Call);
    if constexpr (k_is_command) {
      if (is_refused()) {
        return k_refused;
      }
    }
    if constexpr (Call == k_clEnqueueSVMMemFill) {
      if (reads_patterns_late()) {
        return fill_late(arguments...);
      }
    }
    if constexpr (Call == k_clGetExtensionFunctionAddressForPlatform) {
      return [function](cl_platform_id of, const char* name) -> void* {
        return extension(function(of, name), name);
      }(arguments...);
    } else {
      return function(arguments...);
    }
  }
};

// If several platforms have functions of their own, those of the first are relayed.
template <call Call, class Signature>
void* relay_extension(void* found) {
  void* known = nullptr;
  const bool is_first = theirs[Call].compare_exchange_strong(known, found);
  return is_first || known == found ? reinterpret_cast<void*>(&relayed<Call, Signature>::put)
                                    : found;
}

void* extension(void* found, std::string_view name) {
  if (found == nullptr || reads_patterns_late()) {
    return nullptr;
  }
#define RELAY_EXTENSION(member, function)                                                \
  if (name == #function) {                                                               \
    return relay_extension<k_##function, std::remove_pointer_t<::function##_fn>>(found); \
  }
  ISTHMUS_OPENCL_USM(RELAY_EXTENSION)
  return found;
}

// A function that the library lacks is missing here too.
template <call Call, class Signature>
Signature* resolve() {
  void* const found = library() != nullptr ? dlsym(library(), k_names[Call].data()) : nullptr;
  theirs[Call] = found;
  return found != nullptr ? &relayed<Call, Signature>::put : nullptr;
}

}  // namespace

extern "C" {

// Makes the driver refuse the command after the next `commands`; negative: none. Returns how many
// commands remained of the previous request; negative if it was fulfilled.
long opencl_relay_refuse_after(long commands) { return before_refusal.exchange(commands); }

// The number of fills that read their pattern when they began; negative: fills do not do so.
long opencl_relay_late_fills() { return reads_patterns_late() ? late_fills.load() : -1; }

// The name of a call. Null after the last one.
const char* opencl_relay_name(std::size_t number) {
  return number < k_calls ? k_names[number].data() : nullptr;
}
// Whether a call of that number may wait for work.
int opencl_relay_may_wait(std::size_t number) {
  return may_wait(static_cast<call>(number)) ? 1 : 0;
}
// How many calls of that number were made that might wait, and how many of these while holding the
// interpreter's lock.
long opencl_relay_made(std::size_t number) { return calls_made[number]; }
long opencl_relay_under_interpreter(std::size_t number) { return under_interpreter[number]; }

// One symbol for each call, of which only the type is known. Its address is resolved once.
#define RELAY_ENTRY(member, name)                    \
  [[gnu::used]] decltype(&::name) resolve_##name() { \
    return resolve<k_##name, decltype(::name)>();    \
  }                                                  \
  decltype(::name) name __attribute__((ifunc("resolve_" #name)));
RELAY_EXPORTED(RELAY_ENTRY)

}  // extern "C"
