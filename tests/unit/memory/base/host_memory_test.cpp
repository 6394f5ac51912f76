// SPDX-License-Identifier: Apache-2.0
// How much host memory drivers may allocate, for numbers that the test chooses. Also tests that the
// process's own memory use is counted.

#include "memory/base/host_memory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/drivers.hpp"
#include "core/sanitizers.hpp"
#include "memory/base/provider.hpp"
#include "os/virtual_memory.hpp"
#include "support/kernel_files.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::host_memory_test {
namespace {

using sim_test::expect_failure;
using sim_test::expect_value;

using support::k_mib;

class host_memory_accounting : public ::testing::Test {
 protected:
  host_memory_accounting() { available(100 * k_mib); }

  void available(std::size_t nbytes) { files.machine(nbytes / 1024); }
  // The memory use of the process.
  void process(std::size_t resident, std::size_t swapped = 0) {
    files.process(resident / os::page_size(), swapped / 1024);
  }
  Result<void> take(std::size_t nbytes) {
    return memory.reserve(*where, {ISTHMUS_KIND_HOST, nbytes, 0});
  }
  void give_back(std::size_t nbytes) { memory.release(*where, nbytes); }

  support::kernel_files files;
  const os::MemoryBounds bounds{files.root()};
  HostMemory memory{bounds, 1000 * k_mib};
  Device* where = expect_value(find_device("host"));
};

TEST_F(host_memory_accounting, is_refused_beyond_what_is_available) {
  expect_failure(take(101 * k_mib), ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "cannot allocate 101 MiB (105906176 bytes) of host memory on host:cpu:0: it "
                 "would reside on the host, where 100 MiB (104857600 bytes) are available "
                 "according to MemAvailable, while 0 bytes");
  EXPECT_TRUE(take(100 * k_mib));
}

TEST_F(host_memory_accounting, is_queried_for_each_large_allocation) {
  process(500 * k_mib);
  EXPECT_TRUE(take(50 * k_mib));
  available(20 * k_mib);
  expect_failure(take(50 * k_mib), ISTHMUS_ERROR_OUT_OF_MEMORY, "20 MiB");
  EXPECT_TRUE(take(20 * k_mib));
}

TEST_F(host_memory_accounting, that_was_promised_and_not_touched_is_not_available) {
  EXPECT_TRUE(take(60 * k_mib));
  expect_failure(take(60 * k_mib), ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "while 60 MiB (62914560 bytes) of live allocations were never written to");
  process(30 * k_mib);
  expect_failure(take(71 * k_mib), ISTHMUS_ERROR_OUT_OF_MEMORY, "while 30 MiB");
  EXPECT_TRUE(take(70 * k_mib));
  give_back(60 * k_mib);
  EXPECT_TRUE(take(60 * k_mib));
}

TEST_F(host_memory_accounting, that_was_swapped_out_was_touched) {
  EXPECT_TRUE(take(90 * k_mib));
  process(10 * k_mib, 80 * k_mib);
  EXPECT_TRUE(take(90 * k_mib));
}

TEST_F(host_memory_accounting, is_refused_beyond_all_of_it) {
  available(5000 * k_mib);
  process(2000 * k_mib);
  EXPECT_TRUE(take(900 * k_mib));
  expect_failure(take(101 * k_mib), ISTHMUS_ERROR_OUT_OF_MEMORY,
                 "900 MiB (943718400 bytes) of 1000 MiB (1048576000 bytes) are reserved");
  EXPECT_TRUE(take(100 * k_mib));
}

TEST_F(host_memory_accounting, is_not_lost_by_a_refusal) {
  for (int each = 0; each < 100; ++each) {
    EXPECT_FALSE(take(101 * k_mib));
    EXPECT_FALSE(take(1001 * k_mib));
  }
  EXPECT_TRUE(take(100 * k_mib));
}

TEST_F(host_memory_accounting, is_queried_once_for_several_small_allocations) {
  process(500 * k_mib);
  EXPECT_TRUE(take(2 * k_mib));
  available(0);
  for (int each = 0; each < 16; ++each) {
    EXPECT_TRUE(take(64 << 10)) << each;
  }
  EXPECT_FALSE(take(64 << 10));
  give_back(64 << 10);
  EXPECT_TRUE(take(64 << 10));
  EXPECT_FALSE(take(64 << 10));
  give_back(2 * k_mib);
  expect_failure(take(2 * k_mib), ISTHMUS_ERROR_OUT_OF_MEMORY, "0 bytes are available");
}

TEST_F(host_memory_accounting, small_allocations_do_not_exceed_what_was_left) {
  EXPECT_TRUE(take(100 * k_mib - 1000));
  EXPECT_FALSE(take(1001));
  EXPECT_TRUE(take(1000));
  EXPECT_FALSE(take(1));
}

// The memory is never written, so that the machine does not run short of memory.
TEST(host_memory, of_the_machine_is_never_promised_as_a_whole) {
  if (k_address_sanitizer || k_thread_sanitizer) {
    GTEST_SKIP() << "the sanitizer's own pages count as touched";
  }
  auto& where = *expect_value(find_device("host"));
  auto home = expect_value(where.platform().default_context());
  const auto nbytes = os::physical_memory().total / 256;
  std::vector<void*> blocks;
  auto next = provider_allocate(*home, where, {ISTHMUS_KIND_SHARED, nbytes, 0});
  for (; next && blocks.size() < 256;
       next = provider_allocate(*home, where, {ISTHMUS_KIND_SHARED, nbytes, 0})) {
    blocks.push_back(*next);
  }
  EXPECT_GT(blocks.size(), 0U);
  expect_failure(next, ISTHMUS_ERROR_OUT_OF_MEMORY, " are available according to ");
  for (auto* each : blocks) {
    provider_deallocate(*home, where, ISTHMUS_KIND_SHARED, each, nbytes);
  }
}

}  // namespace
}  // namespace isthmus::host_memory_test
