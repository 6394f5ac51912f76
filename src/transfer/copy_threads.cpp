// SPDX-License-Identifier: Apache-2.0
#include "transfer/copy_threads.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace isthmus {
namespace {

constexpr std::size_t k_most = StagingRing::k_most_lanes;

// Processors of the calling thread, which its helpers share. Empty, and not queried, if the copy
// needs no helper.
os::ProcessorSet allowed_for(std::size_t nbytes) noexcept {
  return nbytes < 2 * k_bytes_worth_a_thread ? os::ProcessorSet{} : os::processors_of_thread();
}

std::size_t most_threads(std::size_t nbytes, const os::ProcessorSet& allowed) {
  static const auto limit = os::processor_limit("");
  const auto worth = nbytes / k_bytes_worth_a_thread;
  const auto usable = allowed.any() ? allowed.count() : k_most;
  return std::max<std::size_t>(1, std::min({worth, usable, limit, k_most}));
}

// Processors near the device, unless there are fewer of them than threads.
os::ProcessorSet places_for(std::size_t threads, const os::ProcessorSet& allowed,
                            const os::ProcessorSet& near) noexcept {
  const auto both = allowed & near;
  return both.count() >= threads ? both : allowed;
}

// Reads the environment once. Later changes by the program are meant for its child processes.
Result<std::size_t> threads_asked_for() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  static const auto asked = threads_in(std::getenv("ISTHMUS_COPY_THREADS"));
  return asked;
}

}  // namespace

Result<std::size_t> threads_in(const char* text) {
  if (text == nullptr || *text == '\0') {
    return std::size_t{0};
  }
  const std::string_view digits{text};
  std::size_t threads = 0;
  const auto* const end = digits.data() + digits.size();
  const auto [behind, problem] = std::from_chars(digits.data(), end, threads);
  if (problem != std::errc{} || behind != end || threads == 0 || threads > k_most) {
    return fail(ISTHMUS_ERROR_INVALID_ARGUMENT,
                "ISTHMUS_COPY_THREADS is \"{}\": set a number of threads from 1 to {}, or unset it "
                "to have the best number measured",
                digits, k_most);
  }
  return threads;
}

Result<CopyThreads> crew_for(const StagingRing& ring, std::size_t nbytes, ThreadChoice* earlier) {
  auto asked = threads_asked_for();
  ISTHMUS_TRY(asked);
  const auto allowed = allowed_for(nbytes);
  const auto most = most_threads(nbytes, allowed);
  const auto wanted = *asked != 0          ? std::min(*asked, most)
                      : earlier != nullptr ? earlier->threads_for(nbytes, most)
                                           : most;
  return CopyThreads{wanted, *asked == 0 && earlier != nullptr,
                     places_for(wanted, allowed, ring.processors_near())};
}

}  // namespace isthmus
