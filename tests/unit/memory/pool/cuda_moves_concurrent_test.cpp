// SPDX-License-Identifier: Apache-2.0
// Chunks of a CUDA device that are to move, or have moved, while work still uses them.

#include <thread>

#include "memory/pool/pool.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using support::eventually;
using support::k_mib;

// A pool of four chunks, two of which were freed on a queue whose work waits for the gate.
class cuda_moves : public cuda_test {
 protected:
  static constexpr std::size_t k_chunk = 8 * k_mib;

  void SetUp() override {
    cuda_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    if (!test_device().can(ISTHMUS_CAN_REMAP)) {
      GTEST_SKIP() << "its memory does not move";
    }
    from_ = *Pool::create(test_context(), test_device(), ISTHMUS_KIND_DEVICE,
                          {.limit_bytes = 4 * k_chunk, .max_wait = std::chrono::seconds{60}});
    for (auto& each : blocks_) {
      each = take(k_chunk);
    }
    const std::vector<Ref<Event>> after{gate_};
    ASSERT_TRUE(test_queue().fence(after));
    give(blocks_[0], k_chunk, &test_queue());
    give(blocks_[2], k_chunk, &test_queue());
  }
  void TearDown() override {
    if (from_) {
      open();
      give(blocks_[1], k_chunk, &test_queue());
      give(blocks_[3], k_chunk, &test_queue());
    }
    cuda_test::TearDown();
  }
  // Waits for the work: a pool destroyed while work uses its memory ends later, on a library
  // thread.
  void open() {
    gate_->finish({});
    EXPECT_TRUE(test_queue().wait({}));
  }

  [[nodiscard]] void* take(std::size_t nbytes) const {
    auto taken = from_->allocate(nbytes, 0, test_queue());
    EXPECT_TRUE(taken) << taken.failure().message();
    return taken ? *taken : nullptr;
  }
  void give(void* gone, std::size_t nbytes, Queue* behind) const {
    EXPECT_TRUE(from_->deallocate(gone, nbytes, behind));
  }
  [[nodiscard]] std::size_t held() const { return from_->usage().held_bytes; }
  [[nodiscard]] Pool& from() const { return *from_; }
  [[nodiscard]] HostEvent& gate() const { return *gate_; }

 private:
  Ref<Pool> from_;
  std::array<void*, 4> blocks_{};
  Ref<HostEvent> gate_ = make_ref<HostEvent>();
};

TEST_F(cuda_moves, a_chunk_is_held_as_long_as_it_is_at_an_old_place_too) {
  const auto free_now = [&] { return test_device().memory()->free_bytes; };
  void* const moved = take(2 * k_chunk);
  EXPECT_EQ(held(), 4 * k_chunk) << "the free ones moved";
  give(moved, 2 * k_chunk, nullptr);
  const auto before = free_now();
  EXPECT_EQ(from().trim(0), 0U) << "work uses them at their old places";
  EXPECT_EQ(held(), 4 * k_chunk);
  void* const again = take(2 * k_chunk);
  give(again, 2 * k_chunk, nullptr);
  gate().finish({});
  std::size_t given_back = 0;
  EXPECT_TRUE(eventually([&] { return (given_back += from().trim(0)) != 0; }));
  EXPECT_EQ(given_back, 2 * k_chunk);
  EXPECT_EQ(held(), 2 * k_chunk);
  // Polled, because other processes may use the same card.
  EXPECT_TRUE(eventually([&] { return free_now() >= before + 2 * k_chunk; }));
}

// One half of each chunk is no longer in use; the other half only by the requesting queue.
TEST_F(cuda_moves, halves_of_a_chunk_that_are_good_for_the_queue_move_together) {
  constexpr auto k_half = k_chunk / 2;
  const auto from = *Pool::create(test_context(), test_device(), ISTHMUS_KIND_DEVICE,
                                  {.growth_bytes = k_chunk, .limit_bytes = 3 * k_chunk});
  std::array<void*, 6> halves{};
  for (auto& each : halves) {
    each = *from->allocate(k_half, 0, test_queue());
  }
  EXPECT_TRUE(from->deallocate(halves[0], k_half, nullptr));
  EXPECT_TRUE(from->deallocate(halves[1], k_half, &test_queue()));
  EXPECT_TRUE(from->deallocate(halves[4], k_half, &test_queue()));
  EXPECT_TRUE(from->deallocate(halves[5], k_half, nullptr));
  auto moved = from->allocate(2 * k_chunk, 0, test_queue());
  ASSERT_TRUE(moved) << moved.failure().message();
  EXPECT_TRUE(from->deallocate(*moved, 2 * k_chunk, &test_queue()));
  EXPECT_TRUE(from->deallocate(halves[2], k_half, &test_queue()));
  EXPECT_TRUE(from->deallocate(halves[3], k_half, &test_queue()));
  open();
}

// The driver refuses to map the chunk elsewhere. The request fits once the work of its own queue
// has ended.
TEST_F(cuda_moves, a_request_waits_for_the_work_of_its_own_queue_on_chunks_that_did_not_move) {
  auto* const library = *os::open_library(test_device().platform().properties().library.c_str());
  auto* const refuse =
      reinterpret_cast<void (*)(long)>(os::find_symbol(library, "stand_in_refuse_maps"));
  if (refuse == nullptr) {
    GTEST_SKIP() << "a driver that does as it is asked";
  }
  refuse(1);
  std::thread opens{[&] {
    EXPECT_TRUE(
        eventually([&] { return from().oom_stages().counts_of(OomStage::wait).tried != 0; }));
    gate().finish({});
  }};
  void* const served = take(2 * k_chunk);
  opens.join();
  EXPECT_EQ(held(), 4 * k_chunk);
  give(served, 2 * k_chunk, &test_queue());
}

}  // namespace
}  // namespace isthmus::cuda_test
