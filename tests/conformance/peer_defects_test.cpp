// SPDX-License-Identifier: Apache-2.0
// Defects that other allocators of this field had. Each test is named after the project and what
// went wrong there. The defects were found by running UMF 1.2 (V1 to V13) and by reading Umpire (U1
// to U7). Those of handles shared between processes (V7: a mapping closed by another provider, V8:
// closed twice, V13: rejected with a wrong code) have no test here; ipc_test.cpp tests memory
// shared between processes.
#include <atomic>
#include <limits>
#include <set>

#include <isthmus/host_resource.hpp>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class peer_defects : public on_backend {
 protected:
  [[nodiscard]] im::resource make(const im::pool_options& how = {}) const {
    return im::resource::pool(queue_.context(), im::kind::shared, how, device_);
  }
  [[nodiscard]] std::byte* take(const im::resource& from, std::size_t nbytes,
                                std::size_t alignment = 0) const {
    auto* const made = static_cast<std::byte*>(from.allocate(nbytes, alignment, queue_));
    std::fill_n(made, nbytes, std::byte{0x5a});
    return made;
  }
  static bool is_whole(const std::byte* made, std::size_t nbytes) {
    return std::all_of(made, made + nbytes, [](std::byte each) { return each == std::byte{0x5a}; });
  }
};
INSTANTIATE_ON_BACKENDS(peer_defects);

// A block whose alignment exceeded its slab was not recognized, and a wrong range was freed.
TEST_P(peer_defects, umf_v1_frees_a_wrong_range_for_an_aligned_block) {
  const im::resource from = make();
  const std::size_t alignment = std::min<std::size_t>(256 * k_kib, device_.info().max_alignment);
  std::vector<std::byte*> kept;
  for (int round = 0; round < 8; ++round) {
    kept.push_back(take(from, 64 * k_kib));
    auto* const aligned = take(from, 64 * k_kib, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % alignment, 0U);
    from.deallocate(aligned, 64 * k_kib, alignment, queue_);
    (void)from.trim();
    for (const auto* each : kept) EXPECT_TRUE(is_whole(each, 64 * k_kib));
  }
  for (auto* each : kept) from.deallocate(each, 64 * k_kib, 0, queue_);
}

TEST_P(peer_defects, umf_v2_frees_blocks_of_another_pool) {
  const im::resource one = make();
  const im::resource other = make();
  for (std::size_t nbytes : {std::size_t{100}, 64 * k_kib, 2 * k_mib}) {
    auto* const block = take(one, nbytes);
    EXPECT_THROW(other.deallocate(block, nbytes, 0, queue_), im::invalid_argument);
    (void)other.trim();
    EXPECT_TRUE(is_whole(block, nbytes));
    one.deallocate(block, nbytes, 0, queue_);
  }
}

TEST_P(peer_defects, umf_v3_allocates_four_bytes_for_a_count_that_overflows) {
  im::host_resource memory(make(), queue_);
  std::pmr::polymorphic_allocator<std::uint32_t> of{&memory};
  const auto count = std::numeric_limits<std::size_t>::max() / 4 + 2;
  EXPECT_THROW((void)of.allocate(count), std::bad_alloc);
  EXPECT_THROW((void)im::buffer(std::numeric_limits<std::size_t>::max(), im::kind::shared,
                                {.queue = queue_, .resource = memory.upstream()}),
               im::error);
}

TEST_P(peer_defects, umf_v4_counts_a_double_free_and_loses_live_blocks) {
  const im::resource from = make();
  std::vector<std::byte*> all;
  for (int each = 0; each < 256; ++each) all.push_back(take(from, 64));
  for (int each = 0; each < 128; ++each) {
    from.deallocate(all.back(), 64, 0, queue_);
    EXPECT_THROW(from.deallocate(all.back(), 64, 0, queue_), im::invalid_argument);
    all.pop_back();
  }
  (void)from.trim();
  EXPECT_GT(from.usage().held, 0U) << "128 blocks live";
  for (auto* each : all) {
    EXPECT_TRUE(is_whole(each, 64));
    from.deallocate(each, 64, 0, queue_);
  }
}

TEST_P(peer_defects, umf_v5_frees_the_chunk_of_an_inner_pointer) {
  const im::resource from = make();
  for (std::size_t nbytes : {std::size_t{64}, std::size_t{5000}, 64 * k_kib, 2 * k_mib}) {
    auto* const block = take(from, nbytes);
    for (std::size_t at : {std::size_t{1}, nbytes / 2, nbytes - 1}) {
      EXPECT_THROW(from.deallocate(block + at, nbytes, 0, queue_), im::invalid_argument);
    }
    auto* const next = take(from, nbytes);
    EXPECT_TRUE(next + nbytes <= block || block + nbytes <= next);
    EXPECT_TRUE(is_whole(block, nbytes));
    from.deallocate(next, nbytes, 0, queue_);
    from.deallocate(block, nbytes, 0, queue_);
  }
}

