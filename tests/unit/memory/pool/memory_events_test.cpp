// SPDX-License-Identifier: Apache-2.0
// The events of a pool, compared with what the pool says of itself: a model of the live blocks and
// of the mapped memory is kept from the events alone, over random operations on several queues.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "backend/drivers.hpp"
#include "core/sanitizers.hpp"
#include "memory/base/tags.hpp"
#include "memory/pool/pool.hpp"
#include "memory/records/allocation_creation.hpp"
#include "memory/records/bare_pointers.hpp"
#include "recorder/observers.hpp"
#include "support/eventually.hpp"
#include "support/sizes.hpp"
#include "unit/backend/sim_fixture.hpp"

namespace isthmus::sim_test {
namespace {

using support::k_mib;

// What the events say about one pool. Events of other resources are ignored.
class pool_model final : public MemoryObserver {
 public:
  explicit pool_model(const Pool& pool) : pool_{&pool} {
    EXPECT_TRUE(add_observer(*this, k_all_memory_events));
  }
  ~pool_model() { remove_observer(*this); }
  pool_model(const pool_model&) = delete;
  pool_model& operator=(const pool_model&) = delete;

  void on_memory_event(const MemoryEvent& event) noexcept override {
    if (event.resource != pool_) {
      return;
    }
    const std::lock_guard hold{lock_};
    last_ = event;
    ++seen_[event.kind];
    switch (event.kind) {
      case MemoryEventKind::allocate: begin(event); break;
      case MemoryEventKind::free: end(event); break;
      case MemoryEventKind::grow: held_ += event.nbytes; break;
      case MemoryEventKind::shrink: held_ -= event.nbytes; break;
      case MemoryEventKind::map: mapped_ += event.nbytes; break;
      case MemoryEventKind::unmap: mapped_ -= event.nbytes; break;
      case MemoryEventKind::oom_stage: stages_.push_back(event); break;
      default: break;
    }
  }

  [[nodiscard]] std::size_t live_bytes() const { return live_bytes_; }
  [[nodiscard]] std::size_t live_blocks() const { return live_.size(); }
  [[nodiscard]] std::size_t held() const { return held_; }
  [[nodiscard]] std::size_t mapped() const { return mapped_; }
  [[nodiscard]] const std::vector<MemoryEvent>& stages() const { return stages_; }
  [[nodiscard]] const MemoryEvent& last() const { return last_; }
  [[nodiscard]] int seen(MemoryEventKind kind) { return seen_[kind]; }

  // Compares the model with the pool. Pre: no other thread uses the pool.
  void expect_same(Pool& pool) {
    const auto snapshot = pool.count();
    EXPECT_EQ(snapshot.live, live_bytes());
    EXPECT_EQ(snapshot.live_blocks, live_blocks());
    EXPECT_EQ(pool.usage().held_bytes, held());
  }

 private:
  void begin(const MemoryEvent& event) {
    EXPECT_LE(event.requested, event.nbytes);
    EXPECT_NE(event.queue, 0U);
    EXPECT_TRUE(live_.emplace(event.address, event.nbytes).second) << "allocated while live";
    live_bytes_ += event.nbytes;
  }
  void end(const MemoryEvent& event) {
    const auto found = live_.find(event.address);
    ASSERT_NE(found, live_.end()) << "freed while not live";
    EXPECT_EQ(found->second, event.nbytes);
    live_bytes_ -= event.nbytes;
    live_.erase(found);
  }

  const void* const pool_;
  std::mutex lock_;
  std::map<const void*, std::size_t> live_;
  std::size_t live_bytes_ = 0;
  std::size_t held_ = 0;
  std::size_t mapped_ = 0;
  std::vector<MemoryEvent> stages_;
  std::map<MemoryEventKind, int> seen_;
  MemoryEvent last_{};
};

Ref<Queue> queue_of(const char* filter) {
  if (std::string_view{filter} != "host") {
    return {};
  }
  auto device = find_device("host");
  return device ? expect_value(Platform::default_queue(**device)) : Ref<Queue>{};
}

// Random operations on a pool through all ways in: the pool's own, its fast paths, bare pointers
// and allocation records.
class random_program {
 public:
  random_program(Pool& pool, std::vector<Ref<Queue>> queues, unsigned seed)
      : pool_{pool}, queues_{std::move(queues)}, random_{seed} {}

  void step() {
    const auto choice = random_() % 100;
    if (choice < 50) {
      allocate();
    } else if (choice < 98) {
      free_one();
    } else {
      pool_.trim(choice == 98 ? 0 : k_mib);
    }
  }
  void free_all() {
    while (!blocks_.empty() || !records_.empty()) {
      free_one();
    }
  }

