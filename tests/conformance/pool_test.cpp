// SPDX-License-Identifier: Apache-2.0
// Pools: what they allocate, what queries report about it, which requests they reject, and in which
// order memory is reused.
#include <mutex>
#include <numeric>
#include <set>

#include <isthmus/host_resource.hpp>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class pools : public on_backend {
 protected:
  im::resource make(im::kind kind, const im::pool_options& how = {}) const {
    return im::resource::pool(queue_.context(), kind, how, device_);
  }
};
INSTANTIATE_ON_BACKENDS(pools);

isthmus_endpoint_t at(void* pointer) { return {nullptr, pointer, 0}; }

void copy(const im::queue& on, void* to, const void* from, std::size_t nbytes,
          isthmus_event_t** event = nullptr) {
  const isthmus_endpoint_t destination = at(to);
  const isthmus_endpoint_t source = at(const_cast<void*>(from));
  im::detail::check(isthmus_copy(on.get(), &destination, &source, nbytes, nullptr, event));
}

TEST_P(pools, serve_every_size_and_report_their_usage) {
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind);
    for (std::size_t nbytes : {std::size_t{1}, std::size_t{64}, std::size_t{1000}, 100 * k_kib,
                               256 * k_kib, 256 * k_kib + 1, 5 * k_mib}) {
      auto* memory = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
      for (const std::byte* inside : {memory, memory + nbytes / 2, memory + nbytes - 1}) {
        const im::pointer_info known = im::query(inside, queue_.context());
        EXPECT_EQ(known.kind, kind);
        EXPECT_EQ(known.base, memory);
        EXPECT_GE(known.nbytes, nbytes);
        EXPECT_LE(known.nbytes, std::max(nbytes + nbytes / 8, nbytes + 64 * k_kib));
        EXPECT_EQ(known.device, device_);
      }
      const bytes data = noise(nbytes);
      bytes back(nbytes);
      copy(queue_, memory, data.data(), nbytes);
      copy(queue_, back.data(), memory, nbytes);
      EXPECT_TRUE(same(back, data)) << nbytes;
      from.deallocate(memory, nbytes, 0, queue_);
      EXPECT_EQ(im::query(memory).kind, im::kind::unknown) << "it was freed";
    }
    EXPECT_EQ(from.allocate(0, 0, queue_), nullptr);
    from.deallocate(nullptr, 0, 0, queue_);
  }
}

TEST_P(pools, know_the_requested_sizes_of_blocks) {
  const im::queue other(queue_.device());
  for (im::kind kind : kinds()) {
    const im::resource pool = im::resource::pool(queue_.context(), kind, {}, queue_.device());
    for (int again = 0; again < 2; ++again) {  // the second time from the thread cache
      for (const im::queue& on : {queue_, other}) {
        for (std::size_t nbytes : {256 * k_kib + 1, 3 * k_mib - 7}) {
          auto* const block = static_cast<std::byte*>(pool.allocate(nbytes, 0, on));
          const im::pointer_info info = im::query(block + nbytes - 1);
          EXPECT_EQ(info.requested_bytes, nbytes);
          EXPECT_EQ(info.queue_key, isthmus_queue_key(on.get()));
          pool.deallocate(block, nbytes, 0, on);
          EXPECT_EQ(im::query(block).requested_bytes, 0u);
        }
      }
    }
  }
}

TEST_P(pools, align_as_requested) {
  const std::size_t most = device_.info().max_alignment;
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind);
    for (std::size_t alignment = 1; alignment <= most && alignment <= 4 * k_mib; alignment *= 2) {
      for (std::size_t nbytes : {std::size_t{1}, std::size_t{5000}, 3 * k_mib}) {
        void* memory = from.allocate(nbytes, alignment, queue_);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % alignment, 0u) << nbytes;
        from.deallocate(memory, nbytes, alignment, queue_);
      }
    }
  }
}

