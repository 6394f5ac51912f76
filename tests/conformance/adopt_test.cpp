// SPDX-License-Identifier: Apache-2.0
// Adopting memory that another library allocated, and exporting the library's own.
#include <atomic>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class adoption : public on_backend {
 protected:
  // USM that the library knows only by its registry, which stands for memory that another library
  // allocated.
  void* foreign(im::kind kind, std::size_t nbytes) {
    resource_ = im::resource::provider(queue_.context(), kind);
    return resource_.allocate(nbytes, 0, queue_);
  }
  auto giver_back(std::size_t nbytes, std::atomic<int>& count) {
    return [this, nbytes, &count, from = resource_](void* pointer) noexcept {
      late_.push_back({from, pointer, nbytes});
      ++count;
    };
  }
  // An owner's `release` must not call the library, so the memory is freed here.
  void TearDown() override {
    if (queue_) queue_.wait();
    for (const auto& [from, pointer, nbytes] : late_) from.deallocate(pointer, nbytes, 0, queue_);
    late_.clear();
    resource_ = {};
    on_backend::TearDown();
  }
  static void await(const std::atomic<int>& count) {
    for (int i = 0; i < 5000 && count == 0; ++i) std::this_thread::sleep_for(1ms);
  }

  struct returned {
    im::resource from;
    void* pointer;
    std::size_t nbytes;
  };
  im::resource resource_;
  std::vector<returned> late_;
};
INSTANTIATE_ON_BACKENDS(adoption);

TEST_P(adoption, of_usm_of_every_kind) {
  for (im::kind kind : kinds()) {
    void* memory = foreign(kind, 1000);
    std::atomic<int> released{0};
    {
      const im::buffer buffer =
          im::buffer::adopt(memory, 1000, giver_back(1000, released), {.queue = queue_});
      EXPECT_EQ(buffer.kind(), kind);
      EXPECT_EQ(buffer.pointer(), memory);
      EXPECT_EQ(buffer.size(), 1000u);
      const bytes data = noise(1000);
      write(buffer, data);
      EXPECT_TRUE(same(read(buffer.slice(10, 100)), std::span(data).subspan(10, 100)));
      EXPECT_EQ(released, 0);
    }
    await(released);
    EXPECT_EQ(released, 1);
  }
}

TEST_P(adoption, of_inner_pointers) {
  void* memory = foreign(kinds().front(), 1000);
  std::atomic<int> released{0};
  auto* inner = static_cast<std::byte*>(memory) + 100;
  {
    const im::buffer buffer = im::buffer::adopt(
        inner, 900,
        [give = giver_back(1000, released), memory](void*) mutable noexcept { give(memory); },
        {.queue = queue_});
    write(buffer, noise(900));
  }
  await(released);
  EXPECT_EQ(released, 1);
}

TEST_P(adoption, by_smart_pointers) {
  const im::kind kind = kinds().back();
  std::atomic<int> released{0};
  auto* memory = static_cast<std::byte*>(foreign(kind, 1000));
  const auto deleter = giver_back(1000, released);
  {
    auto unique = std::unique_ptr<std::byte[], decltype(deleter)>(memory, deleter);
    const im::buffer buffer = im::buffer::adopt(std::move(unique), 1000, {.queue = queue_});
    write(buffer, noise(1000));
  }
  await(released);
  EXPECT_EQ(released, 1);
  late_.clear();
  {
    const std::shared_ptr<std::byte[]> shared(memory, deleter);
    im::buffer buffer = im::buffer::adopt(shared, 1000, {.queue = queue_});
    EXPECT_EQ(shared.use_count(), 2);
    buffer = {};
    for (int i = 0; i < 5000 && shared.use_count() > 1; ++i) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(shared.use_count(), 1);
    EXPECT_EQ(released, 1);
  }
  EXPECT_EQ(released, 2);
}

TEST_P(adoption, keeps_the_owner_while_work_is_pending) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  void* memory = foreign(kinds().front(), 1000);
  std::atomic<int> released{0};
  const im::host_event gate;
  im::event done;
  {
    const im::buffer buffer =
        im::buffer::adopt(memory, 1000, giver_back(1000, released), {.queue = queue_});
    done = im::fill_async(buffer, std::byte{1}, {.after = gate});
  }
  EXPECT_EQ(released, 0);
  gate.complete();
  done.wait();
  await(released);
  EXPECT_EQ(released, 1);
}

