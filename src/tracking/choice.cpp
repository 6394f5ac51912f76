// SPDX-License-Identifier: Apache-2.0
#include "tracking/choice.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string_view>

#include "core/sizes.hpp"
#include "core/text.hpp"
#include "core/undo.hpp"
#include "os/process.hpp"
#include "os/virtual_memory.hpp"
#include "os/written_pages.hpp"

namespace isthmus::tracking {
namespace {

using os::k_huge_page;

constexpr std::uint8_t k_automatic = 0xff;
constexpr std::size_t k_tested = 2 * k_huge_page;

Error not_reported_error(const char* name) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the kernel does not report written pages: {}", name);
}

// The range that the kernel reports after a write to the byte at offset `written`, relative to
// `memory`. Empty if the kernel fails.
ByteRange reported_range(const os::WrittenPages& kernel, std::byte* memory, std::size_t written) {
  static_cast<volatile std::byte*>(memory)[written] = std::byte{1};
  ByteRange all{k_tested, 0};
  const bool is_reported = kernel.scan(memory, k_tested, [&](void* source, void* destination) {
    all.begin = std::min(all.begin, static_cast<std::size_t>(advance(source, 0) - memory));
    all.end = std::max(all.end, static_cast<std::size_t>(advance(destination, 0) - memory));
  });
  return is_reported ? all : ByteRange{};
}

struct Tested {
  Error failure;
  std::size_t granule = 0;
  std::chrono::nanoseconds fault{};  // of one small page
};

// Cost of one write fault: the minimum over several rounds, since interruptions make others longer.
// Pre: small pages, watched.
std::chrono::nanoseconds fault_of(const os::WrittenPages& kernel, std::byte* memory) {
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
    static_cast<void>(kernel.scan(memory, pages * os::page_size(), [](void*, void*) {}));
  }
  return min_time / pages;
}

// Tests the first half of a mapping with huge pages, where the kernel has some, and the second half
// with small ones.
Tested test_kernel(const os::WrittenPages& kernel) {
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
  if (!kernel.watch(memory, k_tested)) {
    return {not_reported_error("it refused to watch them")};
  }
  const auto huge = reported_range(kernel, memory, 5);
  const auto small = reported_range(kernel, memory, k_huge_page + 5);
  const ByteRange page{k_huge_page, k_huge_page + os::page_size()};
  if (!huge.covers({5, 6}) || !ByteRange{0, k_huge_page}.covers(huge)) {
    return {not_reported_error("it reported wrong pages in a test")};
  }
  if (small != page || kernel.scan(memory, k_tested, [](void*, void*) {}) == false) {
    return {not_reported_error("it reported wrong small pages in a test")};
  }
  return {{}, huge.nbytes(), fault_of(kernel, memory + k_huge_page)};
}

Tested test() {
  auto kernel = os::WrittenPages::only();
  return kernel ? test_kernel(**kernel) : Tested{kernel.take_error()};
}

Tested test_result() {
  static const auto result = test();
  return result;
}

std::atomic<std::uint8_t> forced{k_automatic};

// Reads the environment once. Later changes by the program are meant for its child processes.
Result<std::optional<Means>> requested_means() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  static const auto requested = parse_means(std::getenv("ISTHMUS_TRACKING"));
  const auto means = forced.load(std::memory_order_relaxed);
  if (means != k_automatic) {
    return std::optional{static_cast<Means>(means)};
  }
  return requested;
}

}  // namespace

const char* means_name(Means means) noexcept {
  switch (means) {
    case Means::pages: return "pages";
    case Means::bytes: return "bytes";
    case Means::hashes: return "hashes";
  }
  return "unknown";
}

Result<std::optional<Means>> parse_means(const char* text) {
  if (text == nullptr || *text == '\0') {
    return std::optional<Means>{};
  }
  for (const auto each : {Means::pages, Means::bytes, Means::hashes}) {
    if (std::string_view{text} == means_name(each)) {
      return std::optional{each};
    }
  }
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "ISTHMUS_TRACKING is {}: set \"pages\", \"bytes\" or \"hashes\", or unset it for the "
              "best available",
              quoted(text));
}

Result<void> pages_are_reported() {
  if (os::is_forked_child()) {
    return not_reported_error("after a fork");
  }
  if (auto found = test_result(); found.failure) {
    return found.failure;
  }
  return {};
}

std::size_t copies_of_dense_writes() {
  constexpr std::chrono::microseconds k_copy{38};
  // In arrays that exceed the caches a fault takes 2.5 times as long as in the test (1.5 us against
  // 0.6 us, H200).
  const auto all = test_result().fault * (k_huge_page / os::page_size()) * 5 / 2;
  return std::max<std::size_t>(1, static_cast<std::size_t>(all / k_copy));
}

Result<Means> means_for(std::size_t nbytes) {
  auto requested = requested_means();
  ISTHMUS_TRY(requested);
  if (nbytes < k_min_paged_bytes) {
    return Means::bytes;
  }
  if (*requested == Means::pages) {
    ISTHMUS_TRY(pages_are_reported());
  }
  return requested->value_or(pages_are_reported() ? Means::pages : Means::hashes);
}

ActiveTracking active_mechanism() {
  auto chosen = means_for(k_huge_page);
  if (!chosen) {
    return {Means::hashes, 64 << 10, chosen.failure().message()};
  }
  switch (*chosen) {
    case Means::pages: return {*chosen, test_result().granule, ""};
    case Means::bytes: return {*chosen, 1, "requested"};
    case Means::hashes: break;
  }
  auto status = pages_are_reported();
  return {*chosen, 64 << 10, status ? "requested" : status.failure().message()};
}

Result<void> force(std::optional<Means> method) {
  if (method == Means::pages) {
    ISTHMUS_TRY(pages_are_reported());
  }
  forced.store(method ? static_cast<std::uint8_t>(*method) : k_automatic,
               std::memory_order_relaxed);
  return {};
}

}  // namespace isthmus::tracking
