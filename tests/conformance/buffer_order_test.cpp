// SPDX-License-Identifier: Apache-2.0
// Buffers that are dropped while operations are pending on them: in which queue's order the pool
// gets their memory back, and which requests it serves with that memory before the operations
// complete.
#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

class buffer_order : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && !HasFatalFailure() && !can(im::capability::wait_for_host)) {
      GTEST_SKIP() << "nothing can be held up";
    }
  }
  im::resource pool(im::kind kind = im::kind::device) const {
    return im::resource::pool(queue_.context(), kind, {.growth_bytes = k_mib}, device_);
  }
  static im::buffer make(std::size_t nbytes, const im::resource& from, const im::queue& on,
                         im::kind kind = im::kind::device) {
    return im::buffer(nbytes, kind, {.queue = on, .resource = from});
  }
  // Allocates a buffer on `queue_` and drops it while a fill waits for the gate. Returns its
  // address.
  void* drop_busy(const im::resource& from, const im::host_event& gate,
                  std::size_t nbytes = k_block, im::kind kind = im::kind::device) const {
    const im::buffer busy = make(nbytes, from, queue_, kind);
    (void)im::fill_async(busy, std::byte{1}, {.after = gate});
    return busy.pointer();
  }
  static bool holds_back() { return support::defers_host_waits(GetParam()); }
  // Whether a request on the queue gets that memory. Tries more blocks than a slab or region holds.
  bool serves(const im::resource& from, const im::queue& on, const void* memory) const {
    std::vector<im::buffer> all;
    for (int i = 0; i < 40; ++i) {
      all.push_back(make(k_block, from, on));
      if (all.back().pointer() == memory) return true;
    }
    return false;
  }

  static bool is_free(const void* memory) {
    return im::query(memory).state == im::memory_state::free;
  }

  static constexpr std::size_t k_block = 64 * k_kib;
  static constexpr std::size_t k_run = k_mib;
};
INSTANTIATE_ON_BACKENDS(buffer_order);

// Steps that the host submits ahead of the device share the memory of one step.
TEST_P(buffer_order, steps_that_the_host_is_ahead_with_share_memory) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  constexpr int k_steps = 30;
  for (const std::size_t nbytes : {k_block, k_run}) {
    const im::resource pool_alone = pool();
    const im::resource counted = im::resource::statistics(pool_alone);
    for (const im::resource* from : {&pool_alone, &counted}) {
      std::vector<bytes> out(k_steps, bytes(nbytes));
      const im::host_event gate;
      (void)queue_.fence({gate});
      void* const first = make(nbytes, *from, queue_).pointer();
      const auto held = from->usage().held;
      for (int step = 0; step < k_steps; ++step) {
        const im::buffer mine = make(nbytes, *from, queue_);
        EXPECT_EQ(mine.pointer(), first) << step;
        (void)im::fill_async(mine, static_cast<std::uint8_t>(step));
        (void)im::copy_async(std::span(out[static_cast<std::size_t>(step)]), mine);
      }
      EXPECT_EQ(from->usage().held, held);
      gate.complete();
      queue_.wait();
      for (int step = 0; step < k_steps; ++step) {
        EXPECT_TRUE(
            same(out[static_cast<std::size_t>(step)], bytes(nbytes, static_cast<std::byte>(step))));
      }
    }
  }
}

TEST_P(buffer_order, what_is_held_back_keeps_its_memory) {
  if (!holds_back()) GTEST_SKIP() << "nothing is held back here";
  const im::resource from = pool();
  const im::host_event gate;
  void* const memory = drop_busy(from, gate);
  EXPECT_FALSE(serves(from, queue_, memory));
  EXPECT_FALSE(is_free(memory));
  gate.complete();
  EXPECT_TRUE(eventually([&] { return is_free(memory); }));
}

TEST_P(buffer_order, another_queue_has_it_when_the_work_has_ended) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = pool();
  const im::host_event gate;
  void* const memory = drop_busy(from, gate);
  EXPECT_FALSE(serves(from, other, memory));
  gate.complete();
  queue_.wait();
  const auto all_of_it = from.usage().held;
  EXPECT_TRUE(eventually([&] {
    (void)from.trim();
    return from.usage().held < all_of_it;
  }));
}

