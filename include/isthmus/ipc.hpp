// SPDX-License-Identifier: Apache-2.0
// Shares a buffer's bytes between processes of one machine, on devices that support it: CUDA's
// legacy IPC. Works for device memory of the driver's allocator, and of a pool that does not remap.
//
//   const auto handle = isthmus::ipc_handle::of(buffer);  // send it unchanged to another process
//   isthmus::buffer imported = handle.open(queue);        // in the other process
//
// Queues of different processes are not ordered: the processes synchronize their uses of the bytes
// themselves. The exporting process must not free its buffer before all other processes have
// released the buffers that they opened.
//
// Cost: a driver call; releasing an opened buffer waits for all work on the device. Thread-safe.
#pragma once

#include <isthmus/buffer.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace isthmus {
inline namespace v1 {

// Identifies memory of this process to other processes: plain bytes.
struct ipc_handle {
  std::array<unsigned char, 64> handle{};  // CUipcMemHandle, of the whole allocation
  std::uint64_t offset = 0;                // of the first byte, within that allocation
  std::uint64_t nbytes = 0;

  // Exports a buffer. Waits for the operations pending on its bytes. Throws unsupported for memory
  // that cannot be shared, invalid_argument for 0 bytes, closed for a freed buffer.
  [[nodiscard]] static ipc_handle of(const buffer& memory) {
    const auto raw =
        detail::read<isthmus_ipc_handle_t>(isthmus_buffer_ipc_handle, memory.require());
    ipc_handle result;
    std::copy_n(raw.handle, result.handle.size(), result.handle.begin());
    result.offset = raw.offset;
    result.nbytes = raw.nbytes;
    return result;
  }
  // Opens the handle in another process, as a buffer of the same device. `queue` {}: the default
  // queue of the default device. Throws invalid_argument for a handle of this process or an invalid
  // one, wrong_context for a queue of another device.
  [[nodiscard]] buffer open(const queue_choice& queue = {}) const {
    isthmus_ipc_handle_t raw{};
    raw.struct_size = sizeof raw;
    std::copy_n(handle.begin(), handle.size(), raw.handle);
    raw.offset = offset;
    raw.nbytes = nbytes;
    return detail::make<buffer>(isthmus_buffer_open_ipc, &raw, queue.get());
  }

  friend bool operator==(const ipc_handle&, const ipc_handle&) noexcept = default;
};

}  // namespace v1
}  // namespace isthmus
