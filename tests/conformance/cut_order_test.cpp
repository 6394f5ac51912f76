// SPDX-License-Identifier: Apache-2.0
// Resources that divide blocks of their upstream: which queue's order applies to a chunk of theirs,
// and what the free of a block waits for.
#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class cut_order : public on_backend {
 protected:
  im::resource pool(im::kind kind) const {
    return im::resource::pool(queue_.context(), kind, {}, device_);
  }
  static constexpr std::size_t k_block = 64 * k_kib;
  // The resources that cut such blocks out of chunks of 1 MiB from that pool.
  static std::vector<im::resource> over(const im::resource& pool) {
    return {im::resource::fixed_size(pool, k_block, k_mib / k_block), im::resource::arena(pool),
            im::resource::monotonic(pool, k_mib)};
  }
};
INSTANTIATE_ON_BACKENDS(cut_order);

// The pool's only free memory can be used by one queue alone while work on that queue is pending.
TEST_P(cut_order, a_chunk_is_reused_on_other_queues_when_its_work_has_ended) {
  for (im::kind kind : kinds()) {
    const im::queue other(queue_.context(), device_);
    const im::resource from = pool(kind);
    for (const im::resource& cuts : over(from)) {
      const im::host_event gate;
      auto* const used = static_cast<std::byte*>(from.allocate(k_mib, 0, queue_));
      const im::event work = queue_.fence({gate});
      from.deallocate(used, k_mib, 0, queue_);
      void* const mine = cuts.allocate(k_block, 0, queue_);
      auto* const others = static_cast<std::byte*>(cuts.allocate(k_block, 0, other));
      EXPECT_FALSE(others >= used && others < used + k_mib);
      gate.complete();
      work.wait();
      cuts.deallocate(mine, k_block, 0, queue_);
      cuts.deallocate(others, k_block, 0, other);
    }
  }
}

// Recorded work defers the reuse of a block. The caller's queue does not wait for it.
TEST_P(cut_order, what_was_recorded_keeps_a_block_and_holds_no_queue_up) {
  for (im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    for (const im::resource& cuts : over(from)) {
      const im::host_event work;
      void* const block = cuts.allocate(k_block, 0, queue_);
      cuts.record(block, work);
      cuts.deallocate(block, k_block, 0, queue_);
      queue_.wait();
      void* const next = cuts.allocate(k_block, 0, queue_);
      EXPECT_NE(next, block);
      work.complete();
      cuts.deallocate(next, k_block, 0, queue_);
    }
  }
}

// If the free names no queue, the library still knows its own copies.
TEST_P(cut_order, a_copy_that_is_pending_keeps_its_source) {
  for (im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    const im::buffer target(k_block, kind, {.queue = queue_});
    for (const im::resource& cuts : {im::resource::fixed_size(from, k_block, 1),
                                     im::resource::arena(from), im::resource::monotonic(from)}) {
      const im::host_event gate;
      void* const block = cuts.allocate(k_block, 0, queue_);
      const isthmus_endpoint_t to{target.get(), nullptr, 0};
      const isthmus_endpoint_t source{nullptr, block, 0};
      isthmus_event_t* const after = gate.get();
      isthmus_operation_t how{};
      how.struct_size = sizeof how;
      how.after = &after;
      how.after_count = 1;
      isthmus_event_t* copied = nullptr;
      im::detail::check(isthmus_copy(queue_.get(), &to, &source, k_block, &how, &copied));
      im::detail::check(isthmus_resource_deallocate(cuts.get(), block, k_block, 0, nullptr));
      const im::queue other(queue_.context(), device_);
      void* const next = cuts.allocate(k_block, 0, other);
      EXPECT_NE(next, block);
      gate.complete();
      isthmus_event_wait(copied, -1);
      isthmus_event_release(copied);
      cuts.deallocate(next, k_block, 0, other);
    }
  }
}

}  // namespace
