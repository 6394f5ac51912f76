// SPDX-License-Identifier: Apache-2.0
// A budget limits the driver memory that several pools hold together. This header also parses sizes
// such as "6GiB".
//
//   const isthmus::budget shared(isthmus::parse_bytes("6GiB"));
//   auto a = isthmus::resource::pool(context, isthmus::kind::device, {.budget = shared});
//   auto b = isthmus::resource::pool(context, isthmus::kind::host, {.budget = shared});
//
// A pool that would exceed the budget first releases its own free memory, then the other pools
// release their free memory, and then it throws out_of_memory, whose message lists what each pool
// holds. Cost: none, except when a pool grows or releases memory. Thread-safe.
#pragma once

#include <isthmus/device.hpp>

#include <string>

namespace isthmus {
inline namespace v1 {

// Parses "4096", "64MiB", "1.5 GB", or a share such as "80%" of the memory that `device` has for
// `kind`; see isthmus_bytes_parse. Throws invalid_argument for other text, such as "64M".
[[nodiscard]] inline std::uint64_t parse_bytes(const std::string& text,
                                               const isthmus::device& device = isthmus::device(),
                                               isthmus::kind kind = isthmus::kind::unknown) {
  std::uint64_t bytes = 0;
  detail::check(
      isthmus_bytes_parse(text.c_str(), device.get(), static_cast<isthmus_kind_t>(kind), &bytes));
  return bytes;
}

// The state of a budget, in bytes unless stated otherwise. See isthmus_budget_info_t.
struct budget_info {
  std::uint64_t limit = 0;
  std::uint64_t held = 0;
  std::uint64_t free = 0;
  std::uint64_t peak_held = 0;
  std::uint64_t pools = 0;     // alive
  std::uint64_t refusals = 0;  // requests that did not fit at once
  std::uint64_t released = 0;  // by pools, for requests of other pools
};

template <>
inline constexpr const char* detail::class_name<isthmus_budget_t> = "budget";

// A counted reference to a budget. Its pools keep it alive.
class budget : public detail::handle<budget, isthmus_budget_t, isthmus_budget_retain,
                                     isthmus_budget_release> {
 public:
  budget() noexcept = default;
  // Throws invalid_argument for a limit of 0.
  explicit budget(std::uint64_t limit_bytes)
      : budget(detail::make<budget>(isthmus_budget_create, limit_bytes)) {}

  [[nodiscard]] budget_info info() const {
    const auto raw = detail::read<isthmus_budget_info_t>(isthmus_budget_info, require());
    return {raw.limit_bytes, raw.held_bytes, raw.free_bytes,    raw.peak_held_bytes,
            raw.pools,       raw.refusals,   raw.released_bytes};
  }

  friend bool operator==(const budget& a, const budget& b) noexcept { return a.get() == b.get(); }
};

}  // namespace v1
}  // namespace isthmus
