// SPDX-License-Identifier: Apache-2.0
// Physical chunks of a CUDA device and of pinned host memory, and moving them to other addresses.

#include <algorithm>

#include "core/sizes.hpp"
#include "support/eventually.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

class cuda_chunks : public cuda_test, public testing::WithParamInterface<UsmKind> {
 protected:
  void SetUp() override {
    cuda_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    chunks_ = test_context().chunks(test_device(), GetParam());
    if (chunks_ == nullptr) {
      GTEST_SKIP() << "no virtual memory management of this kind";
    }
    unit_ = chunks_->granularity();
    base_ = static_cast<std::byte*>(*chunks_->reserve(8 * unit_, 4 * unit_));
  }
  void TearDown() override {
    if (base_ != nullptr) {
      chunks_->release(base_, 8 * unit_);
    }
  }

  ChunkSource* chunks_ = nullptr;
  std::size_t unit_ = 0;
  std::byte* base_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(cuda_kinds, cuda_chunks,
                         testing::Values(ISTHMUS_KIND_DEVICE, ISTHMUS_KIND_HOST),
                         [](const auto& each) { return std::string{kind_name(each.param)}; });

TEST_P(cuda_chunks, keep_their_content_when_they_move) {
  EXPECT_EQ(address(base_) % (4 * unit_), 0U);
  ASSERT_TRUE(chunks_->create(base_, 2 * unit_));
  ASSERT_TRUE(chunks_->create(base_ + 2 * unit_, unit_));
  const auto data = numbered(3 * unit_);
  finish(
      test_queue().copy(base_, data.data(), 3 * unit_, {}));  // across the boundary of two chunks
  bool lost = true;
  ASSERT_TRUE(chunks_->move(base_, base_ + 5 * unit_, 2 * unit_, lost));
  EXPECT_FALSE(lost);
  const auto moved = read(test_queue(), base_ + 5 * unit_, 2 * unit_);
  EXPECT_TRUE(std::equal(moved.begin(), moved.end(), data.begin()));
  const auto still = read(test_queue(), base_, 2 * unit_);
  EXPECT_EQ(still, moved) << "it stays behind, for what is at work there";
  chunks_->unmap_old(base_, 2 * unit_);
  ASSERT_TRUE(chunks_->create(base_, unit_)) << "where it was there is room again";
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}}) {
    chunks_->destroy(base_ + at * unit_, unit_);
  }
  chunks_->destroy(base_ + 5 * unit_, 2 * unit_);
}

TEST_P(cuda_chunks, stay_where_they_are_if_they_cannot_move) {
  ASSERT_TRUE(chunks_->create(base_, unit_));
  ASSERT_TRUE(chunks_->create(base_ + unit_, unit_));
  const auto data = numbered(unit_);
  finish(test_queue().copy(base_, data.data(), unit_, {}));
  // Addresses outside of any reservation: the driver refuses to map there.
  auto* const nowhere = reinterpret_cast<std::byte*>(unit_);
  bool lost = true;
  EXPECT_FALSE(chunks_->move(base_, nowhere, unit_, lost));
  EXPECT_FALSE(lost);
  EXPECT_EQ(read(test_queue(), base_, unit_), data);
  EXPECT_FALSE(chunks_->create(nowhere, unit_));
  chunks_->destroy(base_, unit_);
  chunks_->destroy(base_ + unit_, unit_);
}

// Other processes on the same card also change the free memory: one undisturbed attempt is enough.
TEST_P(cuda_chunks, return_to_the_driver) {
  constexpr std::size_t k_large = std::size_t{64} << 20;
  const auto free_now = [&] { return test_device().memory()->free_bytes; };
  EXPECT_TRUE(support::eventually([&] {
    const auto before = free_now();
    auto range = chunks_->reserve(k_large, unit_);
    const bool is_made = range && chunks_->create(*range, k_large);
    EXPECT_TRUE(is_made);
    const auto meanwhile = free_now();
    chunks_->destroy(*range, k_large);
    chunks_->release(*range, k_large);
    const auto taken = GetParam() == ISTHMUS_KIND_DEVICE ? k_large : 0;
    return meanwhile + taken == before && free_now() == before;
  }));
}

