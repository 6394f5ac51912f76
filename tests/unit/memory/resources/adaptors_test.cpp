// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/drivers.hpp"
#include "memory/base/provider.hpp"
#include "memory/records/allocation_lookup.hpp"
#include "memory/records/bare_pointers.hpp"
#include "memory/records/registry.hpp"
#include "memory/resources/binning_resource.hpp"
#include "memory/resources/custom_resource.hpp"
#include "memory/resources/fallback_resource.hpp"

namespace isthmus {
namespace {

// The operations of a custom resource that must not be used.
CustomResource::Operations never_asked() {
  CustomResource::Operations made{};
  made.struct_size = sizeof made;
  made.allocate = [](void*, std::size_t, std::size_t, isthmus_queue_t*, void**, const char**) {
    return Status{ISTHMUS_ERROR_OUT_OF_MEMORY};
  };
  made.deallocate = [](void*, void*, std::size_t, isthmus_queue_t*) { ADD_FAILURE(); };
  return made;
}

class over_others : public ::testing::Test {
 protected:
  void SetUp() override {
    auto found = find_device("host");
    ASSERT_TRUE(found);
    auto home = (*found)->platform().default_context();
    ASSERT_TRUE(home);
    auto made = Queue::create(**home, **found);
    ASSERT_TRUE(made);
    on_ = *std::move(made);
    auto from = Pool::create(**home, **found, ISTHMUS_KIND_HOST, {});
    ASSERT_TRUE(from);
    pool_ = *std::move(from);
    custom_ = make_ref<CustomResource>(**home, **found, ISTHMUS_KIND_HOST, never_asked(), Owner{});
    provider_ = make_ref<Provider>(**home, **found, ISTHMUS_KIND_HOST);
  }

  Ref<Queue> on_;
  Ref<MemoryResource> pool_, custom_, provider_;
};

// A record costs some hundred nanoseconds and marks the pool's slab permanently.
TEST_F(over_others, blocks_of_a_pool_get_no_record) {
  auto bins = BinningResource::create(*provider_, {{100, pool_}, {200, custom_}});
  ASSERT_TRUE(bins);
  for (const auto& over : {Ref<MemoryResource>{make_ref<FallbackResource>(*pool_, *custom_)},
                           Ref<MemoryResource>{*bins}}) {
    EXPECT_FALSE(over->orders_frees());
    auto block = allocate_raw(*over, 64, 0, *on_);
    ASSERT_TRUE(block);
    EXPECT_FALSE(process_registry().find(*block));
    EXPECT_FALSE(process_page_map.find(*block)->is_recorded());
    EXPECT_EQ(&over->resource_of(*block, 64), pool_.get());
    EXPECT_TRUE(deallocate_raw(*over, *block, 64, on_.get()));
    EXPECT_FALSE(deallocate_raw(*over, *block, 64, on_.get()));
  }
  auto large = allocate_raw(**bins, 1000, 0, *on_);
  ASSERT_TRUE(large);
  EXPECT_TRUE(process_registry().find(*large)) << "the provider's free does not wait for work";
  EXPECT_TRUE(deallocate_raw(**bins, *large, 1000, on_.get()));
}

TEST(pointer_table, is_empty_once_all_notes_were_taken) {
  PointerTable<int> table;
  int place = 0;
  table.insert(&place, 1);
  auto taken = table.extract(&place);
  table.insert(&place, 2);
  table.reinsert(std::move(taken));
  EXPECT_EQ(table.extract(&place).mapped(), 2);
  EXPECT_TRUE(table.is_empty());
}

}  // namespace
}  // namespace isthmus
