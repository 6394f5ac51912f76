#pragma once
// Which huge pages of a memory are told by small ones: those that are written often, but little of
// them.
//
// A huge page that is told whole costs its copy each time that a byte of it was written, some 40
// us. One told by small pages costs a fault for each of them, and if all are written that is as
// much as 8 to 26 copies: at 0.6 to 1.9 us a fault (hosts of H100s and H200s). Which it is cannot
// be seen beforehand, so a few are tried, and never for more than what was spent on copies of whole
// ones before: if nothing is ever gained, a small part of the time is lost. A trial that gains has
// twice as many tried the next time, one that does not has the next wait four times as long. None
// are tried where most are written anyway. So many are told by small ones at most that a round in
// which all of these are written wholly takes half as long again as a copy of all.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/range_set.hpp"

namespace isthmus::tracking {

// One thread's at a time. Chunks are huge pages, counted from the memory's beginning.
class refinement {
 public:
  // `dense`: what the faults of all small pages of a chunk cost, in copies of it. Throws
  // std::bad_alloc; nothing else here does.
  refinement(std::size_t chunks, std::size_t dense);

  // To be told by small pages from here on, and by huge ones.
  struct changes {
    std::vector<std::size_t> split, merge;  // in no order
  };
  // After each look, what it found. The changes hold till the next call.
  const changes& judge(const range_set& found) noexcept;

  [[nodiscard]] bool is_whole(std::size_t number) const noexcept {
    return number < chunks_.size() && chunks_[number].state == told::whole;
  }
  // Told by small pages for good.
  void keep_small(std::size_t number) noexcept;
  // Told by small pages till that is not needed any more.
  void ask_for_small(std::size_t number) noexcept;
  // Of those, the ones that `still` does not touch are as any other from here on; gives what is to
  // be told whole, being one too many. Holds till the next call.
  const std::vector<std::size_t>& need_small_only(const range_set& still) noexcept;
  [[nodiscard]] std::size_t small() const noexcept { return small_; }

 private:
  enum class told : std::uint8_t { whole, on_trial, small, asked_for, small_for_good };
  struct chunk {
    std::uint32_t written = 0;  // bytes, of this look
    std::uint16_t heat = 0;     // looks that found it written since it was tried, or ever
    told state = told::whole;
  };

  void count(const range_set& found) noexcept;
  void judge_one(std::size_t number) noexcept;
  void judge_small(std::size_t number) noexcept;
  void try_some() noexcept;

  std::vector<chunk> chunks_;
  std::vector<std::size_t> touched_;  // by this look
  std::vector<std::size_t> hot_;      // of these, what may be tried
  std::vector<std::size_t> asked_;    // for
  changes changes_;
  std::size_t most_small_;
  std::size_t small_ = 0;
  std::size_t spent_ = 0;    // copies of whole chunks since the last trial
  std::size_t tries_ = 1;    // at once
  std::size_t least_price_;  // of one that was not known to pay, in such copies
  std::size_t price_;        // of the next
};

}  // namespace isthmus::tracking
