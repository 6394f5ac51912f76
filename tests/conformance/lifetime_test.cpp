// SPDX-License-Identifier: Apache-2.0
// Frees while operations are in flight, slices, exports and recorded uses: what keeps memory alive,
// and until when.
#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

class lifetime : public on_backend {};
INSTANTIATE_ON_BACKENDS(lifetime);

TEST_P(lifetime, a_pending_copy_owns_both_sides) {
  for (im::kind kind : kinds()) {
    const bytes data = noise(8 << 20);
    bytes got(data.size());
    im::event back;
    {
      const im::buffer a = make(data.size(), kind);
      const im::buffer b = make(data.size(), kind);
      (void)im::copy_async(a, std::span(data));
      (void)im::copy_async(b, a);
      back = im::copy_async(std::span(got), b);
    }
    back.wait();
    EXPECT_TRUE(same(got, data)) << name(kind);
  }
}

TEST_P(lifetime, free_does_not_wait_for_pending_work) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  for (im::kind kind : kinds()) {
    const im::host_event gate;
    const im::buffer buffer = make_unpooled(1 << 20, kind);
    bytes got(1 << 20);
    const im::event filled = im::fill_async(buffer, std::byte{9}, {.after = gate});
    const im::event out = im::copy_async(std::span(got), buffer);
    const im::live_memory before = im::live(kind);
    buffer.free();  // must not block
    EXPECT_EQ(im::live(kind).count, before.count) << "given back while in use";
    EXPECT_FALSE(out.done());
    gate.complete();
    out.wait();
    EXPECT_TRUE(same(got, bytes(1 << 20, std::byte{9})));
  }
}

TEST_P(lifetime, a_buffer_is_waited_for_on_every_queue) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  for (im::kind kind : kinds()) {
    const im::queue other(device_);
    const im::buffer buffer = make(4096, kind);
    const im::buffer there = buffer.on_queue(other);
    EXPECT_EQ(isthmus_buffer_wait(buffer.get(), 0), ISTHMUS_OK);
    const im::host_event gate;
    const im::event filled = im::fill_async(there, std::byte{9}, {.after = gate});
    EXPECT_EQ(isthmus_buffer_wait(buffer.get(), 0), ISTHMUS_ERROR_TIMEOUT);
    EXPECT_EQ(isthmus_buffer_wait(buffer.get(), 1'000'000), ISTHMUS_ERROR_TIMEOUT);
    gate.fail("as asked");
    buffer.wait();
    EXPECT_TRUE(filled.done());
    EXPECT_THROW(filled.wait(), im::dependency_failed);
    EXPECT_EQ(isthmus_buffer_pointer(there.get()), buffer.pointer());
    there.free();
    EXPECT_EQ(isthmus_buffer_pointer(there.get()), nullptr);
    EXPECT_EQ(isthmus_buffer_wait(there.get(), 0), ISTHMUS_ERROR_CLOSED);
  }
}

TEST_P(lifetime, a_wait_for_writers_does_not_wait_for_readers) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(4096, kind), into = make(4096, kind);
    const im::host_event gate;
    const im::event read = im::copy_async(into, buffer, {.after = gate});
    EXPECT_EQ(isthmus_buffer_wait(buffer.get(), 0), ISTHMUS_ERROR_TIMEOUT);
    EXPECT_EQ(isthmus_buffer_wait_for_writers(buffer.get(), 0), ISTHMUS_OK);
    EXPECT_EQ(isthmus_buffer_wait_for_writers(into.get(), 0), ISTHMUS_ERROR_TIMEOUT);
    gate.complete();
    EXPECT_EQ(isthmus_buffer_wait_for_writers(into.get(), -1), ISTHMUS_OK);
    EXPECT_TRUE(read.done());
  }
}

TEST_P(lifetime, a_queue_may_be_destroyed_before_its_work_has_ended) {
  for (im::kind kind : kinds()) {
    bytes got(1 << 20);
    im::event out;
    {
      const im::queue brief(device_);
      const im::buffer buffer(1 << 20, kind, {.queue = brief});
      (void)im::fill_async(buffer, std::byte{5});
      out = im::copy_async(std::span(got), buffer);
    }
    out.wait();
    EXPECT_TRUE(same(got, bytes(1 << 20, std::byte{5})));
  }
}

