// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_page_table.hpp"

#include "core/lock_guard.hpp"
#include "core/sizes.hpp"
#include "core/thread_safety.hpp"
#include "memory/base/memory_resource.hpp"
#include "os/virtual_memory.hpp"

namespace isthmus {

static_assert(PoolPageSet::k_end == PoolPageTable::k_pages &&
              PoolPageSet::k_none == PoolPageTable::k_none);

// The tables that no pool uses.
class PoolPageTables {
 public:
  [[nodiscard]] PoolPageTable* acquire() noexcept {
    const LockGuard hold{lock_};
    auto* found = spare_;
    if (found != nullptr) {
      spare_ = std::exchange(found->next_spare_, nullptr);
    }
    return found;
  }
  void release(PoolPageTable& unused) noexcept {
    os::clear_sparse_pages(&unused, sizeof unused);
    const LockGuard hold{lock_};
    unused.next_spare_ = std::exchange(spare_, &unused);
  }

 private:
  SpinLock lock_;
  PoolPageTable* spare_ ISTHMUS_GUARDED_BY(lock_) = nullptr;
};

namespace {
constinit PoolPageTables process_tables;
}  // namespace

Result<PoolPageTable*> PoolPageTable::acquire() {
  if (auto* spare = process_tables.acquire(); spare != nullptr) {
    return spare;
  }
  auto pages = os::map_sparse_pages(sizeof(PoolPageTable), k_pool_page_table_alignment);
  ISTHMUS_TRY(pages);
  // Zeroed pages are valid records of no region and empty tickets. The constructor is not run, as
  // it would touch all of them.
  return static_cast<PoolPageTable*>(*pages);
}

void PoolPageTable::release() noexcept { process_tables.release(*this); }

void PoolPageTable::set_owner(MemoryResource* owner) noexcept {
  const LockGuard hold{lock_};
  owner_ = owner;
  common_.resource.store(owner, k_relaxed);
}

Ref<MemoryResource> PoolPageTable::owner() noexcept {
  const LockGuard hold{lock_};
  return owner_ != nullptr && owner_->try_retain() ? Ref<MemoryResource>::adopt(owner_)
                                                   : Ref<MemoryResource>{};
}

}  // namespace isthmus
