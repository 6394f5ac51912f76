// SPDX-License-Identifier: Apache-2.0
// Threads write the host copy of a unified buffer while others bring either copy up to date, write
// on a device and query dirty ranges. No version of any page is lost.
//
// All tests together take seconds. ISTHMUS_STRESS_SECONDS sets the duration of each.
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "support/unified.hpp"

namespace {

using namespace support;
using word = std::uint64_t;

constexpr std::size_t k_page = 4096;
constexpr std::size_t k_words = k_page / sizeof(word);
constexpr std::size_t k_host_pages = 1024;   // the first 4 MiB, written by host threads
constexpr std::size_t k_device_pages = 512;  // then 2 MiB written by a device
constexpr std::size_t k_exact_pages = 512;   // and 2 MiB written by exact host writes
constexpr std::size_t k_device_at = k_host_pages * k_page;
constexpr std::size_t k_exact_at = k_device_at + k_device_pages * k_page;
constexpr std::size_t k_nbytes = k_exact_at + k_exact_pages * k_page;
constexpr unsigned k_version_shift = 20;
#if defined(__SANITIZE_THREAD__)
constexpr bool k_words_are_torn = true;
#else
constexpr bool k_words_are_torn = false;
#endif

std::chrono::duration<double> how_long() {
  const char* given = std::getenv("ISTHMUS_STRESS_SECONDS");
  return std::chrono::duration<double>(given != nullptr ? std::strtod(given, nullptr) : 0.1);
}

// A word that encodes its version and its position.
word word_of(std::size_t page, std::size_t index, word version) {
  return version << k_version_shift | (page * k_words + index) % (word{1} << k_version_shift);
}

bytes page_of(std::size_t page, word version) {
  bytes made(k_page);
  for (std::size_t i = 0; i < k_words; ++i) {
    const word value = word_of(page, i, version);
    std::memcpy(made.data() + i * sizeof value, &value, sizeof value);
  }
  return made;
}

class unified_stress : public on_unified {
 protected:
  void SetUp() override {
    on_unified::SetUp();
    if (!device_ || IsSkipped()) return;
    it_ = make(k_nbytes);
    if (k_slower > 1 && it_.info().one_memory) {
      GTEST_SKIP() << "the device reads what the host writes, which ThreadSanitizer tells";
    }
    (void)it_.host();  // starts with zeros; a device copy made first would have undefined contents
    end_ = std::chrono::steady_clock::now() +
           std::chrono::duration_cast<std::chrono::nanoseconds>(how_long());
  }
  void TearDown() override {
    it_ = {};
    on_unified::TearDown();
  }
  [[nodiscard]] bool goes_on() const {
    return std::chrono::steady_clock::now() < end_ && !::testing::Test::HasFailure();
  }
  template <class Body>
  void start(Body body) {
    running_.emplace_back([body] {
      try {
        body();
      } catch (const im::error& problem) {
        ADD_FAILURE() << problem.what();
      }
    });
  }
  void join() {
    for (auto& one : running_) one.join();
    running_.clear();
  }

