// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program that uses most of the library on a device, in which anything may fail. There are no
// leaks and no hangs, and operations that succeed have produced the right bytes.
#include <array>

#include "steps.hpp"
#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace support {

inline constexpr std::size_t k_bytes = 40000;

// A buffer and its expected contents, which are certain as long as every write to it has succeeded.
struct tracked {
  im::buffer buffer;
  bytes want;
  bool sure = false;
};

// Forwards to another resource.
struct passing {
  im::resource from;

  void* allocate(std::size_t nbytes, std::size_t alignment, const im::queue& on) {
    return from.allocate(nbytes, alignment, on);
  }
  void deallocate(void* pointer, std::size_t nbytes, const im::queue& on) noexcept {
    while (isthmus_resource_deallocate(from.get(), pointer, nbytes, 0, on.get()) != ISTHMUS_OK) {
    }
  }
};

// Every step may throw, and the following ones run anyway.
class scenario : public steps {
 public:
  // `exported`: the handles of its queues are exported, so that external work is possible and the
  // host never executes operations in their place.
  explicit scenario(im::device device, bool exported = false)
      : device_(std::move(device)), exported_(exported) {}

  void run() {
    attempt([&] { context_ = im::context({device_}); });
    if (!context_) return;
    attempt([&] { first_ = im::queue(context_, device_); });
    attempt([&] { second_ = im::queue(context_, device_); });
    if (!first_ || !second_) return;
    if (exported_) lend();
    allocate();
    write_all();
    copy_between_all();
    fill_and_pitch();
    ranges();
    blocks();
    arrays();
    cross_queues();
    functions_and_hints();
    gate();
    share();
    pools();
    blocks_that_move();
    over_others();
    verify();
    attempt([&] { (void)first_.wait(); });
    adopt_and_give_away();
  }

