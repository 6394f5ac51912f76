#pragma once
// Host memory for results: in huge pages where there are such, and kept warm after it is freed.
//
// A first touch costs more than the copy that it stands under: 64 MiB into fresh pages run at 1.7
// GB/s where warm pages take 11 (measured on two cores). So up to a sixteenth of the memory that
// the process may have, and 2 GiB at most, of freed blocks wait for the next result of about their
// size; and the copy that first goes to a fresh one faults its pages in, in one call, or on the
// threads that copy, each while its device copy is under way.

#include "core/status.hpp"

namespace isthmus {

// Page-aligned from 64 KiB up. 0 bytes give NULL. Thread-safe.
[[nodiscard]] result<void*> allocate_result(std::size_t nbytes);
// True once, of a block that begins there: who writes to it faults its pages in first. A load where
// there is none.
[[nodiscard]] bool take_untouched_result(const void* start) noexcept;
// NULL does nothing. Never fails.
void free_result(void* pointer) noexcept;
// Of blocks that wait for the next result.
[[nodiscard]] std::size_t kept_result_bytes() noexcept;

}  // namespace isthmus