// The `host` backend treats all memory of the host as kind host.
TEST_P(adoption, of_plain_memory_on_the_host) {
  if (GetParam() != "host") GTEST_SKIP() << "only the host knows it";
  bytes plain = noise(1000);
  const bytes want = plain;
  std::atomic<int> released{0};
  {
    const im::buffer buffer = im::buffer::adopt(
        plain.data(), 1000, [&released](void*) noexcept { ++released; }, {.queue = queue_});
    EXPECT_EQ(buffer.kind(), im::kind::host);
    EXPECT_TRUE(same(read(buffer), want));
  }
  await(released);
  EXPECT_EQ(released, 1);
}

TEST_P(adoption, of_memory_the_context_does_not_know_is_refused) {
  if (GetParam() == "host") GTEST_SKIP() << "which knows all of the host's";
  bytes plain(1000);
  std::atomic<int> released{0};
  const auto owner = [&released](void*) noexcept { ++released; };
  EXPECT_TRUE(throws(im::status::wrong_context, [&] {
    (void)im::buffer::adopt(plain.data(), 1000, owner, {.queue = queue_});
  }));
  EXPECT_EQ(released, 1) << "the owner is released on failure, once";
  const im::buffer other(100, kinds().front(),
                         {.queue = im::queue(im::context({device_}), device_)});
  EXPECT_TRUE(throws(im::status::wrong_context, [&] {
    (void)im::buffer::adopt(other.pointer(), 100, owner, {.queue = queue_});
  }));
  EXPECT_EQ(released, 2);
}

TEST_P(adoption, beyond_the_allocation_is_refused) {
  const im::buffer ours = make(1000, kinds().front());
  auto* first = static_cast<std::byte*>(ours.pointer());
  std::atomic<int> released{0};
  const auto owner = [&released](void*) noexcept { ++released; };
  for (std::size_t nbytes : {std::size_t{1} << 30, SIZE_MAX, std::size_t{1} << 63}) {
    EXPECT_TRUE(throws(im::status::out_of_range, {std::to_string(nbytes)}, [&] {
      (void)im::buffer::adopt(first + 1, nbytes, owner, {.queue = queue_});
    }));
  }
  EXPECT_EQ(released, 3);
}

