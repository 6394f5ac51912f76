// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/page_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "memory/pool/pool_page.hpp"
#include "memory/pool/slab.hpp"

namespace isthmus {
namespace {

constexpr std::uintptr_t k_map_base = std::uintptr_t{3} << 30;
constexpr std::size_t k_mapped_grains = 4;

// Addresses that are never accessed: the last pages (`grain`) of one leaf and the first of the
// next.
class page_maps : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(map_->prepare(at(0), k_mapped_grains));
    map_->enter(at(0), k_mapped_grains, records_.data());
  }
  static const void* at(std::size_t grain, std::size_t offset = 0) {
    return reinterpret_cast<const void*>(k_map_base + (grain - 2) * k_pool_page_bytes + offset);
  }
  [[nodiscard]] MapEntry::Seen seen(std::size_t grain) const {
    return map_->at(at(grain, k_pool_page_bytes - 1)).load();
  }

  static constexpr auto k_shape = SlabShape::of_first(4096);
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>();
  alignas(sizeof(PoolPage) * k_mapped_grains) std::array<PoolPage, k_mapped_grains> records_{};
  Slab slab_{k_shape};
};

TEST_F(page_maps, map_any_address_to_the_record_of_its_page) {
  for (std::size_t each = 0; each < k_mapped_grains; ++each) {
    EXPECT_EQ(seen(each).record(), &records_[each]);
    EXPECT_EQ(map_->find(at(each)), &records_[each]);
    EXPECT_FALSE(seen(each).is_bare());
  }
  map_->remove(at(1), 2);
  EXPECT_EQ(map_->find(at(0)), records_.data());
  EXPECT_EQ(map_->find(at(1)), nullptr);
  EXPECT_EQ(map_->find(at(2)), nullptr);
}

// AArch64 gives a process 48 bits of address space, and maps from the top.
TEST_F(page_maps, reach_to_the_last_address_of_a_process) {
  const auto end = std::uintptr_t{1} << k_address_bits;
  EXPECT_EQ(k_address_bits, 48U);
  EXPECT_TRUE(map_->prepare(reinterpret_cast<const void*>(end - k_pool_page_bytes), 1));
  const auto beyond = map_->prepare(reinterpret_cast<const void*>(end - k_pool_page_bytes), 2);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
}

TEST_F(page_maps, know_nothing_of_other_addresses) {
  EXPECT_EQ(map_->find(nullptr), nullptr);
  EXPECT_EQ(map_->find(at(k_mapped_grains)), nullptr);
  EXPECT_EQ(map_->find(reinterpret_cast<void*>(std::uintptr_t{9} << 30)), nullptr);
  EXPECT_EQ(map_->find(reinterpret_cast<void*>(~std::uintptr_t{0})), nullptr);
  EXPECT_FALSE(map_->at(nullptr).load().is_bare());
}

TEST_F(page_maps, identify_a_slab_without_its_page_records) {
  constexpr unsigned k_class = 79;
  map_->set_slab(at(1), 2, slab_, k_class);
  EXPECT_FALSE(seen(0).is_bare());
  for (std::size_t each = 1; each < 3; ++each) {
    EXPECT_TRUE(seen(each).is_bare());
    EXPECT_EQ(seen(each).size_class(), k_class);
    EXPECT_EQ(seen(each).record(), &records_[each]);
    EXPECT_EQ(&map_->at(at(each)).last_slab(), &slab_);
  }
  map_->clear_slab(at(1), 2);
  EXPECT_FALSE(seen(1).is_bare());
  EXPECT_EQ(seen(1).record(), &records_[1]);
}

TEST_F(page_maps, identify_the_pool_of_a_block) {
  constexpr auto k_bytes = sizeof records_;
  map_->set_slab(at(0), 1, slab_, 0);
  EXPECT_TRUE(seen(0).is_bare_of(records_.data(), k_bytes));
  EXPECT_FALSE(seen(0).is_bare_of(records_.data() + k_mapped_grains, k_bytes));
  EXPECT_FALSE(seen(1).is_bare_of(records_.data(), k_bytes)) << "no slab";
  EXPECT_FALSE(map_->at(nullptr).load().is_bare_of(records_.data(), k_bytes));
}

std::optional<Result<void>> refuse_free(const void*, void*, Queue*) noexcept {
  return std::nullopt;
}

TEST_F(page_maps, send_to_the_record_where_a_block_has_an_allocation_record) {
  map_->set_slab(at(0), 2, slab_, 7);
  for (std::size_t each = 0; each < 2; ++each) {
    records_[each].set_slab(slab_, 7);
  }
  map_->note_record(at(1, 8192), &refuse_free);
  EXPECT_TRUE(seen(0).is_bare());
  EXPECT_FALSE(seen(1).is_bare());
  EXPECT_TRUE(map_->find(at(1))->is_recorded());
  EXPECT_EQ(map_->free_recorded(), &refuse_free);
  EXPECT_EQ(&map_->at(at(1)).last_slab(), &slab_);
  map_->note_record(nullptr, &refuse_free);
}

}  // namespace
}  // namespace isthmus
