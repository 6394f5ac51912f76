// SPDX-License-Identifier: Apache-2.0
#include "tracking/page_samples.hpp"

#include <algorithm>

#include "core/expects.hpp"
#include "os/pages.hpp"
#include "tracking/unwatched.hpp"

namespace isthmus::tracking {

PageSamples::PageSamples(std::size_t nbytes)
    : nbytes_{nbytes},
      contents_(round_up(nbytes, os::k_huge_page) / os::k_huge_page * os::page_size()),
      chosen_(contents_.size() / os::page_size()) {}

bool PageSamples::take(std::size_t chunk, const std::byte* memory) noexcept {
  ISTHMUS_EXPECTS(chunk < chosen_.size());
  const auto page = os::page_size();
  const bool has_changed = !same_unwatched(contents_of(chunk), memory + page_of(chunk).begin, page);
  chosen_[chunk] = random_page(chunk);
  copy_unwatched(contents_of(chunk), memory + page_of(chunk).begin, page);
  return has_changed;
}

void PageSamples::refresh(const ByteRange& range, const std::byte* memory) noexcept {
  const auto last = std::min((range.end + os::k_huge_page - 1) / os::k_huge_page, chosen_.size());
  for (auto chunk = range.begin / os::k_huge_page; chunk < last; ++chunk) {
    const auto page = page_of(chunk);
    if (range.begin < page.end && page.begin < range.end) {
      copy_unwatched(contents_of(chunk), memory + page.begin, page.nbytes());
    }
  }
}

ByteRange PageSamples::page_of(std::size_t chunk) const noexcept {
  const auto begin = chunk * os::k_huge_page + chosen_[chunk] * os::page_size();
  return {begin, begin + os::page_size()};
}

std::byte* PageSamples::contents_of(std::size_t chunk) noexcept {
  return contents_.data() + chunk * os::page_size();
}

// Knuth's linear congruential generator; its upper bits are the random ones.
std::uint16_t PageSamples::random_page(std::size_t chunk) noexcept {
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;
  const auto nbytes = std::min(os::k_huge_page, nbytes_ - chunk * os::k_huge_page);
  const auto pages = (nbytes + os::page_size() - 1) / os::page_size();
  return static_cast<std::uint16_t>((random_ >> 33U) % pages);
}

}  // namespace isthmus::tracking
