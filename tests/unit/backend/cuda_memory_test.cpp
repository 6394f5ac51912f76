// Memory of a CUDA device, and the caller's current context.

#include <algorithm>
#include <thread>

#include "core/sizes.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

TEST_F(cuda_gpu, leaves_the_callers_current_context_as_it_is) {
  const auto extra = others();
  cuda::context_handle theirs = nullptr;
  ASSERT_EQ(extra.create_context(&theirs, 0, where().index()), 0U);
  for (auto* current : {static_cast<cuda::context_handle>(nullptr), theirs, primary()}) {
    std::thread{[&] {
      ASSERT_EQ(calls().set_current(current), 0U);
      const block memory{home(), where(), 4096};
      const auto data = numbered(4096);
      finish(line().copy(memory.at(), data.data(), 4096, {}));
      EXPECT_EQ(read(line(), memory.at(), 4096), data);
      EXPECT_EQ(home().query(memory.at(5)).base, memory.at());
      EXPECT_TRUE(where().memory());
      cuda::context_handle now = nullptr;
      EXPECT_EQ(calls().get_current(&now), 0U);
      EXPECT_EQ(now, current);
    }}.join();
  }
  EXPECT_EQ(extra.destroy_context(theirs), 0U);
}

TEST_F(cuda_test, knows_its_pointers_and_no_others) {
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    const block memory{home(), where(), 10000, kind};
    const auto told = home().query(memory.at(9999));
    EXPECT_EQ(told.kind, kind);
    EXPECT_EQ(told.base, memory.at());
    EXPECT_GE(told.nbytes, 10000U);
    EXPECT_EQ(told.home, kind == ISTHMUS_KIND_HOST ? nullptr : &where());
  }
  const int on_the_stack = 0;
  EXPECT_EQ(home().query(&on_the_stack).kind, ISTHMUS_KIND_UNKNOWN);
  EXPECT_EQ(home().query(nullptr).kind, ISTHMUS_KIND_UNKNOWN);
}

TEST_F(cuda_test, gives_any_alignment_that_it_offers) {
  for (const auto kind : {ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_SHARED, ISTHMUS_KIND_HOST}) {
    for (std::size_t alignment = 1; alignment <= where().properties().max_alignment;
         alignment *= 8) {
      const block one{home(), where(), 100, kind, alignment};
      const block other{home(), where(), 100, kind, alignment};
      EXPECT_EQ(address(one.at()) % alignment, 0U);
      EXPECT_EQ(address(other.at()) % alignment, 0U);
    }
  }
}