TEST_P(pools, refuse_what_they_cannot) {
  const im::resource from = make(kinds().front());
  EXPECT_TRUE(
      throws(im::status::invalid_argument, {"24"}, [&] { (void)from.allocate(10, 24, queue_); }));
  for (std::size_t nbytes : {std::size_t{1} << 62, std::size_t{1} << 63, SIZE_MAX}) {
    EXPECT_TRUE(throws(im::status::out_of_memory, {std::to_string(nbytes)},
                       [&] { (void)from.allocate(nbytes, 0, queue_); }));
  }
  const im::queue elsewhere{im::sim_device("")};
  EXPECT_TRUE(throws(im::status::wrong_context, [&] { (void)from.allocate(10, 0, elsewhere); }));
  void* memory = from.allocate(10, 0, queue_);
  EXPECT_TRUE(
      throws(im::status::wrong_context, [&] { from.deallocate(memory, 10, 0, elsewhere); }));
  from.deallocate(memory, 10, 0, queue_);
  isthmus_pool_options_t odd{};
  isthmus_resource_t* none = nullptr;
  const auto kind = static_cast<isthmus_kind_t>(kinds().front());
  EXPECT_EQ(isthmus_resource_pool(queue_.context().get(), nullptr, kind, &odd, &none),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  odd.struct_size = sizeof odd;
  odd.flags = 1u << 31;
  EXPECT_EQ(isthmus_resource_pool(queue_.context().get(), nullptr, kind, &odd, &none),
            ISTHMUS_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_P(pools, report_misuse_and_change_nothing) {
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind);
    const im::resource other = make(kind);
    const auto refused = [&](const im::resource& by, void* pointer, const char* says) {
      return throws(im::status::invalid_argument, {says},
                    [&] { by.deallocate(pointer, 1, 0, queue_); });
    };
    int local = 0;
    EXPECT_TRUE(refused(from, &local, "not allocated by this pool"));
    for (std::size_t nbytes : {std::size_t{100}, std::size_t{5000}, 2 * k_mib}) {
      auto* memory = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
      const bytes data = noise(nbytes);
      copy(queue_, memory, data.data(), nbytes);
      EXPECT_TRUE(refused(from, memory + 1, "inside"));
      EXPECT_TRUE(refused(from, memory + nbytes / 2, "inside"));
      EXPECT_TRUE(refused(other, memory, "not allocated by this pool"));
      bytes back(nbytes);
      copy(queue_, back.data(), memory, nbytes);
      EXPECT_TRUE(same(back, data)) << "still whole";
      from.deallocate(memory, nbytes, 0, queue_);
      EXPECT_TRUE(refused(from, memory, "before"));
      EXPECT_TRUE(throws(im::status::invalid_argument, {"not allocated"},
                         [&] { copy(queue_, memory, data.data(), 1); }));
      (void)from.trim();
      EXPECT_THROW(from.deallocate(memory, nbytes, 0, queue_), im::invalid_argument);
    }
    im::buffer buffer(1000, kind, {.queue = queue_, .resource = from});
    EXPECT_TRUE(refused(from, buffer.pointer(), "buffer"));
    im::fill(buffer, 1.0f);
  }
}

TEST_P(pools, feed_buffers) {
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind);
    std::vector<im::buffer> all;
    for (std::size_t nbytes : {std::size_t{1}, std::size_t{1000}, 300 * k_kib}) {
      all.emplace_back(nbytes, kind, im::buffer_options{.queue = queue_, .resource = from});
      const bytes data = noise(nbytes);
      write(all.back(), data);
      EXPECT_TRUE(same(read(all.back()), data));
      const im::pointer_info known = im::query(all.back().pointer(), queue_.context());
      EXPECT_EQ(known.nbytes, nbytes) << "a buffer's size is known exactly";
    }
    EXPECT_GE(from.usage().held, 300 * k_kib);
    all.clear();
    queue_.wait();
    (void)from.trim();
    EXPECT_EQ(from.usage().held, 0u);
  }
}

