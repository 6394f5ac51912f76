#pragma once
// Copies of many ranges between two places as one operation.
//
// What the host can touch it copies where the caller waits. Else one operation of a queue moves all
// of them: on CUDA a kernel (backend/cuda/ranges.hpp), plain memory of the host being gathered or
// scattered by way of the staging ring; elsewhere a copy a range.

#include <span>
#include <vector>

#include "core/bytes.hpp"
#include "transfer/transfer.hpp"

namespace isthmus {

// Ranges in the order of their destinations, none empty; those that follow each other on both sides
// are one. Offsets count from the first byte of each side.
struct range_list {
  std::vector<copy_range> each;
  std::size_t destination_begin = 0;
  std::size_t destination_bytes = 0;  // from the first to the end of the last
  std::size_t source_begin = 0;
  std::size_t source_bytes = 0;
  std::size_t nbytes = 0;  // of all
};

// n log n where they are in another order than that of their destinations. OUT_OF_RANGE for one
// that runs past the end of the address space, INVALID_ARGUMENT for two with a destination in
// common; the errors name them by their place in `given`.
[[nodiscard]] result<range_list> list_ranges(std::span<const copy_range> given);

// Pre: the endpoints are where the list's first bytes are. INVALID_ARGUMENT where one range writes
// what another reads; all else as `copy`.
[[nodiscard]] submitted copy_ranges(queue* on, const endpoint& destination, const endpoint& source,
                                    range_list ranges, transfer_options options);

}  // namespace isthmus
