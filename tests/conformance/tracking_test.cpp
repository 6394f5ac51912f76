// SPDX-License-Identifier: Apache-2.0
// The allocation tracker, a resource that records every live block, and tags.
#include <map>
#include <mutex>
#include <set>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class tracking : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(tracking);

TEST_P(tracking, knows_what_is_live) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource tracked = im::resource::tracking(upstream);
      const std::vector<std::size_t> sizes{1, 63, 64, 1000, 5000, 70'000, 300'000, 3 * k_mib};
      std::vector<void*> all;
      for (std::size_t nbytes : sizes) all.push_back(tracked.allocate(nbytes, 0, queue_));
      const auto blocks = im::live_blocks(tracked);
      ASSERT_EQ(blocks.size(), sizes.size());
      std::set<std::uint64_t> threads;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(blocks[i].pointer, all[i]) << "the oldest first";
        EXPECT_EQ(blocks[i].nbytes, sizes[i]);
        EXPECT_EQ(blocks[i].queue_key, isthmus_queue_key(queue_.get()));
        EXPECT_EQ(blocks[i].tag + blocks[i].stack, "");
        threads.insert(blocks[i].thread);
      }
      EXPECT_EQ(threads.size(), 1u);
      for (std::size_t i = 0; i < sizes.size(); i += 2) {
        tracked.deallocate(all[i], sizes[i], 0, queue_);
      }
      EXPECT_EQ(im::live_blocks(tracked).size(), sizes.size() / 2);
      im::reset_tracking(tracked);
      EXPECT_TRUE(im::live_blocks(tracked).empty());
      void* const late = tracked.allocate(10, 0, queue_);
      EXPECT_EQ(im::live_blocks(tracked).size(), 1u);
      tracked.deallocate(late, 10, 0, queue_);
      for (std::size_t i = 1; i < sizes.size(); i += 2) {
        tracked.deallocate(all[i], sizes[i], 0, queue_);
      }
    }
  }
}

TEST_P(tracking, refuses_what_it_does_not_know) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource tracked = im::resource::tracking(upstream);
      auto* const block = static_cast<std::byte*>(tracked.allocate(1000, 0, queue_));
      void* const other = upstream.allocate(1000, 0, queue_);
      for (void* wrong : {static_cast<void*>(block + 1), static_cast<void*>(block + 512), other}) {
        EXPECT_THROW(tracked.deallocate(wrong, 1000, 0, queue_), im::invalid_argument);
      }
      EXPECT_EQ(im::live_blocks(tracked).size(), 1u);
      tracked.deallocate(block, 1000, 0, queue_);
      EXPECT_THROW(tracked.deallocate(block, 1000, 0, queue_), im::invalid_argument);
      EXPECT_TRUE(im::live_blocks(tracked).empty());
      upstream.deallocate(other, 1000, 0, queue_);
      EXPECT_THROW((void)tracked.allocate(std::size_t{1} << 62, 0, queue_), im::out_of_memory);
      EXPECT_THROW((void)tracked.allocate(10, 24, queue_), im::invalid_argument);
      EXPECT_TRUE(im::live_blocks(tracked).empty());
    }
  }
}

TEST_P(tracking, knows_buffers_until_their_memory_is_freed) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource tracked = im::resource::tracking(upstream);
      {
        const im::buffer buffer(1000, kind, {.queue = queue_, .resource = tracked});
        im::fill(buffer, 1.0f);
        const auto blocks = im::live_blocks(tracked);
        ASSERT_EQ(blocks.size(), 1u);
        EXPECT_EQ(blocks[0].nbytes, 1000u);
      }
      EXPECT_TRUE(eventually([&] { return im::live_blocks(tracked).empty(); }));
    }
  }
}

