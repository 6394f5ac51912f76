// SPDX-License-Identifier: Apache-2.0
#pragma once
// Host memory for results: in huge pages where available, and cached after it is freed.
// Thread-safe.
//
// The first touch of a page costs more than the copy that causes it: copies of 64 MiB run at 1.7
// GB/s into fresh pages and at 11 GB/s into warm ones (measured on two cores). So freed blocks are
// cached for the next result of about their size, up to a sixteenth of the memory that the process
// may use, within 64 MiB and 2 GiB. The first copy to a fresh block faults its pages in, in one
// call or on the copy threads, each while its device copy is in progress.

#include "core/status.hpp"

namespace isthmus {

// Page-aligned from 64 KiB up. Returns NULL for 0 bytes.
[[nodiscard]] Result<void*> allocate_result(std::size_t nbytes);
// True for the first call for a fresh block that begins at `start`. The caller then faults in the
// block's pages before it writes to the block. Costs one load if there is no such block.
[[nodiscard]] bool take_untouched_result(const void* start) noexcept;
// Does nothing for NULL. Never fails.
void free_result(void* pointer) noexcept;
// Bytes of the cached blocks.
[[nodiscard]] std::size_t cached_result_bytes() noexcept;

}  // namespace isthmus
