// SPDX-License-Identifier: Apache-2.0
// What a query of a pointer returns: device and context of the memory, the resource it came from,
// and its state, up to and after the free.
#include <cstddef>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;
using state = im::memory_state;

constexpr std::size_t k_block = 1000;
constexpr std::size_t k_run = 300'001;

class pointers : public on_backend {
 protected:
  im::resource pool(im::kind kind) const {
    return im::resource::pool(queue_.context(), kind, {}, device_);
  }
  im::buffer buffer(std::size_t nbytes, im::kind kind, const im::resource& from) const {
    return im::buffer(nbytes, kind, {.queue = queue_, .resource = from});
  }
  void expect_live(const im::pointer_info& known, const void* base, const im::resource& from) {
    EXPECT_EQ(known.state, state::live);
    EXPECT_EQ(known.base, base);
    EXPECT_EQ(known.context, queue_.context());
    EXPECT_EQ(known.resource, from);
  }
};
INSTANTIATE_ON_BACKENDS(pointers);

// The expected state of a pool's memory that was freed while work on one queue waited for the host.
// Device memory is free immediately, unless the queue defers that work.
state let_go_of(std::string_view backend, im::kind kind) {
  return kind == im::kind::device && !support::defers_host_waits(backend) ? state::free
                                                                          : state::waiting;
}

void expect_nothing(const im::pointer_info& known, state want) {
  EXPECT_EQ(known.state, want);
  EXPECT_EQ(known.kind, im::kind::unknown);
  EXPECT_EQ(known.base, nullptr);
  EXPECT_EQ(known.nbytes, 0u);
  EXPECT_FALSE(known.device);
  EXPECT_FALSE(known.context);
  EXPECT_FALSE(known.resource);
}

TEST_P(pointers, into_bare_blocks_of_a_pool) {
  const im::context other({device_});
  for (im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    for (std::size_t nbytes : {k_block, k_run}) {
      auto* const block = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
      for (const std::byte* inner : {block, block + 1, block + nbytes - 1}) {
        expect_live(im::query(inner), block, from);
        expect_live(im::query(inner, queue_.context()), block, from);
        expect_nothing(im::query(inner, other), state::unknown);
      }
      from.deallocate(block, nbytes, 0, queue_);
      expect_nothing(im::query(block + 1), state::free);
      expect_nothing(im::query(block + 1, queue_.context()), state::free);
      expect_nothing(im::query(block + 1, other), state::unknown);
    }
  }
}

TEST_P(pointers, into_buffers) {
  for (im::kind kind : kinds()) {
    const im::resource none;
    const im::resource bottom = pool(kind);
    const im::resource counted = im::resource::statistics(bottom);
    const im::resource by_default = im::default_pool(kind, queue_, im::pool_use::buffers);
    for (const im::resource& from : {none, bottom, counted}) {
      for (std::size_t nbytes : {k_block, k_run}) {
        const im::buffer made = buffer(nbytes, kind, from);
        auto* const base = static_cast<std::byte*>(made.pointer());
        for (std::size_t offset : {std::size_t{0}, std::size_t{1}, nbytes - 1}) {
          const im::pointer_info known = im::query(base + offset);
          expect_live(known, base, from ? from : by_default);
          EXPECT_EQ(known.nbytes, nbytes);
          EXPECT_EQ(known.device, device_);
        }
      }
    }
  }
}

TEST_P(pointers, past_a_buffers_end_in_its_block) {
  for (im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    for (std::size_t nbytes : {k_block, k_run}) {
      im::buffer made = buffer(nbytes, kind, from);
      const auto* const behind = static_cast<std::byte*>(made.pointer()) + nbytes + 10;
      const im::pointer_info known = im::query(behind);
      expect_live(known, made.pointer(), from);
      EXPECT_EQ(known.nbytes, nbytes);
      if (!can(im::capability::wait_for_host)) continue;
      const im::host_event gate;
      (void)im::fill_async(made, std::byte{1}, {.after = gate});
      made = {};
      expect_nothing(im::query(behind), let_go_of(GetParam(), kind));
      EXPECT_TRUE(throws(im::status::wrong_context, [&] {
        (void)im::buffer::adopt(const_cast<std::byte*>(behind), 1, [](void*) noexcept {},
                                {.queue = queue_});
      }));
      gate.complete();
      queue_.wait();
    }
  }
}

TEST_P(pointers, into_freed_buffers) {
  for (im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    for (std::size_t nbytes : {k_block, k_run}) {
      im::buffer made = buffer(nbytes, kind, from);
      const auto* const inner = static_cast<std::byte*>(made.pointer()) + 1;
      if (!can(im::capability::wait_for_host)) {
        made = {};
      } else {
        const im::host_event gate;
        (void)im::fill_async(made, std::byte{1}, {.after = gate});
        made = {};
        expect_nothing(im::query(inner), let_go_of(GetParam(), kind));
        gate.complete();
        queue_.wait();
      }
      EXPECT_TRUE(eventually([&] { return im::query(inner).state == state::free; }));
      expect_nothing(im::query(inner), state::free);
    }
  }
}

