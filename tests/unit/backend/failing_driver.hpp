#pragma once
// CUDA's stand-in, which fails when told to.

#include "os/library.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {

class failing_driver {
 public:
  failing_driver() = default;
  explicit failing_driver(const cuda::device& where) {
    auto* const library = *os::open_library(where.home().properties().library.c_str());
    fail_after_ = reinterpret_cast<long (*)(long)>(os::find_symbol(library, "stand_in_fail_after"));
    registered_ =
        reinterpret_cast<std::size_t (*)()>(os::find_symbol(library, "stand_in_registered"));
  }

  // False: a driver that does not.
  explicit operator bool() const noexcept { return fail_after_ != nullptr; }
  void fail_after(long calls) const { fail_after_(calls); }
  // The driver's call after that many fails while `scenario` runs; true if there were as many.
  template <class Scenario>
  [[nodiscard]] bool fails_at(long calls, Scenario&& scenario) const {
    fail_after_(calls);
    scenario();
    return fail_after_(-1) < 0;
  }
  // Ranges of plain memory that are pinned.
  [[nodiscard]] std::size_t registered() const { return registered_(); }

 private:
  long (*fail_after_)(long) = nullptr;
  std::size_t (*registered_)() = nullptr;
};

}  // namespace isthmus::cuda_test
