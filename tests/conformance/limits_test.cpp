// SPDX-License-Identifier: Apache-2.0
// Limits on what pools hold: in bytes and as shares, budgets of several pools, decay.
#include <cstddef>

#include "support/backends.hpp"

namespace {

using namespace support;

class limits : public on_backend {
 protected:
  im::resource make(im::kind kind, const im::pool_options& how) const {
    return im::resource::pool(queue_.context(), kind, how, device_);
  }
  void* take(const im::resource& from, std::size_t mib) const {
    return from.allocate(mib * k_mib, 0, queue_);
  }
  void give(const im::resource& to, void* pointer, std::size_t mib) const {
    to.deallocate(pointer, mib * k_mib, 0, queue_);
  }
};
INSTANTIATE_ON_BACKENDS(limits);

TEST_P(limits, are_read_as_people_write_them) {
  EXPECT_EQ(im::parse_bytes("4096"), 4096U);
  EXPECT_EQ(im::parse_bytes("1.5GiB"), 1536 * k_mib);
  EXPECT_EQ(im::parse_bytes("5 GB"), 5'000'000'000U);
  for (im::kind kind : kinds()) {
    const auto all = im::parse_bytes("100%", device_, kind);
    EXPECT_GT(all, 0U);
    const auto half = im::parse_bytes("50%", device_, kind);
    EXPECT_LE(half, all / 2);
    EXPECT_GE(half + 1, all / 2);
    EXPECT_EQ(im::parse_bytes("0%", device_, kind), 0U);
  }
  if (device_.offers(im::kind::device)) {
    EXPECT_LE(im::parse_bytes("100%", device_, im::kind::device), device_.info().memory_bytes);
  }
  for (const char* text : {"", "x", "5 G", "-1", "1.5", "101%", "80%%"}) {
    EXPECT_THROW((void)im::parse_bytes(text, device_, im::kind::host), im::invalid_argument)
        << text;
  }
  EXPECT_THROW((void)im::parse_bytes("80%"), im::invalid_argument) << "of what?";
  EXPECT_THROW((void)im::parse_bytes("80%", device_), im::invalid_argument) << "of which kind?";
  EXPECT_EQ(isthmus_bytes_parse(nullptr, nullptr, 0, nullptr), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST_P(limits, above_the_soft_one_free_memory_is_released_first) {
  for (im::kind kind : kinds()) {
    const auto from =
        make(kind, {.growth_bytes = 4 * k_mib, .remap = false, .soft_limit_bytes = 16 * k_mib});
    void* live = take(from, 8);
    void* gone = take(from, 4);
    give(from, gone, 4);
    const auto held = from.usage().held;
    EXPECT_LE(held, 16 * k_mib);
    void* large = take(from, 10);
    EXPECT_LE(from.usage().held, held - 4 * k_mib + 10 * k_mib + 64 * 1024);
    void* small = take(from, 1);  // above the soft limit the pool grows only by what it needs
    EXPECT_LE(from.usage().held, 19 * k_mib + 256 * 1024);
    give(from, small, 1);
    give(from, large, 10);
    give(from, live, 8);
  }
}

TEST_P(limits, that_contradict_one_another_are_refused) {
  const auto kind = kinds().front();
  EXPECT_THROW((void)make(kind, {.limit_bytes = k_mib, .soft_limit_bytes = k_mib + 1}),
               im::invalid_argument);
  EXPECT_THROW((void)make(kind, {.decay = std::chrono::nanoseconds(-1)}), im::invalid_argument);
  EXPECT_NO_THROW((void)make(kind, {.limit_bytes = k_mib, .soft_limit_bytes = k_mib}));
}

// What a request waits for may itself wait for this thread.
TEST_P(limits, a_wait_must_have_an_end) {
  const auto kind = kinds().front();
  EXPECT_THROW((void)make(kind, {.wait = std::chrono::nanoseconds::max()}), im::invalid_argument);
  EXPECT_TRUE(contains(isthmus_error_message(), "a year")) << isthmus_error_message();
  EXPECT_NO_THROW((void)make(kind, {.wait = std::chrono::hours(24 * 365)}));
}

// A program compiled when the option structure ended with `flags`.
TEST_P(limits, may_be_left_out_by_older_programs) {
  isthmus_pool_options_t options{};
  options.struct_size = offsetof(isthmus_pool_options_t, soft_limit_bytes);
  options.limit_bytes = 2 * k_mib;
  options.soft_limit_bytes = 3 * k_mib;  // unrelated bytes after the caller's structure
  options.budget = reinterpret_cast<isthmus_budget_t*>(1);
  options.decay_ns = 1;
  isthmus_resource_t* made = nullptr;
  const auto kind = static_cast<isthmus_kind_t>(kinds().front());
  ASSERT_EQ(isthmus_resource_pool(queue_.context().get(), device_.get(), kind, &options, &made),
            ISTHMUS_OK)
      << isthmus_error_message();
  isthmus_resource_release(made);
  --options.struct_size;
  EXPECT_EQ(isthmus_resource_pool(queue_.context().get(), device_.get(), kind, &options, &made),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
}

TEST_P(limits, budgets_are_shared_by_pools_of_all_kinds) {
  const im::budget shared(24 * k_mib);
  std::vector<im::resource> all;
  for (im::kind kind : kinds()) {
    all.push_back(make(kind, {.growth_bytes = k_mib, .budget = shared}));
  }
  for (const im::resource& from : all) {
    void* block = take(from, 16);  // the previous pool's free memory is released for it
    EXPECT_LE(shared.info().held, 24 * k_mib);
    EXPECT_GE(shared.info().held, 16 * k_mib);
    give(from, block, 16);
  }
  EXPECT_EQ(shared.info().pools, all.size());
  EXPECT_EQ(shared.info().limit, 24 * k_mib);
  EXPECT_EQ(shared.info().refusals > 0, all.size() > 1);
  void* block = take(all.front(), 16);
  const auto second = make(kinds().back(), {.growth_bytes = k_mib, .budget = shared});
  try {
    (void)take(second, 16);
    ADD_FAILURE() << "16 MiB beside 16 MiB in 24 MiB";
  } catch (const im::out_of_memory& refused) {
    EXPECT_TRUE(contains(refused.what(), "of a budget of 24 MiB")) << refused.what();
  }
  give(all.front(), block, 16);
  all.clear();
  EXPECT_LE(shared.info().pools, 1U);
}

TEST_P(limits, budgets_of_nothing_are_refused) {
  EXPECT_THROW((void)im::budget(0), im::invalid_argument);
  isthmus_budget_info_t info{};
  EXPECT_EQ(isthmus_budget_info(nullptr, &info), ISTHMUS_ERROR_INVALID_ARGUMENT);
  const im::budget one(1);
  EXPECT_EQ(isthmus_budget_info(one.get(), &info), ISTHMUS_ERROR_INVALID_ARGUMENT) << "size 0";
  EXPECT_THROW((void)make(kinds().front(), {.initial_bytes = k_mib, .budget = one}),
               im::out_of_memory);
  isthmus_budget_retain(nullptr);
  isthmus_budget_release(nullptr);
}

TEST_P(limits, budgets_live_as_long_as_their_pools) {
  im::resource from;
  {
    const im::budget shared(4 * k_mib);
    from = make(kinds().front(), {.growth_bytes = k_mib, .budget = shared});
  }
  EXPECT_THROW((void)take(from, 5), im::out_of_memory);
  give(from, take(from, 2), 2);
}

// 1 ns has passed before the next call on any machine.
TEST_P(limits, decay_releases_unused_memory) {
  for (im::kind kind : kinds()) {
    const auto from =
        make(kind, {.growth_bytes = k_mib, .remap = false, .decay = std::chrono::nanoseconds(1)});
    give(from, take(from, 4), 4);
    EXPECT_TRUE(queue_.fence().wait_for(30s));
    for (int each = 0; each < 1000 && from.usage().held != 0; ++each) {
      (void)from.trim(UINT64_MAX);
      std::this_thread::yield();
    }
    EXPECT_EQ(from.usage().held, 0U);
  }
}

}  // namespace
