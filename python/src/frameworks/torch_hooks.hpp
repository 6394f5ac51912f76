// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions that PyTorch calls in place of its CUDA allocator, and their addresses. Any thread
// may call them.
//
// They have no argument that identifies the allocator, so there is one set of functions per
// allocator, for a fixed number of allocators. Exceptions become a RuntimeError in PyTorch.

#include "frameworks/stream_allocator.hpp"

#include <span>

namespace isthmus::python {

struct TorchHook {
  // The PyTorch method that accepts the address; "alloc" and "free" are arguments of the
  // constructor.
  const char* name;
  std::uintptr_t address;
};

// PyTorch may hold the functions of an allocator indefinitely. Therefore there are this many sets
// of functions, and none is reused. Set 0 serves each device from a separate pool. Each other set
// serves one resource, or the resources that the program sets for each device.
inline constexpr unsigned k_torch_allocators = 16;
[[nodiscard]] StreamAllocator& torch_allocator(unsigned number) noexcept;
[[nodiscard]] std::span<const TorchHook> hooks_of(unsigned number) noexcept;

}  // namespace isthmus::python
