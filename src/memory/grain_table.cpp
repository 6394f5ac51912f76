// SPDX-License-Identifier: Apache-2.0
#include "memory/grain_table.hpp"

#include <mutex>

#include "core/sizes.hpp"
#include "memory/pool.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

static_assert(grain_set::k_end == grain_table::k_grains &&
              grain_set::k_none == grain_table::k_none);

// The tables that no pool uses.
class grain_tables {
 public:
  [[nodiscard]] grain_table* take() noexcept {
    const std::lock_guard hold{lock_};
    auto* found = spare_;
    if (found != nullptr) {
      spare_ = std::exchange(found->next_spare_, nullptr);
    }
    return found;
  }
  void give(grain_table& unused) noexcept {
    os::clear_sparse_pages(&unused, sizeof unused);
    const std::lock_guard hold{lock_};
    unused.next_spare_ = std::exchange(spare_, &unused);
  }

 private:
  spin_lock lock_;
  grain_table* spare_ = nullptr;
};

namespace {
constinit grain_tables process_tables;
}  // namespace

result<grain_table*> grain_table::take() {
  if (auto* spare = process_tables.take(); spare != nullptr) {
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(grain_table), k_grain_table_alignment);
  ISTHMUS_TRY(pages);
  // Zeroed pages are valid records of no region and empty tickets. The constructor is not run, as
  // it would touch all of them.
  return static_cast<grain_table*>(*pages);
}

void grain_table::give_back() noexcept { process_tables.give(*this); }

void grain_table::set_owner(pool* owner) noexcept {
  const std::lock_guard hold{lock_};
  owner_ = owner;
  common_.from.store(owner, k_relaxed);
}

ref<pool> grain_table::owner() noexcept {
  const std::lock_guard hold{lock_};
  return owner_ != nullptr && owner_->try_retain() ? ref<pool>::adopt(owner_) : ref<pool>{};
}

}  // namespace isthmus
