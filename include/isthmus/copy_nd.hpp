// SPDX-License-Identifier: Apache-2.0
// Copies of arrays of up to 8 dimensions, with any strides on each side.
//
//   // A transposed matrix of floats on the host, packed in a buffer.
//   isthmus::copy_nd({buffer, {rows * 4, 4}}, {std::span(matrix), {4, columns * 4}},
//                    {columns, rows}, sizeof(float));
//
// Contiguous dimensions are joined first. The rest is copied in the fewest operations: one range,
// rows at one pitch, or many ranges. Plain host memory is gathered or scattered by the copy threads
// if the device has pinned memory for staging. Throws invalid_argument for unequal numbers of
// dimensions and for strides that isthmus_copy_nd does not allow, out_of_range if the elements
// exceed an endpoint.
//
// Cost: a few nanoseconds per element and thread if a side has isolated elements. Thread-safe.
#pragma once

#include <array>
#include <isthmus/copy.hpp>

namespace isthmus {
inline namespace v1 {

// Extents, or strides in bytes, the outermost dimension first. Throws invalid_argument for more
// than 8.
class dimensions {
 public:
  static constexpr std::size_t limit = 8;

  dimensions() noexcept = default;
  dimensions(std::span<const std::size_t> all) {
    if (all.size() > limit) {
      raise(status::invalid_argument, "an array cannot have " + std::to_string(all.size()) +
                                          " dimensions: the limit is " + std::to_string(limit));
    }
    for (const std::size_t number : all) numbers_[count_++] = number;
  }
  dimensions(std::initializer_list<std::size_t> all)
      : dimensions(std::span<const std::size_t>(all.begin(), all.size())) {}

  [[nodiscard]] const std::size_t* data() const noexcept { return numbers_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t operator[](std::size_t index) const { return numbers_[index]; }

 private:
  std::array<std::size_t, limit> numbers_{};
  std::size_t count_ = 0;
};

// A source or destination with strides.
template <class Endpoint>
struct strided {
  Endpoint endpoint;
  dimensions strides;  // in bytes
};

namespace detail {

// Bytes from the start of the first element to the end of the last one; saturates.
[[nodiscard]] inline std::size_t spanned_bytes(const dimensions& shape, const dimensions& strides,
                                               std::size_t item_bytes) noexcept {
  constexpr std::size_t k_max = std::numeric_limits<std::size_t>::max();
  std::size_t end = item_bytes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 || item_bytes == 0) return 0;
    if (strides[i] != 0 && shape[i] - 1 > (k_max - end) / strides[i]) return k_max;
    end += (shape[i] - 1) * strides[i];
  }
  return end;
}

inline void require_strides(const dimensions& shape, const dimensions& strides, const char* name) {
  if (shape.size() == strides.size()) return;
  raise(status::invalid_argument, std::string("the ") + name + " has " +
                                      std::to_string(strides.size()) + " strides for a shape of " +
                                      std::to_string(shape.size()) +
                                      " dimensions: pass one stride per dimension");
}

inline auto copy_nd_call(const strided<isthmus::destination>& destination,
                         const strided<isthmus::source>& source, const dimensions& shape,
                         std::size_t item_bytes, queue_choice queue) {
  require_strides(shape, source.strides, "source");
  require_strides(shape, destination.strides, "destination");
  check_bounds(source.endpoint, spanned_bytes(shape, source.strides, item_bytes), "source");
  check_bounds(destination.endpoint, spanned_bytes(shape, destination.strides, item_bytes),
               "destination");
  return [&destination, &source, &shape, item_bytes, queue](const isthmus_operation_t* operation,
                                                            isthmus_event_t** event) {
    return isthmus_copy_nd(queue.get(), destination.endpoint.raw(), destination.strides.data(),
                           source.endpoint.raw(), source.strides.data(), shape.data(), shape.size(),
                           item_bytes, operation, event);
  };
}

}  // namespace detail

// Copies `shape` elements of `item_bytes` each and waits until the copy has completed; throws its
// error.
inline void copy_nd(const strided<isthmus::destination>& destination,
                    const strided<isthmus::source>& source, const dimensions& shape,
                    std::size_t item_bytes, isthmus::operation operation = {}) {
  detail::run(operation, nullptr,
              detail::copy_nd_call(destination, source, shape, item_bytes, operation.queue));
}
// Submits the copy and returns an event that completes with it.
inline event copy_nd_async(const strided<isthmus::destination>& destination,
                           const strided<isthmus::source>& source, const dimensions& shape,
                           std::size_t item_bytes, isthmus::operation operation = {}) {
  return detail::run_async(
      operation, detail::copy_nd_call(destination, source, shape, item_bytes, operation.queue));
}

}  // namespace v1
}  // namespace isthmus
