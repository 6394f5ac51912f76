// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detects writes next to blocks and to freed blocks, where the host can access the memory.
//
// A block lies between two red zones, which are checked when it is freed. Freed blocks are
// poisoned, kept for a while before they return to upstream, and checked then. For this, an
// allocation waits for its queue, whose work may still use the memory from before; where it may not
// wait, in a callback, the block is not checked. The library frees a block only when nothing uses
// it. Damage is reported on the standard error stream at once, since the destruction of a buffer
// has no caller to report it to, and by `verify`. The method is that of AddressSanitizer
// (Serebryany et al., 2012), for memory that it does not cover.

#include <cstdint>
#include <mutex>

#include "memory/adaptors/caching_adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/cut_areas.hpp"

namespace isthmus {

class debug_resource final : public caching_adaptor {
 public:
  static constexpr std::size_t k_least_zone =
      64;  // bytes; or the alignment of a request, if greater

  // UNSUPPORTED if `upstream` may return memory that the host cannot access, or may release blocks
  // that were not freed.
  // `kept_bytes`: the maximum of freed blocks that are kept.
  [[nodiscard]] static result<ref<debug_resource>> create(memory_resource& upstream,
                                                          std::size_t kept_bytes);
  // Called by `create`.
  debug_resource(memory_resource& upstream, std::size_t kept_bytes)
      : caching_adaptor{upstream, {false, upstream.kinds()}}, most_kept_{kept_bytes} {}

  [[nodiscard]] memory_resource& giver_of(const void*, std::size_t) noexcept override {
    return *this;
  }
  [[nodiscard]] bool cuts() const noexcept override { return true; }
  // Upstream's blocks include the red zones and are kept for a while.
  void freed(const void*, std::size_t) noexcept override {}
  // CALLBACK, with nothing allocated, if the thread's interrupt function ended the wait.
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  // INVALID_ARGUMENT also if a red zone was written to: then the block stays as it is until the
  // resource is destroyed.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  // Releases the freed blocks that are kept first.
  std::size_t trim(std::size_t keep) noexcept override;
  std::size_t release_unused() noexcept override { return let_go(0); }
  [[nodiscard]] std::vector<ref<event>> running() override { return {}; }
  // INVALID_ARGUMENT with the first damage found, now or earlier; else upstream's result.
  [[nodiscard]] result<void> verify() override;

 private:
  struct note {
    std::byte* start;  // the caller's pointer
    std::size_t nbytes;
    std::size_t zone;      // 0: the block is not checked
    note* next = nullptr;  // freed after this one
    bool is_damaged = false;
    cut_areas::entry area = {};  // covers all its bytes

    [[nodiscard]] std::byte* base() const noexcept { return start - zone; }
    [[nodiscard]] std::size_t all_bytes() const noexcept { return nbytes + 2 * zone; }
  };

  ~debug_resource() override;
  [[nodiscard]] result<std::byte*> take(std::size_t nbytes, std::size_t alignment, queue& on);
  [[nodiscard]] static error damage_of_live(const note& of) noexcept;
  [[nodiscard]] static error damage_of_freed(const note& of) noexcept;
  [[nodiscard]] static error written_to(const note& of, const std::byte* at,
                                        const char* how) noexcept;
  void tell(const error& what) noexcept;
  void keep(pointer_table<note>::entry freed) noexcept;
  // Returns the bytes that upstream took back.
  std::size_t let_go(std::size_t most) noexcept;
  void enter(note& made);
  // Returns the block to upstream; if that fails it stays known.
  result<void> give_back(note& gone, queue* behind) noexcept;
  [[nodiscard]] note* take_oldest(std::size_t most) noexcept;

  const std::size_t most_kept_;
  pointer_table<note> live_;
  pointer_table<note> freed_;
  std::mutex lock_;  // guards what follows
  note* oldest_ = nullptr;
  note* newest_ = nullptr;
  std::size_t kept_ = 0;
  error found_;
};

}  // namespace isthmus
