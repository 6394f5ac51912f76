// SPDX-License-Identifier: Apache-2.0
#include "backend/host/chunks.hpp"

#include <algorithm>
#include <new>

#include "os/virtual_memory.hpp"

namespace isthmus::host {
namespace {

class page_chunks final : public chunk_source {
 public:
  // No page size of Linux is larger.
  [[nodiscard]] std::size_t granularity() const noexcept override { return std::size_t{64} << 10; }
  [[nodiscard]] bool divides() const noexcept override { return true; }

  // Reservations of at least a huge page are aligned to one.
  result<void*> reserve(std::size_t nbytes, std::size_t alignment) override {
    constexpr auto k_huge_page = std::size_t{2} << 20;
    const auto least = nbytes >= k_huge_page ? k_huge_page : granularity();
    return os::reserve_addresses(nbytes, std::max(alignment, least));
  }
  void release(void* base, std::size_t nbytes) noexcept override { os::unmap_pages(base, nbytes); }

  result<void> create(void* at, std::size_t nbytes) override {
    ISTHMUS_TRY(os::commit_pages(at, nbytes));
    os::prefer_huge_pages(at, nbytes);
    return {};
  }
  result<void> move(void* from, void* to, std::size_t nbytes, bool& to_lost) override {
    return os::move_pages(from, to, nbytes, os::left_pages::unmapped, to_lost);
  }
  void destroy(void* at, std::size_t nbytes) noexcept override { os::unmap_pages(at, nbytes); }
};

bool works(chunk_source& source) noexcept try {
  const auto nbytes = source.granularity();
  auto range = source.reserve(2 * nbytes, 1);
  if (!range) {
    return false;
  }
  auto* const from = static_cast<std::byte*>(*range);
  bool to_lost = false;
  const bool moved =
      source.create(from, nbytes) && source.move(from, from + nbytes, nbytes, to_lost);
  if (!moved) {
    source.release(from, nbytes);
  }
  if (!to_lost) {
    source.release(from + nbytes, nbytes);
  }
  return moved;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

chunk_source* movable_chunks() noexcept {
  static auto* const only = new (std::nothrow) page_chunks;  // never destroyed: used during exit
  static const bool moves = only != nullptr && works(*only);
  return moves ? only : nullptr;
}

}  // namespace isthmus::host
