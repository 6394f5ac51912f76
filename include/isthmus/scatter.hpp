// SPDX-License-Identifier: Apache-2.0
// Distributes an array over several devices, and joins such parts again. All copies run
// concurrently.
//
//   std::vector<isthmus::array<float, 2>> parts = isthmus::scatter(a, isthmus::devices());
//   for (const auto& part : parts) ...                        // work on each device
//   isthmus::gather(a, parts);                                // or into a vector
//   std::vector<float> all = isthmus::gather(parts);
//
// The array is divided along the first axis as evenly as possible: if its extent is not a multiple
// of the number of devices the first parts have one row more, and with fewer rows than devices some
// parts are empty. Both functions block until all copies have completed. If a copy fails, both
// functions wait for the other copies and throw the first failure; scatter() also releases the
// memory of the parts.
//
// Cost: an allocation and a copy per part. Thread-safe.
#pragma once

#include <isthmus/array_make.hpp>

#include <algorithm>
#include <exception>
#include <span>
#include <utility>
#include <vector>

namespace isthmus {
inline namespace v1 {
namespace detail {

// Calls `submit` for each part until one fails, waits for all events, and throws the first failure.
template <class Submit>
void submit_all(std::size_t count, Submit&& submit) {
  std::vector<event> events;
  events.reserve(count);
  std::exception_ptr first_failure;
  const auto attempt = [&first_failure](auto&& step) {
    try {
      step();
    } catch (...) {
      if (!first_failure) first_failure = std::current_exception();
    }
  };
  for (std::size_t part = 0; part < count && !first_failure; ++part) {
    attempt([&] { events.push_back(submit(part)); });
  }
  for (const event& event_of_part : events) attempt([&] { event_of_part.wait(); });
  if (first_failure) std::rethrow_exception(first_failure);
}

// Rows of an array, or elements of plain memory.
template <class T, std::size_t N>
[[nodiscard]] array<T, N> rows_of(const array<T, N>& all, std::size_t first, std::size_t count) {
  return all.view(slice(first, first + count));
}
template <host_elements Memory>
[[nodiscard]] auto rows_of(Memory& all, std::size_t first, std::size_t count) {
  return std::span(all).subspan(first, count);
}
template <class T, std::size_t N>
  requires(N != 0)
[[nodiscard]] axes<N> shape_of(const array<T, N>& all) noexcept {
  return all.shape();
}
template <host_elements Memory>
[[nodiscard]] axes<1> shape_of(const Memory& all) {
  return {std::ranges::size(all)};
}

[[nodiscard]] inline queue queue_of(const isthmus::device& device) { return queue::of(device); }
[[nodiscard]] inline isthmus::queue queue_of(const isthmus::queue& queue) { return queue; }

template <class T, std::size_t N, class Data, class Devices>
[[nodiscard]] std::vector<array<T, N>> scattered(const Data& data, axes<N> shape,
                                                 const Devices& devices, isthmus::kind kind) {
  const auto count = static_cast<std::size_t>(std::ranges::distance(devices));
  if (count == 0) raise(status::invalid_argument, "no devices to scatter to: pass at least one");
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto first_row = [&](std::size_t part) {
    return rows / count * part + std::min(part, rows % count);
  };
  std::vector<array<T, N>> parts;
  for (const auto& target : devices) {
    const queue queue = queue_of(target);
    shape[0] = static_cast<std::int64_t>(first_row(parts.size() + 1) - first_row(parts.size()));
    parts.push_back(empty<T>(shape, kind, {.queue = queue}));
  }
  submit_all(count, [&](std::size_t part) {
    const std::size_t start = first_row(part);
    return copy_async(parts[part], rows_of(data, start, first_row(part + 1) - start), casting::no);
  });
  return parts;
}

// The shape of all parts together. They may differ only in the number of rows.
template <class T, std::size_t N>
[[nodiscard]] axes<N> joined_shape(std::span<const array<T, N>> parts) {
  if (parts.empty()) raise(status::invalid_argument, "no parts to gather: pass at least one");
  const axes<N> first = parts.front().shape();
  axes<N> joined = first;
  for (const auto& part : parts.subspan(1)) {
    axes<N> shape = part.shape();
    joined[0] += std::exchange(shape[0], first[0]);
    if (shape != first) {
      raise(status::invalid_argument, "cannot gather a part of shape " + to_string(part.shape()) +
                                          " with one of " + to_string(first) +
                                          ": parts may differ along the first axis only");
    }
  }
  return joined;
}
template <class To, std::size_t N>
void require_shape(const To& target, const axes<N>& all) {
  bool fits = false;
  if constexpr (any_array<To>) {
    fits = target.shape() == all;
  } else {
    const auto count = layout<N>::dense(all, 1).count();
    fits = std::ranges::size(target) == static_cast<std::size_t>(count);
  }
  if (fits) return;
  raise(status::invalid_argument, "parts of shape " + to_string(all) +
                                      " together do not fit a destination of shape " +
                                      to_string(shape_of(target)));
}
template <class To, class T, std::size_t N>
void gather_into(To& target, std::span<const array<T, N>> parts) {
  require_mutable<To>();
  require_shape(target, joined_shape(parts));
  std::size_t offset = 0;
  submit_all(parts.size(), [&](std::size_t part) {
    const array<T, N>& source = parts[part];
    const std::size_t count =
        any_array<To> ? static_cast<std::size_t>(source.extent(0)) : source.size();
    const queue queue = source.queue();
    offset += count;
    return copy_async(rows_of(target, offset - count, count), source, casting::no,
                      {.queue = queue});
  });
}

}  // namespace detail

// Distributes `data` over `devices`: devices, whose default queues are used, or queues. A device
// may occur several times. Throws invalid_argument if there are none, and the errors of empty().
template <class T, std::size_t N, std::ranges::forward_range Devices>
  requires(N != 0)
[[nodiscard]] auto scatter(const array<T, N>& data, const Devices& devices,
                           isthmus::kind kind = isthmus::kind::device) {
  return detail::scattered<std::remove_const_t<T>>(data, data.shape(), devices, kind);
}
// The same for plain memory, which has one axis.
template <host_elements Data, std::ranges::forward_range Devices>
[[nodiscard]] auto scatter(const Data& data, const Devices& devices,
                           isthmus::kind kind = isthmus::kind::device) {
  using value = std::ranges::range_value_t<Data>;
  return detail::scattered<value>(data, detail::shape_of(data), devices, kind);
}

// Joins `parts`, arrays on any devices, along the first axis. `target` is an array of the joined
// shape, or plain memory of as many elements. Throws invalid_argument, before anything is copied,
// if there are no parts and for shapes that do not fit.
template <class T, std::size_t N, class To>
  requires(N != 0)
void gather(To&& target, const std::vector<array<T, N>>& parts) {
  detail::gather_into(target, std::span(parts));
}
// The same into a new vector, in row-major order.
template <class T, std::size_t N>
  requires(N != 0)
[[nodiscard]] std::vector<std::remove_const_t<T>> gather(const std::vector<array<T, N>>& parts) {
  const auto shape = detail::joined_shape(std::span(parts));
  std::vector<std::remove_const_t<T>> result(
      static_cast<std::size_t>(layout<N>::dense(shape, sizeof(T)).count()));
  gather(result, parts);
  return result;
}

}  // namespace v1
}  // namespace isthmus