TEST_P(lifetime, a_freed_buffer_is_dead_in_every_way) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(100, kind);
    const im::buffer slice = buffer.slice(10, 50);
    const im::buffer view = buffer.on_queue(im::queue(device_));
    const im::buffer other = make(100, kind);
    bytes host(100);
    buffer.free();
    buffer.free();
    for (const im::buffer& dead : {buffer, slice, view}) {
      EXPECT_TRUE(throws(im::status::closed, [&] { (void)dead.info(); }));
      EXPECT_TRUE(throws(im::status::closed, [&] { (void)dead.slice(0, 1); }));
      EXPECT_TRUE(throws(im::status::closed, [&] { (void)dead.on_queue(queue_); }));
      EXPECT_TRUE(throws(im::status::closed, [&] { dead.record(queue_); }));
      EXPECT_TRUE(throws(im::status::closed, [&] { (void)dead.disown(); }));
      const isthmus_endpoint_t gone{dead.get(), nullptr, 0};
      const isthmus_endpoint_t here{nullptr, host.data(), 0};
      const auto closed = ISTHMUS_ERROR_CLOSED;
      EXPECT_TRUE(refused(isthmus_copy(nullptr, &gone, &here, 1, nullptr, nullptr), closed));
      EXPECT_TRUE(refused(isthmus_copy(nullptr, &here, &gone, 1, nullptr, nullptr), closed));
      EXPECT_TRUE(refused(isthmus_fill(nullptr, &gone, "x", 1, 1, nullptr, nullptr), closed));
      void* pointer = nullptr;
      EXPECT_TRUE(refused(isthmus_buffer_export(dead.get(), &pointer), closed));
    }
    write(other, noise(100));  // other blocks are unaffected
  }
}

TEST_P(lifetime, a_slice_is_freed_alone) {
  const im::buffer buffer = make(100, kinds().front());
  const bytes data = noise(100);
  write(buffer, data);
  const im::buffer slice = buffer.slice(10, 50);
  slice.free();
  EXPECT_TRUE(throws(im::status::closed, [&] { (void)slice.info(); }));
  EXPECT_TRUE(same(read(buffer), data));
}

TEST_P(lifetime, slices_are_windows) {
  for (im::kind kind : kinds()) {
    im::buffer buffer = make(1000, kind);
    const bytes data = noise(1000);
    write(buffer, data);
    const im::live_memory before = im::live();
    const im::buffer slice = buffer.slice(100, 500);
    const im::buffer inner = slice.slice(50, 100);
    EXPECT_EQ(im::live().count, before.count) << "a slice allocates nothing";
    EXPECT_EQ(inner.pointer(), static_cast<std::byte*>(buffer.pointer()) + 150);
    EXPECT_TRUE(inner.info().is_slice);
    EXPECT_EQ(inner.queue(), queue_);
    EXPECT_EQ(inner.kind(), kind);
    EXPECT_TRUE(same(read(inner), std::span(data).subspan(150, 100)));
    im::fill(inner, std::byte{0});
    bytes want = data;
    std::fill_n(want.begin() + 150, 100, std::byte{0});
    EXPECT_TRUE(same(read(buffer), want));
    EXPECT_EQ(buffer.slice(1000, 0).size(), 0u);
    buffer = {};
    EXPECT_TRUE(same(read(inner), bytes(100)));  // a slice keeps its base alive
  }
}

TEST_P(lifetime, slices_past_the_end_are_refused) {
  const im::buffer buffer = make(1000, kinds().front());
  const im::buffer inner = buffer.slice(100, 500);
  using range = std::pair<std::size_t, std::size_t>;
  for (const auto& [offset, nbytes] :
       {range{0, 1001}, range{1001, 0}, range{1000, 1}, range{SIZE_MAX, 2}, range{2, SIZE_MAX},
        range{std::size_t{1} << 63, std::size_t{1} << 63}, range{0, std::size_t{1} << 62}}) {
    EXPECT_TRUE(throws(im::status::out_of_range,
                       {std::to_string(offset), std::to_string(nbytes), "1000"},
                       [&, o = offset, n = nbytes] { (void)buffer.slice(o, n); }));
  }
  EXPECT_TRUE(throws(im::status::out_of_range, {"500"}, [&] { (void)inner.slice(0, 501); }));
}

TEST_P(lifetime, an_export_outlives_free) {
  for (im::kind kind : kinds()) {
    im::buffer buffer = make_unpooled(1000, kind);
    const bytes data = noise(1000);
    write(buffer, data);
    if (kind == im::kind::device) {
      EXPECT_TRUE(throws(im::status::unsupported, [&] { (void)buffer.host(); }));
      continue;
    }
    const im::live_memory before = im::live();
    im::host_view<> view = buffer.host();
    EXPECT_EQ(buffer.info().exports, 1u);
    EXPECT_TRUE(same(view.span(), data));
    buffer.free();
    EXPECT_TRUE(throws(im::status::closed, [&] { (void)buffer.host(); }));
    buffer = {};
    EXPECT_EQ(im::live().count, before.count);
    EXPECT_TRUE(same(view.span(), data));
    view[999] = std::byte{1};
  }
}

TEST_P(lifetime, an_export_waits_for_what_is_pending) {
  for (im::kind kind : kinds()) {
    if (kind == im::kind::device) continue;
    const im::buffer buffer = make(4 << 20, kind);
    for (unsigned i = 1; i <= 5; ++i) {
      (void)im::fill_async(buffer, static_cast<std::uint8_t>(i));
      const im::host_view<const std::byte> view = buffer.host<const std::byte>();
      EXPECT_TRUE(same(view.span(), bytes(4 << 20, static_cast<std::byte>(i))));
    }
    const im::buffer part = buffer.slice(8, 80);
    for (double& value : part.host<double>()) value = 1.5;
    EXPECT_EQ(part.host<const double>()[9], 1.5);
    EXPECT_THROW((void)buffer.slice(1, 8).host<double>(), im::invalid_argument);
    EXPECT_EQ(buffer.info().exports, 0u);
  }
}

