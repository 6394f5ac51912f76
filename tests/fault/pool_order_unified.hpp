// SPDX-License-Identifier: Apache-2.0
#pragma once
// A unified buffer in the model of pool ordering. Its device copy comes from the pool and is
// evicted when memory is short. Each side is brought up to date before it writes.

#include <algorithm>
#include <random>

#include "support/bytes.hpp"
#include "support/unified.hpp"

namespace support {

// Its functions return how many driver failures they reported.
class evicted_unified {
 public:
  evicted_unified(const im::queue& on, const im::resource& pool) : it_{k_bytes, options(on, pool)} {
    it_.copy_from(want_);
  }

  int use(std::minstd_rand& random) {
    const std::size_t begin = random() % k_bytes;
    const im::element_range range{begin, begin + 1 + random() % (k_bytes - begin)};
    const auto value = static_cast<std::byte>(1 + random() % 255);
    reports_ = 0;
    switch (random() % 4) {
      case 0: write_on_host(range, value); break;
      case 1: write_on_device(range, value); break;
      case 2: (void)retry([&] { (void)it_.device(); }); break;
      default: read();
    }
    return reports_;
  }
  // Makes a call that reports copies which failed after their own call had returned.
  int flush_errors() {
    reports_ = 0;
    (void)retry([&] { it_.mark_host({0, 0}); });
    return reports_;
  }
  int expect() {
    reports_ = 0;
    read();
    return reports_;
  }

 private:
  static constexpr std::size_t k_bytes = 300'000;

  static im::unified_options options(const im::queue& on, const im::resource& pool) {
    im::unified_options options;
    options.queue = on;
    options.separate = true;
    options.resource = pool;
    return options;
  }
  void write_on_host(const im::element_range& range, std::byte value) {
    const bool done = retry([&] {
      it_.host_write(range, [&](std::span<std::byte> all) { std::ranges::fill(all, value); });
    });
    if (done) note(range, value);
  }
  void write_on_device(const im::element_range& range, std::byte value) {
    const bool done = retry([&] {
      it_.device_write(range, [&](const im::buffer& all) {
        im::fill(all.slice(range.begin, range.end - range.begin), value);
      });
    });
    if (done) note(range, value);
  }
  void note(const im::element_range& range, std::byte value) {
    std::fill_n(want_.begin() + static_cast<std::ptrdiff_t>(range.begin), range.end - range.begin,
                value);
  }
  void read() {
    EXPECT_TRUE(retry([&] { EXPECT_TRUE(same(it_.host_read(), want_)) << "unified"; }));
  }
  // If there is no memory for the device copy, nothing changes.
  template <class Step>
  bool retry(Step step) {
    for (int tries = 0; tries < 4; ++tries) {
      try {
        step();
        return true;
      } catch (const im::error& problem) {
        if (problem.status() == im::status::driver) ++reports_;
        EXPECT_TRUE(problem.status() == im::status::driver ||
                    problem.status() == im::status::out_of_memory)
            << problem.what();
      }
    }
    return false;
  }

  unified it_;
  bytes want_ = bytes(k_bytes);
  int reports_ = 0;
};

}  // namespace support
