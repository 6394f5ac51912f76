// SPDX-License-Identifier: Apache-2.0
#include "array/conversion.hpp"

#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "array/half_rows.hpp"
#include "array/number.hpp"

namespace isthmus {
namespace {

using kernel = void (*)(std::byte* to, const std::byte* from, std::size_t count);

template <class T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// A long double is stored directly from its register, without its padding bytes. Copying all its
// bytes would load what was just written in two parts, which takes 4 times as long.
template <class T>
void store(std::byte* to, const T& value) noexcept {
  if constexpr (std::is_same_v<T, long double>) {
    struct [[gnu::packed, gnu::may_alias]] unaligned {
      long double value;
    };
    reinterpret_cast<unaligned*>(to)->value = value;
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

template <class To, class From>
void each(std::byte* __restrict to, const std::byte* __restrict from, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(to + i * sizeof(To), converted<To>(load<From>(from + i * sizeof(From))));
  }
}

// Converts both components of complex numbers.
template <class To, class From>
void each_part(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  each<To, From>(to, from, 2 * count);
}

template <class Part>
void with_imaginary(std::byte* __restrict to, const std::byte* __restrict from,
                    std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(to + 2 * i * sizeof(Part), load<Part>(from + i * sizeof(Part)));
    store(to + (2 * i + 1) * sizeof(Part), Part{});
  }
}

template <class Part>
void is_either_set(std::byte* __restrict to, const std::byte* __restrict from,
                   std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto real = converted<boolean>(load<Part>(from + 2 * i * sizeof(Part)));
    const auto imaginary = converted<boolean>(load<Part>(from + (2 * i + 1) * sizeof(Part)));
    store(to + i, static_cast<std::uint8_t>(real.value | imaginary.value));
  }
}

template <class From>
void to_odd(std::byte* __restrict to, const std::byte* __restrict from,
            std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(to + i * sizeof(double), rounded_to_odd_of(load<From>(from + i * sizeof(From))));
  }
}

// In the order of the dtypes' numbers. Complex dtypes are not listed.
using types = std::tuple<boolean, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                         std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float16,
                         bfloat16, float, double, long double>;
constexpr std::size_t k_types = std::tuple_size_v<types>;

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Whether the conversion is a single step. All other conversions consist of several of these.
template <class To, class From>
constexpr bool is_direct() noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return false;
  } else if constexpr (std::is_same_v<From, boolean>) {
    return std::is_same_v<To, std::uint8_t>;
  } else if constexpr (is_half<From>) {
    return std::is_same_v<To, float>;
  } else if constexpr (is_half<To>) {
    return std::floating_point<From>;
  } else {
    return true;
  }
}

// Truncating an integer, or keeping its width, gives the same bytes whatever its sign, so both
// types become unsigned.
template <class To, class From>
constexpr kernel direct_kernel() noexcept {
  if constexpr (!is_direct<To, From>()) {
    return nullptr;
  } else if constexpr (std::integral<To> && std::integral<From>) {
    using to = std::make_unsigned_t<To>;
    using from = std::conditional_t<sizeof(To) <= sizeof(From), std::make_unsigned_t<From>, From>;
    return &each<to, from>;
  } else if constexpr (std::is_same_v<To, boolean> && std::integral<From>) {
    return &each<To, std::make_unsigned_t<From>>;
  } else {
    return &each<To, From>;
  }
}

using kernels = std::array<kernel, k_types>;

template <class To, std::size_t... From>
constexpr kernels kernels_to(std::index_sequence<From...>) noexcept {
  return {direct_kernel<To, std::tuple_element_t<From, types>>()...};
}
template <std::size_t... To>
constexpr std::array<kernels, k_types> all_kernels(std::index_sequence<To...>) noexcept {
  return {kernels_to<std::tuple_element_t<To, types>>(std::make_index_sequence<k_types>{})...};
}
constexpr auto k_kernels = all_kernels(std::make_index_sequence<k_types>{});

