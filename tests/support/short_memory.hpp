// SPDX-License-Identifier: Apache-2.0
// Pools of kind device limited to 8 MiB, and blocks of 1 MiB from them.
#pragma once

#include <cstdint>
#include <utility>

#include "support/backends.hpp"

namespace support {

class on_short_memory : public on_backend {
 protected:
  [[nodiscard]] im::resource make(std::chrono::nanoseconds wait = 1s) const {
    return im::resource::pool(queue_.context(), im::kind::device,
                              {.initial_bytes = 8 * k_mib, .limit_bytes = 8 * k_mib, .wait = wait},
                              device_);
  }
  // One of the eight blocks that fill such a pool. Its destructor frees it.
  struct block {
    const im::resource& resource;
    const im::queue& queue;
    void* pointer = resource.allocate(k_mib, 0, queue);

    block(const im::resource& from, const im::queue& free_queue)
        : resource{from}, queue{free_queue} {}
    block(const block&) = delete;
    block& operator=(const block&) = delete;
    ~block() { free(); }
    std::uint64_t free() noexcept {
      const bool was_live = pointer != nullptr;
      if (was_live) resource.deallocate(std::exchange(pointer, nullptr), k_mib, 0, queue);
      return was_live ? k_mib : 0;
    }
  };
  // Backends of coarser alignment hold a little more than the blocks need.
  static void expect_near(std::uint64_t value, std::uint64_t wanted) {
    EXPECT_GE(value, wanted);
    EXPECT_LE(value, wanted + k_mib / 8);
  }
};

}  // namespace support
