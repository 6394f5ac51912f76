// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "array/copying.hpp"
#include "array/endpoint_move.hpp"
#include "array/move_through_copy.hpp"
#include "core/elements.hpp"
#include "core/sizes.hpp"
#include "transfer/transfer_events.hpp"

namespace isthmus {
namespace {

struct Element {
  alignas(16) std::array<std::byte, k_largest_element> bytes{};
};

bool is_pattern_size(std::size_t item) noexcept {
  return is_power_of_two(item) && item <= sizeof FillPattern{}.bytes;
}

// Returns the number of contiguous elements.
std::size_t run_length(const ElementMove& move) noexcept {
  if (move.dimensions.empty()) {
    return 1;
  }
  const auto& inner = move.dimensions.back();
  return is_packed(inner.destination_stride, move.destination_item()) ? inner.count : 1;
}

bool is_one_run(const ElementMove& move) noexcept { return run_length(move) == move.elements(); }

// Whether all elements are aligned to their size, which some drivers require for a fill.
bool is_aligned(const ElementMove& move) noexcept {
  const auto item = signed_of(move.destination_item());
  return address(move.destination) % move.destination_item() == 0 &&
         std::ranges::all_of(move.dimensions, [=](const MoveDimension& dimension) {
           return dimension.destination_stride % item == 0;
         });
}

FillPattern pattern_of(const Element& value, std::size_t item) noexcept {
  FillPattern pattern;
  std::memcpy(pattern.bytes, value.bytes.data(), item);
  pattern.nbytes = item;
  return pattern;
}

// Rows of at least this length are filled one by one, without a prepared row in device memory.
constexpr std::size_t k_long_row_bytes = std::size_t{1} << 20;
// A smaller fill from the host is faster than a driver's allocation.
constexpr std::size_t k_min_allocation_bytes = std::size_t{1} << 20;

// Emits `fill` if the operation was submitted or executed.
Submitted observed(Submitted filled, const Queue* queue, const ArraySide& destination,
                   const ElementMove& move) noexcept {
  if (filled) {
    observe_fill(queue, destination.endpoint, move.elements() * move.destination_item());
  }
  return filled;
}

// Copies `value` to all elements in chunks through host memory. The operation keeps a copy of the
// value alive.
Submitted fill_from_host(Queue& queue, const ArraySide& destination, ElementMove move,
                         const Element& value, TransferOptions options) {
  options.owners.push_back(owner_of(value));
  const auto* element = static_cast<Element*>(options.owners.back().object());
  const Endpoint source{const_cast<std::byte*>(element->bytes.data()), nullptr, nullptr};
  move.source = source.pointer;
  auto filled = move_in_chunks(
      queue,
      {destination.endpoint, source, destination.layout.nbytes, move.destination_item(), move},
      std::move(options));
  return observed(std::move(filled), &queue, destination, move);
}

// Fills the rows one after the other, each with a separate command.
Submitted fill_rows(Queue& queue, const ArraySide& destination, const ElementMove& move,
                    const FillPattern& pattern, TransferOptions options) {
  TouchedMemory touched;
  touched.add(destination.endpoint, destination.layout.nbytes, true);
  auto execution_queue = execution_queue_for(queue, destination.endpoint, destination.endpoint);
  ISTHMUS_TRY(execution_queue);
  auto filled =
      submit_on_queue(queue, **execution_queue, touched, options, [&](WaitList after) -> Submitted {
        const auto elements = run_length(move);
        const std::span outer{move.dimensions.begin(), move.dimensions.size() - 1};
        RowWalk<k_max_array_dimensions> row{outer, 0};
        PartialFailure failure;
        Ref<Event> last;
        for (auto remaining = move.elements(); remaining != 0; remaining -= elements, row.next()) {
          auto next = without_throwing([&] {
            return (*execution_queue)
                ->fill(move.destination + row.destination_offset(), pattern,
                       elements * pattern.nbytes, last ? WaitList{&last, 1} : after);
          });
          if (!next) {
            return last ? failure.after(*last, next.take_error()) : next;
          }
          last = *std::move(next);
        }
        return last;
      });
  return observed(std::move(filled), &queue, destination, move);
}

// Fills one row in `scratch`, then copies it to all rows.
Submitted fill_from_row(Queue& queue, const ArraySide& destination, const Endpoint& scratch,
                        ElementMove move, const FillPattern& pattern, TransferOptions options) {
  const auto nbytes = run_length(move) * pattern.nbytes;
  move.source = scratch.pointer;
  if (nbytes != pattern.nbytes) {
    const auto row = move.dimensions.back();
    move.dimensions.shorten(move.dimensions.size() - 1);
    move.dimensions.append({row.count, row.destination_stride, row.destination_stride});
  }
  return submit_in_sequence(
      std::move(options),
      [&](TransferOptions first) {
        return fill(&queue, scratch, pattern, nbytes, std::move(first));
      },
      [&](TransferOptions second) {
        return move_disjoint(
            &queue,
            {destination.endpoint, scratch, destination.layout.nbytes, nbytes, joined(move)},
            std::move(second));
      });
}

// Fills on the device if a row can be prepared in its memory; otherwise fills from the host.
Submitted fill_on_device(Queue& queue, const ArraySide& destination, const ElementMove& move,
                         const Element& value, TransferOptions options) {
  const auto pattern = pattern_of(value, move.destination_item());
  const auto row_bytes = run_length(move) * pattern.nbytes;
  const bool is_long = row_bytes >= k_long_row_bytes;
  if (is_long && is_aligned(move)) {
    return fill_rows(queue, destination, move, pattern, std::move(options));
  }
  const auto& destination_memory = *destination.endpoint.memory;
  const bool is_small = move.elements() * pattern.nbytes < k_min_allocation_bytes;
  if (is_long || (is_small && !is_from_pool(destination_memory))) {
    return fill_from_host(queue, destination, move, value, std::move(options));
  }
  auto scratch = memory_like(queue, destination_memory, row_bytes);
  if (is_out_of_memory(scratch)) {
    return fill_from_host(queue, destination, move, value, std::move(options));
  }
  ISTHMUS_TRY(scratch);
  return fill_from_row(queue, destination, *scratch, move, pattern, std::move(options));
}

}  // namespace

Submitted fill_array(Queue* requested, const ArraySide& destination, const std::byte* value,
                     TransferOptions options) {
  ISTHMUS_TRY(check_disjoint(destination.layout));
  auto chosen = choose_queue(requested, destination.endpoint, destination.endpoint);
  ISTHMUS_TRY(chosen);
  Queue* queue = *chosen;
  if (destination.layout.is_empty()) {
    return submit_no_op(queue, options);
  }
  const auto item = destination.layout.item();
  Element element;
  std::memcpy(element.bytes.data(), value, item);
  ArrayLayout repeated_element = destination.layout;
  for (auto& dimension : repeated_element.dimensions) {
    dimension.stride = 0;
  }
  const auto element_move = move_between(
      destination.layout, destination.endpoint.pointer + destination.layout.first_offset,
      repeated_element, element.bytes.data());
  if (is_pattern_size(item) && is_one_run(element_move)) {
    return fill(queue, destination.endpoint, pattern_of(element, item), destination.layout.nbytes,
                std::move(options));
  }
  if (destination.endpoint.host_can_copy()) {
    const Endpoint no_source;
    auto filled = move_by_host(
        queue, {destination.endpoint, no_source, destination.layout.nbytes, 0, element_move},
        std::move(options), [element_move, element] {
          auto own_move = element_move;
          own_move.source = element.bytes.data();
          move_elements_in_parallel(own_move);
        });
    return note_written(destination, observed(std::move(filled), queue, destination, element_move));
  }
  return note_written(
      destination,
      is_pattern_size(item)
          ? fill_on_device(*queue, destination, element_move, element, std::move(options))
          : fill_from_host(*queue, destination, element_move, element, std::move(options)));
}

}  // namespace isthmus
