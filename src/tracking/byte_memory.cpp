// SPDX-License-Identifier: Apache-2.0
#include "tracking/byte_memory.hpp"

#include <cstring>

#include "core/aligned_memory.hpp"
#include "core/sizes.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

// Below this size memory of the C library costs less than pages mapped from the kernel.
constexpr std::size_t k_least_mapped = std::size_t{64} << 10;

result<std::byte*> zeroed(std::size_t nbytes) {
  if (nbytes >= k_least_mapped) {
    auto pages = os::map_pages(nbytes, os::page_size());
    ISTHMUS_TRY(pages);
    return static_cast<std::byte*>(*pages);
  }
  void* const memory = allocate_aligned(nbytes, 64);
  if (memory == nullptr) {
    return error::no_memory();
  }
  std::memset(memory, 0, nbytes);
  return static_cast<std::byte*>(memory);
}

void free_zeroed(std::byte* memory, std::size_t nbytes) noexcept {
  if (nbytes >= k_least_mapped) {
    os::unmap_pages(memory, nbytes);
  } else {
    free_aligned(memory);
  }
}

}  // namespace

result<std::unique_ptr<tracked_memory>> byte_memory::create(const request& wanted) {
  std::unique_ptr<byte_memory> made{new byte_memory{wanted.nbytes}};
  for (auto* const face : {&made->view_, &made->library_}) {
    auto memory = zeroed(wanted.nbytes);
    ISTHMUS_TRY(memory);
    *face = *memory;
  }
  return std::unique_ptr<tracked_memory>{std::move(made)};
}

byte_memory::~byte_memory() {
  for (auto* const face : {view_, library_}) {
    if (face != nullptr) {
      free_zeroed(face, nbytes_);
    }
  }
}

void byte_memory::take(range_set& written) {
  if (same_unwatched(view_, library_, nbytes_)) {
    return;
  }
  range_set found;
  add_differences(view_, library_, nbytes_, 0, found);
  written.add(found);
}

result<const std::byte*> byte_memory::snapshot(const range_set& ranges, writers /*who*/) {
  for (const auto& each : ranges) {
    copy_unwatched(library_ + each.begin, view_ + each.begin, each.nbytes());
  }
  return library_;
}

result<void> byte_memory::publish(const range_set& ranges, writers /*who*/) {
  for (const auto& each : ranges) {
    copy_unwatched(view_ + each.begin, library_ + each.begin, each.nbytes());
  }
  return {};
}

}  // namespace isthmus::tracking
