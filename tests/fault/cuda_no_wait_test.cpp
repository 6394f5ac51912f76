// SPDX-License-Identifier: Apache-2.0
// Operations that never wait for the device: while a stream is busy until the test ends its work,
// all of them return, and they make no driver call that waits.
#include <atomic>
#include <future>
#include <map>
#include <set>

#include "cuda_relay.hpp"
#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

template <class... Arguments>
void call_driver(const char* name, Arguments... arguments) {
  const char* named = std::getenv("ISTHMUS_TEST_CUDA_DRIVER");
  void* driver = dlopen(named != nullptr ? named : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto call = reinterpret_cast<unsigned (*)(Arguments...)>(dlsym(driver, name));
  EXPECT_EQ(call(arguments...), 0u) << name;
}

// A stream that another library created. It is never destroyed, because a queue that was adopted
// without an owner may be queried at any time.
void* strangers_stream(const im::context& home) {
  static auto& all = *new std::vector<void*>;
  void* made = nullptr;
  call_driver("cuCtxSetCurrent", home.native());
  call_driver("cuStreamCreate", &made, 1u);
  all.push_back(made);
  return made;
}

// External work on a stream, which completes when the test ends it.
class endless_work {
 public:
  endless_work(const im::context& home, const im::queue& on) {
    call_driver("cuCtxSetCurrent", home.native());
    call_driver("cuLaunchHostFunc", on.export_native(), wait, static_cast<void*>(&ended_));
  }
  ~endless_work() { end(); }
  endless_work(const endless_work&) = delete;
  endless_work& operator=(const endless_work&) = delete;
  void end() {
    ended_ = true;
    ended_.notify_all();
  }

 private:
  static void wait(void* end) { static_cast<std::atomic<bool>*>(end)->wait(false); }

  std::atomic<bool> ended_{false};
};

// CUDA's documentation does not say of any of these that it waits. The copies are of pinned memory.
bool never_waits(const std::string& call) {
  static const std::set<std::string> calls{
      "cuCtxGetCurrent",        "cuCtxSetCurrent",   "cuThreadExchangeStreamCaptureMode",
      "cuEventCreate",          "cuEventDestroy_v2", "cuEventRecord",
      "cuEventQuery",           "cuStreamWaitEvent", "cuStreamIsCapturing",
      "cuPointerGetAttributes", "cuMemcpyAsync",     "cuMemcpy2DAsync_v2",
      "cuMemsetD8Async",        "cuMemsetD16Async",  "cuMemsetD32Async",
      "cuMemGetInfo_v2"};
  return calls.contains(call);
}

class cuda_no_wait : public on_cuda_relay {
 protected:
  void SetUp() override {
    on_cuda_relay::SetUp();
    if (!device_) return;
    home_ = im::context({device_});
    busy_ = im::queue(home_, device_);
    other_ = im::queue(home_, device_);
    pool_ = im::resource::pool(home_, im::kind::device);
    pinned_ = im::resource::pool(home_, im::kind::host);
  }
  void TearDown() override {
    pinned_ = {};
    pool_ = {};
    other_ = {};
    busy_ = {};
    home_ = {};
    on_cuda_relay::TearDown();
  }
  // Runs `work` while `busy` executes endless work. Fails the test if anything waits for that.
  template <class Work>
  void beside_endless_work(const im::queue& busy, Work work) {
    endless_work endless(home_, busy);
    auto all = std::async(std::launch::async, work);
    const bool returned = all.wait_for(20s) == std::future_status::ready;
    EXPECT_TRUE(returned) << "something waits for the device";
    endless.end();
    all.get();
    busy.wait();
  }
  // Returns the calls that `work` makes, except those that never wait.
  template <class Work>
  std::map<std::string, long> calls_that_may_wait(Work work) const {
    const auto before = relay_.succeeded();
    work();
    std::map<std::string, long> found;
    for (const auto& [call, count] : relay_.succeeded()) {
      if (count != before.at(call) && !never_waits(call)) found[call] = count - before.at(call);
    }
    return found;
  }

  im::context home_;
  im::queue busy_;
  im::queue other_;
  im::resource pool_;
  im::resource pinned_;
};

using no_calls = std::map<std::string, long>;

TEST_F(cuda_no_wait, pool_while_its_queue_is_at_work) {
  const auto use = [&] {
    for (const std::size_t nbytes : {100u, 5000u, 70000u, 3u << 20}) {
      for (const im::queue& on : {busy_, other_}) {
        for (int i = 0; i < 50; ++i) pool_.deallocate(pool_.allocate(nbytes, 0, on), nbytes, 0, on);
      }
    }
  };
  beside_endless_work(busy_, [&] {
    use();  // fills this thread's cache
    EXPECT_EQ(calls_that_may_wait(use), no_calls{});
  });
}

TEST_F(cuda_no_wait, buffers_freed_while_work_uses_them) {
  const im::buffer pinned(1 << 20, im::kind::host, {.queue = busy_});
  const auto use = [&] {
    for (int i = 0; i < 30; ++i) {
      const im::buffer made(1 << 20, im::kind::device, {.queue = busy_, .resource = pool_});
      (void)im::copy_async(made, pinned);
      (void)im::fill_async(made, std::byte{7});
      (void)busy_.fence();
    }
  };
  beside_endless_work(busy_, use);
}

// Growing takes calls that allocate. They do not wait for the device either.
TEST_F(cuda_no_wait, a_pool_that_grows_and_releases) {
  beside_endless_work(busy_, [&] {
    for (const std::size_t nbytes : {1u << 20, 40u << 20}) {
      void* const block = pool_.allocate(nbytes, 0, busy_);
      void* const another = pool_.allocate(nbytes, 0, other_);
      pool_.deallocate(block, nbytes, 0, busy_);
      pool_.deallocate(another, nbytes, 0, other_);
    }
    (void)pool_.trim();
  });
}

// Memory of cuMemHostAlloc could be freed only after all work on the device has completed.
TEST_F(cuda_no_wait, a_pool_of_pinned_memory_that_grows_and_releases) {
  const auto calls = [&](const char* of) { return relay_.succeeded().at(of); };
  const long made = calls("cuMemCreate");
  const long other = calls("cuMemHostAlloc");
  beside_endless_work(busy_, [&] {
    for (const std::size_t nbytes : {1u << 20, 40u << 20}) {
      void* const block = pinned_.allocate(nbytes, 0, busy_);
      void* const another = pinned_.allocate(nbytes, 0, other_);
      std::memset(block, 1, nbytes);
      std::memset(another, 2, nbytes);
      pinned_.deallocate(block, nbytes, 0, busy_);
      pinned_.deallocate(another, nbytes, 0, other_);
    }
    EXPECT_NE(pinned_.trim(), 0u) << "what the idle queue freed";
  });
  EXPECT_NE(calls("cuMemCreate"), made) << "this device's pinned memory does not move";
  EXPECT_EQ(calls("cuMemHostAlloc"), other);
}

// The memory is released after the work on it, as that of a block is. Only a host write to the
// memory must wait for that work.
TEST_F(cuda_no_wait, pinned_memory_is_released_with_its_buffer_after_work_on_it) {
  const im::buffer there(8 << 20, im::kind::device, {.queue = busy_});
  beside_endless_work(busy_, [&] {
    for (int i = 0; i < 5; ++i) {
      const im::buffer made(8 << 20, im::kind::host, {.queue = busy_, .resource = pinned_});
      (void)im::fill_async(made, std::uint64_t{7});
      (void)im::copy_async(there, made);
    }
    (void)pinned_.trim();
  });
  bytes got = read(there);
  EXPECT_EQ(got[0], std::byte{7});
  EXPECT_EQ(got[got.size() - 8], std::byte{7});
}

// A request on another queue gets no memory that the endless work may still use.
TEST_F(cuda_no_wait, memory_of_a_busy_queue_is_not_reused_on_another_queue) {
  beside_endless_work(busy_, [&] {
    void* const block = pool_.allocate(1 << 20, 0, busy_);
    pool_.deallocate(block, 1 << 20, 0, busy_);
    void* const another = pool_.allocate(1 << 20, 0, other_);
    EXPECT_NE(another, block);
    pool_.deallocate(another, 1 << 20, 0, other_);
  });
}

// Memory is remapped for the queue on which it was freed before the work on it has completed. That
// work continues at the old address, and later work at the new address is ordered after it.
TEST_F(cuda_no_wait, memory_freed_during_work_is_remapped_for_its_queue) {
  constexpr std::size_t k_block_bytes = std::size_t{8} << 20;
  const auto before = relay_.succeeded();
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(pool_.allocate(k_block_bytes, 0, busy_));
  // External work on the stream, which the library does not know.
  const auto fill = [&](void* block, std::size_t nbytes, unsigned char value) {
    call_driver("cuCtxSetCurrent", home_.native());
    call_driver("cuMemsetD8Async", reinterpret_cast<unsigned long long>(block), value, nbytes,
                busy_.export_native());
  };
  const auto held = pool_.usage().held;
  void* joined = nullptr;
  beside_endless_work(busy_, [&] {
    for (std::size_t i = 0; i < blocks.size(); ++i) fill(blocks[i], k_block_bytes, 1);
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      pool_.deallocate(blocks[i], k_block_bytes, 0, busy_);
    }
    joined = pool_.allocate(8 * k_block_bytes, 0, busy_);
    EXPECT_EQ(pool_.usage().held, held);
    fill(joined, 8 * k_block_bytes, 2);
  });
  const auto expect_all = [&](void* block, std::size_t nbytes, unsigned char value) {
    bytes got(nbytes);
    const isthmus_endpoint_t from{nullptr, block, 0};
    const isthmus_endpoint_t to{nullptr, got.data(), 0};
    im::detail::check(isthmus_copy(busy_.get(), &to, &from, nbytes, nullptr, nullptr));
    EXPECT_TRUE(same(got, bytes(nbytes, std::byte{value})));
  };
  expect_all(joined, 8 * k_block_bytes, 2);
  for (std::size_t i = 1; i < blocks.size(); i += 2) {
    expect_all(blocks[i], k_block_bytes, 1);
    pool_.deallocate(blocks[i], k_block_bytes, 0, busy_);
  }
  pool_.deallocate(joined, 8 * k_block_bytes, 0, busy_);
  EXPECT_TRUE(eventually([&] {
    (void)pool_.trim();
    const auto calls = relay_.succeeded();
    return pool_.usage().held == 0 && calls.at("cuMemMap") - before.at("cuMemMap") ==
                                          calls.at("cuMemUnmap") - before.at("cuMemUnmap");
  }));
}

