// Blocks of a pool, taken and freed at random by many threads on several queues, half of them by
// another thread than took them. Each block is owned by a number written all over it: two that
// overlapped would tell. ISTHMUS_LONG=1 plays a hundred million operations, ISTHMUS_SEED others.
#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "support/backends.hpp"

namespace {

using namespace support;

bool is_long() {
  const char* given = std::getenv("ISTHMUS_LONG");
  return given != nullptr && std::string_view(given) == "1";
}

struct owned_block {
  std::uint64_t* words;
  std::size_t nbytes;
  std::uint64_t owner;

  // The first word, the last, and one in every 4 KiB.
  template <class Visit>
  void each_mark(Visit&& visit) const {
    constexpr std::size_t k_apart = 512;
    const std::size_t count = nbytes / sizeof *words;
    for (std::size_t i = 0; i < count; i += k_apart) visit(words[i]);
    visit(words[count - 1]);
  }
  void mark() const {
    each_mark([this](std::uint64_t& word) { word = owner; });
  }
  [[nodiscard]] bool is_whole() const {
    bool whole = true;
    each_mark([&](const std::uint64_t& word) { whole = whole && word == owner; });
    return whole;
  }
};

// Blocks on their way from the thread that took them to one that frees them.
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

class pool_user {
 public:
  pool_user(const im::resource& pool, const std::vector<im::queue>& queues, crossing& between,
            std::uint32_t number)
      : pool_(pool), queues_(queues), between_(between), random_(number), number_(number) {}

  void run(std::uint64_t operations) {
    for (std::uint64_t i = 0; i < operations && !::testing::Test::HasFailure(); ++i) step(i);
    for (const owned_block& one : mine_) give(one);
  }
  void give(const owned_block& one) {
    ASSERT_TRUE(one.is_whole()) << "another owns what block " << one.owner << " owned";
    pool_.deallocate(one.words, one.nbytes, 0, queue());
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  const im::queue& queue() { return queues_[below(queues_.size())]; }
  // 8 bytes to 128 KiB; one in 500 up to 8 MiB.
  std::size_t some_bytes() {
    const std::size_t most = std::size_t{1} << (below(500) == 0 ? 23 : 4 + below(14));
    return std::max<std::size_t>(8, below(most) & ~std::size_t{7});
  }

  void step(std::uint64_t i) {
    constexpr std::size_t k_most_live = 256;
    owned_block other{};
    if (below(3) == 0 && between_.take(other)) give(other);
    if (mine_.size() < k_most_live && below(2) == 0) return take(i);
    if (mine_.empty()) return;
    std::swap(mine_[below(mine_.size())], mine_.back());
    if (below(2) == 0) {
      between_.put(mine_.back());
    } else {
      give(mine_.back());
    }
    mine_.pop_back();
    if (below(5'000) == 0) pool_.trim(k_mib);
  }
  void take(std::uint64_t i) {
    const std::size_t nbytes = some_bytes();
    auto* const words = static_cast<std::uint64_t*>(pool_.allocate(nbytes, 0, queue()));
    mine_.push_back({words, nbytes, std::uint64_t{number_} << 40 | i});
    mine_.back().mark();
  }

  const im::resource& pool_;
  const std::vector<im::queue>& queues_;
  crossing& between_;
  std::minstd_rand random_;
  std::uint32_t number_;
  std::vector<owned_block> mine_;
};

class pool_blocks : public leak_checked, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    leak_checked::SetUp();
    const std::string name = GetParam();
    const im::device device =
        name == "host" ? im::device("host") : im::sim_device("effect=" + name);
    for (int i = 0; i < 3; ++i) queues_.emplace_back(device);
    pool_ = im::resource::pool(queues_[0].context(), im::kind::host);
  }
  void TearDown() override {
    pool_user last(pool_, queues_, between_, seed());
    for (owned_block left{}; between_.take(left);) last.give(left);
    pool_.verify();
    pool_.trim(0);
    EXPECT_EQ(pool_.usage().held, 0U) << "something is still held";
    pool_ = {};
    queues_.clear();
    leak_checked::TearDown();
  }
  static std::uint32_t seed() {
    const char* given = std::getenv("ISTHMUS_SEED");
    return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 1;
  }
  // So many threads at once, each of so many operations.
  void run(std::uint32_t threads, std::uint64_t operations, std::uint32_t first_number) {
    std::vector<std::thread> running;
    for (std::uint32_t i = 0; i < threads; ++i) {
      running.emplace_back([=, this] {
        pool_user(pool_, queues_, between_, seed() + first_number + i).run(operations);
      });
    }
    for (std::thread& one : running) one.join();
  }

  std::vector<im::queue> queues_;
  im::resource pool_;
  crossing between_;
};
INSTANTIATE_TEST_SUITE_P(backends, pool_blocks, ::testing::Values("host", "late"));

TEST_P(pool_blocks, never_overlap) { run(4, is_long() ? 25'000'000 : 50'000, 0); }

// Each thread takes over the lanes of ended ones, and leaves its own behind.
TEST_P(pool_blocks, outlive_ten_thousand_short_threads) {
  constexpr std::uint32_t k_at_once = 8;
  for (std::uint32_t i = 0; i < 10'000 && !HasFailure(); i += k_at_once) run(k_at_once, 40, i);
}

}  // namespace
