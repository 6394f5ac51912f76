#pragma once
// Finds writes beside blocks and to freed ones, where the host can touch the memory.
//
// A block lies between two red zones, which its free looks at. Freed blocks are poisoned and kept
// for a while before they go back, and looked at then. For that an allocation waits for its queue,
// whose work may still use what the block was before; where it may not, in a callback, the block
// passes unchecked. A free comes when nothing uses the block, as the library sees to. What was
// found is told on the standard error stream at once, since a buffer's end has nobody to tell, and
// by `verify`. As AddressSanitizer does it (Serebryany et al., 2012), for memory that it does not
// see.

#include <cstdint>
#include <mutex>

#include "memory/adaptors/caching_adaptor.hpp"
#include "memory/adaptors/pointer_table.hpp"
#include "memory/cut_areas.hpp"

namespace isthmus {

class debug_resource final : public caching_adaptor {
 public:
  static constexpr std::size_t k_least_zone =
      64;  // bytes; a request's alignment where that is more

  // UNSUPPORTED where `upstream` may give memory that the host cannot touch, or takes blocks back
  // that nobody freed.
  // `kept_bytes`: of freed blocks, at most.
  [[nodiscard]] static result<ref<debug_resource>> create(memory_resource& upstream,
                                                          std::size_t kept_bytes);
  // For `create`.
  debug_resource(memory_resource& upstream, std::size_t kept_bytes)
      : caching_adaptor{upstream, {false, upstream.kinds()}}, most_kept_{kept_bytes} {}

  [[nodiscard]] memory_resource& giver_of(const void*, std::size_t) noexcept override {
    return *this;
  }
  [[nodiscard]] bool cuts() const noexcept override { return true; }
  // Upstream has blocks with their red zones, which are kept for a while.
  void freed(const void*, std::size_t) noexcept override {}
  // CALLBACK, with nothing allocated, where the thread's interrupt function ended the wait.
  [[nodiscard]] result<void*> allocate(std::size_t nbytes, std::size_t alignment,
                                       queue& on) override;
  // INVALID_ARGUMENT also where a red zone was written to: then the block stays as it is, till the
  // resource ends.
  result<void> deallocate(void* pointer, std::size_t nbytes, queue* behind) noexcept override;
  // Freed blocks go back first.
  std::size_t trim(std::size_t keep) noexcept override;
  std::size_t release_unused() noexcept override { return let_go(0); }
  [[nodiscard]] std::vector<ref<event>> running() override { return {}; }
  // INVALID_ARGUMENT with what was found first, now or before; else what upstream finds.
  [[nodiscard]] result<void> verify() override;

 private:
  struct note {
    std::byte* start;  // the caller's
    std::size_t nbytes;
    std::size_t zone;      // 0: it passes unchecked
    note* next = nullptr;  // freed after it
    bool is_damaged = false;
    cut_areas::entry area = {};  // of all its bytes

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
  // The bytes that upstream took.
  std::size_t let_go(std::size_t most) noexcept;
  void enter(note& made);
  // To upstream; on failure it is known as before.
  result<void> give_back(note& gone, queue* behind) noexcept;
  [[nodiscard]] note* take_oldest(std::size_t most) noexcept;

  const std::size_t most_kept_;
  pointer_table<note> live_;
  pointer_table<note> freed_;
  std::mutex lock_;  // over what follows
  note* oldest_ = nullptr;
  note* newest_ = nullptr;
  std::size_t kept_ = 0;
  error found_;
};

}  // namespace isthmus
