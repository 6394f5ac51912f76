// SPDX-License-Identifier: Apache-2.0
#pragma once
// What it costs to track a huge page as a whole or by small pages, and what follows from that. All
// times are relative to one copy of the huge page between host and device, the unit "copy". Pure
// functions of two measured times; thread-safe.
//
// A huge page that is tracked as a whole costs a fault, which is negligible, and one copy in each
// round in which a byte of it was written. A huge page that is tracked by small pages costs a fault
// and a small copy for each small page that was written. A round that writes all of its small pages
// costs `dense_faults` copies more than necessary.

#include <chrono>
#include <cstddef>

#include "os/pages.hpp"
#include "tracking/mechanism.hpp"

namespace isthmus::tracking {

class PageCosts {
 public:
  // `fault` is the time of a write fault of one small page.
  PageCosts(std::chrono::nanoseconds fault, CopiedBy copied_by) noexcept;

  // Cost of faults on all small pages of a huge page, in copies.
  [[nodiscard]] double dense_faults() const noexcept { return dense_faults_; }
  // Largest share of a huge page, written per round, for which small pages are cheaper.
  [[nodiscard]] double max_sparse_share() const noexcept;
  // Largest number of huge pages, of `chunks`, that may be tracked by small pages. It bounds the
  // faults of a round in which the program writes all of them completely: to those of
  // `k_free_chunks`, to half a copy of the memory (`device`), or to those of 3/4 of the memory and
  // at most four copies of it (`processor`).
  [[nodiscard]] std::size_t max_small(std::size_t chunks) const noexcept;
  // The same bound once small pages have saved `copies` copies of huge pages: the faults of such a
  // round take at most 1/8 of the time saved.
  [[nodiscard]] std::size_t small_earned(double copies) const noexcept;
  // Number of huge pages, of `chunks`, that may be mapped by small pages in advance after one scan:
  // this takes 1/50 of a copy of the memory. At least 1.
  [[nodiscard]] std::size_t max_mapped(std::size_t chunks) const noexcept;
  // Number of huge pages that may be tried again, after small pages were too expensive for them, in
  // exchange for `copies` copies of huge pages. If all trials fail they cost 1/32 of these copies.
  [[nodiscard]] double trials_earned(std::size_t copies) const noexcept;
  // Largest number of such trials in one round of `copies` copies: if all fail, the round takes
  // 1/20 longer. At least 1.
  [[nodiscard]] double max_trials(std::size_t copies) const noexcept;

  // Memory of up to this many huge pages (16 MiB) is tracked by small pages from the start. Faults
  // on all of its small pages take 3 to 8 ms.
  static constexpr std::size_t k_free_chunks = 8;

 private:
  double dense_faults_ = 0;
  double mapping_ = 0;  // mapping a huge page by small pages, in copies
  CopiedBy copied_by_;
};

}  // namespace isthmus::tracking
