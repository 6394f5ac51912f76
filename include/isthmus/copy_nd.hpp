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
// Cost: some nanoseconds per element and thread if a side has isolated elements. Thread-safe.
#pragma once

#include <array>
#include <isthmus/copy.hpp>

namespace isthmus {
inline namespace v1 {

// Extents, or strides in bytes, the outermost dimension first. Throws invalid_argument for more
// than 8.
class dimensions {
 public:
  static constexpr std::size_t most = 8;

  dimensions() noexcept = default;
  dimensions(std::span<const std::size_t> all) {
    if (all.size() > most) {
      raise(status::invalid_argument, "an array cannot have " + std::to_string(all.size()) +
                                          " dimensions: the limit is " + std::to_string(most));
    }
    for (const std::size_t each : all) numbers_[count_++] = each;
  }
  dimensions(std::initializer_list<std::size_t> all)
      : dimensions(std::span<const std::size_t>(all.begin(), all.size())) {}

  [[nodiscard]] const std::size_t* data() const noexcept { return numbers_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t operator[](std::size_t index) const { return numbers_[index]; }

 private:
  std::array<std::size_t, most> numbers_{};
  std::size_t count_ = 0;
};

// A source or destination with strides.
template <class Place>
struct strided {
  Place place;
  dimensions strides;  // in bytes
};

namespace detail {

// Bytes from the start of the first element to the end of the last one; saturates.
[[nodiscard]] inline std::size_t reach(const dimensions& shape, const dimensions& strides,
                                       std::size_t item_bytes) noexcept {
  constexpr std::size_t k_most = std::numeric_limits<std::size_t>::max();
  std::size_t end = item_bytes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 || item_bytes == 0) return 0;
    if (strides[i] != 0 && shape[i] - 1 > (k_most - end) / strides[i]) return k_most;
    end += (shape[i] - 1) * strides[i];
  }
  return end;
}

inline void require_strides(const dimensions& shape, const dimensions& strides, const char* what) {
  if (shape.size() == strides.size()) return;
  raise(status::invalid_argument, std::to_string(strides.size()) + " strides of the " + what +
                                      " for a shape of " + std::to_string(shape.size()) +
                                      " dimensions");
}

inline auto copy_nd_call(const strided<destination>& to, const strided<source>& from,
                         const dimensions& shape, std::size_t item_bytes, queue_choice on) {
  require_strides(shape, from.strides, "source");
  require_strides(shape, to.strides, "destination");
  require_room(from.place, reach(shape, from.strides, item_bytes), "source");
  require_room(to.place, reach(shape, to.strides, item_bytes), "destination");
  return [&to, &from, &shape, item_bytes, on](const isthmus_operation_t* how,
                                              isthmus_event_t** event) {
    return isthmus_copy_nd(on.get(), to.place.raw(), to.strides.data(), from.place.raw(),
                           from.strides.data(), shape.data(), shape.size(), item_bytes, how, event);
  };
}

}  // namespace detail

// Copies `shape` elements of `item_bytes` each and waits until the copy has completed; throws its
// error.
inline void copy_nd(const strided<destination>& to, const strided<source>& from,
                    const dimensions& shape, std::size_t item_bytes, operation how = {}) {
  detail::run(how, nullptr, detail::copy_nd_call(to, from, shape, item_bytes, how.on));
}
// Submits the copy and returns an event that completes with it.
inline event copy_nd_async(const strided<destination>& to, const strided<source>& from,
                           const dimensions& shape, std::size_t item_bytes, operation how = {}) {
  return detail::run_async(how, detail::copy_nd_call(to, from, shape, item_bytes, how.on));
}

static_assert(std::is_aggregate_v<strided<destination>>);

}  // namespace v1
}  // namespace isthmus
