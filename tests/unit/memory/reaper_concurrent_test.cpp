// What could not go at first goes later, whatever else there is to let go.

#include "memory/reaper.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/never_destroyed.hpp"

namespace isthmus {
namespace {

using namespace std::chrono_literals;

// Comes again at once, as long as it is told to.
class busy final : public reclaimable {
 public:
  explicit busy(const std::atomic<bool>& till) : till_{till} {}
  void let_go() noexcept override {
    if (till_.load()) {
      ended_.store(true);
    } else {
      retire_later(*this);
    }
  }
  [[nodiscard]] bool ended() const noexcept { return ended_.load(); }

 private:
  const std::atomic<bool>& till_;
  std::atomic<bool> ended_{false};
};

// Goes only when it is tried for the fourth time.
class stubborn final : public reclaimable {
 public:
  void let_go() noexcept override {
    if (++tries_ < 4) {
      let_go_again(*this);
    } else {
      gone_.store(true);
    }
  }
  [[nodiscard]] bool gone() const noexcept { return gone_.load(); }

 private:
  int tries_ = 0;
  std::atomic<bool> gone_{false};
};

template <class Condition>
bool comes_true(Condition&& condition) {
  for (int each = 0; each < 10'000 && !condition(); ++each) {
    std::this_thread::sleep_for(1ms);
  }
  return condition();
}

TEST(reaper_concurrent, what_was_put_off_goes_while_other_things_come_all_the_time) {
  // They outlive a test that fails: the reaper has them.
  static std::atomic<bool> enough{false};
  static never_destroyed<busy> always{enough};
  static never_destroyed<stubborn> late;
  retire_later(*always);
  let_go_again(*late);
  EXPECT_TRUE(comes_true([] { return (*late).gone(); }));
  enough.store(true);
  EXPECT_TRUE(comes_true([] { return (*always).ended(); }));
}

}  // namespace
}  // namespace isthmus
