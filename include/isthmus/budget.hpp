// A budget: bytes that several pools may have of their drivers' memory together; and bytes as
// people write them.
//
//   const isthmus::budget shared(isthmus::parse_bytes("6GiB"));
//   auto a = isthmus::resource::pool(context, isthmus::kind::device, {.share = shared});
//   auto b = isthmus::resource::pool(context, isthmus::kind::host, {.share = shared});
//
// A pool that would go over it gives back what it has free, then the others do, and then it throws
// out_of_memory, which says who holds what. Cost: none but where a pool grows or gives memory back.
// Threads: any.
#pragma once

#include <isthmus/device.hpp>

#include <string>

namespace isthmus {
inline namespace v1 {

// "4096", "64MiB", "1.5GiB", or "80%" of the memory of one kind that `where` has, which a share
// needs. Throws invalid_argument for any other text.
[[nodiscard]] inline std::uint64_t parse_bytes(const std::string& text,
                                               const device& where = device(),
                                               kind of = kind::unknown) {
  std::uint64_t bytes = 0;
  detail::check(
      isthmus_bytes_parse(text.c_str(), where.get(), static_cast<isthmus_kind_t>(of), &bytes));
  return bytes;
}

// In bytes; `isthmus_budget_info_t` says what each is.
struct budget_info {
  std::uint64_t limit = 0;
  std::uint64_t held = 0;
  std::uint64_t free = 0;
  std::uint64_t peak_held = 0;
  std::uint64_t pools = 0;      // how many live
  std::uint64_t refusals = 0;   // how often a pool asked for what did not fit at once
  std::uint64_t reclaimed = 0;  // given back by pools for others
};

class budget : public detail::handle<budget, isthmus_budget_t, isthmus_budget_retain,
                                     isthmus_budget_release> {
 public:
  budget() noexcept = default;
  // Throws invalid_argument for 0.
  explicit budget(std::uint64_t limit_bytes)
      : budget(detail::make<budget>(isthmus_budget_create, limit_bytes)) {}

  [[nodiscard]] budget_info info() const {
    isthmus_budget_info_t raw{};
    raw.struct_size = sizeof raw;
    detail::check(isthmus_budget_query(get(), &raw));
    return {raw.limit_bytes, raw.held_bytes, raw.free_bytes,     raw.peak_held_bytes,
            raw.pools,       raw.refusals,   raw.reclaimed_bytes};
  }

  friend bool operator==(const budget& a, const budget& b) noexcept { return a.get() == b.get(); }
};

static_assert(std::copyable<budget> && std::equality_comparable<budget>);
static_assert(std::is_nothrow_move_constructible_v<budget>);
static_assert(sizeof(budget) == sizeof(void*));

}  // namespace v1
}  // namespace isthmus
