// SPDX-License-Identifier: Apache-2.0
// Random operations from many threads, compared with a model: a vector of bytes for each buffer.
//
// Each thread owns its buffers and its model, so that what it reads must be what it wrote. Queues,
// the device and the freed memory are shared. Every failure message has the seed; ISTHMUS_SEED sets
// it.
#include <cstdlib>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr std::size_t k_threads = 4;
constexpr std::size_t k_buffers = 6;
constexpr std::size_t k_bytes = 20000;

unsigned base_seed() {
  const char* given = std::getenv("ISTHMUS_SEED");
  return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : 20260101;
}

struct modelled {
  im::buffer buffer;
  bytes want;
};

class worker {
 public:
  worker(im::device device, std::vector<im::queue> queues, unsigned seed)
      : device_(std::move(device)), queues_(std::move(queues)), random_(seed) {
    for (im::kind one : {im::kind::device, im::kind::shared, im::kind::host}) {
      if (device_.offers(one)) kinds_.push_back(one);
    }
    for (std::size_t i = 0; i < k_buffers; ++i) all_.push_back(fresh());
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    for (const modelled& one : all_) expect_right(one);
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  modelled& any() { return all_[below(all_.size())]; }
  const im::queue& queue() { return queues_[below(queues_.size())]; }
  modelled fresh() {
    modelled made{im::buffer(k_bytes, kinds_[below(kinds_.size())], {.queue = queue()}),
                  bytes(k_bytes)};
    events_.push_back(im::fill_async(made.buffer, std::byte{0}));
    return made;
  }
  struct range {
    std::size_t offset, nbytes;
  };
  range part() {
    const std::size_t offset = below(k_bytes);
    return {offset, below(k_bytes - offset)};
  }
  im::dependencies some_events() {
    return events_.empty() ? im::dependencies() : im::dependencies(events_[below(events_.size())]);
  }
  void put(im::event event) {
    if (events_.size() > 20) events_.erase(events_.begin(), events_.begin() + 10);
    events_.push_back(std::move(event));
  }

  void step() {
    switch (below(9)) {
      case 0: return send();
      case 1: return move();
      case 2: return fill();
      case 3: return expect_right(any());
      case 4: return replace();
      case 5: return invert();
      case 6: return wait();
      case 7: return by_slice();
      default: return brief_queue();
    }
  }
  void send() {
    modelled& to = any();
    const auto [offset, nbytes] = part();
    auto data = std::make_shared<bytes>(noise(nbytes, static_cast<unsigned>(random_())));
    std::copy(data->begin(), data->end(), to.want.begin() + static_cast<std::ptrdiff_t>(offset));
    const std::span<const std::byte> source(*data);
    put(im::copy_async(
        im::at(to.buffer, offset), source,
        {.queue = queue(), .after = some_events(), .keep = im::keep(std::move(data))}));
  }
  void move() {
    modelled& to = any();
    const modelled& from = any();
    if (&to == &from) return;
    const auto [offset, nbytes] = part();
    const std::size_t start = below(k_bytes - nbytes);
    std::copy_n(from.want.begin() + static_cast<std::ptrdiff_t>(start), nbytes,
                to.want.begin() + static_cast<std::ptrdiff_t>(offset));
    put(im::copy_bytes_async(im::at(to.buffer, offset), im::at(from.buffer, start), nbytes,
                             {.queue = queue(), .after = some_events()}));
  }
  void fill() {
    modelled& to = any();
    const auto [offset, nbytes] = part();
    const auto value = static_cast<std::byte>(random_());
    std::fill_n(to.want.begin() + static_cast<std::ptrdiff_t>(offset), nbytes, value);
    put(im::fill_async(to.buffer.slice(offset, nbytes), value, {.queue = queue()}));
  }
  void by_slice() {
    modelled& one = any();
    const auto [offset, nbytes] = part();
    const im::buffer slice = one.buffer.slice(offset, nbytes).on_queue(queue());
    bytes got(nbytes);
    im::copy(std::span(got), slice);
    expect_same(got, std::span(one.want).subspan(offset, nbytes));
  }
  void invert() {
    modelled& one = any();
    if (one.buffer.kind() == im::kind::device && !device_.can(im::capability::run_functions))
      return;
    for (std::byte& value : one.want) value = ~value;
    put(queue().submit(
        [](std::span<std::byte> all) {
          for (std::byte& value : all) value = ~value;
        },
        one.buffer));
  }
  // Frees a buffer while work on it is in flight.
  void replace() {
    modelled& one = any();
    if (below(2) == 0) one.buffer.free();
    one = fresh();
  }
  void wait() {
    if (below(2) == 0) return queue().wait();
    if (!events_.empty()) events_[below(events_.size())].wait();
  }
  // Uses a queue that is destroyed while its work is in flight.
  void brief_queue() {
    const im::queue own(device_);
    modelled& one = any();
    const auto value = static_cast<std::byte>(random_());
    std::fill(one.want.begin(), one.want.end(), value);
    put(im::fill_async(one.buffer, value, {.queue = own}));
  }
  void expect_right(const modelled& one) {
    bytes got(k_bytes);
    im::copy(std::span(got), one.buffer, {.queue = queue()});
    expect_same(got, one.want);
  }
  static void expect_same(std::span<const std::byte> got, std::span<const std::byte> want) {
    EXPECT_TRUE(same(got, want)) << "ISTHMUS_SEED=" << base_seed();
  }

  im::device device_;
  std::vector<im::queue> queues_;
  std::minstd_rand random_;
  std::vector<im::kind> kinds_;
  std::vector<modelled> all_;
  std::vector<im::event> events_;
};

class random_operations : public leak_checked, public ::testing::WithParamInterface<const char*> {
 protected:
  static im::device open() {
    const std::string name = GetParam();
    return name == "host" ? im::device("host")
                          : im::sim_device(name == "sim" ? "" : "effect=" + name);
  }
  static void run(std::size_t threads, int steps) {
    const im::device device = open();
    const std::vector<im::queue> queues{im::queue(device), im::queue(device), im::queue(device)};
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < threads; ++i) {
      running.emplace_back([&, i] {
        try {
          worker(device, queues, base_seed() + static_cast<unsigned>(i)).run(steps);
        } catch (const im::error& problem) {
          ADD_FAILURE() << problem.what() << "; ISTHMUS_SEED=" << base_seed();
        }
      });
    }
    for (std::thread& one : running) one.join();
  }
};
INSTANTIATE_TEST_SUITE_P(backends, random_operations,
                         ::testing::Values("host", "sim", "late", "random"));

TEST_P(random_operations, of_one_thread) { run(1, 600); }
TEST_P(random_operations, of_many_threads) { run(k_threads, 200); }

}  // namespace
