// SPDX-License-Identifier: Apache-2.0
#include "core/aligned_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/expects.hpp"
#include "core/sanitizers.hpp"
#include "core/sizes.hpp"

namespace isthmus {
namespace {

// Stores no header before the memory, so that AddressSanitizer detects accesses just before the
// memory as well as just after it.
void* allocate_without_header(std::size_t nbytes, std::size_t alignment) noexcept {
  void* pointer = nullptr;
  return posix_memalign(&pointer, std::max(alignment, sizeof(void*)), nbytes) == 0 ? pointer
                                                                                   : nullptr;
}

}  // namespace

void* allocate_aligned(std::size_t nbytes, std::size_t alignment) noexcept {
  ISTHMUS_EXPECTS(is_power_of_two(alignment), alignment);
  if constexpr (k_address_sanitizer) {
    return allocate_without_header(nbytes, alignment);
  }
  const auto extra = std::max(alignment, alignof(std::max_align_t)) + sizeof(void*);
  if (nbytes > SIZE_MAX - extra) {
    return nullptr;
  }
  void* block = std::malloc(nbytes + extra);
  if (block == nullptr) {
    return nullptr;
  }
  auto* const first = static_cast<std::byte*>(block) + sizeof(void*);
  auto* const aligned = first + (round_up(address(first), alignment) - address(first));
  std::memcpy(aligned - sizeof(void*), &block, sizeof(void*));
  return aligned;
}

void free_aligned(void* pointer) noexcept {
  ISTHMUS_EXPECTS(pointer != nullptr);
  if constexpr (!k_address_sanitizer) {
    std::memcpy(&pointer, static_cast<std::byte*>(pointer) - sizeof(void*), sizeof(void*));
  }
  std::free(pointer);
}

}  // namespace isthmus
