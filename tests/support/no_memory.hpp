// SPDX-License-Identifier: Apache-2.0
// Replaces the program's operator new, and calloc where no sanitizer replaces it, by versions that
// fail as support/without_memory.hpp says. To be included by exactly one file of a program.
#pragma once

#include <cerrno>
#include <cstdlib>
#include <new>

#include "support/without_memory.hpp"

// NOLINTBEGIN(misc-definitions-in-headers): the program's own, for its tests
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
extern "C" void* __libc_calloc(std::size_t count, std::size_t nbytes);  // NOLINT(*-identifier)
extern "C" void* calloc(std::size_t count, std::size_t nbytes) noexcept {
  if (support::allocations_left < 0 || support::has_memory()) return __libc_calloc(count, nbytes);
  errno = ENOMEM;  // the C library's own threads check it
  return nullptr;
}
#endif
void* operator new(std::size_t nbytes, const std::nothrow_t&) noexcept {
  return support::has_memory() ? std::malloc(nbytes) : nullptr;
}
void* operator new(std::size_t nbytes) {
  void* const memory = operator new(nbytes, std::nothrow);
  return memory != nullptr ? memory : throw std::bad_alloc{};
}
void* operator new(std::size_t nbytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  const auto unit = static_cast<std::size_t>(alignment);
  const auto whole = (nbytes + unit - 1) / unit * unit;
  return support::has_memory() ? std::aligned_alloc(unit, whole) : nullptr;
}
void* operator new(std::size_t nbytes, std::align_val_t alignment) {
  void* const memory = operator new(nbytes, alignment, std::nothrow);
  return memory != nullptr ? memory : throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-definitions-in-headers)