// The block of a pool may be larger than the buffer that was made in it.
TEST_P(adoption, beyond_the_end_of_a_buffer_in_its_block_is_refused) {
  const auto owner = [](void*) noexcept {};
  for (im::kind kind : kinds()) {
    const im::resource pool = im::resource::pool(queue_.context(), kind, {}, device_);
    for (std::size_t size : {std::size_t{1000}, std::size_t{300'001}}) {
      const im::buffer ours(size, kind, {.queue = queue_, .resource = pool});
      auto* const first = static_cast<std::byte*>(ours.pointer());
      for (std::size_t offset : {size - 1, size, size + 1, size + 10}) {
        EXPECT_TRUE(throws(im::status::out_of_range, {"10 bytes", std::to_string(size)}, [&] {
          (void)im::buffer::adopt(first + offset, 10, owner, {.queue = queue_});
        }));
      }
      EXPECT_EQ(im::buffer::adopt(first + size - 10, 10, owner, {.queue = queue_}).size(), 10u);
    }
  }
}

TEST_P(adoption, with_a_kind_that_is_not_the_memorys_is_refused) {
  if (kinds().size() < 2) GTEST_SKIP();
  const im::buffer ours = make(1000, kinds()[0]);
  EXPECT_THROW((void)im::buffer::adopt(ours.pointer(), 1000, [](void*) noexcept {},
                                       {.queue = queue_, .kind = kinds()[1]}),
               im::error);
}

TEST_P(adoption, read_only_refuses_writes) {
  const im::buffer ours = make(1000, kinds().back());
  const bytes data = noise(1000);
  write(ours, data);
  const std::span<const std::byte> memory(static_cast<std::byte*>(ours.pointer()), 1000);
  const im::buffer view = im::buffer::adopt(memory, ours, {.queue = queue_});
  EXPECT_TRUE(view.info().read_only);
  EXPECT_TRUE(same(read(view), data));
  const auto refuses = [](auto&& act) { return throws(im::status::read_only, act); };
  EXPECT_TRUE(refuses([&] { write(view, data); }));
  EXPECT_TRUE(refuses([&] { im::fill(view.slice(1, 2), std::byte{0}); }));
  EXPECT_TRUE(refuses([&] { im::copy_bytes(view, im::at(ours, 0), 0); }));
  EXPECT_TRUE(refuses([&] { im::copy_2d({view, 10}, {std::span(data), 10}, {5, 5}); }));
  if (view.kind() != im::kind::device) {
    EXPECT_TRUE(refuses([&] { (void)view.host(); }));
    EXPECT_TRUE(same(view.host<const std::byte>().span(), data));
  }
  EXPECT_TRUE(same(read(ours), data));
}

TEST_P(adoption, disown_transfers_the_memory_to_the_caller) {
  for (im::kind kind : kinds()) {
    const im::live_memory before = im::live(kind);
    im::usm_pointer memory;
    const bytes data = noise(1000);
    {
      const im::buffer buffer = make_unpooled(1000, kind);
      (void)im::copy_async(buffer, std::span(data)).wait_for(0ns);
      memory = buffer.disown();
      EXPECT_TRUE(throws(im::status::closed, [&] { (void)buffer.info(); }));
    }
    EXPECT_EQ(im::live(kind).count, before.count + 1);
    queue_.wait();
    auto* pointer = memory.get();
    const im::buffer again =
        im::buffer::adopt(std::move(memory), 1000, {.queue = queue_, .kind = kind});
    EXPECT_EQ(again.pointer(), pointer);
    EXPECT_TRUE(same(read(again), data));
  }
}

TEST_P(adoption, memory_with_views_cannot_be_disowned) {
  const im::buffer buffer = make(1000, kinds().back());
  {
    const im::buffer slice = buffer.slice(0, 10);
    EXPECT_TRUE(throws(im::status::invalid_argument, [&] { (void)buffer.disown(); }));
    EXPECT_TRUE(throws(im::status::invalid_argument, [&] { (void)slice.disown(); }));
  }
  if (buffer.kind() != im::kind::device) {
    const im::host_view<> view = buffer.host();
    EXPECT_TRUE(throws(im::status::invalid_argument, [&] { (void)buffer.disown(); }));
  }
  const im::usm_pointer memory = buffer.disown();
  EXPECT_NE(memory.get(), nullptr);
}

TEST_P(adoption, empty_buffers_have_nothing_to_disown) {
  EXPECT_TRUE(
      throws(im::status::invalid_argument, [&] { (void)make(0, kinds().front()).disown(); }));
}

TEST_P(adoption, of_what_the_library_has_already_keeps_one_order) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  for (im::kind kind : kinds()) {
    const im::buffer whole = make(4096, kind);
    const im::queue other(device_);
    auto* inner = static_cast<std::byte*>(whole.pointer()) + 1000;
    const im::buffer part = im::buffer::adopt(inner, 1000, [](void*) noexcept {}, {.queue = other});
    const im::host_event gate;
    const im::event filled = im::fill_async(part, std::byte{9}, {.after = gate});
    EXPECT_EQ(isthmus_buffer_wait(whole.get(), 0), ISTHMUS_ERROR_TIMEOUT) << name(kind);
    EXPECT_EQ(isthmus_buffer_wait(whole.slice(0, 1000).get(), 0), ISTHMUS_OK) << name(kind);
    bytes got(4096);
    const im::event read_back = im::copy_async(std::span(got), whole);
    EXPECT_FALSE(read_back.done());
    gate.complete();
    read_back.wait();
    EXPECT_TRUE(same(std::span(got).subspan(1000, 1000), bytes(1000, std::byte{9})));
    EXPECT_EQ(im::query(inner, queue_.context()).base, whole.pointer());
  }
}

TEST_P(adoption, of_what_the_library_has_already_outlives_its_free) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP();
  for (im::kind kind : kinds()) {
    const im::live_memory before = im::live(kind);
    const im::buffer whole = make_unpooled(4096, kind);
    std::atomic<int> released{0};
    const im::host_event gate;
    {
      const im::buffer part = im::buffer::adopt(
          whole.pointer(), 100, [&](void*) noexcept { ++released; }, {.queue = queue_});
      (void)im::fill_async(part, std::byte{1}, {.after = gate});
    }
    whole.free();
    EXPECT_EQ(im::live(kind).count, before.count + 1) << "given back under a fill";
    EXPECT_EQ(released, 0);
    gate.complete();
    queue_.wait();
    await(released);
    EXPECT_EQ(released, 1);
  }
}

}  // namespace