TEST_P(pools, hold_standard_containers) {
  for (im::kind kind : kinds()) {
    if (kind == im::kind::device) {
      EXPECT_TRUE(throws(im::status::unsupported, [&] { im::host_resource(make(kind), queue_); }));
      continue;
    }
    im::host_resource memory(make(kind), queue_);
    std::pmr::vector<std::pmr::string> lines(&memory);
    for (int i = 0; i < 3000; ++i) lines.emplace_back(std::to_string(i) + std::string(50, 'x'));
    EXPECT_EQ(lines[2999].substr(0, 5), "2999x");
    EXPECT_EQ(im::query(lines.data()).kind, kind);
  }
}

TEST_P(pools, keep_to_their_limit) {
  const im::kind kind = kinds().front();
  const im::resource from =
      make(kind, {.initial_bytes = 4 * k_mib, .growth_bytes = k_mib, .limit_bytes = 8 * k_mib});
  EXPECT_GE(from.usage().held, 4 * k_mib);
  EXPECT_GE(from.usage().free, 4 * k_mib);
  std::vector<void*> all;
  EXPECT_TRUE(throws(im::status::out_of_memory, {"at most", "limit"}, [&] {
    for (;;) all.push_back(from.allocate(k_mib, 0, queue_));
  }));
  EXPECT_GE(all.size(), 7u);  // a driver whose alignment is not 64 KiB takes a little more
  EXPECT_LE(from.usage().held, 8 * k_mib);
  for (void* each : all) from.deallocate(each, k_mib, 0, queue_);
  queue_.wait();
  void* again = from.allocate(k_mib, 0, queue_);
  from.deallocate(again, k_mib, 0, queue_);
}

TEST_P(pools, reuse_on_another_queue_only_what_no_work_uses) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  constexpr std::size_t k_bytes = 64 * k_kib;
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind, {.growth_bytes = k_mib});
    const im::queue other(device_);
    const bytes data = noise(k_bytes);
    bytes out(k_bytes);
    im::host_event gate;
    const im::event held = queue_.fence(gate);
    void* block = from.allocate(k_bytes, 0, queue_);
    isthmus_event_t* written = nullptr;
    copy(queue_, block, data.data(), k_bytes, &written);
    isthmus_event_t* read = nullptr;
    copy(queue_, out.data(), block, k_bytes, &read);
    from.deallocate(block, k_bytes, 0, queue_);
    std::vector<void*> others;
    for (int i = 0; i < 40; ++i) {  // more than the rest of the region has free
      others.push_back(from.allocate(k_bytes, 0, other));
      EXPECT_NE(others.back(), block) << "work on it is still to come";
      const unsigned char zero = 0;
      const isthmus_endpoint_t there = at(others.back());
      im::detail::check(isthmus_fill(other.get(), &there, &zero, 1, k_bytes, nullptr, nullptr));
    }
    gate.complete();
    EXPECT_EQ(isthmus_event_wait(read, std::int64_t{20'000'000'000}), ISTHMUS_OK);
    isthmus_event_release(written);
    isthmus_event_release(read);
    EXPECT_TRUE(same(out, data)) << "somebody wrote it before its work was done";
    for (void* each : others) from.deallocate(each, k_bytes, 0, other);
    other.wait();
  }
}

TEST_P(pools, end_when_the_work_on_their_memory_has_ended) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const im::live_memory before = im::live();
  for (im::kind kind : kinds()) {
    bytes data = noise(4096);
    im::host_event gate;
    {
      const im::resource from = make(kind);
      (void)queue_.fence(gate);
      void* block = from.allocate(4096, 0, queue_);
      isthmus_event_t* written = nullptr;
      copy(queue_, block, data.data(), 4096, &written);
      isthmus_event_release(written);
      from.deallocate(block, 4096, 0, queue_);
    }
    EXPECT_GT(im::live().bytes, before.bytes) << "the copy still has to write it";
    gate.complete();
    queue_.wait();
    const auto patience = std::chrono::steady_clock::now() + 5s;
    while (im::live().bytes != before.bytes && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(im::live().bytes, before.bytes);
  }
}

TEST_P(pools, report_a_second_free_while_the_first_waits_for_work) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind);
    const unsigned char zero = 0;
    for (std::size_t nbytes : {std::size_t{1000}, k_mib}) {
      im::host_event gate;
      (void)queue_.fence(gate);
      void* block = from.allocate(nbytes, 0, queue_);
      const isthmus_endpoint_t there = at(block);
      isthmus_event_t* filled = nullptr;
      im::detail::check(isthmus_fill(queue_.get(), &there, &zero, 1, nbytes, nullptr, &filled));
      from.deallocate(block, nbytes, 0, queue_);
      EXPECT_TRUE(throws(im::status::invalid_argument, {"before"},
                         [&] { from.deallocate(block, nbytes, 0, queue_); }));
      EXPECT_EQ(im::query(block).kind, im::kind::unknown);
      EXPECT_TRUE(throws(im::status::invalid_argument, {"not allocated"}, [&] {
        im::detail::check(isthmus_fill(queue_.get(), &there, &zero, 1, 1, nullptr, nullptr));
      }));
      gate.complete();
      queue_.wait();
      isthmus_event_release(filled);
    }
  }
}

