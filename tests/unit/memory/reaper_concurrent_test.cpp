// What could not go at first goes later, whatever else there is to let go.

#include "memory/reaper.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "backend/drivers.hpp"
#include "backend/queue.hpp"
#include "core/never_destroyed.hpp"
#include "memory/facts.hpp"
#include "memory/pool.hpp"
#include "memory/pooled.hpp"

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

// It cannot say for a while what runs there, as one of CUDA's while it is captured.
class captured_queue final : public queue {
 public:
  captured_queue(context& home, device& where) : queue{home, where, false} { mark_lent(); }
  void end_capture() noexcept { captured_.store(false); }
  [[nodiscard]] int asked() const noexcept { return asked_.load(); }

 private:
  static error refuses() { return fail(ISTHMUS_ERROR_UNSUPPORTED, "it is being captured"); }
  result<ref<event>> do_copy(void*, const void*, std::size_t, wait_list) override {
    return refuses();
  }
  result<ref<event>> do_copy_2d(const copy_2d_shape&, wait_list) override { return refuses(); }
  result<ref<event>> do_copy_ranges(const ranged_copy&, wait_list) override { return refuses(); }
  result<ref<event>> do_fill(void*, const fill_pattern&, std::size_t, wait_list) override {
    return refuses();
  }
  result<ref<event>> do_fence(wait_list) override {
    asked_.fetch_add(1);
    return captured_.load() ? result<ref<event>>{refuses()} : completed_event();
  }
  [[nodiscard]] bool knows(event&) const noexcept override { return false; }

  std::atomic<bool> captured_{true};
  std::atomic<int> asked_{0};
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

TEST(reaper_concurrent, what_is_freed_behind_a_captured_queue_waits_till_that_can_tell) {
  const auto host = *find_device("host");
  const auto on = *host->default_queue();
  const auto from = *pool::create(on->home(), on->where(), ISTHMUS_KIND_SHARED, {});
  for (const std::size_t nbytes : {std::size_t{1000}, std::size_t{300'000}}) {
    const auto behind = make_ref<captured_queue>(on->home(), on->where());
    void* const block = *from->allocate(nbytes, 0, *on);
    ASSERT_TRUE(*allocation_at(block));
    EXPECT_TRUE(from->deallocate(block, nbytes, behind.get()));
    EXPECT_EQ(from->deallocate(block, nbytes, behind.get()).failure().code(),
              ISTHMUS_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(comes_true([&] { return behind->asked() > 3; }));
    EXPECT_EQ(record_of(nullptr, block).state, ISTHMUS_MEMORY_WAITING);
    behind->end_capture();
    EXPECT_TRUE(comes_true([&] { return record_of(nullptr, block).state == ISTHMUS_MEMORY_FREE; }));
    EXPECT_TRUE(comes_true([&] { return behind->unique(); }));
  }
  EXPECT_TRUE(from->verify());
}

}  // namespace
}  // namespace isthmus
