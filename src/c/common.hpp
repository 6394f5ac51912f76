// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by all C entry points: conversion between handles and objects, and from errors to status
// codes. No exception leaves an entry point. Thread-safe.

#include <isthmus/isthmus.h>

#include <exception>
#include <new>
#include <utility>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "buffer/buffer.hpp"
#include "core/status.hpp"
#include "memory/base/budget.hpp"
#include "memory/base/library_call.hpp"
#include "memory/base/memory_resource.hpp"
#include "memory/base/oom_callbacks.hpp"
#include "memory/records/pins.hpp"
#include "memory/resources/statistics_resource.hpp"
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

// As `guarded`, for entry points that report or return memory, or wait for all work of a queue.
// First runs the releases that are possible only in a call of the program
// (memory/base/library_call.hpp).
template <class Body>
Status guarded_after_releases(Body&& body) noexcept {
  on_library_call();
  return guarded(std::forward<Body>(body));
}

// Return the errors for a required pointer that is NULL, for a structure of the caller that is
// smaller than `expected`, and for a call that needs a driver in a forked child.
[[nodiscard]] Error null_pointer_error(const char* name);
[[nodiscard]] Error struct_size_error(const char* name, std::size_t actual, std::size_t expected);
[[nodiscard]] Error forked_child_error();

// Returns `requested` or, if it is NULL, the queue of the default device.
[[nodiscard]] Result<Ref<Queue>> queue_or_default(isthmus_queue_t* requested);

// Returns the device for which a resource is created: `requested` or, if it is NULL, the first
// device of the context. WRONG_CONTEXT for a device of another context, UNSUPPORTED for a kind that
// the device lacks.
[[nodiscard]] Result<Device*> device_for(Context& context, isthmus_device_t* requested,
                                         isthmus_kind_t kind);

// Writes all fields except `struct_size`. Pre: `struct_size` is at least the size of the structure
// in this header.
void write_counts(const UsageCounter::Counts& counts, isthmus_statistics_t& out) noexcept;

// Transfers a new object to the caller through `out`.
template <class T, class Handle>
Result<void> return_handle(Result<Ref<T>> created, Handle** out) {
  if (!created) {
    return created.take_error();
  }
  *out = handle(created->detach());
  return {};
}

// Returns references to the events. INVALID_ARGUMENT if `events` contains a NULL.
[[nodiscard]] Result<std::vector<Ref<Event>>> events_of(isthmus_event_t* const* events,
                                                        std::size_t count);

}  // namespace isthmus::c

// Returns an error from an entry point's body if a required pointer is NULL.
#define ISTHMUS_NEEDS(pointer)             \
  do {                                     \
    if ((pointer) == nullptr) {            \
      return null_pointer_error(#pointer); \
    }                                      \
  } while (false)
