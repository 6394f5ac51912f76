// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by all C entry points: conversion between handles and objects, and from errors to status
// codes. No exception leaves an entry point. Thread-safe.

#include <isthmus/experimental.h>

#include <cstddef>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "buffer/buffer.hpp"
#include "core/expects.hpp"
#include "core/status.hpp"
#include "memory/base/budget.hpp"
#include "memory/base/library_call.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/oom_callbacks.hpp"
#include "memory/base/using_block.hpp"
#include "memory/records/pins.hpp"
#include "memory/resources/statistics_resource.hpp"
#include "os/process.hpp"
#include "unified/unified_buffer.hpp"

namespace isthmus::c {

// A handle is the object's address under an opaque name.
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types
#define ISTHMUS_HANDLE(type_name, type)                                                       \
  inline type* object(type_name* handle) noexcept { return reinterpret_cast<type*>(handle); } \
  inline const type* object(const type_name* handle) noexcept {                               \
    return reinterpret_cast<const type*>(handle);                                             \
  }                                                                                           \
  inline type_name* handle(type* object) noexcept { return reinterpret_cast<type_name*>(object); }
ISTHMUS_HANDLE(isthmus_platform_t, Platform)
ISTHMUS_HANDLE(isthmus_device_t, Device)
ISTHMUS_HANDLE(isthmus_context_t, Context)
ISTHMUS_HANDLE(isthmus_queue_t, Queue)
ISTHMUS_HANDLE(isthmus_event_t, Event)
ISTHMUS_HANDLE(isthmus_resource_t, MemoryResource)
ISTHMUS_HANDLE(isthmus_budget_t, Budget)
ISTHMUS_HANDLE(isthmus_buffer_t, Buffer)
ISTHMUS_HANDLE(isthmus_scope_t, StatisticsScope)
ISTHMUS_HANDLE(isthmus_using_t, UsingBlock)
ISTHMUS_HANDLE(isthmus_oom_callback_t, OomCallback)
ISTHMUS_HANDLE(isthmus_pin_t, Pin)
ISTHMUS_HANDLE(isthmus_unified_t, UnifiedBuffer)
#undef ISTHMUS_HANDLE
// NOLINTEND(bugprone-macro-parentheses)

// Stores the error as the last error of this thread and returns its code.
Status set_last_error(Error failure) noexcept;
[[nodiscard]] const Error& last_error() noexcept;

// Returns the error for an exception that no function of the library should throw.
[[nodiscard]] Error unexpected_exception_error(const char* description);

// Runs the body of an entry point and converts its `Result<void>` to a code.
template <class Body>
Status guarded(Body&& body) noexcept {
  try {
    Result<void> outcome = body();
    return outcome ? ISTHMUS_OK : set_last_error(outcome.take_error());
  } catch (const std::bad_alloc&) {
    return set_last_error(Error::no_memory());
  } catch (const std::exception& error) {
    return set_last_error(unexpected_exception_error(error.what()));
  } catch (...) {
    return set_last_error(unexpected_exception_error("unknown type"));
  }
}

// Return the errors for a required pointer that is NULL, for a structure of the caller that is
// smaller than `expected`, and for a call that needs a driver in a forked child.
[[nodiscard]] Error null_pointer_error(std::string_view name);
[[nodiscard]] Error struct_size_error(const char* name, std::size_t actual, std::size_t expected);
[[nodiscard]] Error forked_child_error();

// Returns the name at `index` of a list separated by ", ".
[[nodiscard]] std::string_view name_at(std::string_view names, std::size_t index) noexcept;

// The pointers that an entry point requires, see ISTHMUS_NEEDS. Costs a comparison for each
// pointer; the names are used for errors only.
class RequiredPointers {
 public:
  RequiredPointers() noexcept = default;  // none
  // `names` has the pointers' names, separated by ", ".
  template <class... Pointers>
  explicit RequiredPointers(const char* names, Pointers... pointers) noexcept : names_{names} {
    are_set_ = ((pointers != nullptr && ++leading_ != 0) && ...);
  }

  [[nodiscard]] bool are_set() const noexcept { return are_set_; }
  // Names the first pointer that is NULL.
  [[nodiscard]] Error error() const {
    ISTHMUS_EXPECTS(!are_set());
    return null_pointer_error(name_at(names_, leading_));
  }

