// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_support.hpp"

#include <algorithm>
#include <chrono>

#include "core/range_set.hpp"
#include "core/sizes.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"
#include "os/written_pages.hpp"

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

constexpr std::size_t k_tested = 2 * k_huge_page;

Error not_reported_error(const char* reason) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the kernel does not report written pages: {}", reason);
}

// Writes the byte at offset `written` and returns the range that the kernel then reports, relative
// to `memory`. Empty if the query fails.
ByteRange reported_range(const os::WrittenPages& written_pages, std::byte* memory,
                         std::size_t written) {
  static_cast<volatile std::byte*>(memory)[written] = std::byte{1};
  ByteRange all{k_tested, 0};
  const bool is_reported =
      written_pages.scan(memory, k_tested, [&](void* source, void* destination) {
        all.begin = std::min(all.begin, static_cast<std::size_t>(advance(source, 0) - memory));
        all.end = std::max(all.end, static_cast<std::size_t>(advance(destination, 0) - memory));
      });
  return is_reported ? all : ByteRange{};
}

struct KernelTest {
  Error failure;
  std::size_t granule = 0;
  std::chrono::nanoseconds fault{};  // time of a write fault of one small page
};

// Measures the time of one write fault: the minimum of several rounds, since interruptions prolong
// some of them. `memory` consists of small pages that are watched.
std::chrono::nanoseconds fault_time(const os::WrittenPages& written_pages, std::byte* memory) {
  constexpr std::size_t k_rounds = 5;
  const auto pages = std::min<std::size_t>(64, k_huge_page / os::page_size());
  auto min_time = std::chrono::nanoseconds::max();
  for (std::size_t round = 0; round < k_rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t page = 0; page < pages; ++page) {
      static_cast<volatile std::byte*>(memory)[page * os::page_size()] = std::byte{1};
    }
    min_time =
        std::min<std::chrono::nanoseconds>(min_time, std::chrono::steady_clock::now() - start);
    static_cast<void>(written_pages.scan(memory, pages * os::page_size(), [](void*, void*) {}));
  }
  return min_time / pages;
}

// Tests a mapping whose first half has a huge page, if the kernel provides one, and whose second
// half has small pages.
KernelTest test_kernel(const os::WrittenPages& written_pages) {
  auto pages = os::map_twice(k_tested, k_huge_page);
  if (!pages) {
    return {not_reported_error(pages.failure().message())};
  }
  const Undo mapped{[&] { os::unmap_twice(*pages, k_tested); }};
  auto* const memory = advance(pages->first, 0);
  os::avoid_huge_pages(memory + k_huge_page, k_huge_page);
  os::populate_pages(memory, os::page_size());
  os::collapse_pages(memory, k_huge_page);
  os::populate_pages(memory, k_tested);
  if (!written_pages.watch(memory, k_tested)) {
    return {not_reported_error("it refused to watch them")};
  }
  const auto huge = reported_range(written_pages, memory, 5);
  const auto small = reported_range(written_pages, memory, k_huge_page + 5);
  const ByteRange page{k_huge_page, k_huge_page + os::page_size()};
  if (!huge.covers({5, 6}) || !ByteRange{0, k_huge_page}.covers(huge)) {
    return {not_reported_error(
        "in a test with huge pages it reported the wrong range, or a scan failed")};
  }
  if (small != page || written_pages.scan(memory, k_tested, [](void*, void*) {}) == false) {
    return {not_reported_error(
        "in a test with small pages it reported the wrong range, or a scan failed")};
  }
  return {{}, huge.nbytes(), fault_time(written_pages, memory + k_huge_page)};
}

KernelTest test() {
  auto written_pages = os::WrittenPages::only();
  return written_pages ? test_kernel(**written_pages) : KernelTest{written_pages.take_error()};
}

const KernelTest& test_result() {
  static const auto result = test();
  return result;
}

}  // namespace

Result<void> pages_are_reported() {
  if (os::is_forked_child()) {
    return not_reported_error("this process is a forked child");
  }
  if (const auto& found = test_result(); found.failure) {
    return found.failure;
  }
  return {};
}

// In arrays that exceed the caches a fault takes 2.5 times as long as in the test (1.5 us against
// 0.6 us, H200).
std::chrono::nanoseconds small_fault_time() { return test_result().fault * 5 / 2; }

std::size_t reported_granule() { return test_result().granule; }

}  // namespace isthmus::tracking
