// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers for dpctl: calls that catch exceptions, and owned references, whose deletion counts as a
// driver call.

#include <string>
#include <utility>

#include "backend/call_of_any_thread.hpp"
#include "backend/sycl/api.hpp"

namespace isthmus::sycl {

// Calls a function that may propagate SYCL's exceptions (api.hpp). After an exception returns
// false, null or nothing.
template <class Result, class... Parameters, class... Arguments>
Result call_safely(Result (*function)(Parameters...), Arguments... arguments) noexcept {
  try {
    return function(arguments...);
  } catch (...) {
    return Result();
  }
}

// A reference with one owner. `Delete` is the member of `Api` that deletes it. Once the drivers are
// unavailable, nothing is deleted.
template <class Handle, auto Delete>
class Owned {
 public:
  Owned() noexcept = default;
  Owned(const Api& calls, Handle handle) noexcept : calls_{&calls}, handle_{handle} {}
  Owned(Owned&& other) noexcept
      : calls_{other.calls_}, handle_{std::exchange(other.handle_, nullptr)} {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(calls_, other.calls_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) {
      if (const CallOfAnyThread counted; counted) {
        (calls_->*Delete)(handle_);
      }
    }
  }

  void abandon() noexcept { handle_ = nullptr; }
  [[nodiscard]] Handle get() const noexcept { return handle_; }
  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  const Api* calls_ = nullptr;
  Handle handle_ = nullptr;
};

using OwnedPlatform = Owned<PlatformReference, &Api::delete_platform>;
using OwnedDevice = Owned<DeviceReference, &Api::delete_device>;
using OwnedContext = Owned<ContextReference, &Api::delete_context>;
using OwnedQueue = Owned<QueueReference, &Api::delete_queue>;
using OwnedEvent = Owned<EventReference, &Api::delete_event>;
using OwnedPlatforms = Owned<Vector, &Api::delete_platforms>;
using OwnedDevices = Owned<Vector, &Api::delete_devices>;

// Copies a string that dpctl returned, and deletes it. Returns "" for null.
[[nodiscard]] inline std::string take_text(const Api& calls, const char* text) {
  std::string copied = text == nullptr ? "" : text;
  if (text != nullptr) {
    calls.delete_text(text);
  }
  return copied;
}

}  // namespace isthmus::sycl
