// SPDX-License-Identifier: Apache-2.0
// Custom resources: which calls they get, which of their results are rejected, and when memory is
// returned to them.
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class custom_resources : public on_backend {};
INSTANTIATE_ON_BACKENDS(custom_resources);

// Records the calls of a custom resource and its live blocks. Thread-safe.
struct journal {
  std::mutex lock;
  std::map<void*, std::size_t> live;
  int given = 0;
  int taken = 0;
  bool gone = false;

  void give(void* pointer, std::size_t nbytes) {
    const std::lock_guard hold(lock);
    EXPECT_TRUE(live.emplace(pointer, nbytes).second) << "given out twice";
    ++given;
  }
  void take(void* pointer, std::size_t nbytes) {
    const std::lock_guard hold(lock);
    const auto found = live.find(pointer);
    ASSERT_NE(found, live.end()) << "never given out, or taken before";
    EXPECT_EQ(found->second, nbytes);
    live.erase(found);
    ++taken;
  }
  std::size_t live_count() {
    const std::lock_guard hold(lock);
    return live.size();
  }
};

// Forwards to another resource and records the calls.
struct passing {
  im::resource from;
  std::shared_ptr<journal> log = std::make_shared<journal>();
  std::shared_ptr<bool> watch = nullptr;

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    EXPECT_GT(nbytes, 0u);
    EXPECT_TRUE(alignment != 0 && (alignment & (alignment - 1)) == 0) << alignment;
    EXPECT_TRUE(on);
    void* pointer = from.allocate(nbytes, alignment, on);
    log->give(pointer, nbytes);
    return pointer;
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    log->take(pointer, nbytes);
    EXPECT_TRUE(on);
    from.deallocate(pointer, nbytes, 0, on);
  }
  im::memory_usage usage() noexcept { return {1234, 34}; }
  std::uint64_t trim(std::uint64_t keep) noexcept { return 1000 - keep; }
};

