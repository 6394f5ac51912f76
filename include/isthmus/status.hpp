// SPDX-License-Identifier: Apache-2.0
// The outcome of operations, the kinds and states of memory, and the capabilities of devices: the
// constants of isthmus.h as types.
//
// Cost: none; the values are those of the C ABI. Thread safety: as plain values.
#pragma once

#include <isthmus/detail/cxx20.hpp>

#include <isthmus/isthmus.h>

#include <cstdint>
#include <string_view>

namespace isthmus {
inline namespace v1 {

// The outcome of an operation: see isthmus_status_t.
enum class status : isthmus_status_t {
  ok = ISTHMUS_OK,
  pending = ISTHMUS_PENDING,
  invalid_argument = ISTHMUS_ERROR_INVALID_ARGUMENT,
  out_of_range = ISTHMUS_ERROR_OUT_OF_RANGE,
  out_of_memory = ISTHMUS_ERROR_OUT_OF_MEMORY,
  unsupported = ISTHMUS_ERROR_UNSUPPORTED,
  wrong_context = ISTHMUS_ERROR_WRONG_CONTEXT,
  not_found = ISTHMUS_ERROR_NOT_FOUND,
  closed = ISTHMUS_ERROR_CLOSED,
  read_only = ISTHMUS_ERROR_READ_ONLY,
  device_lost = ISTHMUS_ERROR_DEVICE_LOST,
  driver = ISTHMUS_ERROR_DRIVER,
  timeout = ISTHMUS_ERROR_TIMEOUT,
  dependency = ISTHMUS_ERROR_DEPENDENCY,
  abandoned = ISTHMUS_ERROR_ABANDONED,
  callback = ISTHMUS_ERROR_CALLBACK,
  forked = ISTHMUS_ERROR_FORKED,
  internal = ISTHMUS_ERROR_INTERNAL,
  conflict = ISTHMUS_ERROR_CONFLICT,
  deadlock = ISTHMUS_ERROR_DEADLOCK,
};

// "out of memory" for status::out_of_memory, and so on.
[[nodiscard]] inline std::string_view name(status value) noexcept {
  return isthmus_status_name(static_cast<isthmus_status_t>(value));
}

// A USM kind: where the memory resides and who can access it. `unknown` is reported for pointers
// that are not USM.
enum class kind : isthmus_kind_t {
  unknown = ISTHMUS_KIND_UNKNOWN,
  device = ISTHMUS_KIND_DEVICE,
  shared = ISTHMUS_KIND_SHARED,
  host = ISTHMUS_KIND_HOST,
};

// The state of memory.
enum class memory_state : isthmus_memory_state_t {
  unknown = ISTHMUS_MEMORY_UNKNOWN,
  live = ISTHMUS_MEMORY_LIVE,        // allocated; of an unchecked pool all small blocks
  waiting = ISTHMUS_MEMORY_WAITING,  // freed; released when the work on it has completed
  free = ISTHMUS_MEMORY_FREE,        // free in a pool
};

// "unknown", "live", "waiting" or "free".
[[nodiscard]] constexpr std::string_view name(memory_state value) noexcept {
  switch (value) {
    case memory_state::live: return "live";
    case memory_state::waiting: return "waiting";
    case memory_state::free: return "free";
    case memory_state::unknown: break;
  }
  return "unknown";
}

// "device", "shared", "host" or "unknown".
[[nodiscard]] constexpr std::string_view name(kind value) noexcept {
  switch (value) {
    case kind::device: return "device";
    case kind::shared: return "shared";
    case kind::host: return "host";
    case kind::unknown: break;
  }
  return "unknown";
}

// A capability of a device: one bit of device_info::capabilities. See ISTHMUS_CAN_*.
enum class capability : std::uint64_t {
  device_kind = ISTHMUS_CAN_DEVICE_KIND,
  shared_kind = ISTHMUS_CAN_SHARED_KIND,
  host_kind = ISTHMUS_CAN_HOST_KIND,
  usm = ISTHMUS_CAN_USM,
  wait_for_host = ISTHMUS_CAN_WAIT_FOR_HOST,
  prefetch = ISTHMUS_CAN_PREFETCH,
  advise = ISTHMUS_CAN_ADVISE,
  profile = ISTHMUS_CAN_PROFILE,
  query_free_memory = ISTHMUS_CAN_QUERY_FREE_MEMORY,
  run_functions = ISTHMUS_CAN_RUN_FUNCTIONS,
  export_handles = ISTHMUS_CAN_EXPORT_HANDLES,
  remap = ISTHMUS_CAN_REMAP,
  write_combine = ISTHMUS_CAN_WRITE_COMBINE,
  ipc = ISTHMUS_CAN_IPC,
};

// The name of the constant: "prefetch" for capability::prefetch, and so on.
[[nodiscard]] constexpr std::string_view name(capability value) noexcept {
  switch (value) {
    case capability::device_kind: return "device_kind";
    case capability::shared_kind: return "shared_kind";
    case capability::host_kind: return "host_kind";
    case capability::usm: return "usm";
    case capability::wait_for_host: return "wait_for_host";
    case capability::prefetch: return "prefetch";
    case capability::advise: return "advise";
    case capability::profile: return "profile";
    case capability::query_free_memory: return "query_free_memory";
    case capability::run_functions: return "run_functions";
    case capability::export_handles: return "export_handles";
    case capability::remap: return "remap";
    case capability::write_combine: return "write_combine";
    case capability::ipc: return "ipc";
  }
  return "unknown";
}

}  // namespace v1
}  // namespace isthmus
