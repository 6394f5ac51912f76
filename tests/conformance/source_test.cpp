// Copies that return once their source may be written again: what was written there afterwards is
// not copied, and what was to be written before is.
#include <thread>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class source_reuse : public on_backend {
 protected:
  // Writes the source over as soon as it may.
  im::event send(const im::buffer& to, std::size_t offset, bytes& scratch,
                 const bytes& data) const {
    std::copy(data.begin(), data.end(), scratch.begin());
    im::event sent = im::copy_n_async(im::at(to, offset), std::span<const std::byte>(scratch),
                                      data.size(), {.on = queue_, .wait_for_source = true});
    std::fill(scratch.begin(), scratch.end(), std::byte{0xdd});
    return sent;
  }
};
INSTANTIATE_ON_BACKENDS(source_reuse);

// Around the sizes of what is gathered in one piece, and of the ring's pieces.
constexpr std::size_t k_sizes[] = {
    1,           4095,      8 * k_kib - 1, 64 * k_kib, 64 * k_kib + 1,
    300 * k_kib, k_mib - 1, k_mib,         k_mib + 1,  3 * k_mib + 7};

TEST_P(source_reuse, what_is_written_right_after_is_not_copied) {
  for (const im::kind kind : kinds()) {
    for (const std::size_t nbytes : k_sizes) {
      const bytes data = noise(nbytes);
      const im::buffer there = make(nbytes + 1, kind);
      bytes scratch(nbytes);
      send(there, 1, scratch, data).wait();
      bytes got(nbytes);
      im::copy_n(std::span(got), im::at(there, 1), nbytes);
      EXPECT_TRUE(same(got, data)) << nbytes;
    }
  }
}

// More at a time than there are slots, of every size, and work of other kinds between them.
TEST_P(source_reuse, on_a_busy_queue_is_as_on_an_idle_one) {
  constexpr std::size_t k_bytes = 3 * k_mib;
  const im::buffer there = make(k_bytes, im::kind::device);
  im::fill(there, std::byte{0});
  bytes want(k_bytes);
  bytes scratch(k_bytes);
  std::mt19937 random(7);
  for (unsigned round = 0; round < 150; ++round) {
    const std::size_t most = std::size_t{1} << random() % 21;
    const std::size_t nbytes = 1 + random() % most;
    const std::size_t offset = random() % (k_bytes - nbytes);
    const auto at = want.begin() + static_cast<std::ptrdiff_t>(offset);
    if (round % 10 == 9) {
      const auto value = static_cast<std::byte>(round);
      (void)im::fill_async(im::at(there, offset), value, {.on = queue_});
      std::fill(at, want.end(), value);
      continue;
    }
    const bytes data = noise(nbytes, round);
    (void)send(there, offset, scratch, data);
    std::copy(data.begin(), data.end(), at);
  }
  EXPECT_TRUE(same(read(there), want));
}

TEST_P(source_reuse, what_comes_before_the_copy_is_waited_for) {
  for (const std::size_t nbytes : {4 * k_kib, 64 * k_kib, 5 * k_mib}) {
    bytes source = noise(nbytes, 1);
    const bytes later = noise(nbytes, 2);
    const im::buffer there = make(nbytes, im::kind::device);
    const im::host_event gate;
    std::thread other([&] {
      std::this_thread::sleep_for(3ms);
      source = later;
      gate.complete();
    });
    const im::event sent = im::copy_async(there, std::span<const std::byte>(source),
                                          {.on = queue_, .after = {gate}, .wait_for_source = true});
    EXPECT_TRUE(gate.done());
    other.join();
    std::fill(source.begin(), source.end(), std::byte{});
    sent.wait();
    EXPECT_TRUE(same(read(there), later)) << nbytes;
  }
}

TEST_P(source_reuse, behind_work_that_the_queue_holds_back) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  constexpr std::size_t k_bytes = 64 * k_kib;
  const bytes data = noise(k_bytes);
  const im::buffer there = make(k_bytes, im::kind::device);
  bytes scratch(k_bytes);
  const im::host_event gate;
  const im::event held = im::fill_async(there, std::byte{1}, {.on = queue_, .after = {gate}});
  std::thread other([&] {
    std::this_thread::sleep_for(3ms);
    gate.complete();
  });
  send(there, 0, scratch, data).wait();
  other.join();
  held.wait();
  EXPECT_TRUE(same(read(there), data));
}

