// SPDX-License-Identifier: Apache-2.0
// Fills, and hints about where memory will be used.
//
//   isthmus::fill(buffer, std::byte{0});
//   isthmus::fill(buffer, 1.5f);              // a pattern of 1, 2, 4, 8 or 16 bytes
//
// The blocking functions throw the error of the operation; the `_async` functions return an event.
// Cost: as copies. Thread-safe.
#pragma once

#include <isthmus/copy.hpp>

namespace isthmus {
inline namespace v1 {

// A value whose bytes can be repeated.
template <class T>
concept fill_pattern =
    std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);

namespace detail {

template <fill_pattern T>
auto fill_call(const destination& to, const T& pattern, queue_choice on) {
  return [&to, &pattern, on](const isthmus_operation_t* how, isthmus_event_t** event) {
    return isthmus_fill(on.get(), to.raw(), &pattern, sizeof pattern, to.size(), how, event);
  };
}
inline auto prefetch_call(const destination& place, bool to_host, queue_choice on) {
  return [&place, to_host, on](const isthmus_operation_t* how, isthmus_event_t** event) {
    return isthmus_prefetch(on.get(), place.raw(), place.size(), to_host ? 1 : 0, how, event);
  };
}
inline auto advise_call(const destination& place, std::uint32_t advice, queue_choice on) {
  return [&place, advice, on](const isthmus_operation_t* how, isthmus_event_t** event) {
    return isthmus_advise(on.get(), place.raw(), place.size(), advice, how, event);
  };
}

}  // namespace detail

// Fills the whole destination, whose size must be a multiple of the pattern's. The pattern is read
// before this returns. Throws invalid_argument for other sizes, unsupported for an address that the
// device cannot fill with this pattern (see isthmus_fill).
template <fill_pattern T>
void fill(const destination& to, const T& pattern, operation how = {}) {
  detail::run(how, nullptr, detail::fill_call(to, pattern, how.on));
}
template <fill_pattern T>
event fill_async(const destination& to, const T& pattern, operation how = {}) {
  return detail::run_async(how, detail::fill_call(to, pattern, how.on));
}

// Where shared memory will be used next.
enum class prefetch_to { device, host };

// Moves shared memory there. A hint, which may have no effect. Throws unsupported without
// capability::prefetch.
inline void prefetch(const destination& place, prefetch_to where = prefetch_to::device,
                     operation how = {}) {
  const bool host = where == prefetch_to::host;
  detail::run(how, nullptr, detail::prefetch_call(place, host, how.on));
}
inline event prefetch_async(const destination& place, prefetch_to where = prefetch_to::device,
                            operation how = {}) {
  const bool host = where == prefetch_to::host;
  return detail::run_async(how, detail::prefetch_call(place, host, how.on));
}

// Passes an advice number of the driver (OpenCL: cl_mem_advice_intel; CUDA: CUmem_advise). Throws
// unsupported without capability::advise. For advice by name see advice.hpp.
inline void advise(const destination& place, std::uint32_t advice, operation how = {}) {
  detail::run(how, nullptr, detail::advise_call(place, advice, how.on));
}
inline event advise_async(const destination& place, std::uint32_t advice, operation how = {}) {
  return detail::run_async(how, detail::advise_call(place, advice, how.on));
}

static_assert(fill_pattern<float> && !fill_pattern<char[3]>);

}  // namespace v1
}  // namespace isthmus
