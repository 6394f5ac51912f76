// SPDX-License-Identifier: Apache-2.0
// Many threads allocate and free blocks of a pool at random on several queues. Half of the blocks
// are freed by another thread than the one that allocated them, and most while work on them is
// pending. Each block is filled with a number that identifies its owner, by the host, by a function
// on a queue, or by a fill. The number is checked on the queue before the block is freed. A block
// that overlaps another one, or that was allocated while work of its previous owner was pending,
// would show a different number. ISTHMUS_LONG=1 runs a hundred million operations; ISTHMUS_SEED
// selects others.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>

#include "support/upstreams.hpp"

namespace {

using namespace support;

bool is_long() {
  const char* given = std::getenv("ISTHMUS_LONG");
  return given != nullptr && std::string_view(given) == "1";
}

std::uint32_t seed() {
  const char* given = std::getenv("ISTHMUS_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 1;
}

struct owned_block {
  std::uint64_t* words;
  std::size_t nbytes;
  std::uint64_t owner;  // not 0
  std::size_t on;       // index of the queue that writes the contents

  [[nodiscard]] std::size_t count() const { return nbytes / sizeof *words; }
  // Visits the first word, the last one, and one in every 4 KiB.
  template <class Visit>
  void each_mark(Visit&& visit) const {
    constexpr std::size_t k_apart = 512;
    for (std::size_t i = 0; i < count(); i += k_apart) visit(words[i]);
    visit(words[count() - 1]);
  }
  void mark() const {
    each_mark([this](std::uint64_t& word) { word = owner; });
  }
  void fill() const { std::fill_n(words, count(), owner); }
  [[nodiscard]] bool is_whole() const {
    bool whole = true;
    each_mark([&](const std::uint64_t& word) { whole = whole && word == owner; });
    return whole;
  }
};

// Blocks passed from the thread that allocated them to one that frees them. Thread-safe.
class crossing {
 public:
  void put(const owned_block& one) {
    const std::lock_guard hold(lock_);
    all_.push_back(one);
  }
  bool take(owned_block& out) {
    const std::lock_guard hold(lock_);
    if (all_.empty()) return false;
    out = all_.back();
    all_.pop_back();
    return true;
  }

 private:
  std::mutex lock_;
  std::vector<owned_block> all_;
};

// A pool and the state that its users share.
struct shared_pool {
  shared_pool(const im::queue& first, im::kind kind, const im::pool_options& how)
      : pool(im::resource::pool(first.context(), kind, how, first.device())),
        queues{first},
        host_touches(kind == im::kind::host),
        runs_short(how.limit_bytes != 0) {
    for (int more = 0; more < 3; ++more) queues.emplace_back(first.context(), first.device());
  }
  void expect(const owned_block& one, bool whole) {
    if (!whole) damaged = one.owner;
  }

  const im::resource pool;
  // No work is submitted to the first one, so the host may write at once.
  std::vector<im::queue> queues;
  const bool host_touches;  // whether host and functions access the memory
  const bool runs_short;
  crossing between;
  std::atomic<std::uint64_t> damaged{0};  // the owner of a damaged block, or 0
};

class pool_user {
 public:
  pool_user(shared_pool& of, std::uint32_t number)
      : all_(of), random_(seed() + number), number_(number + 1) {}

  void run(std::uint64_t operations) {
    for (std::uint64_t i = 0; i < operations && all_.damaged == 0; ++i) step(i);
    for (const owned_block& one : mine_) give(one);
  }

  void give(const owned_block& one) {
    if (one.on == 0) {
      if (all_.host_touches) all_.expect(one, one.is_whole());
      return free_on(all_.queues[below(all_.queues.size())], one);  // no work uses it
    }
    const im::queue& own = all_.queues[one.on];
    const im::queue& other = all_.queues[busy()];
    switch (below(5)) {
      case 0:  // used on another queue from now on
        after(own, other);
        look(one, other);
        return free_on(other, one);
      case 1:  // used on both queues
        after(own, other);
        look(one, other);
        all_.pool.record(one.words, other);
        return free_on(own, one);
      case 2:
        after(own, other);
        all_.pool.record(one.words, look(one, other));
        return free_on(own, one);
      default: look(one, own); return free_on(own, one);
    }
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::size_t busy() { return 1 + below(all_.queues.size() - 1); }
  // 8 bytes to 128 KiB; one in 500 up to 8 MiB.
  std::size_t some_bytes() {
    const std::size_t most = std::size_t{1} << (below(500) == 0 ? 23 : 4 + below(14));
    return std::max<std::size_t>(8, below(most) & ~std::size_t{7});
  }

  void step(std::uint64_t i) {
    constexpr std::size_t k_most_live = 256;
    owned_block other{};
    if (below(3) == 0 && all_.between.take(other)) give(other);
    if (mine_.size() < k_most_live && below(2) == 0) return take(i);
    if (mine_.empty()) return;
    std::swap(mine_[below(mine_.size())], mine_.back());
    if (below(2) == 0) {
      all_.between.put(mine_.back());
    } else {
      give(mine_.back());
    }
    mine_.pop_back();
    if (below(5'000) == 0) all_.pool.trim(k_mib);
  }
  // Work takes a hundred times as long as allocating a block, so one block in eight has work.
  void take(std::uint64_t i) {
    const std::size_t nbytes = some_bytes();
    const std::size_t on = below(8) == 0 ? busy() : 0;
    void* memory = nullptr;
    try {
      memory = all_.pool.allocate(nbytes, 0, all_.queues[on]);
    } catch (const im::out_of_memory&) {
      if (!all_.runs_short) throw;
      return;
    }
    mine_.push_back(
        {static_cast<std::uint64_t*>(memory), nbytes, std::uint64_t{number_} << 40 | i, on});
    if (on != 0) {
      write(mine_.back());
    } else if (all_.host_touches) {
      mine_.back().mark();
    }
  }

  void write(const owned_block& one) {
    const im::queue& on = all_.queues[one.on];
    run_later(all_.host_touches && below(2) == 0
                  ? on.submit([one] { one.fill(); })
                  : im::fill_async(std::span(one.words, one.count()), one.owner, {.queue = on}));
  }
  // Checks the owner's number with a function on the queue, or in a copy of either end of the
  // block.
  const im::event& look(const owned_block& one, const im::queue& on) {
    shared_pool& all = all_;
    if (all_.host_touches && below(2) == 0) {
      return run_later(on.submit([one, &all] { all.expect(one, one.is_whole()); }));
    }
    auto copied = std::make_shared<std::array<std::uint64_t, 64>>();
    const std::size_t count = std::min(one.count(), copied->size());
    const std::size_t from = below(2) == 0 ? 0 : one.count() - count;
    const std::span<std::uint64_t> seen(copied->data(), count);
    run_later(im::copy_async(seen, std::span(one.words + from, count), {.queue = on}));
    return run_later(on.submit([one, &all, seen, copied = std::move(copied)] {
      all.expect(one, std::all_of(seen.begin(), seen.end(),
                                  [&](std::uint64_t each) { return each == one.owner; }));
    }));
  }
  // Limits the work in flight, because it needs memory.
  const im::event& run_later(im::event work) {
    constexpr std::size_t k_most = 64;
    if (running_.size() == k_most) {
      running_.front().wait();
      running_.pop_front();
    }
    return running_.emplace_back(std::move(work));
  }
  static void after(const im::queue& first, const im::queue& second) {
    if (!(first == second)) (void)second.fence({first.pending()});
  }
  void free_on(const im::queue& on, const owned_block& one) {
    all_.pool.deallocate(one.words, one.nbytes, 0, on);
  }

  shared_pool& all_;
  std::minstd_rand random_;
  std::uint32_t number_;
  std::vector<owned_block> mine_;
  std::deque<im::event> running_;
};

class pool_blocks : public on_backend {
 protected:
  // Runs `threads` threads at once, each with `operations` operations.
  static void run(shared_pool& all, std::uint32_t threads, std::uint64_t operations,
                  std::uint32_t first_number = 0) {
    std::vector<std::thread> running;
    for (std::uint32_t i = 0; i < threads; ++i) {
      running.emplace_back([=, &all] {
        try {
          pool_user(all, first_number + i).run(operations);
        } catch (const im::error& problem) {
          ADD_FAILURE() << problem.what() << "; ISTHMUS_SEED=" << seed();
        }
      });
    }
    for (std::thread& one : running) one.join();
    for (const im::queue& each : all.queues) each.wait();
  }
  // Expects that no block was damaged, and that the pool holds nothing after all blocks were freed
  // and all work has completed.
  static void finish(shared_pool& all) {
    pool_user last(all, 1'000'000);
    for (owned_block left{}; all.between.take(left);) last.give(left);
    for (const im::queue& each : all.queues) each.wait();
    EXPECT_EQ(all.damaged, 0U) << "another wrote to a block of this owner; ISTHMUS_SEED=" << seed();
    all.pool.verify();
    EXPECT_TRUE(eventually([&] {
      (void)all.pool.trim(0);
      return all.pool.usage().held == 0;
    })) << "something is still held";
  }
  void play(im::kind kind, std::uint64_t operations, const im::pool_options& how = {}) const {
    shared_pool all(queue_, kind, how);
    run(all, k_threads, operations / k_threads);
    finish(all);
  }
  // Fewer for a driver that takes tens of microseconds where the other backends take one.
  [[nodiscard]] static std::uint64_t scaled(std::uint64_t operations) {
    return GetParam() == "intel" ? std::min<std::uint64_t>(operations / 10, 1'000'000) : operations;
  }

  static constexpr std::uint32_t k_threads = 4;
};
INSTANTIATE_TEST_SUITE_P(backends, pool_blocks,
                         ::testing::Values("host", "sim_late", "intel", "cuda"), backend_label);

TEST_P(pool_blocks, never_overlap) {
  play(im::kind::host, scaled(is_long() ? 100'000'000 : 200'000));
}

// Written and read by the device alone.
TEST_P(pool_blocks, of_device_memory_never_overlap) {
  play(im::kind::device, scaled(is_long() ? 1'000'000 : 100'000));
}

// All remaining memory may still be in use by work on other queues.
TEST_P(pool_blocks, never_overlap_where_memory_is_short) {
  play(im::kind::host, scaled(is_long() ? 1'000'000 : 50'000),
       {.growth_bytes = k_mib, .limit_bytes = 16 * k_mib, .wait = 20ms});
}

// Each thread adopts thread caches of ended threads and leaves its own.
TEST_P(pool_blocks, outlive_thousands_of_short_threads) {
  constexpr std::uint32_t k_at_once = 8;
  shared_pool all(queue_, im::kind::host, {});
  const auto threads = static_cast<std::uint32_t>(scaled(is_long() ? 10'000 : 3'000) / k_slower);
  for (std::uint32_t i = 0; i < threads && !HasFailure(); i += k_at_once)
    run(all, k_at_once, 40, i);
  finish(all);
}

}  // namespace
