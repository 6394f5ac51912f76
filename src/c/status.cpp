// SPDX-License-Identifier: Apache-2.0
// Version, status and errors.

#include "c/common.hpp"
#include "core/never_destroyed.hpp"
#include "core/owned_by_thread.hpp"
#include "os/process.hpp"

namespace isthmus::c {
namespace {

thread_local constinit owned_by_thread<error> last;

}  // namespace

status remember(error failure) noexcept {
  const auto code = failure.code();
  if (auto* mine = last.get()) {
    *mine = std::move(failure);
  }
  return code;
}

const error& last_failure() noexcept {
  static never_destroyed<error> none;
  static never_destroyed<error> forgotten{error::no_memory()};
  const auto* mine = last.get();
  return mine != nullptr ? *mine : last.is_gone() ? *none : *forgotten;
}

error is_null(const char* name) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is NULL, which is not allowed here", name);
}

error is_too_small(const char* name, std::size_t given, std::size_t wanted) {
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "{}->struct_size is {}, but version 1 of the structure has {} bytes: set it to sizeof", name,
      given, wanted);
}

error refuse_child() {
  return fail(ISTHMUS_ERROR_FORKED,
              "a forked child cannot use its parent's drivers: start it with spawn");
}

result<std::vector<ref<event>>> events_of(isthmus_event_t* const* events, std::size_t count) {
  std::vector<ref<event>> made;
  if (count != 0 && events == nullptr) {
    return is_null("after");
  }
  for (std::size_t index = 0; index < count; ++index) {
    if (events[index] == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the {} to wait for is NULL", index,
                  count);
    }
    made.emplace_back(object(events[index]));
  }
  return made;
}

}  // namespace isthmus::c

#define ISTHMUS_STRING_(x) #x
#define ISTHMUS_STRING(x)  ISTHMUS_STRING_(x)

const char* isthmus_version() noexcept {
  return ISTHMUS_STRING(ISTHMUS_VERSION_MAJOR) "." ISTHMUS_STRING(
      ISTHMUS_VERSION_MINOR) "." ISTHMUS_STRING(ISTHMUS_VERSION_PATCH);
}

uint32_t isthmus_abi_version() noexcept { return ISTHMUS_ABI_VERSION; }

const char* isthmus_error_message() noexcept { return isthmus::c::last_failure().message(); }

const char* isthmus_status_name(isthmus_status_t status) noexcept {
  return isthmus::status_name(status);
}
