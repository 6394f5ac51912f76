// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every form of asynchronous call of the C interface, on two small buffers that may belong to two
// devices.

#include <algorithm>
#include <vector>

#include "support/bytes.hpp"

namespace support {

namespace im = isthmus;

inline constexpr std::size_t k_later_bytes = 8192;

// The arguments of a call: two queues, possibly of two devices, a buffer on each, and an event to
// wait for.
struct later_call {
  im::queue queue;
  im::queue other;
  im::buffer target;
  im::buffer source;  // on `other`
  bytes plain;
  isthmus_event_t* after = nullptr;

  [[nodiscard]] isthmus_operation_t operation() const noexcept {
    isthmus_operation_t result{};
    result.struct_size = sizeof result;
    result.after = &after;
    result.after_count = after != nullptr ? 1 : 0;
    return result;
  }
  isthmus_status_t block_queue() const {
    isthmus_event_t* reached = nullptr;
    const auto status = isthmus_queue_fence(queue.get(), &after, 1, &reached);
    isthmus_event_release(reached);
    return status;
  }
  // Converts to int32 from an array that begins at `first`, and writes to `target`.
  struct elements {
    isthmus_endpoint_t first;
    isthmus_dtype_t dtype;
    std::int64_t stride;
  };
  isthmus_status_t copy_elements(const elements& from, isthmus_event_t** event) const {
    const std::int64_t count = k_later_bytes / 4, dense = 4;
    const isthmus_array_t whole{{target.get(), nullptr, 0}, ISTHMUS_INT32, 1, &count, &dense};
    const isthmus_array_t read{from.first, from.dtype, 1, &count, &from.stride};
    const auto made = operation();
    return isthmus_copy_array(queue.get(), &whole, &read, ISTHMUS_CASTING_SAFE, &made, event);
  }
};

inline isthmus_status_t does_nothing_later(void*, const isthmus_view_t*, std::size_t,
                                           const char**) {
  return ISTHMUS_OK;
}

// The contents of the target after the call, given what `later_call` holds.
inline bytes the_source(const later_call& of) { return of.plain; }
inline bytes nothing(const later_call&) { return bytes(k_later_bytes); }
inline bytes its_first_byte(const later_call& of) { return bytes(k_later_bytes, of.plain[0]); }
inline bytes the_source_widened(const later_call& of) {
  bytes wide(k_later_bytes);
  for (std::size_t i = 0; i < k_later_bytes / 4; ++i) wide[4 * i] = of.plain[i];
  return wide;
}
inline bytes the_source_backwards(const later_call& of) {
  bytes turned(k_later_bytes);
  for (std::size_t i = 0; i < k_later_bytes; i += 4) {
    std::copy_n(of.plain.end() - static_cast<std::ptrdiff_t>(i + 4), 4,
                turned.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return turned;
}

using later_function = isthmus_status_t (*)(const later_call&, isthmus_event_t**);
using later_result = bytes (*)(const later_call&);
struct later_form {
  const char* name;
  later_function make;
  later_result result;
};

inline const std::vector<later_form>& later_forms() {
  static const std::vector<later_form> all{
      {"copy",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const isthmus_endpoint_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy(to.queue.get(), &target, &source, k_later_bytes, &operation, event);
       },
       &the_source},
      {"copy on the source's queue",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const isthmus_endpoint_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy(to.other.get(), &target, &source, k_later_bytes, &operation, event);
       },
       &the_source},
      {"copy from the host",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const isthmus_endpoint_t source{nullptr, const_cast<std::byte*>(to.plain.data()), 0};
         const auto operation = to.operation();
         return isthmus_copy(to.queue.get(), &target, &source, k_later_bytes, &operation, event);
       },
       &the_source},
      {"rows",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const isthmus_endpoint_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy_2d(to.queue.get(), &target, 64, &source, 64, 64, k_later_bytes / 64,
                                &operation, event);
       },
       &the_source},
      {"ranges",
       [](const later_call& to, isthmus_event_t** event) {
         static constexpr isthmus_range_t k_all[] = {{4096, 4096, 4096}, {0, 0, 1}, {1, 1, 4095}};
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const isthmus_endpoint_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy_ranges(to.queue.get(), &target, &source, k_all, 3, &operation, event);
       },
       &the_source},
      {"an array",
       [](const later_call& to, isthmus_event_t** event) {
         static constexpr std::size_t k_strides[] = {4, 1024, 64}, k_shape[] = {16, 8, 16};
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const isthmus_endpoint_t source{to.source.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_copy_nd(to.queue.get(), &target, k_strides, &source, k_strides, k_shape, 3,
                                4, &operation, event);
       },
       &the_source},
      {"a conversion",
       [](const later_call& to, isthmus_event_t** event) {
         return to.copy_elements({{to.source.get(), nullptr, 0}, ISTHMUS_UINT8, 1}, event);
       },
       &the_source_widened},
      {"a conversion from the host",
       [](const later_call& to, isthmus_event_t** event) {
         auto* const plain = const_cast<std::byte*>(to.plain.data());
         return to.copy_elements({{nullptr, plain, 0}, ISTHMUS_UINT8, 1}, event);
       },
       &the_source_widened},
      {"elements backwards",
       [](const later_call& to, isthmus_event_t** event) {
         return to.copy_elements({{to.source.get(), nullptr, k_later_bytes - 4}, ISTHMUS_INT32, -4},
                                 event);
       },
       &the_source_backwards},
      {"elements over themselves",
       [](const later_call& to, isthmus_event_t** event) {
         return to.copy_elements({{to.target.get(), nullptr, k_later_bytes - 4}, ISTHMUS_INT32, -4},
                                 event);
       },
       &nothing},
      {"fill",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_fill(to.queue.get(), &target, to.plain.data(), 1, k_later_bytes, &operation,
                             event);
       },
       &its_first_byte},
      {"prefetch",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_prefetch(to.queue.get(), &target, k_later_bytes, 0, &operation, event);
       },
       &nothing},
      {"advise",
       [](const later_call& to, isthmus_event_t** event) {
         const isthmus_endpoint_t target{to.target.get(), nullptr, 0};
         const auto operation = to.operation();
         return isthmus_advise(to.queue.get(), &target, k_later_bytes, 0, &operation, event);
       },
       &nothing},
      {"a function",
       [](const later_call& to, isthmus_event_t** event) {
         return isthmus_queue_submit(to.queue.get(), &does_nothing_later, {}, nullptr, 0, &to.after,
                                     1, event);
       },
       &nothing},
      {"a fence",
       [](const later_call& to, isthmus_event_t** event) {
         return isthmus_queue_fence(to.queue.get(), &to.after, 1, event);
       },
       &nothing},
      {"record of an event",
       [](const later_call& to, isthmus_event_t** event) {
         const auto status = isthmus_buffer_record_event(to.target.get(), to.after);
         return status == ISTHMUS_OK ? isthmus_buffer_pending(to.target.get(), event) : status;
       },
       &nothing},
      {"record of a queue",
       [](const later_call& to, isthmus_event_t** event) {
         const auto status = isthmus_buffer_record_queue(to.target.get(), to.queue.get());
         return status == ISTHMUS_OK ? isthmus_buffer_pending(to.target.get(), event) : status;
       },
       &nothing},
      {"what is pending on a queue",
       [](const later_call& to, isthmus_event_t** event) {
         const auto status = to.block_queue();
         return status == ISTHMUS_OK ? isthmus_queue_pending(to.queue.get(), event) : status;
       },
       &nothing},
      {"a mark",
       [](const later_call& to, isthmus_event_t** event) {
         const auto status = to.block_queue();
         return status == ISTHMUS_OK ? isthmus_queue_mark(to.queue.get(), event) : status;
       },
       &nothing},
  };
  return all;
}

}  // namespace support
