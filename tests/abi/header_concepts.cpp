// SPDX-License-Identifier: Apache-2.0
// The concepts that the public types model, and results that are known at compile time, by header.
// They are here and not in the headers because evaluating them took a sixth of the time in which a
// program reads isthmus.hpp.
#include <isthmus/isthmus.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <vector>

using namespace isthmus;

namespace {

// adaptors.hpp
static_assert(std::is_nothrow_destructible_v<statistics_scope>);

// advice.hpp
static_assert(detail::cuda_advice(advice::accessed_by) == 5U);

// array.hpp
static_assert(std::copyable<array<float, 2>> && std::equality_comparable<array<float, 2>>);
static_assert(std::is_nothrow_move_constructible_v<array<float, 2>>);
static_assert(std::convertible_to<array<float, 1>, array<const float, 1>>);
static_assert(!std::convertible_to<array<const float, 1>, array<float, 1>>);

// axes.hpp
static_assert(sizeof(axes<3>) == 3 * sizeof(std::int64_t));
static_assert(axes<2>{3, 4}[1] == 4);
static_assert(axes<dynamic_rank>{1, 2, 3, 4, 5} == axes<5>{1, 2, 3, 4, 5});
static_assert(std::is_nothrow_move_constructible_v<axes<dynamic_rank>>);
static_assert(std::convertible_to<axes<dynamic_rank>&, std::span<const std::int64_t>>);

// budget.hpp
static_assert(std::copyable<budget> && std::equality_comparable<budget>);
static_assert(std::is_nothrow_move_constructible_v<budget>);
static_assert(sizeof(budget) == sizeof(void*));

// buffer.hpp
static_assert(std::copyable<buffer> && std::equality_comparable<buffer>);
static_assert(std::is_nothrow_move_constructible_v<buffer>);
static_assert(sizeof(buffer) == sizeof(void*));
static_assert(!std::copyable<usm_pointer> && std::movable<usm_pointer>);

// context.hpp
static_assert(std::copyable<context> && std::equality_comparable<context>);
static_assert(std::is_nothrow_move_constructible_v<context>);
static_assert(sizeof(context) == sizeof(void*));

// copy_2d.hpp
static_assert(std::is_aggregate_v<pitched<destination>> && std::is_aggregate_v<extent>);

// copy_nd.hpp
static_assert(std::is_aggregate_v<strided<destination>>);

// copy_ranges.hpp
static_assert(std::is_aggregate_v<copy_range>);

// device.hpp
static_assert(std::copyable<device> && std::equality_comparable<device>);
static_assert(std::is_nothrow_move_constructible_v<device>);
static_assert(sizeof(device) == sizeof(void*));

// dtype.hpp
static_assert(dtype_of<long> == (sizeof(long) == 8 ? dtype::int64 : dtype::int32));
static_assert(dtype_of<unsigned char> == dtype::uint8 && dtype_of<const float> == dtype::float32);
static_assert(element<std::complex<double>> && !element<std::string_view> && !element<void*>);

// dyn_array.hpp
static_assert(std::copyable<dyn_array> && std::equality_comparable<dyn_array>);
static_assert(std::convertible_to<array<float, 3>, dyn_array>);

// error.hpp
static_assert(std::copyable<error> && std::derived_from<error, std::runtime_error>);
static_assert(std::is_nothrow_copy_constructible_v<out_of_memory>);

// event.hpp
static_assert(std::copyable<event> && std::equality_comparable<event>);
static_assert(std::copyable<host_event> && std::convertible_to<host_event, event>);
static_assert(std::is_nothrow_move_constructible_v<event>);
static_assert(event_list<std::vector<event>> && event_list<std::span<const host_event>>);
static_assert(!event_list<event> && !event_list<std::vector<int>>);
static_assert(sizeof(event) == sizeof(void*) && sizeof(host_event) == sizeof(void*));

// fill.hpp
static_assert(fill_pattern<float> && !fill_pattern<char[3]>);

// float16.hpp
static_assert(sizeof(float16) == 2 && std::is_trivially_copyable_v<float16>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);
static_assert(float16(1.0F).bits() == 0x3c00 && float16(65520.0F).bits() == 0x7c00);
static_assert(float16(0x1p-25F).bits() == 0 && float16(0x1.8p-25F).bits() == 1);
static_assert(bfloat16(1.0F).bits() == 0x3f80);
// Values that exceed a midpoint by less than the resolution of float or of double.
static_assert(float16(1.0L + 0x1p-11L + 0x1p-60L).bits() == 0x3c01 ||
              std::numeric_limits<long double>::digits < 61);
static_assert(bfloat16((std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1).bits() == 0x5e81);
static_assert(bfloat16(-(std::int64_t{1} << 62) - (std::int64_t{1} << 54) - 1).bits() == 0xde81);
static_assert(bfloat16((std::int64_t{1} << 62) + (std::int64_t{1} << 54)).bits() == 0x5e80);
static_assert(float16(1e300).bits() == 0x7c00 && bfloat16(-1e39).bits() == 0xff80);

// host_array.hpp
static_assert(std::movable<host_array_view<float, 2>> && !std::copyable<host_array_view<float, 2>>);

// host_view.hpp
static_assert(std::movable<host_view<>> && !std::copyable<host_view<>>);
static_assert(std::ranges::contiguous_range<host_view<float>>);
static_assert(std::is_nothrow_move_constructible_v<host_view<>>);

// ipc.hpp
static_assert(std::is_trivially_copyable_v<ipc_handle>);

// layout.hpp
static_assert(layout<2>::dense({3, 4}, 4).strides == axes<2>{16, 4});
static_assert(layout<2>::dense({3, 4}, 4).transposed().byte_range(4).end == 48);
static_assert(layout<1>{{3}, {-4}, 8}.lies_within(12, 4));
static_assert(!layout<1>{{5}, {std::int64_t{1} << 62}, 0}.lies_within(12, 4));

// pin.hpp
static_assert(std::movable<pin> && !std::copyable<pin>);

// platform.hpp
static_assert(std::copyable<platform> && std::equality_comparable<platform>);
static_assert(std::is_nothrow_move_constructible_v<platform>);
static_assert(sizeof(platform) == sizeof(void*));

// queue.hpp
static_assert(std::copyable<queue> && std::equality_comparable<queue>);
static_assert(std::is_nothrow_move_constructible_v<queue>);
static_assert(sizeof(queue) == sizeof(void*));

// resource.hpp
static_assert(std::copyable<resource> && std::equality_comparable<resource>);
static_assert(std::is_nothrow_move_constructible_v<resource>);

// result_memory.hpp
static_assert(std::movable<result_memory> && !std::copyable<result_memory>);

// scratch.hpp
static_assert(!std::copyable<scratch> && !std::copyable<scoped_array<float, 1>>);

// sim.hpp
static_assert(std::copyable<sim_device> && std::convertible_to<sim_device, device>);
static_assert(sizeof(sim_device) == sizeof(void*));

// slicing.hpp
static_assert(slice(std::nullopt, std::nullopt, -2).resolve(5).count == 3);
static_assert(slice(-3, 100).resolve(10).first == 7);
static_assert(slice(0, std::size_t{0} - 1).resolve(10).count == 10);
static_assert(array_key<int> && !array_key<bool>);

// stream.hpp
static_assert(named_enumeration<kind> && named_enumeration<status> && !named_enumeration<int>);

// tracking.hpp
static_assert(std::is_nothrow_destructible_v<tag_scope>);

// unified_buffer.hpp
static_assert(std::copyable<unified_buffer<float>>);
static_assert(std::movable<unified_view<float>> && !std::copyable<unified_view<float>>);
static_assert(std::ranges::contiguous_range<unified_view<float>>);

}  // namespace