// As in PyTorch, which reuses freed memory at once on the same stream.
TEST_F(cuda_no_wait, memory_freed_on_an_adopted_stream_is_reused_there_at_once) {
  const auto owner = std::make_shared<int>();
  const im::queue adopted = im::queue::adopt(device_, strangers_stream(home_), owner);
  const auto pool = im::resource::pool(adopted.context(), im::kind::device);
  beside_endless_work(adopted, [&] {
    for (const std::size_t nbytes : {1000u, 3u << 20}) {
      void* const block = pool.allocate(nbytes, 0, adopted);
      pool.deallocate(block, nbytes, 0, adopted);
      void* const again = pool.allocate(nbytes, 0, adopted);
      EXPECT_EQ(again, block);
      pool.deallocate(again, nbytes, 0, adopted);
    }
  });
}

// The stream may have been destroyed when another queue needs the memory.
TEST_F(cuda_no_wait, memory_freed_on_a_stream_without_an_owner_is_reused_after_its_work) {
  const im::queue adopted = im::queue::adopt(device_, strangers_stream(home_));
  const auto pool = im::resource::pool(adopted.context(), im::kind::device);
  void* block = nullptr;
  beside_endless_work(adopted, [&] {
    block = pool.allocate(3u << 20, 0, adopted);
    pool.deallocate(block, 3u << 20, 0, adopted);
    void* const other = pool.allocate(3u << 20, 0, adopted);
    EXPECT_NE(other, block);
    pool.deallocate(other, 3u << 20, 0, adopted);
  });
}

