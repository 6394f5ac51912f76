// SPDX-License-Identifier: Apache-2.0
// dpctl's C interface to SYCL: forwards every call to the library named by
// ISTHMUS_TEST_SYCL_LIBRARY, except calls that a test makes fail, and records objects that were
// returned and not yet released. So failures of SYCL itself can be tested. ISTHMUS_SYCL_LIBRARY
// selects it.
//
// SYCL_RELAY_FAIL_AFTER=n: after n calls that return an object, the next one fails, from the start
// of the process on.
// SYCL_RELAY_WITHOUT_NATIVE=1: hides the one function of SYCL's own library.

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../src/backend/sycl/api.hpp"
#include "interpreter.hpp"

using namespace isthmus::sycl;

namespace {

#define RELAY_ALL(X)        \
  ISTHMUS_SYCL_FUNCTIONS(X) \
  X(context_native, _ZNK4sycl3_V17context9getNativeEv, std::uintptr_t(ContextReference))

enum call : std::size_t {
#define RELAY_NUMBER(member, name, ...) k_##member,
  RELAY_ALL(RELAY_NUMBER) k_calls
};
constexpr std::array<const char*, k_calls> k_names{
#define RELAY_NAME(member, name, ...) #name,
    RELAY_ALL(RELAY_NAME)};

void* interface() {
  static void* const opened = [] {
    const char* named = std::getenv("ISTHMUS_TEST_SYCL_LIBRARY");
    void* found = named != nullptr ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (found == nullptr) {
      std::fprintf(stderr, "sycl_relay: %s\n",
                   named != nullptr ? dlerror() : "ISTHMUS_TEST_SYCL_LIBRARY names no library");
    }
    return found;
  }();
  return opened;
}

std::array<void*, k_calls> theirs{};

// How a call fails. One that returns an object returns null. One that lets exceptions out (api.hpp)
// throws. An operation ends, and the first query of its state reports that it failed.
enum class failing { gives_null, throws, ends_badly };

constexpr bool is_any(call number, std::initializer_list<call> of) {
  for (const auto each : of) {
    if (number == each) {
      return true;
    }
  }
  return false;
}
constexpr bool takes_back(call number) {
  return number == k_free || std::string_view{k_names[number]}.ends_with("_Delete");
}
constexpr bool lets_exceptions_out(call number) {
  return is_any(number, {k_finish, k_wait_for_event, k_free, k_allocate_host, k_pointer_type,
                         k_pointer_device});
}

long from_environment(const char* name) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::atol(given) : -1;
}

// Calls that return only when work has ended, or may do so: frees and allocations at the runtime's
// discretion.
constexpr bool may_wait(call number) {
  return is_any(number, {k_finish, k_wait_for_event, k_free, k_allocate_device, k_allocate_shared,
                         k_allocate_host});
}
std::array<std::atomic<long>, k_calls> calls_made{};  // only calls that may wait
std::array<std::atomic<long>, k_calls> under_interpreter{};
void note_interpreter(call number) {
  if (may_wait(number)) {
    ++calls_made[number];
    under_interpreter[number] += stand_in::interpreter_is_held() ? 1 : 0;
  }
}

// Remaining calls that can fail in the chosen way before one does; negative: none does.
std::atomic<long> before_failure{from_environment("SYCL_RELAY_FAIL_AFTER")};
std::atomic<failing> chosen{failing::gives_null};

bool fails_now(failing how) {
  if (how != chosen) {
    return false;
  }
  auto left = before_failure.load();
  while (left >= 0 && !before_failure.compare_exchange_weak(left, left - 1)) {
  }
  return left == 0;
}

// Objects that were returned and not released: texts, lists, references, memory. Outlives every
// thread.
class register_of_all {
 public:
  void add(const void* given, call by) {
    const std::lock_guard hold{lock_};
    if (given != nullptr) {
      all_[given] = {by, false};
    }
  }
  // Called before the release, after which another object may have the same address at once.
  void remove(const void* taken) {
    const std::lock_guard hold{lock_};
    if (taken != nullptr && all_.erase(taken) == 0) {
      ++strangers_;
    }
  }
  bool is_first_question(const void* about) {
    const std::lock_guard hold{lock_};
    const auto found = all_.find(about);
    return found != all_.end() && !std::exchange(found->second.was_asked, true);
  }
  long count(call by) {
    const std::lock_guard hold{lock_};
    long found = 0;
    for (const auto& [address, what] : all_) {
      found += what.by == by ? 1 : 0;
    }
    return found;
  }
  long strangers() {
    const std::lock_guard hold{lock_};
    return strangers_;
  }

