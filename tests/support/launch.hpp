// SPDX-License-Identifier: Apache-2.0
// Substitutes for kernels in tests and examples of arrays: runs a host function on the spans of
// contiguous arrays, in the order of their queue.
#pragma once

#include <isthmus/isthmus.hpp>
#include <span>
#include <tuple>
#include <vector>

namespace support {

template <class T>
std::span<T> span_of(std::span<std::byte> memory) {
  return {reinterpret_cast<T*>(memory.data()), memory.size() / sizeof(T)};
}

// For devices whose memory host functions must not access: the function works on copies, and the
// call blocks.
template <class Function, class... T>
void launch_on_copies(Function function, const isthmus::array<T, 1>&... arrays) {
  auto copies = std::make_tuple(isthmus::to_vector(arrays)...);
  std::apply([&](auto&... each) { function(std::span(each)...); }, copies);
  std::apply([&](auto&... each) { (isthmus::copy(arrays, each), ...); }, copies);
}

template <class Function, class... T>
void launch(Function function, const isthmus::array<T, 1>&... arrays) {
  const isthmus::queue queue = std::get<0>(std::tie(arrays...)).queue();
  const bool is_accessible =
      queue.device().can(isthmus::capability::run_functions) || (!arrays.is_device() && ...);
  if (!is_accessible) return launch_on_copies(function, arrays...);
  const auto work = [function](auto... memory) { function(span_of<float>(memory)...); };
  static_cast<void>(queue.submit(work, arrays.bytes()...));
}

}  // namespace support
