// SPDX-License-Identifier: Apache-2.0
// Allocation of every kind that a device supports.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr std::size_t k_sizes[] = {0, 1, 100, 4096, (1u << 20) + 3};
constexpr std::size_t k_alignments[] = {0, 1, 2, 64, 4096, 65536};

class allocation : public on_backend {
 protected:
  // PoCL's coarse-grained memory supports alignments below 64 KiB only.
  std::vector<std::size_t> alignments() const {
    std::vector<std::size_t> result;
    for (std::size_t one : k_alignments) {
      if (one <= device_.info().max_alignment) result.push_back(one);
    }
    return result;
  }
  void expect_aligned(const im::buffer& made, std::size_t asked) const {
    const auto address = reinterpret_cast<std::uintptr_t>(made.pointer());
    if (asked != 0) {
      EXPECT_EQ(address % asked, 0u);
      EXPECT_EQ(made.info().alignment, asked);
    } else {
      EXPECT_EQ(address % device_.info().base_alignment, 0u);
      EXPECT_EQ(made.info().alignment, device_.info().base_alignment);
    }
  }
};
INSTANTIATE_ON_BACKENDS(allocation);

TEST_P(allocation, of_every_size_and_alignment) {
  for (im::kind kind : kinds()) {
    for (std::size_t nbytes : k_sizes) {
      for (std::size_t alignment : alignments()) {
        const im::buffer made = make(nbytes, kind, alignment);
        const im::buffer_info told = made.info();
        EXPECT_EQ(told.nbytes, nbytes);
        EXPECT_EQ(told.kind, kind);
        EXPECT_EQ(told.pointer == nullptr, nbytes == 0);
        EXPECT_FALSE(told.read_only || told.is_slice);
        EXPECT_EQ(made.queue(), queue_);
        expect_aligned(made, alignment);
      }
    }
  }
}

TEST_P(allocation, holds_what_is_written) {
  for (im::kind kind : kinds()) {
    for (std::size_t nbytes : k_sizes) {
      const im::buffer made = make(nbytes, kind);
      const bytes data = noise(nbytes);
      write(made, data);
      EXPECT_TRUE(same(read(made), data)) << name(kind) << ' ' << nbytes;
    }
  }
}

TEST_P(allocation, is_counted) {
  for (im::kind kind : kinds()) {
    const im::live_memory before = im::live(kind);
    const im::live_memory all_before = im::live();
    const im::buffer made = make_unpooled(1000, kind);
    EXPECT_EQ(im::live(kind).count, before.count + 1);
    EXPECT_GE(im::live(kind).bytes, before.bytes + 1000);
    EXPECT_EQ(im::live().count, all_before.count + 1);
  }
}

TEST_P(allocation, does_not_overlap_what_lives) {
  for (im::kind kind : kinds()) {
    std::vector<im::buffer> many;
    for (unsigned i = 0; i < 32; ++i) {
      many.push_back(make(100 + i, kind));
      write(many.back(), noise(100 + i, i));
    }
    for (unsigned i = 0; i < 32; ++i) EXPECT_TRUE(same(read(many[i]), noise(100 + i, i)));
  }
}

TEST_P(allocation, of_a_kind_that_is_not_offered_is_refused) {
  for (im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
    if (device_.offers(kind)) continue;
    EXPECT_TRUE(
        throws(im::status::unsupported, {std::string(name(kind))}, [&] { (void)make(10, kind); }));
  }
}

TEST_P(allocation, bad_alignments_are_refused_with_the_value) {
  for (im::kind kind : kinds()) {
    for (std::size_t alignment : {std::size_t{3}, std::size_t{24}, std::size_t{100}, SIZE_MAX}) {
      EXPECT_TRUE(throws(im::status::invalid_argument, {std::to_string(alignment)},
                         [&] { (void)make(10, kind, alignment); }));
    }
  }
}

TEST_P(allocation, alignments_beyond_the_device_are_refused_with_the_limit) {
  const std::size_t most = device_.info().max_alignment;
  if (most >= std::size_t{1} << 62) GTEST_SKIP();
  const std::size_t more = most * 2;
  EXPECT_TRUE(throws(im::status::invalid_argument, {std::to_string(more), std::to_string(most)},
                     [&] { (void)make(10, kinds().front(), more); }));
}

TEST_P(allocation, huge_sizes_are_refused_with_the_value) {
  for (im::kind kind : kinds()) {
    for (std::size_t nbytes : {std::size_t{1} << 62, std::size_t{1} << 63, SIZE_MAX, SIZE_MAX - 63,
                               static_cast<std::size_t>(device_.info().max_allocation_bytes) + 1}) {
      EXPECT_TRUE(throws(im::status::out_of_memory, {std::to_string(nbytes)}, [&] {
        (void)make(nbytes, kind);
      })) << name(kind);
      EXPECT_TRUE(throws(im::status::out_of_memory, {std::to_string(nbytes)}, [&] {
        (void)make(nbytes, kind, 4096);
      })) << name(kind);
    }
  }
}

TEST_P(allocation, kinds_that_do_not_exist_are_refused) {
  for (isthmus_kind_t kind : {ISTHMUS_KIND_UNKNOWN + 0, -1, 4, 1000}) {
    isthmus_buffer_t* made = nullptr;
    EXPECT_TRUE(refused(isthmus_buffer_create(10, kind, 0, queue_.get(), nullptr, &made),
                        ISTHMUS_ERROR_INVALID_ARGUMENT));
    EXPECT_EQ(made, nullptr);
  }
}

TEST_P(allocation, on_the_default_queue) {
  const im::queue usual = im::queue::of(device_);
  const im::buffer made(100, kinds().front(), {.queue = usual});
  EXPECT_EQ(made.queue(), usual);
  const bytes data = noise(100);
  write(made, data);
  EXPECT_TRUE(same(read(made), data));
}

TEST_P(allocation, pointers_are_known) {
  for (im::kind kind : kinds()) {
    const im::buffer made = make(1000, kind);
    auto* first = static_cast<std::byte*>(made.pointer());
    for (std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{999}}) {
      for (const im::context& asked : {queue_.context(), im::context()}) {
        const im::pointer_info told = im::query(first + offset, asked);
        EXPECT_EQ(told.kind, kind);
        EXPECT_EQ(told.base, first);
        EXPECT_GE(told.nbytes, 1000u);
        EXPECT_TRUE(!told.device || told.device == device_);
      }
    }
  }
}

TEST_P(allocation, external_pointers_are_unknown) {
  int local = 0;
  const im::kind plain = GetParam() == "host" ? im::kind::host : im::kind::unknown;
  EXPECT_EQ(im::query(&local, queue_.context()).kind, plain);
  EXPECT_EQ(im::query(nullptr, queue_.context()).kind, im::kind::unknown);
  const im::context other({device_});
  const im::buffer made = make(1000, kinds().front());
  EXPECT_EQ(im::query(made.pointer(), other).kind, im::kind::unknown);
}

TEST_P(allocation, a_freed_pointer_is_forgotten) {
  for (im::kind kind : kinds()) {
    im::buffer made = make(1000, kind);
    void* pointer = made.pointer();
    made = {};
    queue_.wait();
    for (int i = 0; i < 10'000 && im::query(pointer).kind != im::kind::unknown; ++i) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(im::query(pointer).kind, im::kind::unknown);
  }
}

}  // namespace
