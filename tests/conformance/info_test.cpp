// SPDX-License-Identifier: Apache-2.0
// Properties of platforms, devices and contexts.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class info : public on_backend {};
INSTANTIATE_ON_BACKENDS(info);

TEST_P(info, device_is_sane) {
  const im::device_info told = device_.info();
  EXPECT_FALSE(told.backend.empty());
  EXPECT_FALSE(told.name.empty());
  EXPECT_FALSE(told.filter.empty());
  EXPECT_TRUE(told.filter.starts_with(told.backend)) << told.filter;
  EXPECT_GE(told.compute_units, 1u);
  EXPECT_GE(told.copy_engines, 1u);
  EXPECT_GE(told.memory_bytes, 1u << 20);
  EXPECT_GE(told.memory_bytes, told.max_allocation_bytes);
  EXPECT_GT(told.max_allocation_bytes, 0u);
  EXPECT_TRUE(std::has_single_bit(told.base_alignment));
  EXPECT_TRUE(std::has_single_bit(told.max_alignment));
  EXPECT_GE(told.max_alignment, told.base_alignment);
  EXPECT_FALSE(kinds().empty());
}

TEST_P(info, missing_capabilities_are_reported) {
  const bool whole = can(im::capability::usm) && kinds().size() == 3;
  EXPECT_TRUE(whole || !device_.info().limitations.empty());
}

TEST_P(info, device_belongs_to_its_platform) {
  const im::platform platform = device_.platform();
  const im::platform_info told = platform.info();
  EXPECT_EQ(told.backend, device_.info().backend);
  EXPECT_FALSE(told.name.empty());
  ASSERT_GE(told.device_count, 1u);
  const std::vector<im::device> members = im::devices(platform);
  EXPECT_NE(std::find(members.begin(), members.end(), device_), members.end());
}

TEST_P(info, filter_finds_the_device_again) {
  if (GetParam().starts_with("sim")) GTEST_SKIP() << "a device of its own, found by nobody";
  EXPECT_EQ(im::device(std::string(device_.info().filter)), device_);
}

TEST_P(info, memory_is_reported_or_unsupported) {
  if (!can(im::capability::query_free_memory)) {
    EXPECT_TRUE(throws(im::status::unsupported, [&] { (void)device_.memory(); }));
    return;
  }
  const im::memory_info memory = device_.memory();
  EXPECT_GT(memory.total_bytes, 0u);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
}

TEST_P(info, structures_of_another_size) {
  isthmus_device_info_t raw{};
  raw.struct_size = 1;
  EXPECT_TRUE(refused(isthmus_device_info(device_.get(), &raw), ISTHMUS_ERROR_INVALID_ARGUMENT));
  raw.struct_size = 0;
  EXPECT_TRUE(refused(isthmus_device_info(device_.get(), &raw), ISTHMUS_ERROR_INVALID_ARGUMENT));
  isthmus_platform_info_t platform{};
  EXPECT_TRUE(refused(isthmus_platform_info(device_.platform().get(), &platform),
                      ISTHMUS_ERROR_INVALID_ARGUMENT));
}

// For a caller compiled against a later header, fields that this library does not know stay
// unchanged.
TEST_P(info, structures_that_have_grown) {
  struct {
    isthmus_device_info_t known;
    std::uint64_t later;
  } grown{};
  grown.later = 42;
  grown.known.struct_size = sizeof grown;
  ASSERT_EQ(isthmus_device_info(device_.get(), &grown.known), ISTHMUS_OK);
  EXPECT_NE(grown.known.memory_bytes, 0u);
  EXPECT_EQ(grown.later, 42u);
}

TEST_P(info, default_context_is_always_the_same) {
  const im::context first = im::context::of(device_);
  EXPECT_EQ(first, im::context::of(device_));
  EXPECT_EQ(queue_.context(), first);
  EXPECT_EQ(queue_.device(), device_);
  const std::vector<im::device> members = first.devices();
  EXPECT_NE(std::find(members.begin(), members.end(), device_), members.end());
}