TEST_P(pointers, into_a_providers_memory) {
  for (im::kind kind : kinds()) {
    const im::resource from = im::resource::provider(queue_.context(), kind, device_);
    auto* const memory = static_cast<std::byte*>(from.allocate(k_block, 0, queue_));
    expect_live(im::query(memory + 10), memory, from);
    {
      const im::buffer part =
          im::buffer::adopt(memory + 100, 100, [](void*) noexcept {}, {.queue = queue_});
      expect_live(im::query(memory + 110), memory, from);
    }
    from.deallocate(memory, k_block, 0, queue_);
    EXPECT_TRUE(eventually([&] { return im::query(memory).state == state::unknown; }));
  }
}

// The `host` backend accepts any host memory, other backends only memory that their driver knows.
TEST_P(pointers, into_adopted_memory) {
  if (GetParam() != "host") GTEST_SKIP() << "which takes what no driver has given";
  std::byte plain[k_block];
  {
    const im::buffer adopted =
        im::buffer::adopt(plain, k_block, [](void*) noexcept {}, {.queue = queue_});
    const im::pointer_info known = im::query(plain + 10);
    expect_live(known, plain, {});
    EXPECT_EQ(known.nbytes, k_block);
    EXPECT_EQ(known.kind, im::kind::host);
  }
  queue_.wait();
  EXPECT_TRUE(eventually([&] { return im::query(plain).state == state::unknown; }));
}

TEST_P(pointers, into_plain_memory_and_none) {
  const int local = 0;
  expect_nothing(im::query(&local), state::unknown);
  expect_nothing(im::query(nullptr), state::unknown);
  expect_nothing(im::query(nullptr, queue_.context()), state::unknown);
  const im::pointer_info known = im::query(&local, queue_.context());
  EXPECT_EQ(known.state, state::unknown);
  EXPECT_FALSE(known.resource);
  EXPECT_EQ(known.kind, GetParam() == "host" ? im::kind::host : im::kind::unknown);
}

TEST_P(pointers, return_objects_that_outlive_them) {
  const im::kind kind = kinds().front();
  im::resource from = pool(kind);
  im::buffer made = buffer(k_block, kind, from);
  const im::pointer_info known = im::query(made.pointer());
  const void* const same = from.get();
  from = {};
  made = {};
  EXPECT_EQ(known.resource.get(), same);
  void* const block = known.resource.allocate(k_block, 0, queue_);
  EXPECT_EQ(im::query(block).resource, known.resource);
  known.resource.deallocate(block, k_block, 0, queue_);
}

TEST_P(pointers, are_borrowed_or_referenced_by_the_c_interface) {
  const im::resource from = pool(kinds().front());
  const im::buffer made = buffer(k_block, kinds().front(), from);
  void* const block = from.allocate(k_block, 0, queue_);
  for (const void* pointer : {block, made.pointer()}) {
    isthmus_pointer_info_t info{};
    info.struct_size = sizeof info;
    ASSERT_EQ(isthmus_pointer_info(nullptr, pointer, &info), ISTHMUS_OK);
    EXPECT_EQ(info.resource, from.get());
    EXPECT_EQ(isthmus_context_key(info.context), isthmus_context_key(queue_.context().get()));
    EXPECT_EQ(info.state, ISTHMUS_MEMORY_LIVE);
    isthmus_context_t* home = nullptr;
    isthmus_resource_t* owner = nullptr;
    ASSERT_EQ(isthmus_pointer_origin(pointer, &home, &owner), ISTHMUS_OK);
    EXPECT_EQ(home, info.context);
    EXPECT_EQ(owner, from.get());
    isthmus_context_release(home);
    isthmus_resource_release(owner);
    EXPECT_EQ(isthmus_pointer_origin(pointer, nullptr, nullptr), ISTHMUS_OK);
  }
  from.deallocate(block, k_block, 0, queue_);
}

TEST_P(pointers, are_reported_to_callers_of_an_older_interface) {
  const im::resource from = pool(kinds().front());
  const im::buffer made = buffer(k_block, kinds().front(), from);
  void* const block = from.allocate(k_block, 0, queue_);
  for (const void* pointer : {block, made.pointer()}) {
    isthmus_pointer_info_t old{};
    old.struct_size = offsetof(isthmus_pointer_info_t, context);
    old.queue_key = 7;
    old.state = 7;
    ASSERT_EQ(isthmus_pointer_info(nullptr, pointer, &old), ISTHMUS_OK);
    EXPECT_EQ(old.queue_key, 0u);
    EXPECT_EQ(old.context, nullptr);
    EXPECT_EQ(old.resource, nullptr);
    EXPECT_EQ(old.state, 7);
  }
  from.deallocate(block, k_block, 0, queue_);
}

}  // namespace
