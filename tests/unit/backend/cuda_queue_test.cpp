// SPDX-License-Identifier: Apache-2.0
// CUDA streams: adopted, captured, with operations held back, and in a broken context.

#include <chrono>
#include <thread>

#include "core/bytes.hpp"
#include "core/sizes.hpp"
#include "memory/base/provider.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using namespace std::chrono_literals;

isthmus_owner_t counted(int& released) {
  return {&released, [](void* count) { ++*static_cast<int*>(count); }};
}

TEST_F(cuda_test, adopts_external_streams) {
  auto* const stream = foreign_stream();
  int released = 0;
  {
    auto adopted =
        test_device().platform().adopt_queue(test_device(), stream, Owner{counted(released)});
    ASSERT_TRUE(adopted) << adopted.failure().message();
    auto again = test_device().platform().adopt_queue(test_device(), stream, Owner{});
    ASSERT_TRUE(again);
    EXPECT_EQ((*adopted)->key(), (*again)->key());
    EXPECT_TRUE((*adopted)->is_exported());
    const block memory{test_context(), test_device(), 4096};
    const auto data = numbered(4096);
    finish((*adopted)->copy(memory.at(), data.data(), 4096, {}));
    EXPECT_EQ(read(**again, memory.at(), 4096), data);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  const cuda::ContextGuard here{calls(), primary()};
  EXPECT_EQ(calls().destroy_stream(stream), 0U) << "it is its owner's";
}

TEST_F(cuda_test, adopts_the_legacy_default_stream_as_the_default_queue) {
  auto adopted = test_device().platform().adopt_queue(
      test_device(), reinterpret_cast<void*>(cuda::cu::k_stream_legacy), Owner{});
  ASSERT_TRUE(adopted) << adopted.failure().message();
  EXPECT_EQ((*adopted)->key(), (*Platform::default_queue(test_device()))->key());
}

TEST_F(cuda_test, refuses_a_stream_that_means_another_one_elsewhere) {
  int released = 0;
  auto refused =
      test_device().platform().adopt_queue(test_device(), nullptr, Owner{counted(released)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_TRUE(mentions(refused.failure(), "CU_STREAM_LEGACY")) << refused.failure().message();
  EXPECT_EQ(released, 1);
}

TEST_F(cuda_gpu, refuses_what_is_of_another_context) {
  const auto extra = more_driver_calls();
  cuda::CUcontext theirs = nullptr;
  ASSERT_EQ(extra.create_context(&theirs, 0, test_device().index()), 0U);
  cuda::CUstream stream = nullptr;
  ASSERT_EQ(calls().create_stream(&stream, 0), 0U);
  EXPECT_EQ(test_device().platform().adopt_queue(test_device(), stream, Owner{}).failure().code(),
            ISTHMUS_ERROR_WRONG_CONTEXT);
  EXPECT_EQ(test_device().platform().adopt_context(test_device(), theirs, Owner{}).failure().code(),
            ISTHMUS_ERROR_UNSUPPORTED);
  EXPECT_EQ(extra.destroy_context(theirs), 0U);
  auto same = test_device().platform().adopt_context(test_device(), primary(), Owner{});
  ASSERT_TRUE(same);
  EXPECT_TRUE((*same)->is_same_as(test_context()));
}

TEST_F(cuda_gpu, refuses_to_work_in_a_capture) {
  const auto extra = more_driver_calls();
  auto* const stream = foreign_stream();
  auto adopted = *test_device().platform().adopt_queue(test_device(), stream, Owner{});
  const cuda::ContextGuard here{calls(), primary()};
  ASSERT_EQ(extra.begin_capture(stream, 0), 0U);
  const auto fenced = adopted->fence({});
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
  EXPECT_TRUE(mentions(fenced.failure(), "being captured")) << fenced.failure().message();
  const auto pooled = *Pool::create(test_context(), test_device(), ISTHMUS_KIND_DEVICE, {});
  const auto raw = make_ref<Provider>(test_context(), test_device(), ISTHMUS_KIND_DEVICE);
  for (MemoryResource* from :
       {static_cast<MemoryResource*>(pooled.get()), static_cast<MemoryResource*>(raw.get())}) {
    const auto allocated = from->allocate(4096, 0, *adopted);
    ASSERT_FALSE(allocated);
    EXPECT_EQ(allocated.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
    EXPECT_TRUE(mentions(allocated.failure(), "being captured")) << allocated.failure().message();
  }
  void* graph = nullptr;
  EXPECT_EQ(extra.end_capture(stream, &graph), 0U);
  finish(adopted->fence({}));
}

// In CUDA's default capture mode an unsafe call on any thread would invalidate the capture.
TEST_F(cuda_gpu, leaves_external_captures_as_they_are) {
  const auto extra = more_driver_calls();
  auto* const stream = foreign_stream();
  const block memory{test_context(), test_device(), 4096};
  ASSERT_EQ(extra.begin_capture(stream, 0), 0U);
  std::thread other([&] {
    finish(test_queue().fill(memory.at(), {{std::byte{7}}, 1}, 4096, {}));
    const block more{test_context(), test_device(), 4096};
    finish(test_queue().copy(more.at(), memory.at(), 4096, {}));
  });
  other.join();
  const block own{test_context(), test_device(), 4096};
  finish(test_queue().copy(own.at(), memory.at(), 4096, {}));
  void* graph = nullptr;
  EXPECT_EQ(extra.end_capture(stream, &graph), 0U);
}

// The stream being captured is a blocking one, which would wait for the default stream.
TEST_F(cuda_gpu, refuses_the_default_queue_to_a_capture_that_it_would_end) {
  const auto extra = more_driver_calls();
  const cuda::ContextGuard here{calls(), primary()};
  cuda::CUstream blocking = nullptr;
  ASSERT_EQ(calls().create_stream(&blocking, 0), 0U);
  const auto usual = *Platform::default_queue(test_device());
  ASSERT_EQ(extra.begin_capture(blocking, 0), 0U);
  const auto fenced = usual->fence({});
  ASSERT_FALSE(fenced);
  EXPECT_EQ(fenced.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
  void* graph = nullptr;
  EXPECT_EQ(extra.end_capture(blocking, &graph), 0U);
  finish(usual->fence({}));
}

TEST_F(cuda_test, does_not_fill_the_hosts_own_memory) {
  std::vector<std::byte> plain(4096);
  const auto refused = test_queue().fill(plain.data(), {{std::byte{7}}, 1}, plain.size(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().code(), ISTHMUS_ERROR_UNSUPPORTED);
}

TEST_F(cuda_test, holds_back_what_waits_for_the_host) {
  const block memory{test_context(), test_device(), 4096};
  const auto data = numbered(4096);
  FillPattern zero;
  finish(test_queue().fill(memory.at(), zero, 4096, {}));
  const auto gate = make_ref<LibraryEvent>();
  const Ref<Event> before{gate};
  auto copied = test_queue().copy(memory.at(), data.data(), 4096, std::span{&before, 1});
  ASSERT_TRUE(copied);
  auto behind = test_queue().fence({});
  ASSERT_TRUE(behind);
  const auto other = *Queue::create(test_context(), test_device());
  const Ref<Event> held{*copied};
  auto elsewhere = other->fence(std::span{&held, 1});
  ASSERT_TRUE(elsewhere);
  std::this_thread::sleep_for(5ms);
  EXPECT_TRUE((*copied)->pending());
  EXPECT_TRUE((*behind)->pending());
  EXPECT_TRUE((*elsewhere)->pending());
  EXPECT_FALSE(test_queue().idle());
  EXPECT_EQ((*behind)->wait(os::Clock::now() + 2ms).failure().code(), ISTHMUS_ERROR_TIMEOUT);
  gate->finish({});
  EXPECT_TRUE((*elsewhere)->wait(std::nullopt));
  EXPECT_TRUE((*behind)->wait(std::nullopt));
  EXPECT_EQ(read(test_queue(), memory.at(), 4096), data);
}

TEST_F(cuda_test, does_not_run_what_waits_for_a_failure) {
  const block memory{test_context(), test_device(), 4096};
  FillPattern zero;
  finish(test_queue().fill(memory.at(), zero, 4096, {}));
  const auto data = numbered(4096, 1);
  const auto gate = make_ref<LibraryEvent>();
  const Ref<Event> before{gate};
  auto copied = test_queue().copy(memory.at(), data.data(), 4096, std::span{&before, 1});
  auto behind = test_queue().fence({});
  gate->finish(fail(ISTHMUS_ERROR_CALLBACK, "it went wrong"));
  const auto ended = (*copied)->wait(std::nullopt);
  EXPECT_EQ(ended.failure().code(), ISTHMUS_ERROR_DEPENDENCY);
  EXPECT_TRUE((*behind)->wait(std::nullopt));
  EXPECT_EQ(read(test_queue(), memory.at(), 4096), std::vector<std::byte>(4096));
}

TEST_F(cuda_test, keeps_events_for_later_operations) {
  std::vector<Ref<Event>> many;
  for (int number = 0; number < 300; ++number) {  // more than are kept
    many.push_back(*test_queue().fence({}));
    ASSERT_TRUE(many.back()->wait(std::nullopt));
  }
  many.clear();
  auto* const spare = test_device().events().acquire();
  ASSERT_NE(spare, nullptr);
  ASSERT_TRUE(test_device().events().recycle(spare));
  EXPECT_EQ((*test_queue().fence({}))->native(), spare);
}

// The queue drops the fill, and another operation reuses the fill's event, before the copy that
// waits for the fill has begun.
TEST_F(cuda_test, may_use_an_event_again_that_a_queue_still_waits_for) {
  constexpr std::size_t k_large = (std::size_t{128} << 20) / (support::k_slower > 1 ? 8 : 1);
  constexpr std::size_t k_times = 10 / support::k_slower;
  const block memory{test_context(), test_device(), k_large};
  const block copied{test_context(), test_device(), 4096};
  const auto other = *Queue::create(test_context(), test_device());
  auto last = *test_queue().fill(memory.at(), FillPattern{}, k_large, {});
  for (std::size_t number = 1; number <= k_times; ++number) {
    last = *test_queue().fill(memory.at(), {{static_cast<std::byte>(number)}, 1}, k_large, {});
  }
  const auto* const used = last->native();
  auto behind = other->copy(copied.at(), memory.at(k_large - 4096), 4096, std::span{&last, 1});
  last = nullptr;
  const auto third = *Queue::create(test_context(), test_device());
  auto following = *test_queue().fence({});  // the queue now remembers this instead of the fill
  std::vector<Ref<Event>> later;
  do {
    later.push_back(*third->fence({}));
    ASSERT_TRUE(later.back()->wait(std::nullopt));
  } while (later.back()->native() != used && later.size() < 300);
  EXPECT_EQ(later.back()->native(), used);
  finish(behind);
  EXPECT_EQ(read(*other, copied.at(), 4096), std::vector<std::byte>(4096, std::byte{k_times}));
  EXPECT_TRUE(following->wait(std::nullopt));
}

// More queues than the device has hardware channels, all of which wait for the host.
TEST_F(cuda_test, lets_other_queues_work_while_many_wait) {
  constexpr std::size_t k_queues = 64;
  constexpr std::size_t k_each = 64 << 10;
  const block memory{test_context(), test_device(), 2 * k_queues * k_each};
  const auto gate = make_ref<LibraryEvent>();
  const Ref<Event> before{gate};
  std::vector<Ref<Queue>> queues;
  std::vector<Ref<Event>> ends;
  const auto fill = [&](WaitList after) {
    queues.push_back(*Queue::create(test_context(), test_device()));
    return queues.back()->fill(memory.at((queues.size() - 1) * k_each), FillPattern{}, k_each,
                               after);
  };
  for (std::size_t number = 0; number < k_queues; ++number) {
    ends.push_back(*fill(std::span{&before, 1}));
  }
  for (std::size_t number = 0; number < k_queues; ++number) {
    finish(fill({}));
  }
  gate->finish({});
  for (const auto& each : ends) {
    EXPECT_TRUE(each->wait(std::nullopt));
  }
}

TEST_F(cuda_test, fills_with_any_pattern_from_any_address) {
  constexpr std::size_t k_bytes = 300'000;
  const block memory{test_context(), test_device(), k_bytes + 64};
  const auto data = numbered(16, 7);
  for (const std::size_t width : {1U, 2U, 4U, 8U, 16U}) {
    FillPattern pattern;
    pattern.nbytes = width;
    std::copy_n(data.begin(), width, pattern.bytes);
    for (const std::size_t offset : {0U, 1U, 2U, 4U, 8U, 15U}) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{3}, k_bytes / width}) {
        finish(test_queue().fill(memory.at(), FillPattern{}, k_bytes + 64, {}));
        finish(test_queue().fill(memory.at(offset), pattern, count * width, {}));
        std::vector<std::byte> wanted(k_bytes + 64);
        fill_bytes(wanted.data() + offset, pattern, count * width);
        EXPECT_EQ(read(test_queue(), memory.at(), k_bytes + 64), wanted)
            << width << " at " << offset << " times " << count;
      }
    }
  }
}

constexpr const char* k_trap = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry broken() { trap; }
)";

// Breaks the context of the process, and therefore runs in a child process.
TEST_F(cuda_gpu, reports_a_broken_context) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this] {
    const auto extra = more_driver_calls();
    const cuda::ContextGuard here{calls(), primary()};
    void* module = nullptr;
    void* function = nullptr;
    const block memory{test_context(), test_device(), 4096};
    auto* const stream = static_cast<cuda::CUstream>(*test_queue().export_handle());
    if (extra.load_module(&module, k_trap) != 0 ||
        extra.get_function(&function, module, "broken") != 0 ||
        extra.launch(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr) != 0) {
      std::_Exit(2);
    }
    auto fenced = test_queue().fence({});
    const auto ended = fenced ? (*fenced)->wait(std::nullopt) : fenced.take_error();
    const auto later = test_context().allocate(test_device(), {ISTHMUS_KIND_DEVICE, 4096, 0});
    const bool right = !ended && ended.failure().code() == ISTHMUS_ERROR_DEVICE_LOST &&
                       mentions(ended.failure(), "start a new process") && !later &&
                       later.failure().code() == ISTHMUS_ERROR_DEVICE_LOST;
    std::exit(right ? 0 : 3);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(0), "");
}

TEST_F(cuda_test, the_process_may_end_with_pending_and_deferred_work) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto in_child = [this] {
    auto* const memory = new block{test_context(), test_device(), std::size_t{256} << 20};
    const auto gate = make_ref<LibraryEvent>();
    const Ref<Event> before{gate};
    const auto other = *Queue::create(test_context(), test_device());
    auto held = *other->fill(memory->at(), FillPattern{}, 4096, std::span{&before, 1});
    std::vector<Ref<Event>> ends{held};
    for (int number = 0; number < 50; ++number) {
      ends.push_back(*test_queue().fill(memory->at(), FillPattern{}, std::size_t{256} << 20, {}));
    }
    const auto all = end_of_all(ends);
    std::exit(7);
  };
  EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace isthmus::cuda_test
