// SPDX-License-Identifier: Apache-2.0
#include "memory/slab_store.hpp"

#include <array>
#include <mutex>
#include <new>

#include "core/sizes.hpp"
#include "core/spin_lock.hpp"
#include "memory/size_class.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {
namespace {

// The finest classes, which include those of any larger unit.
constexpr SizeClasses k_classes{SizeClasses::k_smallest_unit};

class SlabStore {
 public:
  [[nodiscard]] Slab* take(const SlabShape& shape) noexcept {
    const std::lock_guard hold{lock_};
    auto& spare = spare_for(shape);
    if (spare != nullptr) {
      return std::exchange(spare, spare->after);
    }
    auto* place = cut(round_up(Slab::bytes_for(shape), Slab::k_line));
    return place == nullptr ? nullptr : new (place) Slab{shape};
  }
  void give(Slab& unused) noexcept {
    const std::lock_guard hold{lock_};
    auto& spare = spare_for(unused.shape());
    unused.after = std::exchange(spare, &unused);
  }

 private:
  static constexpr std::size_t k_chunk_bytes = std::size_t{1} << 20;

  // A class has at most three shapes; the two that are marked by bytes differ in their pages.
  [[nodiscard]] Slab*& spare_for(const SlabShape& shape) noexcept {
    const bool is_least = shape.grains == SlabShape::of_least(shape.block_bytes).grains;
    const std::size_t which = !shape.by_byte ? 0 : is_least ? 1 : 2;
    return spare_.at(which).at(k_classes.class_of(shape.block_bytes));
  }
  [[nodiscard]] std::byte* cut(std::size_t nbytes) noexcept {
    if (left_ < nbytes) {
      auto pages = os::map_sparse_pages(k_chunk_bytes);
      if (!pages) {
        return nullptr;
      }
      next_ = static_cast<std::byte*>(*pages) + Slab::k_offset;
      left_ = k_chunk_bytes - Slab::k_offset;
    }
    left_ -= nbytes;
    return std::exchange(next_, next_ + nbytes);
  }

  SpinLock lock_;
  std::array<std::array<Slab*, SizeClasses::k_most>, 3> spare_{};
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

constinit SlabStore process_store;

}  // namespace

Slab* take_slab_record(const SlabShape& shape) noexcept { return process_store.take(shape); }
void give_slab_record(Slab& unused) noexcept { process_store.give(unused); }

}  // namespace isthmus
