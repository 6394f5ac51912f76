// SPDX-License-Identifier: Apache-2.0
// The low-level interface below arrays: pointers, copies and fills counted in elements, lists,
// advice by name.
#include <isthmus/low_level.hpp>

#include "support/array_model.hpp"
#include "support/bytes.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;
namespace low = isthmus::low_level;

class low_level_cpp : public on_arrays {
 protected:
  void SetUp() override {
    on_arrays::SetUp();
    if (device_) context_ = im::context::of(device_);
  }
  void TearDown() override {
    context_ = {};
    on_arrays::TearDown();
  }
  std::vector<void*> one_of_each_kind(std::size_t nbytes) const {
    std::vector<void*> found;
    for (const im::kind kind : kinds()) {
      if (kind == im::kind::device)
        found.push_back(low::device_alloc(context_, device_, nbytes, 8));
      if (kind == im::kind::shared) found.push_back(low::shared_alloc(context_, device_, nbytes));
      if (kind == im::kind::host) found.push_back(low::host_alloc(context_, nbytes, 64));
    }
    return found;
  }
  im::context context_;
};
INSTANTIATE_ON_BACKENDS(low_level_cpp);

TEST_P(low_level_cpp, moves_elements_between_all_kinds) {
  std::vector<float> values(256), back(256);
  std::iota(values.begin(), values.end(), 1.0f);
  const auto pointers = one_of_each_kind(1024);
  for (void* from : pointers) {
    for (void* to : pointers) {
      low::unsafe_copyto<float>(context_, device_, from, values.data(), 256).wait();
      low::unsafe_fill<float>(context_, device_, static_cast<float*>(from) + 250, -1, 6).wait();
      if (to != from) low::unsafe_copyto<float>(context_, device_, to, from, 256).wait();
      low::unsafe_copyto<float>(context_, device_, back.data(), to, 256).wait();
      EXPECT_EQ(back[249], 250.0f);
      EXPECT_EQ(back[250], -1.0f);
      EXPECT_EQ(back[255], -1.0f);
    }
  }
  for (void* each : pointers) low::free(context_, each);
}

TEST_P(low_level_cpp, knows_its_pointers) {
  const auto pointers = one_of_each_kind(1000);
  const auto expected = kinds();
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    const im::pointer_info known = low::properties(static_cast<std::byte*>(pointers[i]) + 10);
    EXPECT_EQ(known.kind, expected[i]);
    EXPECT_EQ(known.base, pointers[i]);
    EXPECT_GE(known.nbytes, 1000u);
    EXPECT_EQ(known.context, context_);
    EXPECT_EQ(low::lookup_alloc(context_, pointers[i]).kind, expected[i]);
    const auto refuses = [&](auto&& call) {
      EXPECT_TRUE(throws(im::status::invalid_argument, call));
    };
    refuses([&] { low::free(context_, static_cast<std::byte*>(pointers[i]) + 8); });
    low::free(context_, pointers[i]);
    refuses([&] { low::free(context_, pointers[i]); });
  }
  int here = 0;
  EXPECT_EQ(low::properties(&here).kind, im::kind::unknown);
  EXPECT_TRUE(
      throws(im::status::invalid_argument, {"device_alloc"}, [&] { low::free(context_, &here); }));
  low::free(context_, nullptr);
  EXPECT_EQ(low::device_alloc(context_, device_, 0), nullptr);
}

TEST_P(low_level_cpp, frees_after_the_pending_work) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  std::vector<float> back(256);
  void* p = low::device_alloc(context_, device_, 1024);
  low::unsafe_fill<float>(context_, device_, p, 2, 256).wait();
  const im::queue on = low::global_queue(context_, device_);
  const im::host_event gate;
  (void)on.fence(gate);
  const im::event done = low::unsafe_copyto<float>(context_, device_, back.data(), p, 256);
  low::free(context_, p);
  EXPECT_FALSE(done.done());
  gate.complete();
  done.wait();
  EXPECT_EQ(back, std::vector<float>(256, 2.0f));
}

TEST_P(low_level_cpp, has_one_global_queue) {
  EXPECT_EQ(low::global_queue(context_, device_), im::queue::of(device_));
  const im::context own{device_};
  const im::queue made = low::global_queue(own, device_);  // lives as long as its context
  EXPECT_EQ(made, low::global_queue(own, device_));
  EXPECT_EQ(made.context(), own);
}

// The table of pools evicts the least recently used ones, except those with live pointers.
TEST(low_level_pools, outlive_those_of_many_contexts) {
  const im::device device("host");
  const auto context_and_memory = [&] {
    const im::context made{device};
    return std::pair(made, low::host_alloc(made, 64));
  };
  std::vector<std::pair<im::context, void*>> all;
  for (int number = 0; number < 40; ++number) all.push_back(context_and_memory());
  for (const auto& [context, pointer] : all) {
    EXPECT_EQ(low::properties(pointer).state, im::memory_state::live);
    EXPECT_NO_THROW(low::free(context, pointer));
    // Leaves no memory that a later test's out-of-memory condition would release.
    (void)im::default_pool(im::kind::host, low::global_queue(context, device)).trim();
  }
}

