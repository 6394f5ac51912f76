#pragma once
// The functions that PyTorch calls in place of its CUDA allocator, and their addresses.
//
// They get no argument that says whose they are, so there is a set of them for each allocator, of
// which there are a few. What they throw becomes a RuntimeError of PyTorch's.

#include "stream_allocator.hpp"

#include <span>

namespace isthmus::python {

struct torch_hook {
  const char* name;  // of PyTorch's method that takes it; "alloc" and "free" are its constructor's
  std::uintptr_t address;
};

// The first one serves each device with a pool of its own.
inline constexpr unsigned k_torch_allocators = 16;
[[nodiscard]] stream_allocator& torch_allocator(unsigned number) noexcept;
[[nodiscard]] std::span<const torch_hook> hooks_of(unsigned number) noexcept;

}  // namespace isthmus::python