TEST_P(info, contexts_of_their_own_differ) {
  const im::context own({device_});
  EXPECT_NE(own, im::context::of(device_));
  ASSERT_EQ(own.devices().size(), 1u);
  EXPECT_EQ(own.devices().front(), device_);
  const im::queue queue(own, device_);
  EXPECT_EQ(queue.context(), own);
}

TEST_P(info, queues_compare_by_what_they_stand_for) {
  EXPECT_EQ(im::queue::of(device_), im::queue::of(device_));
  EXPECT_NE(im::queue(device_), im::queue(device_));
  EXPECT_EQ(queue_, im::queue(queue_));
  EXPECT_NE(queue_, im::queue());
}

TEST_P(info, native_handles_where_it_exports_them) {
  const bool lends = can(im::capability::export_handles);
  EXPECT_EQ(queue_.context().native() != nullptr, lends);
  EXPECT_EQ(queue_.export_native() != nullptr, lends);
}

TEST_P(info, native_handles_come_back_as_the_same_objects) {
  if (!can(im::capability::export_handles)) GTEST_SKIP();
  const std::string backend(device_.info().backend);
  void* const handle = device_.native();
  EXPECT_TRUE(handle == nullptr || im::device::of_native(backend, handle) == device_);
  const im::context context = im::context::adopt(device_, queue_.context().native());
  EXPECT_EQ(context, queue_.context());
  const im::queue queue = im::queue::adopt(device_, queue_.export_native());
  EXPECT_EQ(queue, queue_);
  const im::buffer made = make(64, kinds().front());
  const bytes data = noise(64);
  im::copy(made, std::span(data), {.queue = queue});
  EXPECT_TRUE(same(read(made), data));
}

TEST(process, reports_its_version) {
  EXPECT_EQ(isthmus_abi_version(), std::uint32_t{ISTHMUS_ABI_VERSION});
  EXPECT_TRUE(std::string_view(isthmus_version()).starts_with("0.1"));
}

TEST(process, every_status_has_its_name) {
  std::vector<std::string_view> seen;
  for (isthmus_status_t code = ISTHMUS_ERROR_DEADLOCK; code <= ISTHMUS_PENDING; ++code) {
    const std::string_view name = isthmus_status_name(code);
    EXPECT_NE(name, "unknown status") << code;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0) << name;
    seen.push_back(name);
  }
  EXPECT_STREQ(isthmus_status_name(2), "unknown status");
  EXPECT_STREQ(isthmus_status_name(-19), "unknown status");
  EXPECT_STREQ(isthmus_status_name(ISTHMUS_ERROR_OUT_OF_MEMORY), "out of memory");
}

TEST(process, finds_devices_by_filter) {
  EXPECT_EQ(im::device("host").info().backend, "host");
  EXPECT_EQ(im::device("host"), im::device("host:0"));
  EXPECT_EQ(im::device("host:cpu"), im::device("host:cpu:0"));
  EXPECT_TRUE(bool(im::device::best()));
}

TEST(process, refuses_filters_that_mean_nothing) {
  for (const char* filter : {"host:1", "host:gpu", "host:cpu:99", "accelerator:99"}) {
    EXPECT_TRUE(throws(im::status::not_found, {filter}, [&] { im::device{filter}; })) << filter;
  }
  for (const char* filter :
       {"nonsense", "metal", ":", "host:", "host::0", "host:cpu:0:0", "host:-1", "0:host"}) {
    EXPECT_TRUE(throws(im::status::invalid_argument, {filter}, [&] { im::device{filter}; }))
        << filter;
  }
}

TEST(process, lists_every_platform_once) {
  const std::vector<im::platform> all = im::platforms();
  ASSERT_FALSE(all.empty());
  EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                          [](const im::platform& one) { return one.info().backend == "host"; }));
  EXPECT_TRUE(refused(isthmus_platform_get(all.size(), nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT));
  for (const im::absent_driver& one : im::absent()) EXPECT_FALSE(one.reason.empty());
}

}  // namespace