TEST_P(tracking, reports_a_pointers_requested_size_and_queue) {
  for (im::kind kind : kinds()) {
    const im::resource pool = upstreams(kind)[0];
    const im::resource tracked = im::resource::tracking(pool);
    for (std::size_t nbytes : {std::size_t{3}, std::size_t{1001}, std::size_t{300'001}}) {
      auto* const block = static_cast<std::byte*>(tracked.allocate(nbytes, 0, queue_));
      for (const std::byte* inner : {block, block + nbytes / 2, block + nbytes - 1}) {
        const im::pointer_info info = im::query(inner);
        EXPECT_EQ(info.requested_bytes, nbytes);
        EXPECT_EQ(info.queue_key, isthmus_queue_key(queue_.get()));
        EXPECT_EQ(info.base, block);
      }
      tracked.deallocate(block, nbytes, 0, queue_);
      EXPECT_EQ(im::query(block).requested_bytes, 0u);
    }
    void* const bare = pool.allocate(100, 0, queue_);
    EXPECT_EQ(im::query(bare).requested_bytes, 0u);
    isthmus_pointer_info_t old{};
    old.struct_size = offsetof(isthmus_pointer_info_t, requested_bytes);
    old.requested_bytes = 7;
    EXPECT_EQ(isthmus_pointer_info(nullptr, bare, &old), ISTHMUS_OK);
    EXPECT_EQ(old.requested_bytes, 7u) << "of callers that were compiled before";
    pool.deallocate(bare, 100, 0, queue_);
  }
}

[[gnu::noinline]] void* take_here(const im::resource& from, const im::queue& on) {
  return from.allocate(100, 0, on);
}
[[gnu::noinline]] void* take_there(const im::resource& from, const im::queue& on) {
  void* const taken = from.allocate(5000, 0, on);
  return taken;
}

// However many resources lie between the caller and the allocation tracker.
TEST_P(tracking, keeps_no_frames_of_the_library_itself) {
  const im::resource tracked = im::resource::tracking(upstreams(kinds().front())[0], {.frames = 2});
  const im::resource counted = im::resource::statistics(tracked);
  const im::buffer buffer(100, kinds().front(), {.queue = queue_, .resource = counted});
  void* const block = take_there(counted, queue_);
  for (const auto& each : im::live_blocks(tracked)) {
    EXPECT_NE(each.stack.find("conformance"), std::string::npos) << each.stack;
    EXPECT_EQ(each.stack.find("libisthmus"), std::string::npos) << each.stack;
  }
  counted.deallocate(block, 5000, 0, queue_);
}

TEST_P(tracking, reports_by_stack_and_tag) {
  const im::resource tracked = im::resource::tracking(upstreams(kinds().front())[0], {.frames = 8});
  std::vector<void*> small;
  for (int i = 0; i < 3; ++i) {
    const im::tag_scope outer("outer");
    const im::tag_scope inner("layer1");
    small.push_back(take_here(tracked, queue_));
  }
  void* const large = take_there(tracked, queue_);
  const auto blocks = im::live_blocks(tracked);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].tag, "layer1");
  EXPECT_EQ(blocks[3].tag, "") << "scopes end";
  EXPECT_EQ(blocks[0].stack, blocks[2].stack);
  EXPECT_NE(blocks[0].stack, blocks[3].stack);
  EXPECT_NE(blocks[3].stack.find("conformance"), std::string::npos) << blocks[3].stack;
  EXPECT_EQ(blocks[3].stack.find("libisthmus"), std::string::npos) << "its own frames";
  const std::string report = im::leak_report(tracked);
  EXPECT_NE(report.find("5300 bytes"), std::string::npos) << report;
  EXPECT_NE(report.find("300 bytes in 3 blocks, tag layer1"), std::string::npos) << report;
  EXPECT_LT(report.find("(5000 bytes) in 1 block,"), report.find("300 bytes in 3")) << report;
  std::size_t length = 0;
  char little[10] = "xxxxxxxxx";
  EXPECT_EQ(isthmus_allocation_tracker_report(tracked.get(), little, 5, &length), ISTHMUS_OK);
  EXPECT_EQ(std::string(little), report.substr(0, 4));
  EXPECT_EQ(length, report.size());
  tracked.deallocate(large, 5000, 0, queue_);
  for (void* each : small) tracked.deallocate(each, 100, 0, queue_);
  EXPECT_NE(im::leak_report(tracked).find("in 0 blocks"), std::string::npos);
}

