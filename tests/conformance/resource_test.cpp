// SPDX-License-Identifier: Apache-2.0
// Memory resources, and std::pmr containers in memory that a device can access.
#include <numeric>

#include <isthmus/host_resource.hpp>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class resources : public on_backend {};
INSTANTIATE_ON_BACKENDS(resources);

TEST_P(resources, allocate_and_deallocate) {
  for (im::kind kind : kinds()) {
    const im::resource from = im::resource::provider(queue_.context(), kind, device_);
    for (std::size_t alignment : {std::size_t{0}, std::size_t{1}, std::size_t{64}}) {
      void* memory = from.allocate(1000, alignment, queue_);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(im::query(memory).kind, kind);
      from.deallocate(memory, 1000, alignment, queue_);
    }
    EXPECT_EQ(from.allocate(0, 0, queue_), nullptr);
    from.deallocate(nullptr, 0, 0, queue_);
  }
}

TEST_P(resources, refuse_what_they_cannot) {
  const im::resource from = im::resource::provider(queue_.context(), kinds().front());
  EXPECT_TRUE(
      throws(im::status::invalid_argument, {"24"}, [&] { (void)from.allocate(10, 24, queue_); }));
  for (std::size_t nbytes : {std::size_t{1} << 62, std::size_t{1} << 63, SIZE_MAX}) {
    EXPECT_TRUE(throws(im::status::out_of_memory, {std::to_string(nbytes)},
                       [&] { (void)from.allocate(nbytes, 0, queue_); }));
  }
}

TEST_P(resources, feed_buffers) {
  for (im::kind kind : kinds()) {
    im::buffer buffer;
    {
      const im::resource from = im::resource::provider(queue_.context(), kind);
      buffer = im::buffer(1000, kind, {.queue = queue_, .alignment = 64, .resource = from});
    }
    const bytes data = noise(1000);
    write(buffer, data);
    EXPECT_TRUE(same(read(buffer), data));
  }
}

TEST_P(resources, of_another_kind_than_the_buffer_are_refused) {
  if (kinds().size() < 2) GTEST_SKIP();
  const im::resource from = im::resource::provider(queue_.context(), kinds()[0]);
  EXPECT_THROW(im::buffer(10, kinds()[1], {.queue = queue_, .resource = from}), im::error);
}

TEST_P(resources, hold_standard_containers) {
  for (im::kind kind : kinds()) {
    const im::resource from = im::resource::provider(queue_.context(), kind);
    if (kind == im::kind::device) {
      EXPECT_TRUE(throws(im::status::unsupported, [&] { im::host_resource(from, queue_); }));
      continue;
    }
    im::host_resource memory(from, queue_);
    std::pmr::vector<std::uint64_t> values(1000, &memory);
    std::iota(values.begin(), values.end(), 0u);
    for (int i = 0; i < 3000; ++i) values.push_back(7);
    EXPECT_EQ(im::query(values.data()).kind, kind);
    EXPECT_EQ(values[999], 999u);
    std::pmr::vector<std::pmr::string> nested(&memory);
    nested.emplace_back(100, 'x');
    EXPECT_EQ(nested[0].get_allocator().resource(), &memory);
    EXPECT_THROW((void)memory.allocate(std::size_t{1} << 62), std::bad_alloc);
    const im::host_resource equal(from, queue_);
    EXPECT_TRUE(memory.is_equal(equal));
    EXPECT_FALSE(memory.is_equal(*std::pmr::new_delete_resource()));
  }
}

}  // namespace
