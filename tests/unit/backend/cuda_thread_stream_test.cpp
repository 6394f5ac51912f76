// SPDX-License-Identifier: Apache-2.0
// The per-thread default stream: one handle that stands for a different stream on each thread.

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <thread>

#include "core/bytes.hpp"
#include "memory/pool/pool.hpp"
#include "support/sizes.hpp"
#include "support/thread_end.hpp"
#include "unit/backend/cuda_fixture.hpp"

namespace isthmus::cuda_test {
namespace {

using namespace std::chrono_literals;

// Keeps a stream busy until it is opened.
class gate {
 public:
  ~gate() { open(); }
  void open() noexcept {
    is_open_ = true;
    is_open_.notify_all();
  }
  static void pass(void* at) { static_cast<gate*>(at)->is_open_.wait(false); }

 private:
  std::atomic<bool> is_open_{false};
};

class cuda_thread_stream : public cuda_test {
 protected:
  static cuda::CUstream own_stream() { return cuda::per_thread_stream(); }
  Result<Ref<Queue>> try_adopt() const {
    return test_device().platform().adopt_queue(test_device(), own_stream(), Owner{});
  }
  Ref<Queue> adopt() const { return *try_adopt(); }

  // External work on the calling thread's stream.
  void close_behind(gate& at) const {
    const cuda::ContextGuard here{calls(), primary()};
    using launch = cuda::CUresult(cuda::CUstream, void (*)(void*), void*);
    auto* const call = reinterpret_cast<launch*>(symbol("cuLaunchHostFunc"));
    ASSERT_EQ(call(own_stream(), gate::pass, &at), 0U);
  }
  void fill(const block& memory, unsigned char value) const {
    const cuda::ContextGuard here{calls(), primary()};
    ASSERT_EQ(calls().fill_8(cuda::to_deviceptr(memory.at()), value, memory.nbytes(), own_stream()),
              0U);
  }
  [[nodiscard]] std::vector<std::byte> own_read(const block& memory) const {
    std::vector<std::byte> found(memory.nbytes());
    const cuda::ContextGuard here{calls(), primary()};
    EXPECT_EQ(calls().copy(cuda::to_deviceptr(found.data()), cuda::to_deviceptr(memory.at()),
                           found.size(), own_stream()),
              0U);
    EXPECT_EQ(calls().finish(own_stream()), 0U);
    return found;
  }
  [[nodiscard]] void* symbol(const char* name) const {
    return os::find_symbol(*os::open_library(test_device().platform().properties().library.c_str()),
                           name);
  }
  static void on_another_thread(const std::function<void()>& what) { std::thread{what}.join(); }
};

// A thread that runs one function after another during the lifetime of the object.
class worker {
 public:
  ~worker() {
    give(nullptr);
    thread_.join();
  }
  worker() : thread_{[this] { serve(); }} {}
  void operator()(std::function<void()> what) {
    give(std::move(what));
    state_.wait(k_given);
  }