TEST_P(pools, reuse_what_was_freed_during_work) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  const im::queue other(queue_.context(), device_);
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind, {.growth_bytes = k_mib, .limit_bytes = 10 * k_mib});
    for (int i = 0; i < 3; ++i) {
      im::host_event gate;
      im::buffer buffer(8 * k_mib, kind, {.queue = queue_, .resource = from});
      const im::event filled = im::fill_async(buffer, 1.0f, {.after = {gate}});
      buffer = {};
      gate.complete();
      queue_.wait();
      EXPECT_EQ(im::buffer(8 * k_mib, kind, {.queue = other, .resource = from}).size(), 8 * k_mib);
    }
  }
}

TEST_P(pools, serve_threads_that_free_each_others_blocks) {
  for (im::kind kind : kinds()) {
    const im::resource from = make(kind, {.growth_bytes = k_mib});
    std::mutex lock;
    std::vector<std::pair<void*, std::size_t>> between;
    const auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < 2000; ++i) {
        const std::size_t nbytes = 1 + random() % (random() % 32 == 0 ? 600 * k_kib : 20 * k_kib);
        void* mine = from.allocate(nbytes, 0, queue_);
        std::unique_lock hold(lock);
        between.emplace_back(mine, nbytes);
        std::swap(between[random() % between.size()], between.back());
        const auto [theirs, size] = between.back();
        if (between.size() < 50 && random() % 2 == 0) continue;
        between.pop_back();
        hold.unlock();
        from.deallocate(theirs, size, 0, queue_);
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
    for (std::thread& each : threads) each.join();
    std::set<void*> distinct;
    for (const auto& [pointer, nbytes] : between) {
      EXPECT_TRUE(distinct.insert(pointer).second) << "given out twice";
      from.deallocate(pointer, nbytes, 0, queue_);
    }
  }
}

// Recorded work that the library does not know, on a block without a buffer.
TEST_P(pools, a_recorded_block_is_not_reused_until_the_work_has_ended) {
  const im::resource from = im::resource::pool(
      queue_.context(), im::kind::device, {.initial_bytes = k_mib, .limit_bytes = k_mib}, device_);
  for (const std::size_t nbytes : {std::size_t{1000}, 700 * k_kib}) {
    const im::host_event work;
    auto* block = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
    from.record(block + nbytes / 2, work);
    from.deallocate(block, nbytes, 0, queue_);
    if (nbytes > 512 * k_kib) {
      EXPECT_THROW((void)from.allocate(nbytes, 0, queue_), im::out_of_memory) << "no room for two";
    } else {
      auto* next = from.allocate(nbytes, 0, queue_);
      EXPECT_NE(next, block);
      from.deallocate(next, nbytes, 0, queue_);
    }
    work.complete();
  }
  int local = 0;
  EXPECT_THROW(from.record(&local, queue_), im::not_found);
  EXPECT_THROW(from.record(nullptr, queue_), im::not_found);
  auto* freed = from.allocate(700 * k_kib, 0, queue_);
  from.deallocate(freed, 700 * k_kib, 0, queue_);
  EXPECT_THROW(from.record(freed, queue_), im::invalid_argument);
}

}  // namespace
