// SPDX-License-Identifier: Apache-2.0
#include "memory/grain_table.hpp"

#include <mutex>

#include "core/sizes.hpp"
#include "memory/pool.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

static_assert(GrainSet::k_end == GrainTable::k_grains && GrainSet::k_none == GrainTable::k_none);

// The tables that no pool uses.
class GrainTables {
 public:
  [[nodiscard]] GrainTable* take() noexcept {
    const std::lock_guard hold{lock_};
    auto* found = spare_;
    if (found != nullptr) {
      spare_ = std::exchange(found->next_spare_, nullptr);
    }
    return found;
  }
  void give(GrainTable& unused) noexcept {
    os::clear_sparse_pages(&unused, sizeof unused);
    const std::lock_guard hold{lock_};
    unused.next_spare_ = std::exchange(spare_, &unused);
  }

 private:
  SpinLock lock_;
  GrainTable* spare_ = nullptr;
};

namespace {
constinit GrainTables process_tables;
}  // namespace

Result<GrainTable*> GrainTable::take() {
  if (auto* spare = process_tables.take(); spare != nullptr) {
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(GrainTable), k_grain_table_alignment);
  ISTHMUS_TRY(pages);
  // Zeroed pages are valid records of no region and empty tickets. The constructor is not run, as
  // it would touch all of them.
  return static_cast<GrainTable*>(*pages);
}

void GrainTable::give_back() noexcept { process_tables.give(*this); }

void GrainTable::set_owner(Pool* owner) noexcept {
  const std::lock_guard hold{lock_};
  owner_ = owner;
  common_.from.store(owner, k_relaxed);
}

Ref<Pool> GrainTable::owner() noexcept {
  const std::lock_guard hold{lock_};
  return owner_ != nullptr && owner_->try_retain() ? Ref<Pool>::adopt(owner_) : Ref<Pool>{};
}

}  // namespace isthmus