TEST_P(peer_defects, umf_v6_takes_an_alignment_that_is_no_power_of_two) {
  const im::resource from = make();
  for (std::size_t alignment : {3U, 24U, 48U, 1000U}) {
    EXPECT_THROW((void)from.allocate(100, alignment, queue_), im::invalid_argument) << alignment;
  }
}

// jemalloc merged adjacent blocks of different arenas.
TEST_P(peer_defects, umf_v9_crashes_under_two_threads_of_large_blocks) {
  const im::resource from = make();
  std::vector<std::thread> threads;
  std::atomic<int> broken{0};
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < 500; ++round) {
        auto* const block = static_cast<std::byte*>(from.allocate(k_mib, 0, queue_));
        const auto mark = static_cast<std::byte>(number + 1);
        block[0] = block[k_mib - 1] = mark;
        std::this_thread::yield();
        if (block[0] != mark || block[k_mib - 1] != mark) ++broken;
        from.deallocate(block, k_mib, 0, queue_);
        if (round % 16 == 0) (void)from.trim();
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(broken, 0);
}

TEST_P(peer_defects, umf_v10_holds_more_than_its_limit) {
  const im::resource from = make({.growth_bytes = k_mib, .limit_bytes = k_mib, .wait = 0s});
  std::vector<std::byte*> all{take(from, k_mib / 2)};
  EXPECT_THROW((void)from.allocate(k_mib, 0, queue_), im::out_of_memory);
  EXPECT_LE(from.usage().held, k_mib);
  for (auto* each : all) from.deallocate(each, k_mib / 2, 0, queue_);
}

TEST_P(peer_defects, umf_v11_answers_otherwise_for_nothing_by_kind_of_pool) {
  const auto provider = im::resource::provider(queue_.context(), im::kind::shared, device_);
  const im::resource from = make();
  for (const auto& each : {provider, from, im::resource::statistics(from)}) {
    EXPECT_EQ(each.allocate(0, 0, queue_), nullptr);
    each.deallocate(nullptr, 0, 0, queue_);
  }
}

TEST_P(peer_defects, umf_v12_knows_a_pointer_that_was_freed) {
  const im::resource from = make();
  for (std::size_t nbytes : {std::size_t{64}, std::size_t{5000}, 2 * k_mib}) {
    auto* const block = take(from, nbytes);
    EXPECT_EQ(im::query(block + nbytes / 2).base, block);
    from.deallocate(block, nbytes, 0, queue_);
    EXPECT_EQ(im::query(block).kind, im::kind::unknown);
  }
}

TEST_P(peer_defects, umpire_u1_follows_an_unknown_pointer) {
  const im::resource unchecked = make({.checked = false});
  int local = 0;
  EXPECT_THROW(unchecked.deallocate(&local, sizeof local, 0, queue_), im::invalid_argument);
  auto* const large = take(unchecked, 2 * k_mib);
  unchecked.deallocate(large, 2 * k_mib, 0, queue_);
  EXPECT_THROW(unchecked.deallocate(large, 2 * k_mib, 0, queue_), im::invalid_argument);
}

TEST_P(peer_defects, umpire_u3_takes_megabytes_for_a_small_block_and_keeps_them) {
  const im::resource from = make({.growth_bytes = k_mib});
  auto* const block = take(from, 300);
  EXPECT_LE(from.usage().held, 2 * k_mib);
  from.deallocate(block, 300, 0, queue_);
  (void)from.trim();
  EXPECT_EQ(from.usage().held, 0U);
}

// An initial size that was not configured: 512 MiB with the first byte of a host pool.
TEST_P(peer_defects, umpire_u4_reserves_half_a_gibibyte_with_the_first_byte) {
  const im::resource from = make();
  auto* const block = take(from, 1);
  EXPECT_LE(from.usage().held, 32 * k_mib + 64 * k_kib);
  from.deallocate(block, 1, 0, queue_);
}

// Its monotonic resource: the second block was not aligned, all requests after a failed one failed
// too, and the reported peak was the capacity.
TEST_P(peer_defects, umpire_u2_does_not_align_and_never_serves_after_a_failure) {
  const im::resource upstream = im::resource::limit(make(), 100 * k_kib);
  const im::resource counted =
      im::resource::statistics(im::resource::monotonic(upstream, 64 * k_kib));
  std::vector<std::byte*> all{take(counted, 3)};
  for (std::size_t alignment : {1U, 8U, 64U, 256U}) {
    all.push_back(take(counted, 3, alignment));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % alignment, 0U);
  }
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW((void)counted.allocate(k_mib, 0, queue_), im::out_of_memory);
    all.push_back(take(counted, 1000));
  }
  for (const auto* each : all) EXPECT_TRUE(is_whole(each, 3));
  EXPECT_EQ(im::statistics_of(counted).peak_bytes, 5U * 3 + 3 * 1000);
}