TEST_P(buffer_order, the_next_one_orders_itself_on_other_queues) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::queue other(queue_.context(), device_);
  for (const std::size_t nbytes : {k_block, k_run}) {
    const im::resource from = pool();
    const im::host_event gate;
    void* const memory = drop_busy(from, gate, nbytes);
    const im::buffer next = make(nbytes, from, queue_);
    ASSERT_EQ(next.pointer(), memory);
    const im::event filled = im::fill_async(next, std::byte{7}, {.queue = other});
    EXPECT_FALSE(filled.wait_for(20ms));
    gate.complete();
    filled.wait();
    EXPECT_TRUE(same(read(next), bytes(nbytes, std::byte{7})));
  }
}

// A failure of operations of the previous owner of a block does not fail those of the next owner.
TEST_P(buffer_order, the_next_one_does_not_fail_with_what_came_before) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::queue other(queue_.context(), device_);
  const im::resource from = pool();
  const im::host_event gate;
  void* const memory = drop_busy(from, gate);
  const im::buffer next = make(k_block, from, queue_);
  ASSERT_EQ(next.pointer(), memory);
  const im::event filled = im::fill_async(next, std::byte{7}, {.queue = other});
  gate.fail("as asked");
  filled.wait();
  EXPECT_TRUE(same(read(next), bytes(k_block, std::byte{7})));
}

TEST_P(buffer_order, work_on_one_other_queue_is_what_counts) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::queue other(queue_.context(), device_);
  const im::resource from = pool();
  (void)make(k_block, from, other);  // makes the queue known to the pool
  const im::host_event gate;
  void* memory = nullptr;
  {
    const im::buffer busy = make(k_block, from, queue_).on_queue(other);
    (void)im::fill_async(busy, std::byte{1}, {.after = gate});
    memory = busy.pointer();
  }
  EXPECT_FALSE(serves(from, queue_, memory));
  EXPECT_TRUE(serves(from, other, memory));
  gate.complete();
}

TEST_P(buffer_order, work_on_several_queues_is_waited_for) {
  const im::queue other(queue_.context(), device_);
  const im::resource from = pool();
  const im::host_event gate, also;
  void* memory = nullptr;
  {
    const im::buffer busy = make(k_block, from, queue_);
    (void)im::fill_async(busy.slice(0, 100), std::byte{1}, {.after = gate});
    (void)im::fill_async(busy.slice(200, 100).on_queue(other), std::byte{1}, {.after = also});
    memory = busy.pointer();
  }
  for (const im::queue& on : {queue_, other}) {
    EXPECT_FALSE(serves(from, on, memory));
  }
  EXPECT_FALSE(is_free(memory));
  gate.complete();
  also.complete();
  EXPECT_TRUE(eventually([&] { return is_free(memory); }));
}

TEST_P(buffer_order, recorded_work_is_on_its_queue) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::resource from = pool();
  const im::host_event gate, work;
  (void)queue_.fence({gate});
  im::buffer busy = make(k_block, from, queue_);
  void* const memory = busy.pointer();
  busy.record(queue_);
  busy = make(k_block, from, queue_);
  EXPECT_NE(busy.pointer(), memory) << "it was dropped after that";
  EXPECT_TRUE(serves(from, queue_, memory));
  busy.record(work);  // an event that belongs to no queue
  void* const unknown = busy.pointer();
  busy = {};
  EXPECT_FALSE(serves(from, queue_, unknown));
  EXPECT_FALSE(is_free(unknown));
  gate.complete();
  work.complete();
  EXPECT_TRUE(eventually([&] { return is_free(unknown); }));
}

