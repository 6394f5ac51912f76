// SPDX-License-Identifier: Apache-2.0
#include "backend/host/chunks.hpp"

#include <algorithm>
#include <new>

#include "os/virtual_memory.hpp"

namespace isthmus::host {
namespace {

class PageChunks final : public ChunkSource {
 public:
  // A multiple of the base page size of every supported processor.
  [[nodiscard]] std::size_t granularity() const noexcept override { return std::size_t{64} << 10; }
  [[nodiscard]] bool can_split() const noexcept override { return true; }

  // Reservations of at least a huge page are aligned to one.
  Result<void*> reserve(std::size_t nbytes, std::size_t alignment) override {
    constexpr auto k_huge_page = std::size_t{2} << 20;
    const auto min_alignment = nbytes >= k_huge_page ? k_huge_page : granularity();
    return os::reserve_addresses(nbytes, std::max(alignment, min_alignment));
  }
  void release(void* base, std::size_t nbytes) noexcept override { os::unmap_pages(base, nbytes); }

  Result<void> create(void* address, std::size_t nbytes) override {
    ISTHMUS_TRY(os::commit_pages(address, nbytes));
    os::prefer_huge_pages(address, nbytes);
    return {};
  }
  Result<void> move(void* source, void* destination, std::size_t nbytes,
                    bool& destination_lost) override {
    return os::move_pages(source, destination, nbytes, os::LeftPages::unmapped, destination_lost);
  }
  void destroy(void* address, std::size_t nbytes) noexcept override {
    os::unmap_pages(address, nbytes);
  }
};

bool supports_moves(ChunkSource& source) noexcept try {
  const auto nbytes = source.granularity();
  auto range = source.reserve(2 * nbytes, 1);
  if (!range) {
    return false;
  }
  auto* const base = static_cast<std::byte*>(*range);
  bool destination_lost = false;
  const bool moved =
      source.create(base, nbytes) && source.move(base, base + nbytes, nbytes, destination_lost);
  if (!moved) {
    source.release(base, nbytes);
  }
  if (!destination_lost) {
    source.release(base + nbytes, nbytes);
  }
  return moved;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

ChunkSource* movable_chunks() noexcept {
  static auto* const instance = new (std::nothrow) PageChunks;  // never destroyed: used during exit
  static const bool is_supported = instance != nullptr && supports_moves(*instance);
  return is_supported ? instance : nullptr;
}

}  // namespace isthmus::host
