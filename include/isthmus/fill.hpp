// SPDX-License-Identifier: Apache-2.0
// Fills of memory, and hints (prefetch and advice) about its use.
//
//   isthmus::fill(buffer, std::byte{0});
//   isthmus::fill(buffer, 1.5f);              // a pattern of 1, 2, 4, 8 or 16 bytes
//
// The blocking functions throw the error of the operation; the `_async` functions return an event.
// Cost: as for copies. Thread-safe.
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
auto fill_call(const isthmus::destination& destination, const T& pattern, queue_choice queue) {
  return [&destination, &pattern, queue](const isthmus_operation_t* operation,
                                         isthmus_event_t** event) {
    return isthmus_fill(queue.get(), destination.raw(), &pattern, sizeof pattern,
                        destination.size(), operation, event);
  };
}
inline auto prefetch_call(const destination& destination, bool to_host, queue_choice queue) {
  return [&destination, to_host, queue](const isthmus_operation_t* operation,
                                        isthmus_event_t** event) {
    return isthmus_prefetch(queue.get(), destination.raw(), destination.size(), to_host ? 1 : 0,
                            operation, event);
  };
}
inline auto advise_call(const destination& destination, std::uint32_t advice, queue_choice queue) {
  return
      [&destination, advice, queue](const isthmus_operation_t* operation, isthmus_event_t** event) {
        return isthmus_advise(queue.get(), destination.raw(), destination.size(), advice, operation,
                              event);
      };
}

}  // namespace detail

// Fills the whole destination, whose size must be a multiple of the pattern's. The pattern is read
// before this returns. Throws invalid_argument for other sizes, unsupported for an address that the
// device cannot fill with this pattern (see isthmus_fill).
template <fill_pattern T>
void fill(const isthmus::destination& destination, const T& pattern,
          isthmus::operation operation = {}) {
  detail::run(operation, nullptr, detail::fill_call(destination, pattern, operation.queue));
}
template <fill_pattern T>
event fill_async(const isthmus::destination& destination, const T& pattern,
                 isthmus::operation operation = {}) {
  return detail::run_async(operation, detail::fill_call(destination, pattern, operation.queue));
}

// Where shared memory will be used next.
enum class prefetch_to { device, host };

// Migrates shared memory to `target`. It is a hint that may have no effect. Throws unsupported
// without capability::prefetch.
inline void prefetch(const destination& destination, prefetch_to target = prefetch_to::device,
                     isthmus::operation operation = {}) {
  const bool host = target == prefetch_to::host;
  detail::run(operation, nullptr, detail::prefetch_call(destination, host, operation.queue));
}
inline event prefetch_async(const destination& destination,
                            prefetch_to target = prefetch_to::device,
                            isthmus::operation operation = {}) {
  const bool host = target == prefetch_to::host;
  return detail::run_async(operation, detail::prefetch_call(destination, host, operation.queue));
}

// Passes advice to the driver, as a number that the driver defines (OpenCL: cl_mem_advice_intel;
// CUDA: CUmem_advise). Throws unsupported without capability::advise. For advice by name see
// advice.hpp.
inline void advise(const destination& destination, std::uint32_t advice,
                   isthmus::operation operation = {}) {
  detail::run(operation, nullptr, detail::advise_call(destination, advice, operation.queue));
}
inline event advise_async(const destination& destination, std::uint32_t advice,
                          isthmus::operation operation = {}) {
  return detail::run_async(operation, detail::advise_call(destination, advice, operation.queue));
}

}  // namespace v1
}  // namespace isthmus
