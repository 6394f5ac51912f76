// SPDX-License-Identifier: Apache-2.0
#include "transfer/copy_threads.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace isthmus {
namespace {

constexpr std::size_t k_max_copy_threads = StagingRing::k_max_slot_pairs;

// Returns the processors that the calling thread may use; helper threads share them. If the copy
// needs no helper the processors are not queried and the result is empty.
os::ProcessorSet allowed_for(std::size_t nbytes) noexcept {
  return nbytes < 2 * k_min_bytes_per_thread ? os::ProcessorSet{} : os::processors_of_thread();
}

std::size_t max_threads(std::size_t nbytes, const os::ProcessorSet& allowed) {
  static const auto limit = os::processor_limit("");
  const auto needed = nbytes / k_min_bytes_per_thread;
  const auto usable = allowed.any() ? allowed.count() : k_max_copy_threads;
  return std::max<std::size_t>(1, std::min({needed, usable, limit, k_max_copy_threads}));
}

// Returns the processors near the device, or all allowed ones if fewer than `threads` are near it.
os::ProcessorSet processors_for(std::size_t threads, const os::ProcessorSet& allowed,
                                const os::ProcessorSet& near) noexcept {
  const auto both = allowed & near;
  return both.count() >= threads ? both : allowed;
}

// Reads the environment once: later changes by the program are intended for its child processes.
Result<std::size_t> requested_threads() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  static const auto requested = parse_threads(std::getenv("ISTHMUS_COPY_THREADS"));
  return requested;
}

}  // namespace

Result<std::size_t> parse_threads(const char* text) {
  if (text == nullptr || *text == '\0') {
    return std::size_t{0};
  }
  const std::string_view digits{text};
  std::size_t threads = 0;
  const auto* const end = digits.data() + digits.size();
  const auto [parsed_end, problem] = std::from_chars(digits.data(), end, threads);
  if (problem != std::errc{} || parsed_end != end || threads == 0 || threads > k_max_copy_threads) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "ISTHMUS_COPY_THREADS is \"{}\": set a number of threads from 1 to {}, or unset it "
                "for an automatic choice",
                digits, k_max_copy_threads);
  }
  return threads;
}

Result<CopyThreads> copy_threads_for(const StagingRing& ring, std::size_t nbytes,
                                     ThreadChoice* choice) {
  auto requested = requested_threads();
  ISTHMUS_TRY(requested);
  const auto allowed = allowed_for(nbytes);
  const auto max = max_threads(nbytes, allowed);
  const auto threads = *requested != 0     ? std::min(*requested, max)
                       : choice != nullptr ? choice->threads_for(nbytes, max)
                                           : max;
  return CopyThreads{threads, *requested == 0 && choice != nullptr,
                     processors_for(threads, allowed, ring.processors_near())};
}

}  // namespace isthmus
