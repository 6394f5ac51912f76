// SPDX-License-Identifier: Apache-2.0
#include "array/conversion.hpp"

#include <isthmus/float16.hpp>

#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "array/half_rows.hpp"
#include "array/number.hpp"

namespace isthmus {
namespace {

using Kernel = void (*)(std::byte* destination, const std::byte* source, std::size_t count);

template <class T>
T load(const std::byte* source) noexcept {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

// A long double is stored directly from its register, without its padding bytes. Copying all of its
// bytes takes 4 times as long, because it loads bytes that were just stored in two parts.
template <class T>
void store(std::byte* destination, const T& value) noexcept {
  if constexpr (std::is_same_v<T, long double>) {
    struct [[gnu::packed, gnu::may_alias]] Unaligned {
      long double value;
    };
    reinterpret_cast<Unaligned*>(destination)->value = value;
  } else {
    std::memcpy(destination, &value, sizeof value);
  }
}

template <class To, class From>
void convert_each(std::byte* __restrict destination, const std::byte* __restrict source,
                  std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(destination + i * sizeof(To), converted<To>(load<From>(source + i * sizeof(From))));
  }
}

// Converts both components of complex numbers.
template <class To, class From>
void convert_components(std::byte* destination, const std::byte* source,
                        std::size_t count) noexcept {
  convert_each<To, From>(destination, source, 2 * count);
}

template <class Component>
void append_imaginary(std::byte* __restrict destination, const std::byte* __restrict source,
                      std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(destination + 2 * i * sizeof(Component), load<Component>(source + i * sizeof(Component)));
    store(destination + (2 * i + 1) * sizeof(Component), Component{});
  }
}

template <class Component>
void convert_complex_to_bool(std::byte* __restrict destination, const std::byte* __restrict source,
                             std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto real = converted<Boolean>(load<Component>(source + 2 * i * sizeof(Component)));
    const auto imaginary =
        converted<Boolean>(load<Component>(source + (2 * i + 1) * sizeof(Component)));
    store(destination + i, static_cast<std::uint8_t>(real.value | imaginary.value));
  }
}

template <class From>
void convert_to_odd(std::byte* __restrict destination, const std::byte* __restrict source,
                    std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    store(destination + i * sizeof(double),
          v1::detail::integer_to_odd(load<From>(source + i * sizeof(From))));
  }
}

// The element types of the dtypes other than the complex ones, in the order of their numbers.
using Types = std::tuple<Boolean, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
                         std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, float16,
                         bfloat16, float, double, long double>;
constexpr std::size_t k_types = std::tuple_size_v<Types>;

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Whether the conversion is a single step. All other conversions are sequences of single steps.
template <class To, class From>
constexpr bool is_direct() noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return false;
  } else if constexpr (std::is_same_v<From, Boolean>) {
    return std::is_same_v<To, std::uint8_t>;
  } else if constexpr (is_half<From>) {
    return std::is_same_v<To, float>;
  } else if constexpr (is_half<To>) {
    return std::floating_point<From>;
  } else {
    return true;
  }
}

// Converting an integer to the same or a smaller width gives the same bytes for signed and unsigned
// types. Using unsigned types therefore shares kernels.
template <class To, class From>
constexpr Kernel direct_kernel() noexcept {
  if constexpr (!is_direct<To, From>()) {
    return nullptr;
  } else if constexpr (std::integral<To> && std::integral<From>) {
    using UnsignedTo = std::make_unsigned_t<To>;
    using UnsignedFrom =
        std::conditional_t<sizeof(To) <= sizeof(From), std::make_unsigned_t<From>, From>;
    return &convert_each<UnsignedTo, UnsignedFrom>;
  } else if constexpr (std::is_same_v<To, Boolean> && std::integral<From>) {
    return &convert_each<To, std::make_unsigned_t<From>>;
  } else {
    return &convert_each<To, From>;
  }
}

using Kernels = std::array<Kernel, k_types>;

template <class To, std::size_t... From>
constexpr Kernels kernels_to(std::index_sequence<From...>) noexcept {
  return {direct_kernel<To, std::tuple_element_t<From, Types>>()...};
}
template <std::size_t... To>
constexpr std::array<Kernels, k_types> all_kernels(std::index_sequence<To...>) noexcept {
  return {kernels_to<std::tuple_element_t<To, Types>>(std::make_index_sequence<k_types>{})...};
}
constexpr auto k_kernels = all_kernels(std::make_index_sequence<k_types>{});

// Returns a kernel that uses the processor's conversion instructions; null if there are none for
// these dtypes.
Kernel instruction_kernel(Dtype target_dtype, Dtype source_dtype) noexcept {
  if (target_dtype == ISTHMUS_FLOAT16 && source_dtype == ISTHMUS_FLOAT32) {
    return float16_row_converter();
  }
  return target_dtype == ISTHMUS_FLOAT32 && source_dtype == ISTHMUS_FLOAT16
             ? float32_row_converter()
             : nullptr;
}

