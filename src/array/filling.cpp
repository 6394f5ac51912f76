#include <bit>
#include <cstring>

#include "array/copying.hpp"
#include "array/placed_move.hpp"
#include "array/set_aside.hpp"
#include "core/sizes.hpp"

namespace isthmus {
namespace {

struct element {
  alignas(16) std::array<std::byte, k_largest_element> bytes{};
};

bool is_pattern(std::size_t item) noexcept {
  return is_power_of_two(item) && item <= sizeof fill_pattern{}.bytes;
}

// The elements that lie together.
std::size_t run_of(const element_move& what) noexcept {
  if (what.dimensions.empty()) {
    return 1;
  }
  const auto& inner = what.dimensions.back();
  return inner.to == static_cast<std::ptrdiff_t>(what.to_item()) ? inner.count : 1;
}

bool is_one_run(const element_move& what) noexcept { return run_of(what) == what.elements(); }

fill_pattern pattern_of(const element& value, std::size_t item) noexcept {
  fill_pattern made;
  std::memcpy(made.bytes, value.bytes.data(), item);
  made.nbytes = item;
  return made;
}

// Longer ones than this are not worth a device's memory, as long as they are cut evenly.
constexpr std::size_t k_most_run_bytes = std::size_t{1} << 20;
constexpr std::size_t k_least_run_bytes = std::size_t{4} << 10;

// Of the same length each, as few as can be: elements of one.
std::size_t even_run(std::size_t elements, std::size_t item) noexcept {
  for (std::size_t pieces = elements * item / k_most_run_bytes + 1;
       elements / pieces * item >= k_least_run_bytes; ++pieces) {
    if (elements % pieces == 0) {
      return elements / pieces;
    }
  }
  return elements;
}

// From a run in the device's memory, which is filled first, over and over again.
submitted fill_from_run(queue& on, const array_side& destination, element_move what,
                        const element& value, transfer_options options) {
  const auto item = what.to_item();
  const auto all = run_of(what);
  const auto run = even_run(all, item);
  auto aside = memory_like(on, *destination.place.memory, run * item);
  ISTHMUS_TRY(aside);
  what.from = aside->pointer;
  if (all > 1) {
    what.dimensions.shorten(what.dimensions.size() - 1);
    what.dimensions.append({all / run, static_cast<std::ptrdiff_t>(run * item), 0});
    what.dimensions.append(
        {run, static_cast<std::ptrdiff_t>(item), static_cast<std::ptrdiff_t>(item)});
  }
  return one_after_other(
      std::move(options),
      [&](transfer_options first) {
        return fill(&on, *aside, pattern_of(value, item), run * item, std::move(first));
      },
      [&](transfer_options second) {
        return move_apart(
            &on, {destination.place, *aside, destination.layout.nbytes, run * item, joined(what)},
            std::move(second));
      });
}

// From the value itself, which goes along.
submitted fill_from_host(queue& on, const array_side& destination, element_move what,
                         const element& value, transfer_options options) {
  options.owners.push_back(owner_of(value));
  const auto* kept = static_cast<element*>(options.owners.back().object());
  const endpoint source{const_cast<std::byte*>(kept->bytes.data()), nullptr, nullptr};
  what.from = source.pointer;
  return move_in_pieces(
      on, {destination.place, source, destination.layout.nbytes, what.to_item(), what},
      std::move(options));
}

}  // namespace

submitted fill_array(queue* asked, const array_side& destination, const std::byte* value,
                     transfer_options options) {
  ISTHMUS_TRY(check_apart(destination.layout));
  auto chosen = choose_queue(asked, destination.place, destination.place);
  ISTHMUS_TRY(chosen);
  queue* on = *chosen;
  if (destination.layout.is_empty()) {
    return nothing_to_do(on, options);
  }
  const auto item = destination.layout.item();
  element kept;
  std::memcpy(kept.bytes.data(), value, item);
  array_layout repeated = destination.layout;
  for (auto& along : repeated.dimensions) {
    along.stride = 0;
  }
  const auto what =
      move_between(destination.layout, destination.place.pointer + destination.layout.before,
                   repeated, kept.bytes.data());
  if (is_pattern(item) && is_one_run(what)) {
    return fill(on, destination.place, pattern_of(kept, item), destination.layout.nbytes,
                std::move(options));
  }
  if (destination.place.host_can_copy()) {
    const endpoint nothing;
    return move_by_host(on, {destination.place, nothing, destination.layout.nbytes, 0, what},
                        std::move(options), [what, kept] {
                          auto from_here = what;
                          from_here.from = kept.bytes.data();
                          share_elements(from_here);
                        });
  }
  return is_pattern(item) ? fill_from_run(*on, destination, what, kept, std::move(options))
                          : fill_from_host(*on, destination, what, kept, std::move(options));
}

}  // namespace isthmus
