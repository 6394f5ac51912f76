// SPDX-License-Identifier: Apache-2.0
// Traces replayed on every backend: the memory held and the counts, rejected traces, and no memory
// left.
#include <array>
#include <numeric>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr isthmus_trace_event_t allocate(std::uint32_t id, std::uint64_t nbytes,
                                         std::uint16_t on = 0) {
  return {nbytes, id, on, ISTHMUS_TRACE_ALLOCATE};
}
constexpr isthmus_trace_event_t release(std::uint32_t id, std::uint16_t on = 0) {
  return {0, id, on, ISTHMUS_TRACE_FREE};
}

class replays : public on_backend {};
INSTANTIATE_ON_BACKENDS(replays);

TEST_P(replays, of_the_driver_hold_what_was_requested) {
  const std::vector<im::trace_event> events{
      allocate(0, 1000), allocate(1, 4096), allocate(2, 100'000), release(1),
      allocate(1, 50),   release(0),        release(2),           allocate(0, 9000),
  };
  const std::vector<std::uint64_t> held{1000, 5096, 105'096, 101'000, 101'050, 100'050, 50, 9050};
  for (im::kind kind : kinds()) {
    const auto from = im::resource::provider(queue_.context(), kind, device_);
    std::vector<im::trace_sample> samples(events.size());
    const auto seen = im::replay(from, std::array{queue_}, events, samples);
    for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(samples[i].held_bytes, held[i]) << i;
    EXPECT_EQ(seen.peak_held, 105'096u);
    EXPECT_EQ(seen.maps, 5u);
    EXPECT_EQ(seen.unmaps, 3u);
    const auto sum = std::accumulate(
        samples.begin(), samples.end(), std::uint64_t{0},
        [](std::uint64_t all, const im::trace_sample& one) { return all + one.ns; });
    EXPECT_EQ(static_cast<std::uint64_t>(seen.time.count()), sum);
  }
}

TEST_P(replays, of_adaptors_include_their_upstreams) {
  const std::vector<im::trace_event> events{allocate(0, 1000), allocate(1, 9000), release(0),
                                            allocate(0, 500),  release(1),        release(0)};
  for (im::kind kind : kinds()) {
    const auto driver = im::resource::provider(queue_.context(), kind, device_);
    const auto other = im::resource::provider(queue_.context(), kind, device_);
    for (const auto& from : {im::resource::statistics(driver),
                             im::resource::fallback(im::resource::limit(driver, 1000), other),
                             im::resource::binning(driver, {{1000, other}})}) {
      const auto seen = im::replay(from, std::array{queue_}, events);
      EXPECT_EQ(seen.maps, 3u);
      EXPECT_EQ(seen.unmaps, 3u);
    }
  }
}

TEST_P(replays, of_a_pool_hold_all_that_it_has) {
  constexpr std::uint64_t k_step = 2 << 20;  // the smallest amount that can be remapped on CUDA
  std::vector<im::trace_event> events;
  for (std::uint32_t id = 0; id < 128; ++id) events.push_back(allocate(id, k_step / 16, id % 2));
  for (std::uint32_t id = 0; id < 128; ++id) events.push_back(release(id, (id + 1) % 2));
  const std::array queues{queue_, im::queue(device_)};
  for (im::kind kind : kinds()) {
    const auto pool = im::resource::pool(
        queue_.context(), kind, {.initial_bytes = k_step, .growth_bytes = k_step}, device_);
    const auto first = pool.usage().held;
    std::vector<im::trace_sample> samples(events.size());
    const auto seen = im::replay(pool, queues, events, samples);
    EXPECT_EQ(samples.front().held_bytes, first) << "what it had before is held, too";
    EXPECT_EQ(seen.peak_held, samples[127].held_bytes);
    EXPECT_GE(seen.peak_held, 8 * k_step);
    EXPECT_LE(seen.peak_held, 10 * k_step);
    EXPECT_EQ(samples.back().held_bytes, pool.usage().held);
    EXPECT_GE(seen.maps, 7u);
    const auto again = im::replay(pool, queues, events);
    EXPECT_EQ(again.maps, 0u) << "the pool kept what it had";
    EXPECT_EQ(again.peak_held, 0u) << "nobody looked";
    EXPECT_GT(again.time.count(), 0);
    pool.trim();
    EXPECT_EQ(pool.usage().held, 0u) << "what was left was freed";
  }
}

TEST_P(replays, of_what_cannot_have_happened_play_nothing) {
  const auto from = im::resource::provider(queue_.context(), kinds().front(), device_);
  const std::vector<im::trace_event> good{allocate(0, 10), release(0)};
  const std::vector<std::pair<im::trace_event, std::string>> bad{
      {allocate(0, 10), "event 1 of the trace allocates block 0, which is already allocated"},
      {allocate(1, 0), "event 1 of the trace allocates 0 bytes"},
      {release(1), "event 1 of the trace frees block 1, which is not allocated"},
      {allocate(2, 10), "event 1 of the trace has id 2"},
      {allocate(1, 10, 1), "event 1 of the trace has queue 1, not below the number of queues, 1"},
      {{10, 1, 0, 2}, "event 1 of the trace has action 2"},
  };
  for (const auto& [event, message] : bad) {
    const std::array events{good[0], event};
    std::array<im::trace_sample, 2> samples{};
    EXPECT_TRUE(throws(im::status::invalid_argument, {message},
                       [&] { im::replay(from, std::array{queue_}, events, samples); }));
    EXPECT_EQ(samples[0].held_bytes, 0u) << "nothing was played";
  }
  std::array<im::trace_sample, 1> one{};
  EXPECT_TRUE(throws(im::status::invalid_argument,
                     [&] { im::replay(from, std::array{queue_}, good, one); }));
  EXPECT_EQ(im::replay(from, {}, {}).maps, 0u) << "no events need no queue";
}

TEST_P(replays, without_memory_free_all_blocks) {
  for (im::kind kind : kinds()) {
    const std::array events{allocate(0, 1000), allocate(1, std::uint64_t{1} << 62), release(0)};
    for (const auto& from : {im::resource::provider(queue_.context(), kind, device_),
                             im::resource::pool(queue_.context(), kind, {}, device_)}) {
      EXPECT_THROW(im::replay(from, std::array{queue_}, events), im::out_of_memory);
      from.trim();
      EXPECT_EQ(from.usage().held, 0u);
    }
  }
}

TEST_P(replays, refuse_queues_of_another_context) {
  const auto from = im::resource::provider(queue_.context(), kinds().front(), device_);
  const im::queue stranger{im::sim_device("")};
  EXPECT_TRUE(throws(im::status::wrong_context, {"queue 1"},
                     [&] { im::replay(from, std::array{queue_, stranger}, {}); }));
}

}  // namespace