 private:
  struct one {
    call by;
    bool was_asked;
  };

  std::mutex lock_;
  std::map<const void*, one> all_;
  long strangers_ = 0;
};

register_of_all& held() {
  static auto* const made = new register_of_all;
  return *made;
}

template <class... Rest>
const void* first(const void* argument, const Rest&...) {
  return argument;
}

template <class Signature>
Signature* real(call number) {
  return reinterpret_cast<Signature*>(theirs[number]);
}

template <call Call, class Signature>
struct relayed;

template <call Call, class... Parameters>
struct relayed<Call, void(Parameters...)> {
  static void put(Parameters... arguments) {
    note_interpreter(Call);
    if constexpr (takes_back(Call)) {
      held().remove(first(arguments...));
    }
    real<void(Parameters...)>(Call)(arguments...);
    if (lets_exceptions_out(Call) && fails_now(failing::throws)) {
      throw std::runtime_error{k_names[Call]};
    }
  }
};

template <call Call, class Result, class... Parameters>
struct relayed<Call, Result(Parameters...)> {
  static constexpr bool k_gives = std::is_pointer_v<Result>;

  static Result put(Parameters... arguments) {
    note_interpreter(Call);
    if (lets_exceptions_out(Call) && fails_now(failing::throws)) {
      throw std::runtime_error{k_names[Call]};
    }
    if ((k_gives || Call == k_context_native) && fails_now(failing::gives_null)) {
      return Result();
    }
    if constexpr (Call == k_event_status) {
      if (held().is_first_question(arguments...) && fails_now(failing::ends_badly)) {
        real<void(Parameters...)>(k_wait_for_event)(arguments...);
        return dp::k_status_unknown;
      }
    }
    const Result result = real<Result(Parameters...)>(Call)(arguments...);
    if constexpr (k_gives) {
      held().add(result, Call);
    }
    return result;
  }
};

// A function that the library lacks is missing here too.
template <call Call, class Signature>
Signature* resolve() {
  const bool hidden =
      Call == k_context_native && from_environment("SYCL_RELAY_WITHOUT_NATIVE") == 1;
  theirs[Call] = interface() != nullptr && !hidden ? dlsym(interface(), k_names[Call]) : nullptr;
  return theirs[Call] != nullptr ? &relayed<Call, Signature>::put : nullptr;
}

}  // namespace

extern "C" {

// Makes a call fail in the way `how` (0: returns null, 1: throws, 2: ends badly), after the next
// `calls` that can fail so; negative: none. Returns how many calls remained.
long sycl_relay_fail_after(long calls, int how) {
  chosen = static_cast<failing>(how);
  return before_failure.exchange(calls);
}
// The name of a call. Null after the last one.
const char* sycl_relay_name(std::size_t number) {
  return number < k_calls ? k_names[number] : nullptr;
}
// Whether a call of that number may wait for work.
int sycl_relay_may_wait(std::size_t number) { return may_wait(static_cast<call>(number)) ? 1 : 0; }
// How many calls of that number were made, if it may wait, and how many while holding the
// interpreter's lock.
long sycl_relay_made(std::size_t number) { return calls_made[number]; }
long sycl_relay_under_interpreter(std::size_t number) { return under_interpreter[number]; }
// The number of objects returned by that call which have not been released.
long sycl_relay_held(std::size_t number) { return held().count(static_cast<call>(number)); }
// How often an object was released that was never returned here, or had already been released.
long sycl_relay_strangers() { return held().strangers(); }

// One symbol for each call, of which only the type is known. Its address is resolved once.
#define RELAY_ENTRY(member, name, ...)                                                           \
  using member##_type = __VA_ARGS__;                                                             \
  [[gnu::used]] member##_type* resolve_##name() { return resolve<k_##member, member##_type>(); } \
  member##_type name __attribute__((ifunc("resolve_" #name)));
RELAY_ALL(RELAY_ENTRY)

}  // extern "C"
