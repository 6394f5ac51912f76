// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory pools of the stand-in driver: which exist, and the kind of their memory. They cache no
// free memory.

#include <map>
#include <memory>
#include <mutex>

#include "cuda_memory.hpp"

namespace stand_in {

struct memory_pool {
  int device;
  sort of;
  std::uint64_t release_threshold = 0;
};

class memory_pools {
 public:
  memory_pool* add(int device, sort of) {
    auto pool = std::make_unique<memory_pool>(memory_pool{device, of});
    auto* const raw = pool.get();
    const std::lock_guard hold{lock_};
    pools_[raw] = std::move(pool);
    return raw;
  }
  bool remove(memory_pool* pool) {
    const std::lock_guard hold{lock_};
    return pools_.erase(pool) != 0;
  }
  // Returns null for a pool that does not exist, or no longer does.
  memory_pool* find(memory_pool* pool) {
    const std::lock_guard hold{lock_};
    return pools_.contains(pool) ? pool : nullptr;
  }
  memory_pool* default_of(int device, sort of) {
    {
      const std::lock_guard hold{lock_};
      if (auto* const found = defaults_[{device, of}]) {
        return found;
      }
    }
    auto* const pool = add(device, of);
    const std::lock_guard hold{lock_};
    return defaults_[{device, of}] = pool;
  }

 private:
  std::mutex lock_;
  std::map<memory_pool*, std::unique_ptr<memory_pool>> pools_;
  std::map<std::pair<int, sort>, memory_pool*> defaults_;
};

}  // namespace stand_in