 private:
  struct block {
    void* pointer;
    std::size_t nbytes;
  };
  [[nodiscard]] Queue& queue() { return *queues_[random_() % queues_.size()]; }
  [[nodiscard]] std::size_t size() {
    constexpr std::array<std::size_t, 4> k_most{1000, 100'000, std::size_t{1} << 20,
                                                std::size_t{6} << 20};
    return 1 + random_() % k_most[random_() % k_most.size()];
  }
  void allocate() {
    auto& on = queue();
    const auto nbytes = size();
    if (random_() % 4 == 0) {
      records_.push_back(expect_value(create_allocation(on, {pool_.kind(), nbytes, 0}, &pool_)));
      return;
    }
    const std::size_t alignment = random_() % 5 == 0 ? std::size_t{1} << (8 + random_() % 10) : 0;
    auto* pointer = random_() % 2 == 0 ? pool_.allocate_fast(nbytes, alignment, &on) : nullptr;
    if (pointer == nullptr) {
      pointer = expect_value(allocate_raw(pool_, nbytes, alignment, on));
    }
    blocks_.push_back({pointer, nbytes});
  }
  void free_one() {
    if (!records_.empty() && (blocks_.empty() || random_() % 4 == 0)) {
      std::swap(records_[random_() % records_.size()], records_.back());
      records_.back().detach()->release_last();
      records_.pop_back();
      return;
    }
    if (blocks_.empty()) {
      return;
    }
    std::swap(blocks_[random_() % blocks_.size()], blocks_.back());
    const auto [pointer, nbytes] = blocks_.back();
    blocks_.pop_back();
    auto* const on = random_() % 8 == 0 ? nullptr : &queue();
    if (random_() % 2 == 0 && on != nullptr && pool_.deallocate_fast(pointer, nbytes, on)) {
      return;
    }
    EXPECT_TRUE(deallocate_raw(pool_, pointer, nbytes, on));
  }

  Pool& pool_;
  std::vector<Ref<Queue>> queues_;
  std::minstd_rand random_;
  std::vector<block> blocks_;
  std::vector<Ref<Allocation>> records_;
};

class memory_events : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    first_ = queue_of(GetParam());
    if (!first_) {
      sim_.emplace(GetParam());
      first_ = sim_->queue;
    }
  }
  [[nodiscard]] Ref<Pool> make_pool(const Pool::Options& options = {}) {
    return expect_value(
        Pool::create(first_->context(), first_->device(), ISTHMUS_KIND_DEVICE, options));
  }
  [[nodiscard]] std::vector<Ref<Queue>> make_queues(std::size_t count) {
    std::vector<Ref<Queue>> queues{first_};
    while (queues.size() < count) {
      queues.push_back(expect_value(Queue::create(first_->context(), first_->device())));
    }
    return queues;
  }

  std::optional<rig> sim_;
  Ref<Queue> first_;
};
INSTANTIATE_TEST_SUITE_P(devices, memory_events,
                         testing::Values("host", "capacity=512MiB,effect=random,remap=1",
                                         "capacity=512MiB,remap=0"));

TEST_P(memory_events, agree_with_the_pool) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    const auto pool = make_pool();
    pool_model model{*pool};
    random_program program{*pool, make_queues(3), seed};
    for (int round = 0; round < 20; ++round) {
      for (int step = 0; step < 100; ++step) {
        program.step();
      }
      model.expect_same(*pool);
    }
    program.free_all();
    model.expect_same(*pool);
    EXPECT_EQ(model.live_blocks(), 0U);
    EXPECT_TRUE(support::eventually([&] {
      pool->trim(0);
      return pool->usage().held_bytes == 0;
    }));
    EXPECT_EQ(model.held(), 0U);
    EXPECT_EQ(model.mapped(), 0U);
    EXPECT_GT(model.seen(MemoryEventKind::grow), 0);
    EXPECT_TRUE(pool->verify());
    if (HasFailure()) {
      return;
    }
  }
}

TEST_P(memory_events, name_the_request) {
  const auto pool = make_pool();
  pool_model model{*pool};
  const auto tag = expect_value(tag_of("weights"));
  const auto* const previous = swap_tag(tag);
  auto* const block = expect_value(pool->allocate(1000, 0, *first_));
  swap_tag(previous);
  const auto allocated = model.last();
  EXPECT_EQ(allocated.kind, MemoryEventKind::allocate);
  EXPECT_EQ(allocated.address, block);
  EXPECT_EQ(allocated.requested, 1000U);
  EXPECT_GE(allocated.nbytes, 1000U);
  EXPECT_EQ(allocated.queue, first_->serial());
  EXPECT_EQ(allocated.resource, pool.get());
  EXPECT_EQ(allocated.tag, tag);
  EXPECT_TRUE(pool->deallocate(block, 1000, nullptr));
  const auto freed = model.last();
  EXPECT_EQ(freed.kind, MemoryEventKind::free);
  EXPECT_EQ(freed.address, block);
  EXPECT_EQ(freed.nbytes, allocated.nbytes);
  EXPECT_EQ(freed.queue, 0U);
  EXPECT_EQ(freed.resource, pool.get());
}

