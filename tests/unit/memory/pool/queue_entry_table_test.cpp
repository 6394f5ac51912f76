// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/queue_entry_table.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <unordered_map>

namespace isthmus {
namespace {

constexpr QueueEntryTable::Index k_reserved = 2;

class queue_entry_tables : public testing::Test {
 protected:
  std::unique_ptr<QueueEntryTable> table_ = std::make_unique<QueueEntryTable>(k_reserved);
};

TEST_F(queue_entry_tables, find_what_was_assigned_last_and_nothing_else) {
  std::mt19937_64 random{1};
  std::unordered_map<QueueEntryTable::Index, std::uint64_t> model;
  std::uint64_t last_serial = 0;
  for (int step = 0; step < 20'000; ++step) {
    last_serial += 1 + random() % 3 * 512;  // many in one hash chain
    auto entry = static_cast<QueueEntryTable::Index>(k_reserved + random() % (model.size() + 1));
    if (entry == table_->used()) {
      entry = table_->add();
    }
    table_->assign(entry, last_serial);
    model[entry] = last_serial;
    if (model.size() > 5000) {
      break;
    }
  }
  for (const auto& [entry, serial] : model) {
    ASSERT_EQ(table_->find(serial), entry);
  }
  EXPECT_EQ(table_->find(last_serial + 1), QueueEntryTable::k_none);
  EXPECT_EQ(table_->find(0), QueueEntryTable::k_none);
}

TEST_F(queue_entry_tables, have_as_many_entries_as_tickets_can_name) {
  for (auto expected = k_reserved; expected < QueueEntryTable::k_max; ++expected) {
    ASSERT_EQ(table_->add(), expected);
  }
  EXPECT_EQ(table_->add(), QueueEntryTable::k_none);
  EXPECT_EQ(table_->used(), QueueEntryTable::k_max);
}

}  // namespace
}  // namespace isthmus