 private:
  const char* names_ = "";
  std::size_t leading_ = 0;  // pointers before the first that is NULL
  bool are_set_ = true;
};

// Check, in this order, the required pointers of an entry point and whether the process is a forked
// child, in which no driver and no lock can be used.
[[nodiscard]] inline Result<void> check(const RequiredPointers& required) {
  return required.are_set() ? Result<void>{} : required.error();
}
[[nodiscard]] inline Result<void> check_with_driver(const RequiredPointers& required) {
  ISTHMUS_TRY(check(required));
  return os::is_forked_child() ? forked_child_error() : Result<void>{};
}

// An entry point that is also allowed in a forked child: checks the required pointers, then calls
// `body`.
template <class Body>
Status entry(const RequiredPointers& required, Body&& body) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_TRY(check(required));
    return body();
  });
}

// An entry point that is refused in a forked child.
template <class Body>
Status driver_entry(const RequiredPointers& required, Body&& body) noexcept {
  return guarded([&]() -> Result<void> {
    ISTHMUS_TRY(check_with_driver(required));
    return body();
  });
}

// As `entry` and `driver_entry`, for functions that report or return memory, or wait for all work
// of a queue. First runs the releases that are possible only in a call of the program
// (memory/base/library_call.hpp).
template <class Body>
Status entry_after_releases(const RequiredPointers& required, Body&& body) noexcept {
  on_library_call();
  return entry(required, std::forward<Body>(body));
}
template <class Body>
Status driver_entry_after_releases(const RequiredPointers& required, Body&& body) noexcept {
  on_library_call();
  return driver_entry(required, std::forward<Body>(body));
}

// Checks the size of the caller's structure `name`, whose first version had `first_bytes`.
template <class Struct>
[[nodiscard]] Result<void> check_struct_size(const Struct& value, const char* name,
                                             std::size_t first_bytes = sizeof(Struct)) {
  if (value.struct_size < first_bytes) {
    return struct_size_error(name, value.struct_size, first_bytes);
  }
  return {};
}

// Checks an array of the caller, which may be NULL only if it has no elements.
[[nodiscard]] inline Result<void> check_array(const void* elements, const char* name,
                                              std::size_t count) {
  if (count != 0 && elements == nullptr) {
    return null_pointer_error(name);
  }
  return {};
}

// Returns `requested` or, if it is NULL, the queue of the default device.
[[nodiscard]] Result<Ref<Queue>> queue_or_default(isthmus_queue_t* requested);

// Where a resource is created.
struct ResourceLocation {
  Ref<Context> context;
  Device& device;  // the context keeps it alive
};
// Returns the location for the arguments of a call: `context` NULL is the default context of
// `device`, and `device` NULL the first device of `context`. INVALID_ARGUMENT if both are NULL,
// WRONG_CONTEXT for a device of another context, UNSUPPORTED for a kind that the device lacks.
[[nodiscard]] Result<ResourceLocation> location_for(isthmus_context_t* context,
                                                    isthmus_device_t* device, isthmus_kind_t kind);

// Writes all fields except `struct_size`, which the caller has set or checked.
void write_counts(const UsageCounter::Counts& counts, isthmus_statistics_info_t& out) noexcept;

// Transfers a new object to the caller through `out`.
template <class T, class Handle>
Result<void> return_handle(Result<Ref<T>> created, Handle** out) {
  if (!created) {
    return created.take_error();
  }
  *out = handle(created->detach());
  return {};
}

// Stores a result for the caller in `*out`.
template <class Value, class Out>
Result<void> return_value(Result<Value> result, Out* out) {
  ISTHMUS_TRY(result);
  *out = *result;
  return {};
}

// Transfers the event of a submitted operation to the caller, unless `event` is NULL.
inline Result<void> return_event(Result<Ref<Event>> submitted, isthmus_event_t** event) {
  ISTHMUS_TRY(submitted);
  if (event != nullptr) {
    *event = handle(submitted->detach());
  }
  return {};
}

// Returns references to the events. INVALID_ARGUMENT if `events` contains a NULL.
[[nodiscard]] Result<std::vector<Ref<Event>>> events_of(isthmus_event_t* const* events,
                                                        std::size_t count);

}  // namespace isthmus::c

// The required pointers of an entry point: its parameters, by name.
#define ISTHMUS_NEEDS(...) \
  ::isthmus::c::RequiredPointers { #__VA_ARGS__, __VA_ARGS__ }