TEST_P(custom_resources, forward_the_memory_of_their_upstream) {
  for (im::kind kind : kinds()) {
    const im::context home = queue_.context();
    for (const im::resource& upstream : {im::resource::provider(home, kind, device_),
                                         im::resource::pool(home, kind, {}, device_)}) {
      passing source{upstream};
      const im::resource from = im::resource::custom(home, kind, source, device_);
      std::vector<void*> bare;
      for (std::size_t nbytes : {std::size_t{1}, std::size_t{1000}, std::size_t{300'000}}) {
        void* memory = from.allocate(nbytes, 64, queue_);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
        EXPECT_EQ(im::query(memory).kind, kind);
        bare.push_back(memory);
        im::buffer buffer(nbytes, kind, {.queue = queue_, .resource = from});
        const bytes data = noise(nbytes);
        write(buffer, data);
        EXPECT_TRUE(same(read(buffer), data));
        EXPECT_EQ(im::query(buffer.pointer()).kind, kind);
      }
      from.deallocate(bare[0], 1, 64, queue_);
      from.deallocate(bare[1], 1000, 64, queue_);
      from.deallocate(bare[2], 300'000, 64, queue_);
      queue_.wait();
      EXPECT_TRUE(eventually([&] { return source.log->live_count() == 0; }));
      EXPECT_EQ(source.log->given, 6);
      EXPECT_EQ(source.log->taken, 6);
      EXPECT_EQ(from.allocate(0, 0, queue_), nullptr) << "and nobody is asked";
      EXPECT_EQ(source.log->given, 6);
      EXPECT_EQ(from.usage().held, 1234u);
      EXPECT_EQ(from.usage().free, 34u);
      EXPECT_EQ(from.trim(100), 900u);
    }
  }
}

TEST_P(custom_resources, get_memory_back_only_when_no_work_uses_it) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  for (im::kind kind : kinds()) {
    passing source{im::resource::provider(queue_.context(), kind, device_)};
    const im::resource from = im::resource::custom(queue_.context(), kind, source, device_);
    im::host_event gate;
    void* block = nullptr;
    {
      im::buffer buffer(1000, kind, {.queue = queue_, .resource = from});
      block = from.allocate(1000, 0, queue_);
      const im::event filled = im::fill_async(buffer, 1.0f, {.after = {gate}});
      from.deallocate(block, 1000, 0, queue_);
    }
    EXPECT_EQ(source.log->taken, 0) << "work on the queue is still to come";
    gate.complete();
    queue_.wait();
    EXPECT_TRUE(eventually([&] { return source.log->live_count() == 0; }));
  }
}

TEST_P(custom_resources, may_leave_a_scope_during_a_request) {
  for (im::kind kind : kinds()) {
    const im::resource pool = im::resource::pool(queue_.context(), kind, {}, device_);
    isthmus_scope_t* scope = nullptr;
    const auto leave = [&] {
      isthmus_scope_swap(nullptr);
      isthmus_scope_release(std::exchange(scope, nullptr));
    };
    const im::resource asked =
        im::resource::failure_callback(im::resource::limit(pool, 999), [&](std::size_t) {
          leave();
          return false;
        });
    const im::resource counted = im::resource::statistics(im::resource::fallback(asked, pool));
    im::detail::check(isthmus_scope_create(counted.get(), nullptr, &scope));
    isthmus_scope_swap(scope);
    void* block = counted.allocate(1000, 0, queue_);
    EXPECT_EQ(scope, nullptr);
    EXPECT_EQ(isthmus_scope_swap(nullptr), nullptr);
    EXPECT_EQ(im::statistics_of(counted).current_bytes, 1000u);
    counted.deallocate(block, 1000, 0, queue_);
    EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
  }
}

// Returns what the test chose.
struct saying {
  std::function<void*(std::size_t)> says;
  std::shared_ptr<std::vector<void*>> taken = std::make_shared<std::vector<void*>>();

  void* allocate(std::size_t nbytes, std::size_t, const im::queue&) { return says(nbytes); }
  void deallocate(void* pointer, std::size_t, const im::queue&) noexcept {
    taken->push_back(pointer);
  }
};

TEST_P(custom_resources, reject_memory_that_they_did_not_allocate) {
  for (im::kind kind : kinds()) {
    const im::context home = queue_.context();
    const im::buffer whole(8192, kind, {.queue = queue_, .alignment = 4096});
    auto* start = static_cast<std::byte*>(whole.pointer());
    const auto refused = [&](void* given, const std::string& says) {
      saying source{[=](std::size_t) { return given; }};
      const im::resource from = im::resource::custom(home, kind, source, device_);
      const bool told =
          throws(im::status::callback, {says}, [&] { (void)from.allocate(4096, 64, queue_); });
      EXPECT_EQ(source.taken->size(), given == nullptr ? 0u : 1u) << "it goes back";
      return told;
    };
    EXPECT_TRUE(refused(nullptr, "NULL"));
    EXPECT_TRUE(refused(start + 32, "not aligned to 64"));
    EXPECT_TRUE(refused(start + 6144, "run past the end"));
    for (im::kind other : kinds()) {
      if (other == kind) continue;
      const im::buffer odd(8192, other, {.queue = queue_, .alignment = 4096});
      EXPECT_TRUE(refused(odd.pointer(), std::string(im::name(other))));
    }
    alignas(4096) static std::byte strange[8192];
    if (im::query(strange, home).kind != kind) {
      EXPECT_TRUE(refused(strange, "memory"));
    }
    const im::device apart = im::sim_device("");
    const im::queue there(apart);
    const im::buffer far(8192, im::kind::device, {.queue = there, .alignment = 4096});
    EXPECT_TRUE(refused(far.pointer(), "not memory of its context"));
  }
}

TEST_P(custom_resources, fail_as_they_say) {
  const im::kind kind = kinds().front();
  const auto told = [&](std::function<void*(std::size_t)> says, im::status status,
                        const char* text) {
    const im::resource from =
        im::resource::custom(queue_.context(), kind, saying{std::move(says)}, device_);
    return throws(status, {text},
                  [&] { im::buffer(64, kind, {.queue = queue_, .resource = from}); }) &&
           throws(status, {text}, [&] { (void)from.allocate(64, 0, queue_); });
  };
  EXPECT_TRUE(told([](std::size_t) -> void* { throw std::runtime_error("odd"); },
                   im::status::callback, "odd"));
  EXPECT_TRUE(told([](std::size_t) -> void* { throw std::bad_alloc(); }, im::status::out_of_memory,
                   "bad_alloc"));
  EXPECT_TRUE(told([](std::size_t) -> void* { throw im::unsupported("not that"); },
                   im::status::unsupported, "not that"));
  EXPECT_TRUE(
      told([](std::size_t) -> void* { throw 1; }, im::status::callback, "not a std::exception"));
  int asked = 0;
  const im::resource from =
      im::resource::custom(queue_.context(), kind,
                           saying{[&](std::size_t) -> void* { return ++asked, nullptr; }}, device_);
  EXPECT_TRUE(
      throws(im::status::invalid_argument, {"24"}, [&] { (void)from.allocate(10, 24, queue_); }));
  EXPECT_TRUE(throws(im::status::out_of_memory,
                     [&] { (void)from.allocate(std::size_t{1} << 62, 0, queue_); }));
  EXPECT_EQ(asked, 0) << "what no memory could fulfil is not asked of it";
}

struct c_state {
  isthmus_status_t status = ISTHMUS_OK;
  int released = 0;
};

isthmus_status_t c_allocate(void* object, std::size_t, std::size_t, isthmus_queue_t*, void**,
                            const char**) {
  return static_cast<c_state*>(object)->status;
}
void c_deallocate(void*, void*, std::size_t, isthmus_queue_t*) {}

TEST_P(custom_resources, of_c_are_checked) {
  const im::context home = queue_.context();
  const auto kind = static_cast<isthmus_kind_t>(kinds().front());
  c_state state;
  const isthmus_owner_t owner{&state,
                              [](void* object) { ++static_cast<c_state*>(object)->released; }};
  isthmus_resource_operations_t table{};
  isthmus_resource_t* made = nullptr;
  const auto create = [&] {
    return isthmus_resource_custom(home.get(), nullptr, kind, &table, owner, &made);
  };
  EXPECT_EQ(create(), ISTHMUS_ERROR_INVALID_ARGUMENT) << "struct_size 0";
  table.struct_size = sizeof table;
  EXPECT_EQ(create(), ISTHMUS_ERROR_INVALID_ARGUMENT) << "no allocate";
  table.allocate = &c_allocate;
  EXPECT_EQ(create(), ISTHMUS_ERROR_INVALID_ARGUMENT) << "no deallocate";
  EXPECT_EQ(state.released, 3) << "also when the call fails";
  table.deallocate = &c_deallocate;
  ASSERT_EQ(create(), ISTHMUS_OK);
  void* memory = nullptr;
  for (const isthmus_status_t odd : {1, 5, -19, -1000}) {
    state.status = odd;
    EXPECT_EQ(isthmus_resource_allocate(made, 64, 0, queue_.get(), &memory),
              ISTHMUS_ERROR_CALLBACK);
  }
  state.status = ISTHMUS_ERROR_TIMEOUT;
  EXPECT_EQ(isthmus_resource_allocate(made, 64, 0, queue_.get(), &memory), ISTHMUS_ERROR_TIMEOUT);
  EXPECT_TRUE(contains(isthmus_error_message(), "no message"));
  EXPECT_EQ(memory, nullptr);
  isthmus_resource_info_t info{};
  info.struct_size = sizeof info;
  EXPECT_EQ(isthmus_resource_info(made, &info), ISTHMUS_OK);
  EXPECT_EQ(info.held_bytes, 0u);
  EXPECT_EQ(state.released, 3);
  isthmus_resource_release(made);
  EXPECT_EQ(state.released, 4);
}

TEST_P(custom_resources, serve_threads) {
  for (im::kind kind : kinds()) {
    passing source{im::resource::pool(queue_.context(), kind, {}, device_)};
    const im::resource from = im::resource::custom(queue_.context(), kind, source, device_);
    const auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      std::vector<std::pair<void*, std::size_t>> mine;
      for (int i = 0; i < 300; ++i) {
        const std::size_t nbytes = 1 + random() % (102'400);
        mine.emplace_back(from.allocate(nbytes, 0, queue_), nbytes);
        std::swap(mine[random() % mine.size()], mine.back());
        if (random() % 2 == 0) {
          from.deallocate(mine.back().first, mine.back().second, 0, queue_);
          mine.pop_back();
        }
        const im::buffer buffer(nbytes, kind, {.queue = queue_, .resource = from});
      }
      for (const auto& [pointer, nbytes] : mine) from.deallocate(pointer, nbytes, 0, queue_);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
    for (std::thread& each : threads) each.join();
    queue_.wait();
    EXPECT_TRUE(eventually([&] { return source.log->live_count() == 0; }));
  }
}

}  // namespace