TEST_P(memory_events, are_not_emitted_for_refused_calls) {
  const auto pool = make_pool();
  auto* const block = expect_value(pool->allocate(1000, 0, *first_));
  EXPECT_TRUE(pool->deallocate(block, 1000, first_.get()));
  pool_model model{*pool};
  EXPECT_FALSE(pool->deallocate(block, 1000, first_.get())) << "a double free";
  EXPECT_FALSE(pool->deallocate_fast(block, 1000, first_.get()));
  EXPECT_FALSE(pool->allocate(SIZE_MAX / 4, 0, *first_));
  EXPECT_EQ(model.seen(MemoryEventKind::free), 0);
  EXPECT_EQ(model.seen(MemoryEventKind::allocate), 0);
}

// The pool has no memory but that which the first queue freed.
TEST_P(memory_events, report_reuse_on_another_queue) {
  struct sizes {
    std::size_t block;
    std::size_t count;
    std::size_t limit;
  };
  for (const auto& each : {sizes{20'000, 300, 8 * k_mib}, sizes{32 * k_mib, 1, 33 * k_mib}}) {
    SCOPED_TRACE(each.block);
    const auto queues = make_queues(2);
    const auto pool = make_pool({.limit_bytes = each.limit});
    pool_model model{*pool};
    std::vector<void*> blocks;
    while (blocks.size() < each.count) {
      blocks.push_back(expect_value(pool->allocate(each.block, 0, *queues[0])));
    }
    for (auto* block : blocks) {
      EXPECT_TRUE(pool->deallocate(block, each.block, queues[0].get()));
    }
    EXPECT_EQ(model.seen(MemoryEventKind::reuse), 0);
    EXPECT_TRUE(queues[0]->wait({}));
    for (auto& block : blocks) {
      block = expect_value(pool->allocate(each.block, 0, *queues[1]));
    }
    // With AddressSanitizer, the pool looks for the end of the work when a page run of host memory is
    // returned, to poison it (free_poison.hpp), and records it as free for all queues.
    if (!(k_address_sanitizer && GetParam() == std::string{"host"})) {
      EXPECT_GT(model.seen(MemoryEventKind::reuse), 0);
    }
    for (auto* block : blocks) {
      EXPECT_TRUE(pool->deallocate(block, each.block, queues[1].get()));
    }
    model.expect_same(*pool);
  }
}

TEST_P(memory_events, report_the_out_of_memory_stages_in_order) {
  const auto pool =
      make_pool({.limit_bytes = 64 * k_mib, .max_wait = std::chrono::milliseconds{1}});
  pool_model model{*pool};
  auto* const block = expect_value(pool->allocate(40 * k_mib, 0, *first_));
  const auto stages_of_growth = model.stages().size();
  const auto stages_before = pool->oom_stages().counts_of(OomStage::trim).tried;
  EXPECT_FALSE(pool->allocate(50 * k_mib, 0, *first_));
  const std::vector<MemoryEvent> stages(
      model.stages().begin() + static_cast<std::ptrdiff_t>(stages_of_growth), model.stages().end());
  EXPECT_TRUE(
      std::is_sorted(stages.begin(), stages.end(),
                     [](const MemoryEvent& a, const MemoryEvent& b) { return a.stage < b.stage; }));
  for (const auto& each : stages) {
    EXPECT_EQ(each.requested, 50 * k_mib);
    EXPECT_EQ(each.queue, first_->serial());
    EXPECT_EQ(each.resource, pool.get());
  }
  const auto has = [&](OomStage stage) {
    return std::ranges::any_of(stages, [=](const MemoryEvent& each) {
      return each.stage == static_cast<std::uint8_t>(stage);
    });
  };
  for (const auto stage :
       {OomStage::collect, OomStage::grow, OomStage::trim, OomStage::callback, OomStage::wait}) {
    EXPECT_TRUE(has(stage)) << oom_stage_name(stage);
  }
  EXPECT_EQ(pool->oom_stages().counts_of(OomStage::trim).tried, stages_before + 1);
  EXPECT_EQ(model.seen(MemoryEventKind::allocate), 1);
  EXPECT_TRUE(pool->deallocate(block, 40 * k_mib, first_.get()));
}

}  // namespace
}  // namespace isthmus::sim_test
