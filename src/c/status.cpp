// SPDX-License-Identifier: Apache-2.0
// Version, status and errors.

#include "c/common.hpp"
#include "core/never_destroyed.hpp"
#include "core/owned_by_thread.hpp"

namespace isthmus::c {
namespace {

thread_local constinit OwnedByThread<Error> thread_error;

}  // namespace

Status set_last_error(Error failure) noexcept {
  const auto code = failure.code();
  if (auto* stored = thread_error.get()) {
    *stored = std::move(failure);
  }
  return code;
}

const Error& last_error() noexcept {
  static NeverDestroyed<Error> no_error;
  static NeverDestroyed<Error> no_memory{Error::no_memory()};
  const auto* stored = thread_error.get();
  return stored != nullptr ? *stored : thread_error.is_destroyed() ? *no_error : *no_memory;
}

Error unexpected_exception_error(const char* description) {
  return fail(ISTHMUS_ERROR_INTERNAL,
              "unexpected exception inside the library: {}; please report it", description);
}

std::string_view name_at(std::string_view names, std::size_t index) noexcept {
  constexpr std::string_view k_separator = ", ";
  for (; index != 0; --index) {
    names.remove_prefix(names.find(k_separator) + k_separator.size());
  }
  return names.substr(0, names.find(k_separator));
}

Error null_pointer_error(std::string_view name) {
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "{} is NULL, which is not allowed here", name);
}

Error struct_size_error(const char* name, std::size_t actual, std::size_t expected) {
  return fail(
      ISTHMUS_ERROR_INVALID_ARGUMENT,
      "{}->struct_size is {}, but version 1 of the structure has {} bytes: set it to its sizeof",
      name, actual, expected);
}

Error forked_child_error() {
  return fail(ISTHMUS_ERROR_FORKED,
              "a forked child cannot use its parent's drivers: start it with spawn");
}

Result<std::vector<Ref<Event>>> events_of(isthmus_event_t* const* events, std::size_t count) {
  ISTHMUS_TRY(check_array(events, "after", count));
  std::vector<Ref<Event>> result;
  for (std::size_t index = 0; index < count; ++index) {
    if (events[index] == nullptr) {
      return fail(ISTHMUS_ERROR_INVALID_ARGUMENT, "event {} of the {} to wait for is NULL", index,
                  count);
    }
    result.emplace_back(object(events[index]));
  }
  return result;
}

}  // namespace isthmus::c

#define ISTHMUS_STRING_(x) #x
#define ISTHMUS_STRING(x)  ISTHMUS_STRING_(x)

const char* isthmus_version() noexcept {
  return ISTHMUS_STRING(ISTHMUS_VERSION_MAJOR) "." ISTHMUS_STRING(
      ISTHMUS_VERSION_MINOR) "." ISTHMUS_STRING(ISTHMUS_VERSION_PATCH);
}

uint32_t isthmus_abi_version() noexcept { return ISTHMUS_ABI_VERSION; }

const char* isthmus_error_message() noexcept { return isthmus::c::last_error().message(); }

const char* isthmus_status_name(isthmus_status_t status) noexcept {
  return isthmus::status_name(status);
}
