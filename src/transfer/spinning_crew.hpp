#pragma once
// Threads that help to copy what takes some microseconds only. To wake a thread takes longer than
// that, so they look out for the next such copy all the time: once one has followed another within
// 50 us, and till none has come for as long.
//
// With five of them 1 MiB is gathered in pinned memory in 18 us where one thread takes 71 (H100, 16
// cores). There are as many as a third of the processors that the process may use, seven at most,
// and none where that is less than two.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "os/futex.hpp"
#include "os/processors.hpp"

namespace isthmus {

class spinning_crew {
 public:
  static constexpr std::chrono::microseconds k_lull{50};
  // From here on a copy is shared out.
  static constexpr std::size_t k_least_bytes = std::size_t{64} << 10;

  // The process'; never destroyed.
  [[nodiscard]] static spinning_crew& only();
  // As many as are worth it beside so many processors.
  [[nodiscard]] static std::size_t helpers_beside(std::size_t processors) noexcept;
  // `most` is asked, with the processors of the thread that copies, before helpers are started; may
  // throw std::bad_alloc.
  using helper_count = std::size_t (*)(const os::processor_set& allowed);
  explicit spinning_crew(helper_count most) noexcept : most_{most} {}
  // Pre: nobody looks out.
  ~spinning_crew() = default;
  spinning_crew(const spinning_crew&) = delete;
  spinning_crew& operator=(const spinning_crew&) = delete;

  // Returns when all is copied. Any thread; they help one at a time, others copy alone meanwhile.
  void copy(std::byte* to, const std::byte* from, std::size_t nbytes) noexcept;
  // Those that look out now.
  [[nodiscard]] std::size_t helpers() const noexcept {
    return helpers_.load(std::memory_order_acquire);
  }

 private:
  void share_out(std::byte* to, const std::byte* from, std::size_t nbytes) noexcept;
  [[nodiscard]] bool take_piece() noexcept;
  void start_helpers() noexcept;
  void help(const os::processor_set& places) noexcept;

  const helper_count most_;
  std::atomic<std::size_t> helpers_{0};
  std::atomic<bool> is_busy_{false};  // held by who copies
  // Of the holder:
  os::clock::time_point last_{};          // the end of the last copy
  os::clock::time_point may_start_at_{};  // helpers; not before, as it takes long to ask
  // One copy. What is taken stands in `left_`, its number above and the pieces left below: who
  // takes one off has seen the fields of that very copy, as they change only once all are done.
  std::atomic<std::byte*> to_{nullptr};
  std::atomic<const std::byte*> from_{nullptr};
  std::atomic<std::size_t> nbytes_{0};
  std::atomic<std::size_t> piece_bytes_{1};
  alignas(64) std::atomic<std::uint64_t> left_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};
};

}  // namespace isthmus
