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

constexpr std::uint8_t k_by_itself = 0xff;
constexpr std::size_t k_tested = 2 * k_huge_page;

error told_wrongly(const char* what) {
  return fail(ISTHMUS_ERROR_UNSUPPORTED, "the kernel does not report written pages: {}", what);
}

// The range that the kernel reports after a write to the byte at offset `written`, relative to
// `memory`. Empty if the kernel fails.
byte_range told_of(const os::written_pages& kernel, std::byte* memory, std::size_t written) {
  static_cast<volatile std::byte*>(memory)[written] = std::byte{1};
  byte_range all{k_tested, 0};
  const bool told = kernel.take(memory, k_tested, [&](void* from, void* to) {
    all.begin = std::min(all.begin, static_cast<std::size_t>(advance(from, 0) - memory));
    all.end = std::max(all.end, static_cast<std::size_t>(advance(to, 0) - memory));
  });
  return told ? all : byte_range{};
}

struct tested {
  error failure;
  std::size_t granule = 0;
  std::chrono::nanoseconds fault{};  // of one small page
};

// Cost of one write fault: the minimum over several rounds, since interruptions make others longer.
// Pre: small pages, watched.
std::chrono::nanoseconds fault_of(const os::written_pages& kernel, std::byte* memory) {
  constexpr std::size_t k_rounds = 5;
  const auto pages = std::min<std::size_t>(64, k_huge_page / os::page_size());
  auto least = std::chrono::nanoseconds::max();
  for (std::size_t round = 0; round < k_rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t page = 0; page < pages; ++page) {
      static_cast<volatile std::byte*>(memory)[page * os::page_size()] = std::byte{1};
    }
    least = std::min<std::chrono::nanoseconds>(least, std::chrono::steady_clock::now() - start);
    static_cast<void>(kernel.take(memory, pages * os::page_size(), [](void*, void*) {}));
  }
  return least / pages;
}

// Tests the first half of a mapping with huge pages, where the kernel has some, and the second half
// with small ones.
tested try_out(const os::written_pages& kernel) {
  auto pages = os::map_twice(k_tested, k_huge_page);
  if (!pages) {
    return {told_wrongly(pages.failure().message())};
  }
  const undo mapped{[&] { os::unmap_twice(*pages, k_tested); }};
  auto* const memory = advance(pages->first, 0);
  os::avoid_huge_pages(memory + k_huge_page, k_huge_page);
  os::populate_pages(memory, os::page_size());
  os::collapse_pages(memory, k_huge_page);
  os::populate_pages(memory, k_tested);
  if (!kernel.watch(memory, k_tested)) {
    return {told_wrongly("it refused to watch them")};
  }
  const auto huge = told_of(kernel, memory, 5);
  const auto small = told_of(kernel, memory, k_huge_page + 5);
  const byte_range page{k_huge_page, k_huge_page + os::page_size()};
  if (!huge.covers({5, 6}) || !byte_range{0, k_huge_page}.covers(huge)) {
    return {told_wrongly("it reported wrong pages in a test")};
  }
  if (small != page || kernel.take(memory, k_tested, [](void*, void*) {}) == false) {
    return {told_wrongly("it reported wrong small pages in a test")};
  }
  return {{}, huge.nbytes(), fault_of(kernel, memory + k_huge_page)};
}

tested test() {
  auto kernel = os::written_pages::only();
  return kernel ? try_out(**kernel) : tested{kernel.take_error()};
}

tested tested_once() {
  static const auto once = test();
  return once;
}

std::atomic<std::uint8_t> forced{k_by_itself};

// Reads the environment once. Later changes by the program are meant for its child processes.
result<std::optional<means>> asked_for() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  static const auto asked = means_in(std::getenv("ISTHMUS_TRACKING"));
  const auto by = forced.load(std::memory_order_relaxed);
  if (by != k_by_itself) {
    return std::optional{static_cast<means>(by)};
  }
  return asked;
}

}  // namespace

const char* means_name(means which) noexcept {
  switch (which) {
    case means::pages: return "pages";
    case means::bytes: return "bytes";
    case means::hashes: return "hashes";
  }
  return "unknown";
}

result<std::optional<means>> means_in(const char* text) {
  if (text == nullptr || *text == '\0') {
    return std::optional<means>{};
  }
  for (const auto each : {means::pages, means::bytes, means::hashes}) {
    if (std::string_view{text} == means_name(each)) {
      return std::optional{each};
    }
  }
  return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
              "ISTHMUS_TRACKING is {}: set \"pages\", \"bytes\" or \"hashes\", or unset it for the "
              "best available",
              quoted(text));
}

result<void> pages_are_told() {
  if (os::is_forked_child()) {
    return told_wrongly("after a fork");
  }
  if (auto found = tested_once(); found.failure) {
    return found.failure;
  }
  return {};
}

std::size_t copies_of_dense_writes() {
  constexpr std::chrono::microseconds k_copy{38};
  // In arrays that exceed the caches a fault takes 2.5 times as long as in the test (1.5 us against
  // 0.6 us, H200).
  const auto all = tested_once().fault * (k_huge_page / os::page_size()) * 5 / 2;
  return std::max<std::size_t>(1, static_cast<std::size_t>(all / k_copy));
}

result<means> means_for(std::size_t nbytes) {
  auto asked = asked_for();
  ISTHMUS_TRY(asked);
  if (nbytes < k_least_paged) {
    return means::bytes;
  }
  if (*asked == means::pages) {
    ISTHMUS_TRY(pages_are_told());
  }
  return asked->value_or(pages_are_told() ? means::pages : means::hashes);
}

in_force what_is_in_force() {
  auto chosen = means_for(k_huge_page);
  if (!chosen) {
    return {means::hashes, 64 << 10, chosen.failure().message()};
  }
  switch (*chosen) {
    case means::pages: return {*chosen, tested_once().granule, ""};
    case means::bytes: return {*chosen, 1, "requested"};
    case means::hashes: break;
  }
  auto told = pages_are_told();
  return {*chosen, 64 << 10, told ? "requested" : told.failure().message()};
}

result<void> force(std::optional<means> by) {
  if (by == means::pages) {
    ISTHMUS_TRY(pages_are_told());
  }
  forced.store(by ? static_cast<std::uint8_t>(*by) : k_by_itself, std::memory_order_relaxed);
  return {};
}

}  // namespace isthmus::tracking