TEST_P(buffer_order, slices_and_exports_keep_it) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::resource from = pool();
  const im::host_event gate;
  im::buffer busy = make(k_block, from, queue_);
  void* const memory = busy.pointer();
  (void)im::fill_async(busy, std::byte{1}, {.after = gate});
  im::buffer slice = busy.slice(10, 100);
  busy = {};
  EXPECT_FALSE(serves(from, queue_, memory));
  void* exported = nullptr;
  const im::queue other(queue_.context(), device_);
  ASSERT_EQ(isthmus_buffer_export_to_queue(slice.get(), nullptr, &exported), ISTHMUS_OK);
  isthmus_buffer_t* const kept = slice.get();
  isthmus_buffer_retain(kept);
  slice.free();
  slice = {};
  EXPECT_FALSE(serves(from, queue_, memory));
  isthmus_buffer_unexport(kept);
  isthmus_buffer_release(kept);
  EXPECT_TRUE(serves(from, queue_, memory));
  gate.complete();
}

TEST_P(buffer_order, free_is_as_dropping_it) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::resource from = pool();
  const im::host_event gate;
  const im::buffer busy = make(k_block, from, queue_);
  (void)im::fill_async(busy, std::byte{1}, {.after = gate});
  void* const memory = busy.pointer();
  busy.free();
  EXPECT_TRUE(throws(im::status::closed, [&] { im::fill(busy, std::byte{2}); }));
  EXPECT_TRUE(throws(im::status::invalid_argument, {"before"},
                     [&] { from.deallocate(memory, k_block, 0, queue_); }));
  const im::snapshot seen = im::snapshot_of(from);
  EXPECT_EQ(seen.live, 0u);
  EXPECT_EQ(seen.held, seen.cached + seen.waiting + seen.free);
  EXPECT_TRUE(serves(from, queue_, memory));
  gate.complete();
  EXPECT_NO_THROW(from.verify());
}

// The host can access this memory, and its accesses are not ordered by any queue.
TEST_P(buffer_order, what_the_host_can_touch_is_waited_for) {
  for (im::kind kind : kinds()) {
    if (kind == im::kind::device) continue;
    const im::resource from = pool(kind);
    const im::host_event gate;
    const void* const memory = drop_busy(from, gate, k_block, kind);
    std::vector<im::buffer> all;
    for (int i = 0; i < 40; ++i) {
      all.push_back(make(k_block, from, queue_, kind));
      EXPECT_NE(all.back().pointer(), memory);
    }
    gate.complete();
  }
}

// The library also tracks its own copies and fills of memory without a buffer.
TEST_P(buffer_order, a_bare_block_is_reusable_after_its_fills_at_once) {
  if (holds_back()) GTEST_SKIP() << "what waits for the host is held back here";
  const im::queue other(queue_.context(), device_);
  const im::resource from = pool();
  for (const std::size_t nbytes : {k_block, k_run}) {
    const im::host_event gate;
    (void)queue_.fence({gate});
    void* const block = from.allocate(nbytes, 0, queue_);
    const isthmus_endpoint_t there{nullptr, block, 0};
    isthmus_event_t* used = nullptr;
    im::detail::check(isthmus_fill(queue_.get(), &there, "x", 1, nbytes, nullptr, &used));
    isthmus_event_release(used);
    from.deallocate(block, nbytes, 0, queue_);
    const im::buffer next = make(nbytes, from, queue_);
    EXPECT_EQ(next.pointer(), block);
    const im::event filled = im::fill_async(next, std::byte{7}, {.queue = other});
    EXPECT_FALSE(filled.wait_for(5ms));
    gate.complete();
    filled.wait();
    EXPECT_TRUE(same(read(next), bytes(nbytes, std::byte{7})));
  }
}

// External work submitted through the exported handle may run before the deferred operation.
TEST_P(buffer_order, an_exported_queue_with_deferred_work_is_waited_for) {
  if (queue_.export_native() == nullptr) GTEST_SKIP() << "its handle is not given away";
  const im::resource from = pool();
  const im::host_event gate;
  void* const memory = drop_busy(from, gate);
  EXPECT_FALSE(serves(from, queue_, memory));
  gate.complete();
  EXPECT_TRUE(eventually([&] { return is_free(memory); }));
}

}  // namespace