// A free merged free blocks and allocated one large block in their place, in a function that must
// not fail. no_memory_test.cpp tests that our free needs no host memory either.
TEST_P(peer_defects, umpire_u5_allocates_in_a_free_and_ends_the_program) {
  const im::resource from = make({.growth_bytes = k_mib, .limit_bytes = 8 * k_mib, .wait = 0s});
  std::vector<std::pair<std::byte*, std::size_t>> all;
  try {
    for (std::size_t nbytes = 1000;; nbytes = nbytes * 3 % (k_mib + 1) + 1) {
      all.emplace_back(take(from, nbytes), nbytes);
    }
  } catch (const im::out_of_memory&) {
  }
  const auto calls = [&] {
    std::uint64_t count = 0;
    if (device_.info().backend == "sim") {
      im::detail::check(isthmus_sim_calls(device_.get(), "any", &count));
    }
    return count;
  };
  const auto before = from.usage();
  const std::uint64_t calls_before = calls();
  for (std::size_t step : {2U, 3U, 1U}) {  // adjacent blocks are freed in later rounds
    for (std::size_t i = 0; i < all.size(); i += step) {
      auto& [block, nbytes] = all[i];
      if (block != nullptr) from.deallocate(std::exchange(block, nullptr), nbytes, 0, queue_);
    }
  }
  EXPECT_EQ(calls(), calls_before) << "a free calls no driver";
  const auto after = from.usage();
  EXPECT_EQ(std::pair(after.maps, after.unmaps), std::pair(before.maps, before.unmaps));
  EXPECT_EQ(after.held, before.held) << "a free asks for nothing and gives nothing back";
  (void)from.trim();
  EXPECT_EQ(from.usage().held, 0U);
}

TEST_P(peer_defects, umpire_u6_races_in_its_statistics) {
  const im::resource counted = im::resource::statistics(make());
  std::vector<std::thread> threads;
  for (int number = 0; number < 2; ++number) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        void* const block = counted.allocate(100, 0, queue_);
        counted.deallocate(counted.allocate(0, 0, queue_), 0, 0, queue_);
        counted.deallocate(block, 100, 0, queue_);
      }
    });
  }
  for (auto& each : threads) each.join();
  const im::statistics seen = im::statistics_of(counted);
  EXPECT_EQ(seen.current_bytes, 0U);
  EXPECT_EQ(seen.current_count, 0U);
  EXPECT_EQ(seen.total_bytes, 2U * 2000 * 100);
}

TEST_P(peer_defects, umpire_u7_keeps_bytes_counted_that_its_upstream_refused) {
  const im::resource small = make({.growth_bytes = k_mib, .limit_bytes = k_mib, .wait = 0s});
  const im::resource limited = im::resource::limit(small, 8 * k_mib);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW((void)limited.allocate(4 * k_mib, 0, queue_), im::out_of_memory);
  }
  EXPECT_EQ(im::limit_of(limited).in_use_bytes, 0U);
}

// A block was freed on one queue and merged with its neighbour. It kept an outdated event, so that
// a third queue got memory that was still in use (rmm#2489).
TEST_P(peer_defects, rmm_joins_blocks_of_two_queues_and_forgets_what_runs) {
  const im::resource from =
      make({.initial_bytes = 8 * k_mib, .limit_bytes = 8 * k_mib, .wait = 0s});
  const im::queue one(queue_.context(), device_);
  const im::queue other(queue_.context(), device_);
  void* const first = from.allocate(4 * k_mib, 0, one);
  void* const second = from.allocate(4 * k_mib, 0, other);
  im::host_event early;
  im::host_event late;
  (void)one.fence({early});
  (void)other.fence({late});
  from.deallocate(first, 4 * k_mib, 0, one);
  from.deallocate(second, 4 * k_mib, 0, other);
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  early.complete();
  one.wait();
  while (im::snapshot_of(from).free < 4 * k_mib) std::this_thread::yield();
  EXPECT_THROW((void)from.allocate(8 * k_mib, 0, queue_), im::out_of_memory);
  void* const free_now = from.allocate(4 * k_mib, 0, queue_);
  EXPECT_NE(free_now, second) << "work of the other queue runs";
  from.deallocate(free_now, 4 * k_mib, 0, queue_);
  late.complete();
  other.wait();
  while (im::snapshot_of(from).waiting != 0) std::this_thread::yield();
  from.deallocate(from.allocate(8 * k_mib, 0, queue_), 8 * k_mib, 0, queue_);
}

}  // namespace
