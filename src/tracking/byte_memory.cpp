// SPDX-License-Identifier: Apache-2.0
#include "tracking/byte_memory.hpp"

#include <cstring>

#include "core/aligned_memory.hpp"
#include "core/sizes.hpp"
#include "os/virtual_memory.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {
namespace {

// Below this size an allocation from the C library costs less than mapping pages.
constexpr std::size_t k_min_page_mapped_bytes = std::size_t{64} << 10;

Result<std::byte*> zeroed(std::size_t nbytes) {
  if (nbytes >= k_min_page_mapped_bytes) {
    auto pages = os::map_pages(nbytes, os::page_size());
    ISTHMUS_TRY(pages);
    return static_cast<std::byte*>(*pages);
  }
  void* const memory = allocate_aligned(nbytes, 64);
  if (memory == nullptr) {
    return Error::no_memory();
  }
  std::memset(memory, 0, nbytes);
  return static_cast<std::byte*>(memory);
}

void free_zeroed(std::byte* memory, std::size_t nbytes) noexcept {
  if (nbytes >= k_min_page_mapped_bytes) {
    os::unmap_pages(memory, nbytes);
  } else {
    free_aligned(memory);
  }
}

}  // namespace

Result<std::unique_ptr<TrackedMemory>> ByteMemory::create(const Request& request) {
  std::unique_ptr<ByteMemory> tracked{new ByteMemory{request.nbytes}};
  for (auto* const mapping : {&tracked->view_, &tracked->library_}) {
    auto memory = zeroed(request.nbytes);
    ISTHMUS_TRY(memory);
    *mapping = *memory;
  }
  return std::unique_ptr<TrackedMemory>{std::move(tracked)};
}

ByteMemory::~ByteMemory() {
  for (auto* const mapping : {view_, library_}) {
    if (mapping != nullptr) {
      free_zeroed(mapping, nbytes_);
    }
  }
}

void ByteMemory::take(RangeSet& written) {
  if (same_unwatched(view_, library_, nbytes_)) {
    return;
  }
  RangeSet found;
  add_differences(view_, library_, nbytes_, 0, found);
  written.add(found);
}

Result<const std::byte*> ByteMemory::snapshot(const RangeSet& ranges, Writers /*writers*/) {
  for (const auto& each : ranges) {
    copy_unwatched(library_ + each.begin, view_ + each.begin, each.nbytes());
  }
  return library_;
}

Result<void> ByteMemory::publish(const RangeSet& ranges, Writers /*writers*/) {
  for (const auto& each : ranges) {
    copy_unwatched(view_ + each.begin, library_ + each.begin, each.nbytes());
  }
  return {};
}

}  // namespace isthmus::tracking
