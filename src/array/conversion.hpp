#pragma once
// How elements of one dtype become another's, as a short row of steps over packed elements.
//
// Each rounds at most once on its way: the steps before the one that rounds are exact. A kernel for
// each of the 272 pairs would be four times the code.

#include <array>
#include <cstddef>

#include "array/dtype.hpp"

namespace isthmus {

struct conversion {
  struct step {
    void (*run)(std::byte* to, const std::byte* from, std::size_t count) = nullptr;
    std::size_t bytes = 0;  // of an element that it makes
  };
  static constexpr std::size_t k_most_steps = 4;

  std::array<step, k_most_steps> steps{};
  std::size_t count = 0;  // 0: nothing changes
  // What it reads of each element, from its beginning: of a complex number the real part alone
  // where the other is dropped.
  std::size_t read_bytes = 0;
  bool leaves_gaps = false;  // of what it makes not all bytes are written: a long double's padding
};

// Elements need not be aligned.
[[nodiscard]] conversion conversion_of(dtype to, dtype from) noexcept;

}  // namespace isthmus