Kernel direct_step(Dtype target_dtype, Dtype source_dtype) noexcept {
  if (const auto instructions = instruction_kernel(target_dtype, source_dtype)) {
    return instructions;
  }
  return k_kernels[static_cast<std::size_t>(target_dtype) - 1]
                  [static_cast<std::size_t>(source_dtype) - 1];
}

bool is_half_dtype(Dtype dtype) noexcept {
  return dtype == ISTHMUS_FLOAT16 || dtype == ISTHMUS_BFLOAT16;
}

// Returns the next intermediate dtype, or `target_dtype` if one step is enough.
Dtype next_dtype(Dtype target_dtype, Dtype source_dtype) noexcept {
  if (source_dtype == ISTHMUS_BOOL) {
    return ISTHMUS_UINT8;
  }
  if (is_half_dtype(source_dtype)) {
    return ISTHMUS_FLOAT32;
  }
  if (is_half_dtype(target_dtype) && facts_of(source_dtype).kind != 'f') {
    return facts_of(source_dtype).nbytes <= 2 ? ISTHMUS_FLOAT32 : ISTHMUS_FLOAT64;
  }
  return target_dtype;
}

void append(Conversion& conversion, Kernel kernel, std::size_t bytes) noexcept {
  conversion.steps.at(conversion.count++) = {kernel, bytes};
}

bool needs_rounding_to_odd(Dtype target_dtype, Dtype source_dtype) noexcept {
  return target_dtype == ISTHMUS_BFLOAT16 &&
         (source_dtype == ISTHMUS_INT64 || source_dtype == ISTHMUS_UINT64);
}

void append_real(Conversion& conversion, Dtype target_dtype, Dtype source_dtype) noexcept {
  // NumPy converts a 16-bit float to uint32 through float64.
  const bool through_double = is_half_dtype(source_dtype) && target_dtype == ISTHMUS_UINT32;
  while (source_dtype != target_dtype) {
    auto next = next_dtype(target_dtype, source_dtype);
    if (through_double && source_dtype == ISTHMUS_FLOAT32) {
      next = ISTHMUS_FLOAT64;
    }
    auto kernel = direct_step(next, source_dtype);
    if (needs_rounding_to_odd(target_dtype, source_dtype)) {
      kernel = source_dtype == ISTHMUS_INT64 ? &convert_to_odd<std::int64_t>
                                             : &convert_to_odd<std::uint64_t>;
    }
    append(conversion, kernel, facts_of(next).nbytes);
    source_dtype = next;
  }
}

template <class... Values>
Kernel by_component(Dtype component, Values... kernels) noexcept {
  const std::array<Kernel, 3> kernels_by_component{kernels...};
  return kernels_by_component.at(static_cast<std::size_t>(component - ISTHMUS_FLOAT32));
}

Kernel component_kernel(Dtype target_dtype, Dtype source_dtype) noexcept {
  switch (target_dtype) {
    case ISTHMUS_FLOAT32:
      return by_component(source_dtype, Kernel{}, Kernel{&convert_components<float, double>},
                          Kernel{&convert_components<float, long double>});
    case ISTHMUS_FLOAT64:
      return by_component(source_dtype, Kernel{&convert_components<double, float>}, Kernel{},
                          Kernel{&convert_components<double, long double>});
    default:
      return by_component(source_dtype, Kernel{&convert_components<long double, float>},
                          Kernel{&convert_components<long double, double>}, Kernel{});
  }
}

}  // namespace

Conversion conversion_of(Dtype target_dtype, Dtype source_dtype) noexcept {
  Conversion conversion;
  conversion.read_bytes = facts_of(source_dtype).nbytes;
  if (target_dtype == source_dtype) {
    return conversion;
  }
  conversion.leaves_gaps = component_dtype(target_dtype) == ISTHMUS_LONGDOUBLE;
  const bool from_complex = component_dtype(source_dtype) != source_dtype;
  const bool to_complex = component_dtype(target_dtype) != target_dtype;
  if (from_complex && to_complex) {
    append(conversion,
           component_kernel(component_dtype(target_dtype), component_dtype(source_dtype)),
           facts_of(target_dtype).nbytes);
    return conversion;
  }
  if (from_complex && target_dtype == ISTHMUS_BOOL) {
    append(conversion,
           by_component(component_dtype(source_dtype), &convert_complex_to_bool<float>,
                        &convert_complex_to_bool<double>, &convert_complex_to_bool<long double>),
           1);
    return conversion;
  }
  conversion.read_bytes = facts_of(component_dtype(source_dtype)).nbytes;
  append_real(conversion, component_dtype(target_dtype), component_dtype(source_dtype));
  if (to_complex) {
    append(conversion,
           by_component(component_dtype(target_dtype), &append_imaginary<float>,
                        &append_imaginary<double>, &append_imaginary<long double>),
           facts_of(target_dtype).nbytes);
  }
  return conversion;
}

}  // namespace isthmus
