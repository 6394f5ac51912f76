// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/slab_store.hpp"

#include <array>
#include <new>

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "core/spin_lock.hpp"
#include "core/thread_safety.hpp"
#include "memory/pool/size_class.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {
namespace {

// The finest classes, which include those of any larger unit.
constexpr SizeClasses k_classes{SizeClasses::k_smallest_unit};

class SlabStore {
 public:
  [[nodiscard]] Slab* allocate(const SlabShape& shape) noexcept {
    const LockGuard hold{lock_};
    auto& spare = spare_for(shape);
    if (spare != nullptr) {
      return std::exchange(spare, spare->next);
    }
    auto* memory = carve(round_up(Slab::bytes_for(shape), Slab::k_line));
    return memory == nullptr ? nullptr : new (memory) Slab{shape};
  }
  void deallocate(Slab& unused) noexcept {
    const LockGuard hold{lock_};
    auto& spare = spare_for(unused.shape());
    unused.next = std::exchange(spare, &unused);
  }

 private:
  static constexpr std::size_t k_chunk_bytes = std::size_t{1} << 20;

  // A class has at most three shapes; the two with byte marks differ in their number of pages.
  [[nodiscard]] Slab*& spare_for(const SlabShape& shape) noexcept ISTHMUS_REQUIRES(lock_) {
    const bool is_smallest = shape.pages == SlabShape::smallest(shape.block_bytes).pages;
    const std::size_t shape_index = !shape.by_byte ? 0 : is_smallest ? 1 : 2;
    return spare_.at(shape_index).at(k_classes.class_of(shape.block_bytes));
  }
  [[nodiscard]] std::byte* carve(std::size_t nbytes) noexcept ISTHMUS_REQUIRES(lock_) {
    if (remaining_ < nbytes) {
      auto pages = os::map_sparse_pages(k_chunk_bytes);
      if (!pages) {
        return nullptr;
      }
      next_ = static_cast<std::byte*>(*pages) + Slab::k_offset;
      remaining_ = k_chunk_bytes - Slab::k_offset;
    }
    remaining_ -= nbytes;
    return std::exchange(next_, next_ + nbytes);
  }

  SpinLock lock_;
  std::array<std::array<Slab*, SizeClasses::k_max_count>, 3> spare_ ISTHMUS_GUARDED_BY(lock_){};
  std::byte* next_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
  std::size_t remaining_ ISTHMUS_GUARDED_BY(lock_) = 0;
};

constinit SlabStore process_store;

}  // namespace

Slab* allocate_slab_record(const SlabShape& shape) noexcept {
  return process_store.allocate(shape);
}
void deallocate_slab_record(Slab& unused) noexcept { process_store.deallocate(unused); }

}  // namespace isthmus
