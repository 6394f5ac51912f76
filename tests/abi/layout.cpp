// SPDX-License-Identifier: Apache-2.0
// Only compiled, as C++20: the layouts of the C headers are those in layout.h and
// layout_experimental.h, and their handles, types and functions have the properties that C++
// callers rely on.
#include <isthmus/experimental.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define SIZE(type, size)                          \
  static_assert(sizeof(type) == (size));          \
  static_assert(std::is_standard_layout_v<type>); \
  static_assert(std::is_trivially_copyable_v<type>);
#define FIELD(type, field, offset, size)            \
  static_assert(offsetof(type, field) == (offset)); \
  static_assert(sizeof(type::field) == (size));
#define VALUE(name, number) static_assert((name) == (number));

#include "layout.h"
#include "layout_experimental.h"

static_assert(sizeof(void*) == 8 && sizeof(std::size_t) == 8, "layout.h is that of LP64");
static_assert(std::is_same_v<isthmus_status_t, std::int32_t>);
static_assert(std::is_same_v<isthmus_kind_t, std::int32_t>);
static_assert(std::is_same_v<isthmus_device_type_t, std::int32_t>);
static_assert(std::is_same_v<decltype(&isthmus_abi_version), std::uint32_t (*)() noexcept>);
static_assert(noexcept(isthmus_buffer_create(0, 0, 0, nullptr, nullptr, nullptr)));
