// SPDX-License-Identifier: Apache-2.0
// Host memory that cannot be remapped requests huge pages, like memory that can.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "backend/drivers.hpp"
#include "core/sizes.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"

namespace isthmus {
namespace {

using support::k_mib;

constexpr std::size_t k_huge_page = 2 * k_mib;

// Why the kernel provides none. Empty if it does.
std::string no_huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string modes;
  if (!std::getline(file, modes)) {
    return "the kernel has no transparent huge pages";
  }
  return modes.find("[never]") != std::string::npos
             ? "transparent huge pages are switched off: " + modes
             : "";
}

// How many bytes from `start` on lie in mappings that request huge pages (the flag `hg`).
std::size_t asking_bytes(const void* start, std::size_t nbytes) {
  std::ifstream file("/proc/self/smaps");
  std::size_t first = 0, last = 0, asking = 0;
  for (std::string line; std::getline(file, line);) {
    char dash = 0;
    std::istringstream fields{line};
    std::size_t from = 0, to = 0;
    if (fields >> std::hex >> from >> dash >> to && dash == '-') {
      first = from, last = to;
    } else if (line.starts_with("VmFlags:") && line.find(" hg") != std::string::npos) {
      const auto low = std::max(first, address(start));
      const auto high = std::min(last, address(start) + nbytes);
      asking += low < high ? high - low : 0;
    }
  }
  return asking;
}

class host_huge_pages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = no_huge_pages(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    auto found = find_device("host");
    ASSERT_TRUE(found);
    where_ = *found;
    auto home = where_->platform().default_context();
    ASSERT_TRUE(home);
    home_ = *home;
  }

  Device* where_ = nullptr;
  Ref<Context> home_;
};

TEST_F(host_huge_pages, are_requested_from_their_size_up) {
  for (const auto nbytes : {k_huge_page, k_huge_page + 1, 7 * k_mib, 64 * k_mib}) {
    auto memory = home_->allocate(*where_, {ISTHMUS_KIND_HOST, nbytes, 64});
    ASSERT_TRUE(memory);
    EXPECT_EQ(address(*memory) % k_huge_page, 0U) << nbytes;
    EXPECT_EQ(asking_bytes(*memory, nbytes), nbytes);
    std::memset(*memory, 1, nbytes);
    home_->deallocate(*memory, ISTHMUS_KIND_HOST, nbytes);
  }
}

TEST_F(host_huge_pages, cover_the_regions_of_a_pool_that_does_not_remap) {
  auto queue = Queue::create(*home_, *where_);
  ASSERT_TRUE(queue);
  auto from = Pool::create(*home_, *where_, ISTHMUS_KIND_HOST, {.remaps = false});
  ASSERT_TRUE(from);
  auto block = (*from)->allocate(12 * k_mib, 0, **queue);
  ASSERT_TRUE(block);
  EXPECT_EQ(asking_bytes(*block, 12 * k_mib), 12 * k_mib);
  EXPECT_TRUE((*from)->deallocate(*block, 12 * k_mib, queue->get()));
}

}  // namespace
}  // namespace isthmus
