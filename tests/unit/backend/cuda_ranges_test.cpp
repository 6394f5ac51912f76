// SPDX-License-Identifier: Apache-2.0
// Copies of ranges by a kernel: its lists, copies that do not use it, and failures of the driver.

#include "backend/cuda/ranges.hpp"

#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using bytes = std::vector<std::byte>;
using range_vector = std::vector<CopyRange>;

constexpr std::size_t k_bytes = 200'000;

class cuda_ranges : public cuda_test {
 protected:
  // Every second 100 bytes, from a different offset.
  [[nodiscard]] static range_vector every_second() {
    range_vector all;
    for (std::size_t at = 0; at + 100 < k_bytes; at += 200) {
      all.push_back({at, at + 37, 100});
    }
    return all;
  }
  [[nodiscard]] static bytes modelled(const bytes& from, const range_vector& all) {
    bytes want(k_bytes);
    copy_ranges({want.data(), from.data(), all});
    return want;
  }
  void clear(const block& there) const {
    const bytes nothing(k_bytes);
    finish(test_queue().copy(there.at(), nothing.data(), k_bytes, {}));
  }
};

TEST_F(cuda_ranges, of_pinned_memory_and_inside_the_device) {
  const block there{test_context(), test_device(), k_bytes};
  const block other{test_context(), test_device(), k_bytes};
  const block pinned{test_context(), test_device(), k_bytes, ISTHMUS_KIND_HOST};
  const auto data = numbered(k_bytes);
  std::copy(data.begin(), data.end(), pinned.at());
  finish(test_queue().copy(other.at(), data.data(), k_bytes, {}));
  const auto all = every_second();
  for (const auto* from : {&pinned, &other}) {
    clear(there);
    finish(test_queue().copy_ranges({there.at(), from->at(), all}, {}));
    EXPECT_TRUE(read(test_queue(), there.at(), k_bytes) == modelled(data, all));
  }
}

TEST_F(cuda_ranges, of_plain_memory_are_copied_one_by_one) {
  const block there{test_context(), test_device(), k_bytes};
  clear(there);
  const auto data = numbered(k_bytes);
  const auto all = every_second();
  finish(test_queue().copy_ranges({there.at(), data.data(), all}, {}));
  EXPECT_TRUE(read(test_queue(), there.at(), k_bytes) == modelled(data, all));
}

// More operations than there are lists for. None has been submitted to the driver yet.
TEST_F(cuda_ranges, that_are_held_back_keep_their_lists) {
  const block there{test_context(), test_device(), k_bytes};
  const block pinned{test_context(), test_device(), k_bytes, ISTHMUS_KIND_HOST};
  const auto data = numbered(k_bytes);
  std::copy(data.begin(), data.end(), pinned.at());
  clear(there);
  const Ref<Event> gate{make_ref<LibraryEvent>()};
  auto all = every_second();
  std::vector<Ref<Event>> ends;
  for (std::size_t i = 0; i < cuda::RangeLists::k_max_blocks + 10; ++i) {
    auto put = test_queue().copy_ranges({there.at(), pinned.at(), all}, std::span{&gate, 1});
    ASSERT_TRUE(put) << put.failure().message();
    ends.push_back(*std::move(put));
  }
  const auto wanted = modelled(data, all);
  std::fill(all.begin(), all.end(), CopyRange{});  // the caller's list is free for reuse
  EXPECT_TRUE(ends.back()->pending());
  static_cast<LibraryEvent&>(*gate).finish({});
  for (const auto& each : ends) {
    EXPECT_TRUE(each->wait(std::nullopt));
  }
  EXPECT_TRUE(read(test_queue(), there.at(), k_bytes) == wanted);
  auto& lists = test_device().range_lists();
  const cuda::ContextGuard here{calls(), primary()};
  const auto blocks = lists.acquire(calls(), cuda::RangeLists::k_max_blocks);
  EXPECT_EQ(blocks.size(), cuda::RangeLists::k_max_blocks) << "all are free again";
  lists.release(blocks);
  EXPECT_TRUE(lists.acquire(calls(), cuda::RangeLists::k_max_blocks + 1).empty());
}

TEST_F(cuda_ranges, report_every_failure) {
  auto library = *os::open_library(test_device().platform().properties().library.c_str());
  const auto fail_after =
      reinterpret_cast<long (*)(long)>(os::find_symbol(library, "stand_in_fail_after"));
  if (fail_after == nullptr) {
    GTEST_SKIP() << "a driver that does not fail when told to";
  }
  const block there{test_context(), test_device(), k_bytes};
  const block pinned{test_context(), test_device(), k_bytes, ISTHMUS_KIND_HOST};
  const auto all = every_second();
  bool reached = true;
  int failed = 0;
  for (long n = 0; reached; ++n) {
    ASSERT_LT(n, 100);
    const auto data = numbered(k_bytes, static_cast<unsigned>(n));
    std::copy(data.begin(), data.end(), pinned.at());
    clear(there);
    fail_after(n);
    auto put = test_queue().copy_ranges({there.at(), pinned.at(), all}, {});
    reached = fail_after(-1) < 0;
    failed += put ? 0 : 1;
    if (put) {
      EXPECT_TRUE((*put)->wait(std::nullopt));
      EXPECT_TRUE(read(test_queue(), there.at(), k_bytes) == modelled(data, all)) << n;
    }
  }
  EXPECT_GT(failed, 1);
}

}  // namespace
}  // namespace isthmus::cuda_test