TEST_P(low_level_cpp, executes_lists_in_order) {
  std::vector<float> values(256, 3), back(256);
  void* p = low::device_alloc(context_, device_, 1024);
  const im::queue on = low::global_queue(context_, device_);
  const im::event done = low::execute(on, [&](low::command_list& list) {
    list.append_copy(p, values.data(), 1024);
    list.append_fill(p, 4.0f, 512);
    list.append_copy(back.data(), p, 1024);
    EXPECT_EQ(list.size(), 3u);
  });
  done.wait();
  EXPECT_EQ(back[127], 4.0f);
  EXPECT_EQ(back[128], 3.0f);
  low::command_list again;
  again.append_fill(p, 5.0f, 1024);
  again.append_copy(back.data(), p, 1024);
  for (int turn = 0; turn < 3; ++turn) {
    back.assign(256, 0);
    low::execute(on, again).wait();
    EXPECT_EQ(back, std::vector<float>(256, 5.0f));
  }
  low::execute(on, low::command_list()).wait();
  const auto fails = [&] {
    low::execute(on, [](low::command_list&) { throw std::runtime_error("no"); }).wait();
  };
  EXPECT_THROW(fails(), std::runtime_error);
  low::free(context_, p);
}

TEST_P(low_level_cpp, holds_the_bounds_of_its_memory) {
  std::vector<float> values(300);
  void* p = low::device_alloc(context_, device_, 300 * 1024);  // a block that is not in a slab
  EXPECT_TRUE(throws(im::status::out_of_range,
                     [&] { low::unsafe_fill<float>(context_, device_, p, 1, 1 << 20).wait(); }));
  EXPECT_TRUE(throws(im::status::invalid_argument, {"address space"}, [&] {
    low::unsafe_copyto<double>(context_, device_, p, values.data(), SIZE_MAX / 4).wait();
  }));
  low::free(context_, p);
}

TEST_P(low_level_cpp, reports_the_kinds_of_memory) {
  const auto memories = low::memory_properties(device_);
  ASSERT_EQ(memories.size(), 1u);
  EXPECT_GT(memories[0].total_size, 0u);
  EXPECT_GT(memories[0].max_allocation, 0u);
  EXPECT_EQ(memories[0].free_size.has_value(), can(im::capability::query_free_memory));
  const auto access = low::memory_access_properties(device_);
  EXPECT_EQ((access.device & low::rw) != 0, device_.offers(im::kind::device));
  EXPECT_EQ((access.shared_single_device & low::rw) != 0, device_.offers(im::kind::shared));
  EXPECT_EQ((access.host & low::rw) != 0, device_.offers(im::kind::host));
  EXPECT_TRUE(throws(im::status::unsupported, {"residency"},
                     [&] { low::make_resident(context_, device_, nullptr, 0); }));
  EXPECT_TRUE(throws(im::status::unsupported, [&] { low::evict(context_, device_, nullptr, 0); }));
}

TEST_P(low_level_cpp, prefetches_and_advises_or_reports_unsupported) {
  if (!device_.offers(im::kind::shared)) GTEST_SKIP() << "no shared memory";
  const auto a = im::zeros<float>({1000}, im::kind::shared, {.queue = queue_});
  const im::queue on = low::global_queue(context_, device_);
  const auto prefetches = [&] {
    low::execute(on, [&](auto& list) { list.append_prefetch(a.pointer(), a.nbytes()); }).wait();
    low::prefetch(on, a.pointer(), a.nbytes(), im::prefetch_to::host);
    im::prefetch(a.bytes());
  };
  if (can(im::capability::prefetch)) {
    prefetches();
  } else {
    EXPECT_TRUE(throws(im::status::unsupported, prefetches));
  }
  const std::string backend(device_.info().backend);
  for (int number = 0; number <= static_cast<int>(im::advice::clear_bias_uncached); ++number) {
    const auto what = static_cast<im::advice>(number);
    const bool known =
        can(im::capability::advise) && (backend == "sim" || (backend == "cuda" && number <= 5));
    const auto advises = [&] {
      im::advise(a.bytes(), what);
      low::advise(on, a.pointer(), a.nbytes(), what);
    };
    if (known) {
      EXPECT_NO_THROW(advises()) << name(what);
    } else if (backend != "sycl") {
      EXPECT_TRUE(throws(im::status::unsupported, {"advi"}, advises)) << name(what);
    }
  }
  EXPECT_EQ(im::to_vector(a), std::vector<float>(1000));
}

}  // namespace
