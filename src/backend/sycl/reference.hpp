// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to dpctl: calls without exceptions, and references that are deleted with their owner, in
// counted calls.

#include <string>
#include <utility>

#include "backend/call_of_any_thread.hpp"
#include "backend/sycl/api.hpp"

namespace isthmus::sycl {

// Calls a function that may let exceptions of SYCL escape (api.hpp). Then returns false, null or
// nothing.
template <class Result, class... Taken, class... Given>
Result call_safely(Result (*function)(Taken...), Given... given) noexcept {
  try {
    return function(given...);
  } catch (...) {
    return Result();
  }
}

// A reference with one owner. `Delete` is the member of `api` that deletes it. Once the drivers are
// gone nothing is deleted.
template <class Handle, auto Delete>
class owned {
 public:
  owned() noexcept = default;
  owned(const api& calls, Handle handle) noexcept : calls_{&calls}, handle_{handle} {}
  owned(owned&& other) noexcept
      : calls_{other.calls_}, handle_{std::exchange(other.handle_, nullptr)} {}
  owned& operator=(owned&& other) noexcept {
    std::swap(calls_, other.calls_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~owned() {
    if (handle_ != nullptr) {
      if (const call_of_any_thread counted; counted) {
        (calls_->*Delete)(handle_);
      }
    }
  }

  void abandon() noexcept { handle_ = nullptr; }
  [[nodiscard]] Handle get() const noexcept { return handle_; }
  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  const api* calls_ = nullptr;
  Handle handle_ = nullptr;
};

using owned_platform = owned<platform_reference, &api::delete_platform>;
using owned_device = owned<device_reference, &api::delete_device>;
using owned_context = owned<context_reference, &api::delete_context>;
using owned_queue = owned<queue_reference, &api::delete_queue>;
using owned_event = owned<event_reference, &api::delete_event>;
using owned_platforms = owned<vector, &api::delete_platforms>;
using owned_devices = owned<vector, &api::delete_devices>;

// Takes ownership of a string of dpctl's. Returns "" for null.
[[nodiscard]] inline std::string take_text(const api& calls, const char* text) {
  std::string copied = text == nullptr ? "" : text;
  if (text != nullptr) {
    calls.delete_text(text);
  }
  return copied;
}

}  // namespace isthmus::sycl