 private:
  void lend() const {
    for (const im::queue& one : {first_, second_}) EXPECT_NE(one.export_native(), nullptr);
  }
  void allocate() {
    for (im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
      for (int i = 0; i < 2; ++i) {
        attempt([&] { all_.push_back({im::buffer(k_bytes, kind, {.queue = first_}), {}}); });
      }
    }
  }
  void write_all() {
    unsigned seed = 0;
    for (tracked& one : all_) {
      const bytes data = noise(k_bytes, ++seed);
      one.want = data;
      one.sure = attempt([&] { im::copy(one.buffer, std::span(data)); });
    }
  }
  void copy_between_all() {
    for (tracked& to : all_) {
      for (const tracked& from : all_) {
        if (&to == &from) continue;
        const bool done = attempt(
            [&] { end(im::copy_bytes_async(im::at(to.buffer, 7), im::at(from.buffer, 3), 1000)); });
        copied(to, from, 7, 3, 1000, done);
      }
    }
  }
  void fill_and_pitch() {
    for (tracked& one : all_) {
      const bool filled = attempt([&] { im::fill(one.buffer.slice(100, 800), 1.25); });
      const double value = 1.25;
      for (std::size_t i = 0; i < 100; ++i) std::memcpy(one.want.data() + 100 + 8 * i, &value, 8);
      one.sure = one.sure && filled;
    }
    if (all_.size() < 2) return;
    tracked& to = all_.front();
    const tracked& from = all_.back();
    const bool done = attempt([&] {
      im::copy_2d({im::at(to.buffer, 8), 64}, {from.buffer, 128}, {.width = 50, .height = 100});
    });
    for (std::size_t y = 0; y < 100; ++y) {
      std::copy_n(from.want.begin() + static_cast<std::ptrdiff_t>(128 * y), 50,
                  to.want.begin() + static_cast<std::ptrdiff_t>(8 + 64 * y));
    }
    to.sure = to.sure && from.sure && done;
  }
  // From plain memory, and between buffers of all kinds.
  void ranges() {
    std::vector<im::copy_range> all;
    for (std::size_t at = 0; at + 600 < k_bytes; at += 1000) all.push_back({at + 1, at + 3, 500});
    const bytes data = noise(k_bytes, 99);
    for (tracked& to : all_) {
      const bool written =
          attempt([&] { im::copy_ranges(to.buffer, std::span(data), all, {.queue = first_}); });
      for (const auto& each : all) splice(to, data, each);
      to.sure = to.sure && written;
      for (const tracked& from : all_) {
        if (&to == &from) continue;
        const bool done = attempt([&] { end(im::copy_ranges_async(to.buffer, from.buffer, all)); });
        for (const auto& each : all) splice(to, from.want, each);
        to.sure = to.sure && from.sure && done;
      }
    }
  }
  // Transposed, which is a copy of many ranges, and packed, which is a copy of rows.
  void blocks() {
    const bytes data = noise(k_bytes, 98);
    for (tracked& to : all_) {
      for (const im::dimensions& from : {im::dimensions{2, 40, 800}, im::dimensions{1600, 80, 4}}) {
        const bool done = attempt([&] {
          end(im::copy_nd_async({im::at(to.buffer, 6), {800, 40, 2}}, {std::span(data), from},
                                {20, 20, 20}, 2));
        });
        for (std::size_t i = 0; i < 8000; ++i) {
          const std::size_t x = i % 20, y = i / 20 % 20, z = i / 400;
          splice(to, data, {6 + 2 * i, z * from[0] + y * from[1] + x * from[2], 2});
        }
        to.sure = to.sure && done;
      }
    }
  }
  // Reversed in place, converted from plain memory and from another buffer, and filled with a
  // stride. These use temporary memory of the library, of the host and of the device.
  void arrays() {
    const std::int64_t count = 3000, dense = 4, back = -4, shorter = 2, many = 4999, far = 8;
    const auto array = [](const tracked& in, std::size_t offset, isthmus_dtype_t of,
                          const std::int64_t& shape, const std::int64_t& stride) {
      return isthmus_array_t{{in.buffer.get(), nullptr, offset}, of, 1, &shape, &stride};
    };
    for (tracked& to : all_) {
      const auto forward = array(to, 4, ISTHMUS_INT32, count, dense);
      const auto mirror =
          array(to, 4 * static_cast<std::size_t>(count), ISTHMUS_INT32, count, back);
      const bool turned = attempt([&] { copy_array(forward, mirror); });
      for (std::size_t i = 0; i < 1500; ++i) {
        std::swap_ranges(to.want.begin() + static_cast<std::ptrdiff_t>(4 + 4 * i),
                         to.want.begin() + static_cast<std::ptrdiff_t>(8 + 4 * i),
                         to.want.begin() + static_cast<std::ptrdiff_t>(12'000 - 4 * i));
      }
      to.sure = to.sure && turned;
      for (const tracked& from : all_) {
        if (&to == &from) continue;
        const auto narrow = array(from, 0, ISTHMUS_UINT16, count, shorter);
        const bool widened = attempt([&] { copy_array(forward, narrow); });
        for (std::size_t i = 0; i < 3000; ++i) {
          std::fill_n(to.want.begin() + static_cast<std::ptrdiff_t>(4 + 4 * i), 4, std::byte{0});
          splice(to, from.want, {4 + 4 * i, 2 * i, 2});
        }
        to.sure = to.sure && from.sure && widened;
      }
      const auto apart = array(to, 3, ISTHMUS_FLOAT32, many, far);
      const bool filled = attempt([&] { fill_array(apart, 2.5F); });
      const float value = 2.5F;
      for (std::size_t at = 3; at < 8 * 4999; at += 8) std::memcpy(to.want.data() + at, &value, 4);
      to.sure = to.sure && filled;
    }
  }
  static void copy_array(const isthmus_array_t& to, const isthmus_array_t& from) {
    isthmus_event_t* event = nullptr;
    im::detail::check(
        isthmus_copy_array(nullptr, &to, &from, ISTHMUS_CASTING_UNSAFE, nullptr, &event));
    end(im::event::take(event));
  }
  static void fill_array(const isthmus_array_t& to, float value) {
    im::detail::check(isthmus_fill_array(nullptr, &to, &value, ISTHMUS_FLOAT32, ISTHMUS_CASTING_NO,
                                         nullptr, nullptr));
  }
  static void splice(tracked& to, const bytes& from, const im::copy_range& what) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(what.source_offset), what.nbytes,
                to.want.begin() + static_cast<std::ptrdiff_t>(what.destination_offset));
  }
  void cross_queues() {
    for (tracked& one : all_) {
      const bool done = attempt([&] {
        const im::event filled =
            im::fill_async(one.buffer, std::uint16_t{0x1234}, {.queue = first_});
        const im::event fence = second_.fence(filled);
        end(im::copy_bytes_async(im::at(one.buffer, 20000), one.buffer, 10000,
                                 {.queue = second_, .after = {filled, fence}}));
        end(filled);
      });
      const std::uint16_t value = 0x1234;
      for (std::size_t i = 0; i < k_bytes; i += 2) std::memcpy(one.want.data() + i, &value, 2);
      one.sure = done;  // the previous contents no longer matter
    }
  }
  void functions_and_hints() {
    for (tracked& one : all_) {
      if (one.buffer.kind() == im::kind::device && !device_.can(im::capability::run_functions)) {
        continue;
      }
      const bool done = attempt([&] {
        end(first_.submit([](std::span<std::byte> all) { all[0] = std::byte{0xee}; }, one.buffer));
      });
      one.want[0] = std::byte{0xee};
      one.sure = one.sure && done;
      if (one.buffer.kind() != im::kind::shared) continue;
      attempt([&] { im::prefetch(one.buffer); });
      attempt([&] { im::advise(one.buffer, 0); });
    }
  }
  // Adaptors and custom resources: whatever fails, no block stays counted.
  void over_others() {
    for (im::kind kind : {im::kind::device, im::kind::shared}) {
      im::resource counted;
      attempt([&] {
        const im::resource pool = im::resource::pool(context_, kind, {.growth_bytes = 1 << 20});
        const im::resource mine =
            im::resource::custom(context_, kind, passing{im::resource::provider(context_, kind)});
        counted = im::resource::statistics(im::resource::failure_callback(
            im::resource::fallback(im::resource::limit(pool, 3 * k_bytes), mine),
            [](std::size_t) { return false; }));
      });
      if (!counted) continue;
      std::vector<void*> blocks;
      for (int i = 0; i < 5; ++i) {
        attempt([&] { blocks.push_back(counted.allocate(k_bytes, 0, second_)); });
      }
      EXPECT_EQ(im::statistics_of(counted).current_count, blocks.size());
      for (void* block : blocks) {
        int tries = 0;
        while (!attempt([&] { counted.deallocate(block, k_bytes, 0, second_); })) {
          ASSERT_LT(++tries, k_max_calls);
        }
      }
      attempt([&] { (void)im::buffer(k_bytes, kind, {.queue = first_, .resource = counted}); });
      EXPECT_TRUE(eventually([&] { return im::statistics_of(counted).current_count == 0; }));
      EXPECT_EQ(im::statistics_of(counted).current_bytes, 0u);
      attempt([&] {
        all_.push_back({im::buffer(k_bytes, kind, {.queue = first_, .resource = counted}), {}});
      });
    }
  }
  // Blocks without a buffer on both queues, and one that is freed while work on its memory is
  // pending.
  void pools() {
    const im::budget shared(64 << 20);
    for (im::kind kind : {im::kind::device, im::kind::shared, im::kind::host}) {
      im::resource pool;
      attempt([&] {
        pool = im::resource::pool(
            context_, kind,
            {.growth_bytes = 1 << 20, .budget = shared, .decay = std::chrono::nanoseconds(1)});
      });
      if (!pool) continue;
      for (std::size_t nbytes : {std::size_t{500}, k_bytes, std::size_t{300} << 10}) {
        attempt([&] {
          all_.push_back({im::buffer(k_bytes, kind, {.queue = first_, .resource = pool}), {}});
          const std::int64_t count = 4000, far = 8;
          const isthmus_endpoint_t start{all_.back().buffer.get(), nullptr, 0};
          fill_array({start, ISTHMUS_FLOAT32, 1, &count, &far}, 2.5F);
        });
        for (const im::queue& on : {first_, second_}) {
          void* block = nullptr;
          if (!attempt([&] { block = pool.allocate(nbytes, 0, on); })) continue;
          const unsigned char value = 3;
          const isthmus_endpoint_t there{nullptr, block, 0};
          isthmus_event_t* filled = nullptr;
          attempt([&] {
            im::detail::check(isthmus_fill(on.get(), &there, &value, 1, nbytes, nullptr, &filled));
          });
          isthmus_event_release(filled);
          while (!attempt([&] { pool.deallocate(block, nbytes, 0, on); })) {
            // If the driver cannot report what is running, the block still belongs to the caller.
          }
        }
      }
      attempt([&] { (void)pool.trim(); });
    }
  }
  void share() {
    for (const tracked& one : all_) {
      if (one.buffer.kind() == im::kind::device && device_.can(im::capability::ipc)) {
        attempt([&] { (void)im::ipc_handle::of(one.buffer); });
      }
    }
  }
  // Two free blocks at different addresses are remapped into one, which is filled across the
  // boundary.
  void blocks_that_move() {
    constexpr std::size_t k_piece = 2 * k_mib;
    constexpr std::size_t k_around = 1000;
    im::resource pool;
    attempt(
        [&] { pool = im::resource::pool(context_, im::kind::host, {.growth_bytes = k_piece}); });
    if (!pool) return;
    std::array<void*, 3> pieces{};
    for (void*& each : pieces) attempt([&] { each = pool.allocate(k_piece, 0, first_); });
    for (void* each : {pieces[0], pieces[2]}) give(pool, each, k_piece);
    attempt([&] {
      const im::buffer both(2 * k_piece, im::kind::host, {.queue = first_, .resource = pool});
      const im::buffer boundary = both.slice(k_piece - k_around, 2 * k_around);
      end(im::fill_async(boundary, std::uint64_t{0x0102030405060708}));
      bytes got(2 * k_around);
      im::copy(std::span(got), boundary);
      bytes want(2 * k_around);
      for (std::size_t i = 0; i < want.size(); ++i) want[i] = std::byte(8 - i % 8);
      EXPECT_TRUE(same(got, want));
    });
    give(pool, pieces[1], k_piece);
    attempt([&] { (void)pool.trim(); });
  }
  // Repeats the free: if the driver cannot report what is running, the block still belongs to the
  // caller.
  void give(const im::resource& to, void* block, std::size_t nbytes) {
    while (block != nullptr && !attempt([&] { to.deallocate(block, nbytes, 0, first_); })) {
    }
  }
  void gate() {
    if (all_.empty()) return;
    tracked& one = all_.front();
    const im::host_event gate;
    im::event filled;
    // If the driver cannot wait for the host, the submission waits on this thread.
    const bool waits = device_.can(im::capability::wait_for_host);
    if (!waits) gate.complete();
    const bool put =
        attempt([&] { filled = im::fill_async(one.buffer, std::byte{3}, {.after = gate}); });
    if (waits) gate.complete();
    const bool done = put && attempt([&] { end(filled); });
    one.want.assign(k_bytes, std::byte{3});
    one.sure = done;
  }
  // Reading back may fail too, but what is read must be right.
  void verify() {
    for (const tracked& one : all_) {
      bytes got(k_bytes);
      const bool done = attempt([&] { im::copy(std::span(got), one.buffer); });
      if (done && one.sure) {
        EXPECT_TRUE(same(got, one.want)) << name(one.buffer.kind());
      }
    }
  }
  void adopt_and_give_away() {
    if (all_.empty()) return;
    attempt([&] {
      im::usm_pointer memory = all_.back().buffer.disown();
      (void)im::buffer::adopt(std::move(memory), k_bytes, {.queue = second_});
    });
    const bytes last = noise(k_bytes);
    attempt([&] { (void)im::copy_async(all_.front().buffer, std::span(last)).wait_for(20s); });
  }
  void copied(tracked& to, const tracked& from, std::size_t at, std::size_t start,
              std::size_t nbytes, bool done) {
    std::copy_n(from.want.begin() + static_cast<std::ptrdiff_t>(start), nbytes,
                to.want.begin() + static_cast<std::ptrdiff_t>(at));
    to.sure = to.sure && from.sure && done;
  }

  im::device device_;
  bool exported_;
  im::context context_;
  im::queue first_;
  im::queue second_;
  std::vector<tracked> all_;
};

}  // namespace support