// The memory has the pattern from its first byte on, and no byte beside it changed.
void expect_filled(Queue& line, std::byte* at, std::size_t nbytes, const FillPattern& pattern) {
  const std::byte beside[]{at[-1], at[nbytes]};
  finish(line.fill(at, pattern, nbytes, {}));
  for (std::size_t i = 0; i < nbytes; ++i) {
    ASSERT_EQ(at[i], pattern.bytes[i % pattern.nbytes]) << i << " of " << nbytes;
  }
  EXPECT_EQ(at[-1], beside[0]);
  EXPECT_EQ(at[nbytes], beside[1]);
}

// Fills of host memory around the boundary of two chunks. The second chunk has `unit` bytes.
void expect_fills_about(Queue& line, std::byte* seam, std::size_t unit) {
  std::uint8_t value = 0;
  for (std::size_t width = 1; width <= 16; width *= 2) {
    FillPattern pattern;
    pattern.nbytes = width;
    std::generate_n(pattern.bytes, width, [&] { return std::byte{++value}; });
    for (const std::size_t offset : {1U, 2U, 3U, 8U, 15U, 16U, 17U}) {
      expect_filled(line, seam + offset, width, pattern);
      expect_filled(line, seam + offset, 16 * 5, pattern);
      expect_filled(line, seam - offset, 16 * 9, pattern);
    }
    expect_filled(line, seam - 37, unit - 48, pattern);
  }
}

class cuda_host_chunks : public cuda_chunks {};
INSTANTIATE_TEST_SUITE_P(cuda, cuda_host_chunks, testing::Values(ISTHMUS_KIND_HOST),
                         [](const auto&) { return std::string{"host"}; });

TEST_P(cuda_host_chunks, are_the_hosts_as_well) {
  ASSERT_TRUE(chunks_->create(base_, unit_));
  const auto data = numbered(unit_);
  std::copy(data.begin(), data.end(), base_);
  EXPECT_EQ(read(test_queue(), base_, unit_), data);
  bool lost = true;
  ASSERT_TRUE(chunks_->move(base_, base_ + unit_, unit_, lost));
  EXPECT_TRUE(std::equal(data.begin(), data.end(), base_)) << "where it stays behind";
  EXPECT_TRUE(std::equal(data.begin(), data.end(), base_ + unit_));
  base_[7] = std::byte{0xee};
  EXPECT_EQ(base_[unit_ + 7], std::byte{0xee}) << "one memory";
  chunks_->unmap_old(base_, unit_);
  chunks_->destroy(base_ + unit_, unit_);
}

TEST_P(cuda_host_chunks, are_reported_as_pinned_memory) {
  ASSERT_TRUE(chunks_->create(base_, unit_));
  ASSERT_TRUE(chunks_->create(base_ + unit_, unit_));
  for (const std::size_t offset : {std::size_t{0}, unit_ - 1, unit_, 2 * unit_ - 1}) {
    const auto told = test_context().query(base_ + offset);
    EXPECT_EQ(told.kind, ISTHMUS_KIND_HOST);
    EXPECT_EQ(told.base, base_) << "of all the addresses";
    EXPECT_EQ(told.nbytes, 8 * unit_);
    EXPECT_EQ(told.device, nullptr);
  }
  EXPECT_EQ(test_context().query(base_ + 2 * unit_).kind, ISTHMUS_KIND_UNKNOWN);
  EXPECT_FALSE(test_device().is_pageable(base_));
  for (const std::size_t at : {std::size_t{0}, unit_}) {
    chunks_->destroy(base_ + at, unit_);
  }
}

// Also across the boundaries of chunks.
TEST_P(cuda_host_chunks, take_any_pattern_anywhere) {
  for (const std::size_t at : {std::size_t{0}, unit_, 2 * unit_}) {
    ASSERT_TRUE(chunks_->create(base_ + at, unit_));
  }
  expect_fills_about(test_queue(), base_ + unit_, unit_);
  FillPattern words;
  words.nbytes = 4;
  expect_filled(test_queue(), base_ + 4, 3 * unit_ - 8, words);
  for (const std::size_t at : {std::size_t{0}, unit_, 2 * unit_}) {
    chunks_->destroy(base_ + at, unit_);
  }
}

