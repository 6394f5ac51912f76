#pragma once
// Host memory for results: already faulted in, and kept warm after it is freed.
//
// A first touch costs more than the copy that it stands under: 64 MiB into fresh pages run at 1.7
// GB/s where warm pages take 11 (measured on two cores). Large blocks are therefore populated in
// one call, and up to `k_kept_bytes` of freed ones wait for the next result of about their size.

#include "core/status.hpp"

namespace isthmus {

// Page-aligned from 64 KiB up. 0 bytes give NULL. Thread-safe.
[[nodiscard]] result<void*> allocate_result(std::size_t nbytes);
// NULL does nothing. Never fails.
void free_result(void* pointer) noexcept;

}  // namespace isthmus