 private:
  enum state { k_idle, k_given };
  void give(std::function<void()> what) {
    what_ = std::move(what);
    state_ = k_given;
    state_.notify_all();
  }
  void serve() {
    for (;;) {
      state_.wait(k_idle);
      if (!what_) {
        return;
      }
      what_();
      state_ = k_idle;
      state_.notify_all();
    }
  }
  std::function<void()> what_;
  std::atomic<state> state_{k_idle};
  std::thread thread_;
};

TEST_F(cuda_thread_stream, is_one_queue_on_each_thread) {
  const auto mine = adopt();
  EXPECT_EQ(mine.get(), adopt().get());
  EXPECT_TRUE(mine->is_exported());
  EXPECT_TRUE(mine->is_in_order());
  EXPECT_NE(mine->key(), (*Platform::default_queue(test_device()))->key());
  Ref<Queue> other;
  on_another_thread([&] {
    other = adopt();
    EXPECT_EQ(other.get(), adopt().get());
  });
  EXPECT_NE(other->key(), mine->key());
  on_another_thread([&] { EXPECT_NE(adopt()->key(), other->key()) << "of a thread that ended"; });
}

TEST_F(cuda_thread_stream, releases_its_owner) {
  int released = 0;
  const auto mine = *test_device().platform().adopt_queue(
      test_device(), own_stream(),
      Owner{{&released, [](void* count) { ++*static_cast<int*>(count); }}});
  EXPECT_EQ(released, 1);
}

TEST_F(cuda_thread_stream, exports_the_handle_that_names_it_on_the_calling_thread) {
  const auto mine = adopt();
  EXPECT_EQ(*mine->export_handle(), own_stream());
  on_another_thread([&] { EXPECT_EQ(*mine->export_handle(), cuda::legacy_stream()); });
}

TEST_F(cuda_thread_stream, is_in_one_order_when_several_threads_submit) {
  const block memory{test_context(), test_device(), 4096};
  const auto mine = adopt();
  fill(memory, 1);
  gate at;
  close_behind(at);
  Ref<Event> filled;
  Ref<Event> bare;
  on_another_thread([&] {
    bare = *mine->fence({});
    filled = *mine->fill(memory.at(), {{std::byte{2}}, 1}, 4096, {});
  });
  const auto behind = *mine->fence({});
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(bare->pending());
  EXPECT_TRUE(filled->pending());
  EXPECT_TRUE(behind->pending());
  at.open();
  EXPECT_EQ(own_read(memory), std::vector<std::byte>(4096, std::byte{2}));
  EXPECT_TRUE(bare->wait(std::nullopt));
  EXPECT_TRUE(filled->wait(std::nullopt));
  EXPECT_TRUE(behind->wait(std::nullopt));
}

TEST_F(cuda_thread_stream, keeps_its_order_when_its_thread_has_ended) {
  constexpr std::size_t k_large = std::size_t{4} << 20;
  const block memory{test_context(), test_device(), k_large};
  for (std::size_t round = 0; round < 10 / support::k_slower; ++round) {
    Ref<Queue> left;
    on_another_thread([&] {
      left = adopt();
      for (unsigned char value = 1; value < 20; ++value) {
        fill(memory, value);
      }
    });
    std::byte last{};
    finish(left->copy(&last, memory.at(k_large - 1), 1, {}));
    ASSERT_EQ(last, std::byte{19});
    finish(left->fill(memory.at(), FillPattern{}, k_large, {}));
  }
}

TEST_F(cuda_thread_stream, runs_after_deferred_operations) {
  const block memory{test_context(), test_device(), 4096};
  const auto mine = adopt();
  fill(memory, 1);
  const auto opened = make_ref<LibraryEvent>();
  const Ref<Event> before{opened};
  const auto held = *mine->fill(memory.at(), {{std::byte{2}}, 1}, 4096, std::span{&before, 1});
  const auto behind = *mine->fill(memory.at(), {{std::byte{3}}, 1}, 2048, {});
  EXPECT_FALSE(mine->is_in_order());
  opened->finish({});
  EXPECT_TRUE(behind->wait(std::nullopt));
  auto wanted = std::vector<std::byte>(4096, std::byte{3});
  std::fill(wanted.begin() + 2048, wanted.end(), std::byte{2});
  EXPECT_EQ(own_read(memory), wanted);
}

// The case of memory that another thread exports to the thread of this queue.
TEST_F(cuda_thread_stream, is_ordered_after_external_work_of_any_thread) {
  const block memory{test_context(), test_device(), 4096};
  const auto mine = adopt();
  worker other;
  gate at;
  Ref<Event> before;
  Ref<Queue> theirs;
  other([&] {
    theirs = adopt();
    close_behind(at);
    before = *theirs->fill(memory.at(), {{std::byte{7}}, 1}, 4096, {});
  });
  worker third;
  third([&] { EXPECT_TRUE(mine->order_after(std::span{&before, 1})); });
  fill(memory, 8);
  at.open();
  EXPECT_EQ(own_read(memory), std::vector<std::byte>(4096, std::byte{8}));
}

TEST_F(cuda_thread_stream, reuses_freed_memory_on_any_thread) {
  const std::size_t nbytes = std::size_t{2} << 20;
  const auto pooled = *Pool::create(test_context(), test_device(), ISTHMUS_KIND_DEVICE,
                                    {.limit_bytes = nbytes, .max_wait = 0ms});
  const auto mine = adopt();
  void* const first = *pooled->allocate(nbytes, 0, *mine);
  gate at;
  close_behind(at);
  {
    const cuda::ContextGuard here{calls(), primary()};
    ASSERT_EQ(calls().fill_8(cuda::to_deviceptr(first), 1, nbytes, own_stream()), 0U);
  }
  ASSERT_TRUE(pooled->deallocate(first, nbytes, mine.get()));
  on_another_thread([&] {
    auto again = pooled->allocate(nbytes, 0, *mine);
    ASSERT_TRUE(again) << "what comes next there comes behind that work";
    auto filled = mine->fill(*again, {{std::byte{2}}, 1}, nbytes, {});
    ASSERT_TRUE(filled);
    at.open();
    EXPECT_EQ(read(*mine, *again, nbytes), std::vector<std::byte>(nbytes, std::byte{2}));
    EXPECT_TRUE(pooled->deallocate(*again, nbytes, mine.get()));
  });
}

TEST_F(cuda_thread_stream, refuses_to_work_in_a_capture) {
  const auto mine = adopt();
  finish(mine->fence({}));
  const cuda::ContextGuard here{calls(), primary()};
  using begin = cuda::CUresult(cuda::CUstream, unsigned);
  using end = cuda::CUresult(cuda::CUstream, void**);
  ASSERT_EQ(reinterpret_cast<begin*>(symbol("cuStreamBeginCapture_v2"))(own_stream(), 0), 0U);
  const auto is_refused = [&] {
    const auto fenced = mine->fence({});
    ASSERT_FALSE(fenced);
    EXPECT_EQ(fenced.failure().code(), ISTHMUS_ERROR_UNSUPPORTED) << fenced.failure().message();
  };
  is_refused();
  on_another_thread(is_refused);
  void* graph = nullptr;
  EXPECT_EQ(reinterpret_cast<end*>(symbol("cuStreamEndCapture"))(own_stream(), &graph), 0U);
  finish(mine->fence({}));
}

TEST_F(cuda_thread_stream, is_not_adopted_by_a_thread_that_is_ending) {
  std::optional<Status> told;
  on_another_thread([&] {
    const auto mine = adopt();
    support::run_at_thread_end([&] {
      auto late = try_adopt();
      told = late ? ISTHMUS_OK : late.failure().code();
    });
  });
  EXPECT_EQ(told, ISTHMUS_ERROR_CLOSED);
}

// Several threads use each of their queues, and sometimes their own stream directly, one at a time.
// Each byte must have the value of the last write.
TEST_F(cuda_thread_stream, is_in_one_order_with_any_sequence) {
  constexpr std::size_t k_words_bytes = 1 << 16;
  constexpr std::size_t k_threads = 3;
  const block memory{test_context(), test_device(), k_words_bytes};
  std::array<worker, k_threads> threads;
  std::array<Ref<Queue>, k_threads> queues;
  for (std::size_t each = 0; each < k_threads; ++each) {
    threads[each]([&] { queues[each] = adopt(); });
  }
  std::mt19937 random{1};
  for (std::size_t of = 0; of < k_threads; ++of) {
    for (int step = 1; step <= 100; ++step) {
      const std::size_t who = random() % k_threads;
      const auto value = static_cast<unsigned char>(step);
      const bool is_others = who == of && random() % 2 == 0;
      threads[who]([&] {
        if (is_others) {
          fill(memory, value);
        } else {
          ASSERT_TRUE(queues[of]->fill(memory.at(), {{std::byte{value}}, 1}, k_words_bytes, {}));
        }
      });
    }
    EXPECT_EQ(read(*queues[of], memory.at(), k_words_bytes),
              std::vector<std::byte>(k_words_bytes, std::byte{100}));
  }
}

}  // namespace
}  // namespace isthmus::cuda_test
