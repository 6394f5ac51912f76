// SPDX-License-Identifier: Apache-2.0
// Notes that are overwritten while other threads read them.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "memory/resources/block_table.hpp"

namespace isthmus::block_table_test {
namespace {

constexpr std::uint64_t k_rounds = 200'000;

// All fields follow from the number of the note.
BlockRecord numbered(const void* pointer, std::uint64_t number) {
  const std::size_t nbytes = 4096 + number % 1000;
  const auto* const text = reinterpret_cast<const char*>(number + 1);
  return {pointer, nbytes, number, number, 1, text, text};
}

bool is_whole(const BlockRecord& of) {
  const auto want = numbered(of.pointer, of.order);
  return of.nbytes == want.nbytes && of.queue == want.queue && of.tag == want.tag &&
         of.stack == want.stack;
}

// As for a block that another library freed: nothing has taken its note.
TEST(block_table, overwritten_notes_are_read_as_a_whole) {
  const void* const pointer = reinterpret_cast<const void*>(std::uintptr_t{1} << 30);
  BlockTable notes;
  std::atomic<bool> ended{false};
  std::thread writer{[&] {
    for (std::uint64_t number = 1; number <= k_rounds; ++number) {
      notes.insert(numbered(pointer, number));
    }
    ended.store(true);
  }};
  std::uint64_t torn = 0;
  while (!ended.load()) {
    BlockRecord found;
    if (notes.find(pointer, found) && !is_whole(found)) {
      ++torn;
    }
  }
  writer.join();
  EXPECT_EQ(torn, 0U);
  BlockRecord last;
  ASSERT_TRUE(notes.find(pointer, last));
  EXPECT_EQ(last.order, k_rounds);
}

}  // namespace
}  // namespace isthmus::block_table_test
