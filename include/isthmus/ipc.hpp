// A buffer's bytes in several processes of one machine, where a device can: CUDA's legacy IPC. For
// device memory of the driver's own allocator, or of a pool that does not remap.
//
//   const auto handle = isthmus::ipc_handle::of(buffer);  // to be sent to another process as it is
//   isthmus::buffer theirs = handle.open(queue);          // there
//
// Each process tells the other by means of its own what it has done with the bytes; whoever has the
// memory keeps it until all others have let go of their buffers. Cost: a driver's call; letting go
// of an opened one waits for the device. Threads: any.
#pragma once

#include <isthmus/buffer.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace isthmus {
inline namespace v1 {

struct ipc_handle {
  std::array<unsigned char, 64> handle{};  // CUipcMemHandle, of the whole allocation
  std::uint64_t offset = 0;                // within it
  std::uint64_t nbytes = 0;

  // Waits for what is pending on the bytes. Throws unsupported for memory that cannot be shared,
  // invalid_argument for 0 bytes.
  [[nodiscard]] static ipc_handle of(const buffer& memory) {
    isthmus_ipc_handle_t raw{};
    raw.struct_size = sizeof raw;
    detail::check(isthmus_buffer_ipc_handle(memory.get(), &raw));
    ipc_handle made;
    std::copy_n(raw.handle, made.handle.size(), made.handle.begin());
    made.offset = raw.offset;
    made.nbytes = raw.nbytes;
    return made;
  }
  // In another process. {}: on the default queue of the default device. Throws invalid_argument for
  // a handle of this process's own, or what is none.
  [[nodiscard]] buffer open(const queue_choice& on = {}) const {
    isthmus_ipc_handle_t raw{};
    raw.struct_size = sizeof raw;
    std::copy_n(handle.begin(), handle.size(), raw.handle);
    raw.offset = offset;
    raw.nbytes = nbytes;
    return detail::make<buffer>(isthmus_buffer_open_ipc, &raw, on.get());
  }

  friend bool operator==(const ipc_handle&, const ipc_handle&) noexcept = default;
};

static_assert(std::is_trivially_copyable_v<ipc_handle>);

}  // namespace v1
}  // namespace isthmus