// On one queue, nobody waiting for the first.
TEST_P(source_reuse, the_source_may_be_what_an_earlier_copy_writes) {
  for (const bool waits : {true, false}) {
    for (const std::size_t nbytes : k_sizes) {
      const bytes data = noise(nbytes);
      const im::buffer first = make(nbytes, im::kind::device);
      const im::buffer second = make(nbytes, im::kind::device);
      write(first, data);
      bytes between(nbytes);
      const im::event come = im::copy_async(std::span(between), first, {.on = queue_});
      const im::event gone =
          im::copy_async(second, std::span<const std::byte>(between),
                         {.on = queue_, .after = {come}, .wait_for_source = waits});
      if (!waits) gone.wait();
      std::fill(between.begin(), between.end(), std::byte{});
      EXPECT_TRUE(same(read(second), data)) << nbytes;
    }
  }
}

TEST_P(source_reuse, threads_do_it_at_once) {
  constexpr std::size_t k_each = 200 * k_kib;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 6; ++seed) {
    threads.emplace_back([&, seed] {
      const im::queue own(device_);
      const im::queue& on = seed % 2 == 0 ? own : queue_;
      const im::buffer there = make(k_each, im::kind::device);
      bytes scratch(k_each);
      for (unsigned round = 0; round < 20; ++round) {
        const bytes data = noise(k_each - seed, seed * 100 + round);
        std::copy(data.begin(), data.end(), scratch.begin());
        const im::event sent = im::copy_n_async(there, std::span<const std::byte>(scratch),
                                                data.size(), {.on = on, .wait_for_source = true});
        std::fill(scratch.begin(), scratch.end(), std::byte{});
        bytes got(data.size());
        im::copy_n(std::span(got), there, got.size(), {.on = on, .after = {sent}});
        EXPECT_TRUE(same(got, data));
      }
    });
  }
  for (auto& each : threads) each.join();
}

TEST_P(source_reuse, of_every_other_copy_too) {
  constexpr std::size_t k_bytes = 70 * k_kib;
  const bytes data = noise(k_bytes);
  const im::buffer one = make(k_bytes, im::kind::device);
  const im::buffer other = make(k_bytes, im::kind::device);
  write(one, data);
  im::event end = im::copy_async(other, one, {.on = queue_, .wait_for_source = true});
  im::fill(one, std::byte{});
  EXPECT_TRUE(same(read(other), data)) << "from a device";

  bytes back(k_bytes);
  end = im::copy_async(std::span(back), other, {.on = queue_, .wait_for_source = true});
  im::fill(other, std::byte{});
  end.wait();
  EXPECT_TRUE(same(back, data)) << "to the host";

  bytes source = data;
  bytes target(k_bytes);
  end = im::copy_async(std::span(target), std::span<const std::byte>(source),
                       {.wait_for_source = true});
  std::fill(source.begin(), source.end(), std::byte{});
  end.wait();
  EXPECT_TRUE(same(target, data)) << "on the host";

  source = data;
  end = im::copy_2d_async({one, 700}, {std::span<const std::byte>(source), 700},
                          {.width = 300, .height = 100}, {.on = queue_, .wait_for_source = true});
  std::fill(source.begin(), source.end(), std::byte{});
  end.wait();
  const bytes got = read(one);
  EXPECT_TRUE(same(std::span(got).subspan(700 * 99, 300), std::span(data).subspan(700 * 99, 300)));
  EXPECT_EQ(got[300], std::byte{}) << "between the rows";

  end = im::copy_n_async(one, std::span<const std::byte>(source), 0,
                         {.on = queue_, .wait_for_source = true});
  end.wait();
}

TEST_P(source_reuse, a_failure_before_it_is_told) {
  const im::buffer there = make(k_kib, im::kind::device);
  const bytes data = noise(k_kib);
  const im::host_event gate;
  gate.fail("it went wrong");
  EXPECT_THROW((void)im::copy_async(there, std::span(data),
                                    {.on = queue_, .after = {gate}, .wait_for_source = true})
                   .wait(),
               im::error);
}

TEST_P(source_reuse, flags_that_mean_nothing_are_refused_and_old_callers_have_none) {
  const im::buffer there = make(k_kib, im::kind::device);
  const bytes data = noise(k_kib);
  const isthmus_place_t to{there.get(), nullptr, 0};
  const isthmus_place_t from{nullptr, const_cast<std::byte*>(data.data()), 0};
  isthmus_operation_t how{};
  how.struct_size = sizeof how;
  how.flags = 0x12;
  EXPECT_TRUE(refused(isthmus_copy(nullptr, &to, &from, k_kib, &how, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"0x12", "flags"}));
  how.struct_size = offsetof(isthmus_operation_t, flags);
  EXPECT_EQ(isthmus_copy(nullptr, &to, &from, k_kib, &how, nullptr), ISTHMUS_OK);
  EXPECT_TRUE(same(read(there), data));
  --how.struct_size;
  EXPECT_TRUE(refused(isthmus_copy(nullptr, &to, &from, k_kib, &how, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"operation"}));
}

}  // namespace