// Otherwise external work on the stream would run before the fence, which is deferred too.
TEST_F(cuda_no_wait, an_external_stream_gets_no_memory_that_deferred_work_uses) {
  constexpr std::size_t k_bytes = std::size_t{8} << 20;
  const auto pool = im::resource::pool(home_, im::kind::device,
                                       {.limit_bytes = k_bytes, .wait = 0ns, .device_wait = true});
  void* const block = pool.allocate(k_bytes, 0, other_);
  const im::host_event gate;
  const im::event held = other_.fence(gate);
  pool.deallocate(block, k_bytes, 0, other_);
  (void)busy_.export_native();
  auto again = std::async(std::launch::async, [&] { return pool.allocate(k_bytes, 0, busy_); });
  EXPECT_EQ(again.wait_for(200ms), std::future_status::timeout) << "work on it is still to come";
  gate.complete();
  pool.deallocate(again.get(), k_bytes, 0, busy_);
  EXPECT_TRUE(held.wait_for(20s));
}

// A deferred operation runs after external work that the stream's owner submits meanwhile.
TEST_F(cuda_no_wait, memory_that_deferred_work_uses_is_not_reused_on_an_external_stream) {
  (void)busy_.export_native();
  const im::host_event gate;
  void* const block = pool_.allocate(1000, 0, busy_);
  const isthmus_endpoint_t there{nullptr, block, 0};
  const unsigned char value = 3;
  isthmus_event_t* const before = gate.get();
  const isthmus_operation_t behind{sizeof behind, &before, 1, nullptr, 0};
  isthmus_event_t* filled = nullptr;
  im::detail::check(isthmus_fill(busy_.get(), &there, &value, 1, 1000, &behind, &filled));
  pool_.deallocate(block, 1000, 0, busy_);
  void* const meanwhile = pool_.allocate(1000, 0, busy_);
  EXPECT_NE(meanwhile, block);
  gate.complete();
  pool_.deallocate(meanwhile, 1000, 0, busy_);
  isthmus_event_release(filled);
}

}  // namespace
