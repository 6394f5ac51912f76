// SPDX-License-Identifier: Apache-2.0
// The events of copies, fills, waits and exports. Those of pools are in
// unit/memory/pool/memory_events_test.cpp.

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "buffer/buffer.hpp"
#include "memory/base/provider.hpp"
#include "recorder/observers.hpp"
#include "transfer/transfer.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

class event_log final : public MemoryObserver {
 public:
  explicit event_log(MemoryEventKinds kinds) { EXPECT_TRUE(add_observer(*this, kinds)); }
  ~event_log() { remove_observer(*this); }
  event_log(const event_log&) = delete;
  event_log& operator=(const event_log&) = delete;

  void on_memory_event(const MemoryEvent& event) noexcept override {
    const std::lock_guard hold{lock_};
    events_.push_back(event);
  }
  // Returns the events so far, and forgets them.
  [[nodiscard]] std::vector<MemoryEvent> take() {
    const std::lock_guard hold{lock_};
    return std::exchange(events_, {});
  }

 private:
  std::mutex lock_;
  std::vector<MemoryEvent> events_;
};

TEST(observed_operations, are_copies_and_fills) {
  const rig sim;
  event_log log{kinds_of(MemoryEventKind::copy, MemoryEventKind::fill)};
  const auto buffer =
      expect_value(Buffer::create(*sim.queue, {.nbytes = 1000, .kind = ISTHMUS_KIND_DEVICE}));
  const auto device = expect_value(buffer->at(0, 1000, true));
  std::vector<std::byte> host(1000);
  const Endpoint source{host.data(), {}, nullptr};

  EXPECT_TRUE(copy(sim.queue.get(), device, source, 1000, {}));
  auto events = log.take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, MemoryEventKind::copy);
  EXPECT_EQ(events[0].address, device.pointer);
  EXPECT_EQ(events[0].source, host.data());
  EXPECT_EQ(events[0].nbytes, 1000U);
  EXPECT_EQ(events[0].queue, sim.queue->serial());

  FillPattern pattern;
  pattern.nbytes = 1;
  TransferOptions options;
  options.blocking = false;
  EXPECT_TRUE(fill(sim.queue.get(), device, pattern, 500, std::move(options)));
  events = log.take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, MemoryEventKind::fill);
  EXPECT_EQ(events[0].address, device.pointer);
  EXPECT_EQ(events[0].nbytes, 500U);
  EXPECT_TRUE(sim.queue->wait({}));

  EXPECT_FALSE(copy(nullptr, source, source, 1000, {})) << "the sides overlap";
  EXPECT_TRUE(log.take().empty());
}

TEST(observed_operations, are_waits_that_block) {
  event_log log{kinds_of(MemoryEventKind::wait)};
  EXPECT_TRUE(completed_event()->wait({}));
  EXPECT_TRUE(log.take().empty());

  const auto event = make_ref<HostEvent>();
  constexpr std::chrono::milliseconds k_timeout{5};
  EXPECT_FALSE(event->wait(os::Clock::now() + k_timeout));
  const auto events = log.take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, MemoryEventKind::wait);
  EXPECT_EQ(events[0].address, event.get());
  EXPECT_GE(events[0].duration_ns, 4'000'000U);
  event->finish({});
}

TEST(observed_operations, are_exports) {
  const rig sim;
  event_log log{kinds_of(MemoryEventKind::export_memory)};
  const auto buffer =
      expect_value(Buffer::create(*sim.queue, {.nbytes = 64, .kind = ISTHMUS_KIND_HOST}));
  auto* const pointer = expect_value(buffer->begin_export());
  const auto events = log.take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].address, pointer);
  EXPECT_EQ(events[0].nbytes, 64U);
  EXPECT_EQ(events[0].queue, sim.queue->serial());
  buffer->end_export();

  const auto on_device =
      expect_value(Buffer::create(*sim.queue, {.nbytes = 64, .kind = ISTHMUS_KIND_DEVICE}));
  EXPECT_FALSE(on_device->begin_export());
  EXPECT_TRUE(log.take().empty());
}

TEST(observed_operations, are_allocations_of_the_provider) {
  const rig sim;
  const auto provider =
      make_ref<Provider>(*sim.test_context, *sim.test_device, ISTHMUS_KIND_DEVICE);
  event_log log{kinds_of(MemoryEventKind::allocate, MemoryEventKind::free)};
  auto* const block = expect_value(provider->allocate(1000, 0, *sim.queue));
  EXPECT_FALSE(provider->allocate(SIZE_MAX / 2, 0, *sim.queue));
  EXPECT_TRUE(provider->deallocate(block, 1000, nullptr));
  const auto events = log.take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, MemoryEventKind::allocate);
  EXPECT_EQ(events[0].requested, 1000U);
  EXPECT_EQ(events[1].kind, MemoryEventKind::free);
  for (const auto& each : events) {
    EXPECT_EQ(each.address, block);
    EXPECT_EQ(each.nbytes, 1000U);
    EXPECT_EQ(each.resource, nullptr);
  }
}

}  // namespace
}  // namespace isthmus::sim_test