TEST_P(tracking, counts_by_tag) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource tracked = im::resource::tracking(upstream);
      void* const untagged = tracked.allocate(77, 0, queue_);
      EXPECT_TRUE(im::usage_by_tag(tracked).empty()) << "under no tag nothing is counted";
      void *first = nullptr, *second = nullptr, *third = nullptr;
      {
        const im::tag_scope outer("outer");
        first = tracked.allocate(1000, 0, queue_);
        const im::tag_scope inner("inner");
        second = tracked.allocate(3000, 0, queue_);
        third = tracked.allocate(500, 0, queue_);
        tracked.deallocate(first, 1000, 0, queue_);
      }
      tracked.deallocate(third, 500, 0, queue_);
      EXPECT_THROW(tracked.deallocate(third, 500, 0, queue_), im::invalid_argument);
      auto usage = im::usage_by_tag(tracked);
      ASSERT_EQ(usage.size(), 2u);
      EXPECT_EQ(usage[0].tag, "inner") << "most live bytes first";
      EXPECT_TRUE(counts(usage[0].counts, {3000, 1, 3500, 2, 3500, 2}));
      EXPECT_EQ(usage[1].tag, "outer");
      EXPECT_TRUE(counts(usage[1].counts, {0, 0, 1000, 1, 1000, 1}));
      im::reset_tracking(tracked);
      usage = im::usage_by_tag(tracked);
      EXPECT_TRUE(counts(usage[0].counts, {3000, 1, 3000, 1, 0, 0}));
      EXPECT_TRUE(counts(usage[1].counts, {}));
      tracked.deallocate(second, 3000, 0, queue_);
      tracked.deallocate(untagged, 77, 0, queue_);
      EXPECT_TRUE(counts(im::usage_by_tag(tracked)[0].counts, {0, 0, 3000, 1, 0, 0}));
      EXPECT_EQ(isthmus_allocation_tracker_usage(tracked.get(), nullptr, nullptr),
                ISTHMUS_ERROR_INVALID_ARGUMENT);
      EXPECT_THROW((void)im::usage_by_tag(upstream), im::invalid_argument);
    }
  }
}