TEST_F(cuda_test, refuses_shared_memory_that_does_not_fit) {
  const auto free_bytes = where().memory()->free_bytes;
  const auto refused = home().allocate(where(), {ISTHMUS_KIND_SHARED, free_bytes + 1, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(tells(refused.failure(), "can hang the device")) << refused.failure().message();
  // What was handed out and not touched yet counts too.
  const auto large = free_bytes / 2 + (free_bytes / 8);
  const block first{home(), where(), large, ISTHMUS_KIND_SHARED};
  EXPECT_EQ(home().allocate(where(), {ISTHMUS_KIND_SHARED, large, 0}).failure().code(),
            ISTHMUS_ERROR_OUT_OF_MEMORY);
}

TEST_F(cuda_test, counts_shared_memory_no_more_once_it_is_back) {
  for (int round = 0; round < 3; ++round) {
    const auto most = where().memory()->free_bytes / 2;
    const block aligned{home(), where(), 100, ISTHMUS_KIND_SHARED,
                        where().properties().max_alignment};
    const block large{home(), where(), most, ISTHMUS_KIND_SHARED};
  }
}

TEST_F(cuda_test, says_what_is_free_where_there_is_too_little) {
  const auto all = where().properties().memory_bytes;
  const auto refused = home().allocate(where(), {ISTHMUS_KIND_DEVICE, all, 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(tells(refused.failure(), "CUDA_ERROR_OUT_OF_MEMORY (2); it has "))
      << refused.failure().message();
}

class cuda_chunks : public cuda_test {
 protected:
  void SetUp() override {
    cuda_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    chunks_ = home().chunks(where(), ISTHMUS_KIND_DEVICE);
    if (chunks_ == nullptr) {
      GTEST_SKIP() << "no virtual memory management";
    }
    unit_ = chunks_->granularity();
    base_ = static_cast<std::byte*>(*chunks_->reserve(8 * unit_, 4 * unit_));
  }
  void TearDown() override {
    if (base_ != nullptr) {
      chunks_->release(base_, 8 * unit_);
    }
  }

  chunk_source* chunks_ = nullptr;
  std::size_t unit_ = 0;
  std::byte* base_ = nullptr;
};

TEST_F(cuda_chunks, keep_what_is_in_them_where_they_go) {
  EXPECT_EQ(address(base_) % (4 * unit_), 0U);
  ASSERT_TRUE(chunks_->create(base_, 2 * unit_));
  ASSERT_TRUE(chunks_->create(base_ + 2 * unit_, unit_));
  const auto data = numbered(3 * unit_);
  finish(line().copy(base_, data.data(), 3 * unit_, {}));  // over the seam between two chunks
  bool lost = true;
  ASSERT_TRUE(chunks_->move(base_, base_ + 5 * unit_, 2 * unit_, lost));
  EXPECT_FALSE(lost);
  const auto moved = read(line(), base_ + 5 * unit_, 2 * unit_);
  EXPECT_TRUE(std::equal(moved.begin(), moved.end(), data.begin()));
  const auto still = read(line(), base_, 2 * unit_);
  EXPECT_EQ(still, moved) << "it stays behind, for what is at work there";
  chunks_->leave(base_, 2 * unit_);
  ASSERT_TRUE(chunks_->create(base_, unit_)) << "where it was there is room again";
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
    chunks_->destroy(base_ + at * unit_, unit_);
  }
  chunks_->destroy(base_ + 5 * unit_, 2 * unit_);
}

TEST_F(cuda_chunks, stay_where_they_are_if_they_cannot_move) {
  ASSERT_TRUE(chunks_->create(base_, unit_));
  ASSERT_TRUE(chunks_->create(base_ + unit_, unit_));
  const auto data = numbered(unit_);
  finish(line().copy(base_, data.data(), unit_, {}));
  // Other addresses than a reservation's: the driver refuses to map.
  auto* const nowhere = reinterpret_cast<std::byte*>(unit_);
  bool lost = true;
  EXPECT_FALSE(chunks_->move(base_, nowhere, unit_, lost));
  EXPECT_FALSE(lost);
  EXPECT_EQ(read(line(), base_, unit_), data);
  EXPECT_FALSE(chunks_->create(nowhere, unit_));
  chunks_->destroy(base_, unit_);
  chunks_->destroy(base_ + unit_, unit_);
}

TEST_F(cuda_chunks, go_back_to_the_driver) {
  const auto before = where().memory()->free_bytes;
  constexpr std::size_t k_large = std::size_t{64} << 20;
  auto range = chunks_->reserve(k_large, unit_);
  ASSERT_TRUE(range);
  ASSERT_TRUE(chunks_->create(*range, k_large));
  EXPECT_LT(where().memory()->free_bytes, before);
  chunks_->destroy(*range, k_large);
  chunks_->release(*range, k_large);
  EXPECT_EQ(where().memory()->free_bytes, before);
}

TEST_F(cuda_chunks, may_be_registered_with_network_cards) {
  if (!where().traits().rdma_of_virtual_memory) {
    GTEST_SKIP() << "not on this device";
  }
  ASSERT_TRUE(chunks_->create(base_, unit_));
  {
    const cuda::made_current here{calls(), primary()};
    cuda::number what = cuda::cu::k_pointer_is_for_rdma;
    cuda::number may = 0;
    void* answer = &may;
    EXPECT_EQ(calls().pointer_attributes(1, &what, &answer, cuda::place_of(base_)), 0U);
    EXPECT_NE(may, 0U);
  }
  chunks_->destroy(base_, unit_);
}

}  // namespace
}  // namespace isthmus::cuda_test