TEST_P(cuda_host_chunks, come_from_elsewhere_where_the_near_node_is_full) {
  auto* const library = *os::open_library(test_device().platform().properties().library.c_str());
  auto* const fill_node =
      reinterpret_cast<void (*)(int)>(os::find_symbol(library, "stand_in_fill_node"));
  if (fill_node == nullptr) {
    GTEST_SKIP() << "a driver that does as it is asked";
  }
  fill_node(1);
  EXPECT_TRUE(chunks_->create(base_, unit_));
  fill_node(0);
  base_[0] = std::byte{1};
  chunks_->destroy(base_, unit_);
}

TEST_P(cuda_chunks, may_be_registered_with_network_cards) {
  if (GetParam() != ISTHMUS_KIND_DEVICE || !test_device().traits().rdma_with_virtual_memory) {
    GTEST_SKIP() << "not on this device";
  }
  ASSERT_TRUE(chunks_->create(base_, unit_));
  {
    const cuda::ContextGuard here{calls(), primary()};
    unsigned what = cuda::cu::k_pointer_is_rdma_capable;
    unsigned may = 0;
    void* answer = &may;
    EXPECT_EQ(calls().pointer_attributes(1, &what, &answer, cuda::to_deviceptr(base_)), 0U);
    EXPECT_NE(may, 0U);
  }
  chunks_->destroy(base_, unit_);
}

// A function that controls the stand-in driver. Null on a real driver.
template <class Function>
Function* stand_ins(const std::string& path, const char* name) {
  auto* const library = *os::open_library(path.c_str());
  return reinterpret_cast<Function*>(os::find_symbol(library, name));
}

TEST_P(cuda_chunks, are_exportable_where_the_driver_makes_them_so) {
  if (GetParam() != ISTHMUS_KIND_DEVICE) {
    GTEST_SKIP() << "of a device alone";
  }
  const auto handle_types = [&] {
    const cuda::ContextGuard here{calls(), primary()};
    unsigned what = cuda::cu::k_pointer_handle_types;
    std::uint64_t types = 0;
    void* answer = &types;
    EXPECT_EQ(calls().pointer_attributes(1, &what, &answer, cuda::to_deviceptr(base_)), 0U);
    return types;
  };
  ASSERT_TRUE(chunks_->create(base_, unit_));
  EXPECT_EQ(handle_types(), cuda::cu::k_handle_type_posix_fd);
  chunks_->destroy(base_, unit_);
  auto* const refuse = stand_ins<void(int)>(test_device().platform().properties().library,
                                            "stand_in_refuse_exports");
  if (refuse == nullptr) {
    return;
  }
  refuse(1);
  EXPECT_TRUE(chunks_->create(base_, unit_)) << "others serve as well";
  refuse(0);
  EXPECT_EQ(handle_types(), 0U);
  chunks_->destroy(base_, unit_);
}

TEST_P(cuda_chunks, are_open_to_peers_in_use) {
  const auto& library = test_device().platform().properties().library;
  auto* const let_peers = stand_ins<void(int)>(library, "stand_in_let_peers");
  auto* const users = stand_ins<unsigned(const void*)>(library, "stand_in_users");
  if (GetParam() != ISTHMUS_KIND_DEVICE || let_peers == nullptr) {
    GTEST_SKIP() << "a driver whose access cannot be read";
  }
  const auto all = test_device().platform().devices();
  auto& peer = static_cast<cuda::Device&>(*all[1]);
  ASSERT_TRUE(peer.primary());
  ASSERT_TRUE(chunks_->create(base_, unit_));
  EXPECT_EQ(users(base_), 1U) << "the driver lets no peer in";
  chunks_->destroy(base_, unit_);
  let_peers(1);
  ASSERT_TRUE(chunks_->create(base_, unit_));
  EXPECT_EQ(users(base_), 3U);
  bool lost = true;
  ASSERT_TRUE(chunks_->move(base_, base_ + unit_, unit_, lost));
  EXPECT_EQ(users(base_ + unit_), 3U);
  let_peers(0);
  chunks_->unmap_old(base_, unit_);
  chunks_->destroy(base_ + unit_, unit_);
}

}  // namespace
}  // namespace isthmus::cuda_test