  // Writes every `step`th page of a part repeatedly, mostly a few pages at random, every 16th time
  // all.
  void write_on_host(std::size_t first, std::size_t step) {
    std::minstd_rand random(static_cast<unsigned>(first));
    const auto view = it_.host({0, k_device_at});
    auto* const words = reinterpret_cast<word*>(view.data());
    for (word round = 1; goes_on(); ++round) {
      const bool is_dense = round % 16 == 0;
      for (std::size_t page = first; page < k_host_pages; page += step) {
        if (!is_dense && random() % 64 != 0) continue;
        const word version = written_[page] + 1;
        for (std::size_t i = 0; i < k_words; ++i) {
          std::atomic_ref(words[page * k_words + i])
              .store(word_of(page, i, version), std::memory_order_relaxed);
        }
        written_[page].store(version);
      }
    }
  }
  // The device copy must have at least the versions that were written before the call.
  void bring_to_device(const im::queue& on) {
    std::minstd_rand random(7);
    std::vector<word> before(k_host_pages);
    while (goes_on()) {
      const std::size_t first = random() % k_host_pages;
      const std::size_t last = first + 1 + random() % (k_host_pages - first);
      for (std::size_t page = first; page < last; ++page) before[page] = written_[page];
      const im::element_range range{first * k_page, last * k_page};
      // Accesses of two threads to the same bytes are unordered here, which ThreadSanitizer would
      // report.
      const std::unique_lock in_turn =
          k_slower > 1 ? std::unique_lock(turn_) : std::unique_lock<std::mutex>();
      if (random() % 2 == 0) it_.sync_to_device(range, on);
      bytes got((last - first) * k_page);
      // Some processors copy single bytes, which tears a word that is written meanwhile. The page
      // is dirty then, so a later copy brings the whole word, unless it is written again.
      std::optional<std::size_t> wrong;
      int copies = 0;
      do {
        im::copy_bytes(std::span(got), im::at(it_.device(range, on), range.begin), got.size());
        wrong = find_wrong_word(got, first, before);
      } while (wrong && ++copies < 3);
      if (wrong) expect_word(got, *wrong, first, before);
    }
  }
  // The offset of the first word that is not of its page, or is older than `before`. Words may be
  // torn if single bytes are copied, or if the sanitizer makes the library copy byte by byte. Then
  // only the final state is checked.
  static std::optional<std::size_t> find_wrong_word(const bytes& got, std::size_t first,
                                                    const std::vector<word>& before) {
    if (k_words_are_torn || GetParam().means == im::tracking_mechanism::bytes) return {};
    for (std::size_t at = 0; at < got.size(); at += sizeof(word)) {
      const std::size_t page = first + at / k_page;
      const word value = word_at(got, at);
      const word version = value >> k_version_shift;
      if (version == 0 && before[page] == 0) continue;
      if (value != word_of(page, at % k_page / sizeof(word), version)) return at;
      if (version < before[page]) return at;
    }
    return {};
  }
  static void expect_word(const bytes& got, std::size_t at, std::size_t first,
                          const std::vector<word>& before) {
    const std::size_t page = first + at / k_page;
    const word value = word_at(got, at);
    const word version = value >> k_version_shift;
    ASSERT_EQ(value, word_of(page, at % k_page / sizeof(word), version)) << "page " << page;
    ASSERT_GE(version, before[page]) << "page " << page << " at " << at % k_page;
  }
  static word word_at(const bytes& got, std::size_t at) {
    word value = 0;
    std::memcpy(&value, got.data() + at, sizeof value);
    return value;
  }
  void write_on_device(const im::queue& on) {
    std::minstd_rand random(8);
    for (word version = 1; goes_on(); ++version) {
      const std::size_t page = random() % k_device_pages;
      const std::size_t at = k_device_at + page * k_page;
      device_written_[page] = version;
      const bytes data = page_of(page, version);
      it_.device_write(
          {at, at + k_page},
          [&](const im::buffer& all) { im::copy(im::at(all, at), std::span(data), {.queue = on}); },
          on);
      if (random() % 2 == 0) continue;
      EXPECT_TRUE(same(it_.host_read({at, at + k_page}), data));
    }
  }
  void write_exactly() {
    std::minstd_rand random(9);
    for (word version = 1; goes_on(); ++version) {
      const std::size_t page = random() % k_exact_pages;
      const std::size_t at = k_exact_at + page * k_page;
      const bytes data = page_of(page, version);
      it_.host_write({at, at + k_page}, [&](std::span<std::byte> part) {
        std::copy(data.begin(), data.end(), part.begin());
      });
      exactly_written_[page] = version;
    }
  }
  void look() {
    while (goes_on()) {
      (void)it_.info();
      for (const auto& each : it_.dirty_on_host()) EXPECT_LE(each.end, k_nbytes);
      for (const auto& each : it_.dirty_on_device()) EXPECT_GE(each.begin, k_device_at);
    }
  }
  // All writers have ended: both copies hold what was written last.
  void expect_all() {
    bytes want(k_nbytes);
    const auto put = [&](std::size_t at, std::size_t page, word version) {
      const bytes one = version == 0 ? bytes(k_page) : page_of(page, version);
      std::copy(one.begin(), one.end(), want.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (std::size_t page = 0; page < k_host_pages; ++page)
      put(page * k_page, page, written_[page]);
    for (std::size_t page = 0; page < k_device_pages; ++page) {
      put(k_device_at + page * k_page, page, device_written_[page]);
    }
    for (std::size_t page = 0; page < k_exact_pages; ++page) {
      put(k_exact_at + page * k_page, page, exactly_written_[page]);
    }
    EXPECT_TRUE(same(it_.host_read(), want)) << "on the host";
    EXPECT_TRUE(same(read(it_.device()), want)) << "on the device";
    EXPECT_EQ(it_.state(), im::unified_state::synchronized);
  }

  unified it_;
  std::mutex turn_;
  std::chrono::steady_clock::time_point end_;
  std::vector<std::thread> running_;
  std::vector<std::atomic<word>> written_ = std::vector<std::atomic<word>>(k_host_pages);
  std::vector<word> device_written_ = std::vector<word>(k_device_pages);
  std::vector<word> exactly_written_ = std::vector<word>(k_exact_pages);
};
ISTHMUS_ON_UNIFIED(unified_stress);

TEST_P(unified_stress, writers_beside_copies_of_two_queues) {
  const im::queue other(device_);
  start([this] { write_on_host(0, 2); });
  start([this] { write_on_host(1, 2); });
  start([this] { bring_to_device(queue_); });
  start([this, other] { bring_to_device(other); });
  join();
  expect_all();
}

TEST_P(unified_stress, both_sides_write_ranges_of_their_own) {
  const im::queue other(device_);
  start([this] { write_on_host(0, 1); });
  start([this] { bring_to_device(queue_); });
  start([this, other] { write_on_device(other); });
  start([this] { look(); });
  join();
  expect_all();
}

TEST_P(unified_stress, exact_writes_beside_copies) {
  start([this] { write_on_host(0, 1); });
  start([this] { write_exactly(); });
  start([this] { bring_to_device(queue_); });
  start([this] {
    while (goes_on()) it_.sync_to_device();
  });
  join();
  expect_all();
}

}  // namespace
