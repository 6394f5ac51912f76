// SPDX-License-Identifier: Apache-2.0
// Output of devices, buffers and the enumerations of this API. For arrays see array_print.hpp.
//
//   std::cout << device << '\n';                     // opencl:gpu:0
//   std::cout << buffer << '\n';                     // buffer device, 4000 bytes on opencl:gpu:0
//   std::cout << isthmus::status::out_of_memory;     // out of memory
//
// Any stream of char works; the program includes the header of its stream. An empty device is
// printed as "(no device)". The operators throw only what the stream throws, and std::bad_alloc.
//
// Cost: a query of the properties. Thread safety: the stream's.
#pragma once

#include <isthmus/buffer.hpp>

#include <iosfwd>

namespace isthmus {
inline namespace v1 {

// An enumeration that a function name() describes: kind, status, device_type, capability,
// memory_state, unified_state, dtype.
template <class X>
concept named_enumeration = std::is_enum_v<X> && requires(X value) {
  { name(value) } -> std::same_as<std::string_view>;
};

template <class Traits, named_enumeration Enumeration>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             Enumeration value) {
  return out << name(value);
}

// The filter string that identifies the device.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const device& device) {
  return out << (device ? device.info().filter : std::string_view("(no device)"));
}

// A line with kind, size and device. Does not wait, and calls no driver.
[[nodiscard]] inline std::string describe(const buffer& buffer) {
  if (!buffer) return "buffer, empty";
  try {
    const buffer_info info = buffer.info();
    return "buffer " + std::string(name(info.kind)) + ", " + std::to_string(info.nbytes) +
           " bytes on " + std::string(buffer.queue().device().info().filter) +
           (info.read_only ? ", read-only" : "");
  } catch (const closed&) {
    return "buffer, freed";
  }
}
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out,
                                             const buffer& buffer) {
  return out << describe(buffer);
}

}  // namespace v1
}  // namespace isthmus