TEST_P(lifetime, an_export_to_a_queue_is_of_any_kind_and_outlives_free) {
  for (im::kind kind : kinds()) {
    im::buffer buffer = make_unpooled(1000, kind);
    const im::live_memory before = im::live();
    void* pointer = nullptr;
    ASSERT_EQ(isthmus_buffer_export_to_queue(buffer.get(), queue_.get(), &pointer), ISTHMUS_OK);
    EXPECT_EQ(pointer, buffer.pointer());
    EXPECT_EQ(buffer.info().exports, 1u);
    buffer.free();
    EXPECT_EQ(im::live().count, before.count);
    EXPECT_TRUE(refused(isthmus_buffer_export_to_queue(buffer.get(), queue_.get(), &pointer),
                        ISTHMUS_ERROR_CLOSED));
    isthmus_buffer_unexport(buffer.get());
    EXPECT_TRUE(eventually([&] { return im::live().count == before.count - 1; }));
  }
}

// The pool keeps the memory of the driver, so a query of the pointer shows whether the block is
// free.
TEST_P(lifetime, an_export_of_a_pools_block_outlives_free_and_then_returns_it) {
  for (im::kind kind : kinds()) {
    for (const std::size_t nbytes : {std::size_t{1000}, 3 * k_mib}) {
      im::buffer buffer = make(nbytes, kind);
      void* pointer = nullptr;
      ASSERT_EQ(isthmus_buffer_export_to_queue(buffer.get(), queue_.get(), &pointer), ISTHMUS_OK);
      EXPECT_EQ(pointer, buffer.pointer());
      buffer.free();
      EXPECT_EQ(im::query(pointer).state, im::memory_state::live);
      isthmus_buffer_unexport(buffer.get());
      EXPECT_TRUE(eventually([&] { return im::query(pointer).state == im::memory_state::free; }))
          << name(kind) << ' ' << nbytes;
    }
  }
}

TEST_P(lifetime, an_export_to_a_queue_orders_it_after_pending_work) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(4 << 20, kind);
    const im::queue other{queue_.context(), device_};
    const im::buffer view = buffer.on_queue(other);
    for (int round = 0; round < 10; ++round) {
      const im::event filled = im::fill_async(buffer, static_cast<std::uint8_t>(round));
      void* pointer = nullptr;
      ASSERT_EQ(isthmus_buffer_export_to_queue(view.get(), other.get(), &pointer), ISTHMUS_OK);
      other.fence().wait();
      EXPECT_TRUE(filled.done());
      isthmus_buffer_unexport(view.get());
    }
  }
}

TEST_P(lifetime, recorded_work_holds_the_memory) {
  for (im::kind kind : kinds()) {
    im::buffer buffer = make_unpooled(1000, kind);
    const im::host_event work;
    buffer.record(work);
    const im::live_memory before = im::live(kind);
    buffer = {};
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(im::live(kind).count, before.count);
    work.complete();
    for (int i = 0; i < 5000 && im::live(kind).count == before.count; ++i) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(im::live(kind).count, before.count - 1);
  }
}

TEST_P(lifetime, recorded_queues_are_waited_for) {
  const im::queue other(device_);
  im::buffer buffer = make(1000, kinds().front());
  const im::buffer busy(1 << 20, kinds().front(), {.queue = other});
  const im::event work = im::fill_async(busy, std::byte{1});
  buffer.record(other);
  im::fill(buffer, std::byte{2});
  EXPECT_TRUE(work.done()) << "an operation went before the recorded work";
}

TEST_P(lifetime, a_view_on_another_queue_is_the_same_memory) {
  const im::queue other(device_);
  const im::buffer buffer = make(1000, kinds().front());
  const im::buffer view = buffer.on_queue(other);
  EXPECT_EQ(view.queue(), other);
  EXPECT_EQ(view.pointer(), buffer.pointer());
  const bytes data = noise(1000);
  write(view, data);
  EXPECT_TRUE(same(read(buffer), data));
}

TEST_P(lifetime, a_closed_queue_refuses_and_finishes) {
  const im::queue brief(device_);
  const im::buffer buffer(1 << 20, kinds().front(), {.queue = brief});
  const im::event last = im::fill_async(buffer, std::byte{7});
  brief.close();
  EXPECT_TRUE(throws(im::status::closed, [&] { im::fill(buffer, std::byte{1}); }));
  EXPECT_TRUE(throws(im::status::closed, [&] { (void)brief.fence(); }));
  EXPECT_TRUE(throws(im::status::closed, [&] { (void)brief.submit([] {}); }));
  EXPECT_TRUE(
      throws(im::status::closed, [&] { im::buffer(10, kinds().front(), {.queue = brief}); }));
  last.wait();
  bytes got(1 << 20);
  im::copy(std::span(got), buffer, {.queue = queue_});
  EXPECT_TRUE(same(got, bytes(1 << 20, std::byte{7})));
  EXPECT_THROW(im::queue::of(device_).close(), im::error);
}

}  // namespace