// Uses the processor's conversion instructions; null if it has none for these dtypes.
kernel by_instructions(dtype to, dtype from) noexcept {
  if (to == ISTHMUS_FLOAT16 && from == ISTHMUS_FLOAT32) {
    return float16_row_maker();
  }
  return to == ISTHMUS_FLOAT32 && from == ISTHMUS_FLOAT16 ? float32_row_maker() : nullptr;
}

kernel direct(dtype to, dtype from) noexcept {
  if (const auto fast = by_instructions(to, from)) {
    return fast;
  }
  return k_kernels[static_cast<std::size_t>(to) - 1][static_cast<std::size_t>(from) - 1];
}

bool is_half_dtype(dtype of) noexcept { return of == ISTHMUS_FLOAT16 || of == ISTHMUS_BFLOAT16; }

// The next intermediate dtype; `to` itself if one step is enough.
dtype next_on_the_way(dtype to, dtype from) noexcept {
  if (from == ISTHMUS_BOOL) {
    return ISTHMUS_UINT8;
  }
  if (is_half_dtype(from)) {
    return ISTHMUS_FLOAT32;
  }
  if (is_half_dtype(to) && facts_of(from).kind != 'f') {
    return facts_of(from).nbytes <= 2 ? ISTHMUS_FLOAT32 : ISTHMUS_FLOAT64;
  }
  return to;
}

void append(conversion& to, kernel run, std::size_t bytes) noexcept {
  to.steps.at(to.count++) = {run, bytes};
}

bool needs_odd(dtype to, dtype from) noexcept {
  return to == ISTHMUS_BFLOAT16 && (from == ISTHMUS_INT64 || from == ISTHMUS_UINT64);
}

void append_real(conversion& all, dtype to, dtype from) noexcept {
  // NumPy converts a 16-bit float to uint32 by way of float64.
  const bool by_way_of_double = is_half_dtype(from) && to == ISTHMUS_UINT32;
  while (from != to) {
    auto next = next_on_the_way(to, from);
    if (by_way_of_double && from == ISTHMUS_FLOAT32) {
      next = ISTHMUS_FLOAT64;
    }
    auto run = direct(next, from);
    if (needs_odd(to, from)) {
      run = from == ISTHMUS_INT64 ? &to_odd<std::int64_t> : &to_odd<std::uint64_t>;
    }
    append(all, run, facts_of(next).nbytes);
    from = next;
  }
}

template <class... Values>
kernel by_part(dtype part, Values... in_order) noexcept {
  const std::array<kernel, 3> all{in_order...};
  return all.at(static_cast<std::size_t>(part - ISTHMUS_FLOAT32));
}

kernel of_parts(dtype to, dtype from) noexcept {
  switch (to) {
    case ISTHMUS_FLOAT32:
      return by_part(from, kernel{}, kernel{&each_part<float, double>},
                     kernel{&each_part<float, long double>});
    case ISTHMUS_FLOAT64:
      return by_part(from, kernel{&each_part<double, float>}, kernel{},
                     kernel{&each_part<double, long double>});
    default:
      return by_part(from, kernel{&each_part<long double, float>},
                     kernel{&each_part<long double, double>}, kernel{});
  }
}

}  // namespace

conversion conversion_of(dtype to, dtype from) noexcept {
  conversion all;
  all.read_bytes = facts_of(from).nbytes;
  if (to == from) {
    return all;
  }
  all.leaves_gaps = part_of(to) == ISTHMUS_LONGDOUBLE;
  const bool from_complex = part_of(from) != from;
  const bool to_complex = part_of(to) != to;
  if (from_complex && to_complex) {
    append(all, of_parts(part_of(to), part_of(from)), facts_of(to).nbytes);
    return all;
  }
  if (from_complex && to == ISTHMUS_BOOL) {
    append(all,
           by_part(part_of(from), &is_either_set<float>, &is_either_set<double>,
                   &is_either_set<long double>),
           1);
    return all;
  }
  all.read_bytes = facts_of(part_of(from)).nbytes;
  append_real(all, part_of(to), part_of(from));
  if (to_complex) {
    append(all,
           by_part(part_of(to), &with_imaginary<float>, &with_imaginary<double>,
                   &with_imaginary<long double>),
           facts_of(to).nbytes);
  }
  return all;
}

}  // namespace isthmus
