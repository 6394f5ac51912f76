// Memory freed behind strangers' work on a stream: at once good there, if the stream is kept.

#include "core/sizes.hpp"
#include "memory/allocation.hpp"
#include "memory/pool.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

constexpr isthmus_owner_t k_nobody{nullptr, [](void*) {}};

class cuda_order : public cuda_test {
 protected:
  void SetUp() override {
    cuda_test::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) {
      pool_ = *pool::create(home(), where(), ISTHMUS_KIND_DEVICE, {});
    }
  }
  [[nodiscard]] pool& from() const { return *pool_; }
  [[nodiscard]] ref<queue> adopted(owner keep) const {
    return *where().home().adopt_queue(where(), foreign_stream(), std::move(keep));
  }
  // Work that takes a while, and its end.
  [[nodiscard]] ref<event> occupy(queue& on) {
    constexpr std::size_t k_large = std::size_t{256} << 20;
    large_.push_back(std::make_unique<block>(home(), where(), k_large));
    ref<event> last;
    for (int times = 0; times < 20; ++times) {
      last = *on.fill(large_.back()->at(), fill_pattern{}, k_large, {});
    }
    return last;
  }

 private:
  ref<pool> pool_;
  std::vector<std::unique_ptr<block>> large_;
};

TEST_F(cuda_order, has_what_was_freed_on_a_kept_stream_at_once_and_there_alone) {
  for (const std::size_t nbytes : {std::size_t{1000}, std::size_t{1} << 20}) {
    const auto kept = adopted(owner{k_nobody});
    auto* const first = *from().allocate(nbytes, 0, *kept);
    const auto last = occupy(*kept);
    ASSERT_TRUE(from().deallocate(first, nbytes, kept.get()));
    EXPECT_NE(*from().allocate(nbytes, 0, line()), first);
    EXPECT_EQ(*from().allocate(nbytes, 0, *kept), first);
    EXPECT_TRUE(last->pending()) << "too little work for this test";
    EXPECT_TRUE(last->wait(std::nullopt));
  }
}

TEST_F(cuda_order, has_what_a_record_held_there_at_once_too) {
  const auto kept = adopted(owner{k_nobody});
  auto made = allocation::create(*kept, {ISTHMUS_KIND_DEVICE, 1000, 0}, &from());
  ASSERT_TRUE(made);
  const auto* const first = (*made)->what().base;
  const auto last = occupy(*kept);
  *made = nullptr;
  EXPECT_EQ(*from().allocate(1000, 0, *kept), first);
  EXPECT_TRUE(last->pending()) << "too little work for this test";
  EXPECT_TRUE(last->wait(std::nullopt));
}

TEST_F(cuda_order, waits_for_a_stream_that_may_go) {
  const auto lent = adopted(owner{});
  auto* const first = *from().allocate(1000, 0, *lent);
  const auto last = occupy(*lent);
  ASSERT_TRUE(from().deallocate(first, 1000, lent.get()));
  EXPECT_NE(*from().allocate(1000, 0, *lent), first);
  EXPECT_TRUE(last->pending()) << "too little work for this test";
  EXPECT_TRUE(last->wait(std::nullopt));
}

// Where it grew for another queue, what was freed on the stream is good elsewhere behind its work.
TEST_F(cuda_order, gives_it_to_others_when_the_streams_work_has_ended) {
  const auto kept = adopted(owner{k_nobody});
  constexpr std::size_t k_bytes = std::size_t{1} << 20;
  auto* const first = *from().allocate(k_bytes, 0, *kept);
  const auto last = occupy(*kept);
  ASSERT_TRUE(from().deallocate(first, k_bytes, kept.get()));
  const auto held = from().usage().held_bytes;
  EXPECT_EQ(from().trim(0), held - round_up(k_bytes, std::size_t{2} << 20)) << "it is in use";
  EXPECT_TRUE(last->wait(std::nullopt));
  while (from().trim(0) == 0) {  // its fence passes on a thread of the library's
    std::this_thread::yield();
  }
  EXPECT_EQ(from().usage().held_bytes, 0U);
}

}  // namespace
}  // namespace isthmus::cuda_test