TEST_P(tracking, counts_many_tags_of_many_threads) {
  constexpr int k_tags = 200;
  const im::resource tracked = im::resource::tracking(upstreams(kinds().front())[0]);
  const auto work = [&] {
    const im::queue own(device_);
    for (int i = 0; i < 5 * k_tags; ++i) {
      const im::tag_scope mine("tag " + std::to_string(i % k_tags));
      void* const taken = tracked.allocate(100, 0, own);
      tracked.deallocate(taken, 100, 0, own);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(work);
  for (std::thread& each : threads) each.join();
  const auto usage = im::usage_by_tag(tracked);
  ASSERT_EQ(usage.size(), static_cast<std::size_t>(k_tags));
  for (const auto& each : usage) {
    EXPECT_EQ(each.counts.current_count, 0u);
    EXPECT_EQ(each.counts.total_count, 15u) << each.tag;
    EXPECT_LE(each.counts.peak_count, 3u);
  }
}

TEST_P(tracking, obtains_frames_from_a_function) {
  struct given {
    int asked = 0;
    int released = 0;
  } state;
  const isthmus_owner_t owner{&state,
                              [](void* object) { ++static_cast<given*>(object)->released; }};
  const isthmus_stack_function_t function = [](void* object) {
    return ++static_cast<given*>(object)->asked % 2 == 1 ? "train.py:10 step" : nullptr;
  };
  const im::resource upstream = upstreams(kinds().front())[0];
  isthmus_resource_t* raw = nullptr;
  EXPECT_EQ(isthmus_resource_allocation_tracker(upstream.get(), 65, function, owner, &raw),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(state.released, 1) << "of a call that fails too";
  ASSERT_EQ(isthmus_resource_allocation_tracker(upstream.get(), 0, function, owner, &raw),
            ISTHMUS_OK);
  void* blocks[2] = {};
  for (void*& each : blocks) {
    EXPECT_EQ(isthmus_resource_allocate(raw, 10, 0, queue_.get(), &each), ISTHMUS_OK);
  }
  std::vector<std::string> stacks;
  const isthmus_tracked_allocation_function_t visit = [](void* object,
                                                         const isthmus_tracked_allocation_t* each) {
    static_cast<std::vector<std::string>*>(object)->push_back(each->stack);
  };
  EXPECT_EQ(isthmus_allocation_tracker_visit(raw, visit, &stacks), ISTHMUS_OK);
  EXPECT_EQ(stacks, (std::vector<std::string>{"train.py:10 step", ""}));
  for (void* each : blocks) {
    EXPECT_EQ(isthmus_resource_deallocate(raw, each, 10, 0, queue_.get()), ISTHMUS_OK);
  }
  isthmus_resource_release(raw);
  EXPECT_EQ(state.asked, 2);
  EXPECT_EQ(state.released, 2);
}

TEST_P(tracking, knows_what_threads_hand_over) {
  const im::resource tracked = im::resource::tracking(upstreams(kinds().front())[0]);
  std::mutex lock;
  std::vector<std::pair<void*, std::size_t>> between;
  const auto work = [&](unsigned seed) {
    const im::tag_scope mine("thread " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; ++i) {
      const std::size_t nbytes = 1 + random() % (i % 50 == 0 ? 400 * k_kib : 3 * k_kib);
      void* const taken = tracked.allocate(nbytes, 0, queue_);
      std::unique_lock hold(lock);
      between.emplace_back(taken, nbytes);
      std::swap(between[random() % between.size()], between.back());
      const auto [theirs, size] = between.back();
      if (between.size() > 100)
        between.pop_back();
      else
        continue;
      hold.unlock();
      tracked.deallocate(theirs, size, 0, queue_);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  for (int i = 0; i < 20; ++i) {
    for (const im::tracked_block& each : im::live_blocks(tracked)) {
      EXPECT_EQ(each.tag.substr(0, 7), "thread ");
    }
    EXPECT_FALSE(im::leak_report(tracked).empty());
  }
  for (std::thread& each : threads) each.join();
  std::map<void*, std::size_t> known;
  for (const im::tracked_block& each : im::live_blocks(tracked)) known[each.pointer] = each.nbytes;
  EXPECT_EQ(known, (std::map<void*, std::size_t>(between.begin(), between.end())));
  for (const auto& [pointer, nbytes] : between) tracked.deallocate(pointer, nbytes, 0, queue_);
  EXPECT_TRUE(im::live_blocks(tracked).empty());
}

TEST_P(tracking, reports_after_a_reset_what_other_threads_allocate) {
  const im::resource tracked = im::resource::tracking(upstreams(kinds().front())[0]);
  const auto take = [&] { return tracked.allocate(10, 0, queue_); };
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> all;
    for (int i = 0; i < round; ++i) all.push_back(take());
    im::reset_tracking(tracked);
    std::thread([&] { all.push_back(take()); }).join();
    all.push_back(take());
    const auto blocks = im::live_blocks(tracked);
    EXPECT_EQ(blocks.size(), 2u);
    for (void* each : all) tracked.deallocate(each, 10, 0, queue_);
  }
}

TEST_P(tracking, refuses_bad_arguments) {
  const im::resource upstream = upstreams(kinds().front())[0];
  isthmus_resource_t* made = nullptr;
  EXPECT_EQ(isthmus_resource_allocation_tracker(nullptr, 0, nullptr, {}, &made),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_resource_allocation_tracker(upstream.get(), 0, nullptr, {}, nullptr),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(throws(im::status::invalid_argument, {"65", "64"},
                     [&] { (void)im::resource::tracking(upstream, {.frames = 65}); }));
  EXPECT_THROW((void)im::live_blocks(upstream), im::invalid_argument);
  EXPECT_THROW((void)im::leak_report(upstream), im::invalid_argument);
  EXPECT_THROW(im::reset_tracking(upstream), im::invalid_argument);
  const im::resource tracked = im::resource::tracking(upstream);
  EXPECT_EQ(isthmus_allocation_tracker_visit(tracked.get(), nullptr, nullptr),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  std::size_t length = 0;
  EXPECT_EQ(isthmus_allocation_tracker_report(tracked.get(), nullptr, 1, &length),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(isthmus_allocation_tracker_report(tracked.get(), nullptr, 0, &length), ISTHMUS_OK);
  EXPECT_GT(length, 0u);
  EXPECT_THROW(im::tag_scope(""), im::invalid_argument);
  const char* tag = nullptr;
  EXPECT_EQ(isthmus_tag_find(nullptr, &tag), ISTHMUS_ERROR_INVALID_ARGUMENT);
  const char* same = nullptr;
  EXPECT_EQ(isthmus_tag_find("one", &tag), ISTHMUS_OK);
  EXPECT_EQ(isthmus_tag_find(std::string("one").c_str(), &same), ISTHMUS_OK);
  EXPECT_EQ(tag, same);
}

TEST_P(tracking, names_the_top_holders_of_a_pool_without_memory) {
  const im::resource pool = im::resource::pool(
      queue_.context(), im::kind::device,
      {.initial_bytes = 8 * k_mib, .limit_bytes = 8 * k_mib, .wait = 0s}, device_);
  const im::resource one = im::resource::tracking(pool);
  const im::resource other = im::resource::tracking(im::resource::statistics(pool));
  const im::resource elsewhere = im::resource::tracking(upstreams(im::kind::device)[0]);
  std::vector<std::pair<const im::resource*, void*>> all;
  for (int i = 0; i < 3; ++i) {
    const im::tag_scope layer("layer1");
    all.emplace_back(&one, one.allocate(k_mib, 0, queue_));
    all.emplace_back(&elsewhere, elsewhere.allocate(k_mib, 0, queue_));
  }
  all.emplace_back(&other, other.allocate(k_mib, 0, queue_));
  for (int i = 0; i < 10; ++i) {
    const im::tag_scope layer("small " + std::to_string(i));
    all.emplace_back(&other, other.allocate(1, 0, queue_));
  }
  EXPECT_TRUE(
      throws(im::status::out_of_memory,
             {"layer1 has 3 MiB (3145728 bytes) in 3 blocks", "no tag has 1 MiB", "in 1 block,"},
             [&] { (void)one.allocate(7 * k_mib, 0, queue_); }));
  const auto seen = im::error_snapshot();
  ASSERT_TRUE(seen.has_value());
  ASSERT_EQ(seen->holders.size(), 8u) << "the largest alone";
  EXPECT_EQ(seen->holders[0], (im::tag_holder{"layer1", 3 * k_mib, 3}));
  EXPECT_EQ(seen->holders[1], (im::tag_holder{"", k_mib, 1}));
  EXPECT_EQ(seen->holders[7].bytes, 1u);
  for (const auto& [from, block] : all) {
    from->deallocate(block, from == &one || from == &elsewhere ? k_mib : 1, 0, queue_);
  }
  EXPECT_TRUE(im::snapshot_of(pool).holders.empty());
  isthmus_snapshot_t old{};
  old.struct_size = offsetof(isthmus_snapshot_t, holder_count);
  EXPECT_EQ(isthmus_resource_snapshot(pool.get(), &old), ISTHMUS_OK);
  old.struct_size -= 8;
  EXPECT_EQ(isthmus_resource_snapshot(pool.get(), &old), ISTHMUS_ERROR_INVALID_ARGUMENT);
}

}  // namespace
