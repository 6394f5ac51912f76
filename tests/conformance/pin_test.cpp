// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the caller: copies of it are correct and in order, whatever part of it is
// pinned, and it is unregistered when the last pin has ended and no copy of it is in flight.
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

constexpr std::size_t k_page = 4096;

// Whole pages, so that tests do not share pages.
class pages {
 public:
  explicit pages(std::size_t nbytes, unsigned seed = 1)
      : nbytes_(nbytes),
        start_(mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    fill(noise(nbytes, seed));
  }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  ~pages() { munmap(start_, nbytes_); }

  void fill(const bytes& with) const { std::copy(with.begin(), with.end(), span().begin()); }
  void protect() const { ASSERT_EQ(mprotect(start_, nbytes_, PROT_READ), 0); }
  [[nodiscard]] std::span<std::byte> span() const {
    return {static_cast<std::byte*>(start_), nbytes_};
  }
  [[nodiscard]] std::span<std::byte> part(std::size_t offset, std::size_t nbytes) const {
    return span().subspan(offset, nbytes);
  }

 private:
  std::size_t nbytes_;
  void* start_;
};

class pinning : public on_backend {
 protected:
  [[nodiscard]] im::pin pin(std::span<std::byte> memory) const { return im::pin(memory, device_); }
  // Whether this driver registers memory at all.
  [[nodiscard]] bool registers() const {
    const pages some(k_page);
    return pin(some.span()).is_registered();
  }
  [[nodiscard]] bool driver_knows(const void* pointer) const {
    return im::query(pointer, queue_.context()).kind == im::kind::host;
  }
  void goes_there_and_back(const pages& memory) const {
    const bytes data = noise(memory.span().size(), 7);
    memory.fill(data);
    const im::buffer there = make(data.size(), im::kind::device);
    im::copy(there, memory.span());
    memory.fill(bytes(data.size()));
    im::copy(memory.span(), there);
    EXPECT_TRUE(same(memory.span(), data));
    memory.fill(data);
    im::copy_async(there, memory.span(), {.queue = queue_}).wait();
    memory.fill(bytes(data.size()));
    im::copy_async(memory.span(), there, {.queue = queue_}).wait();
    EXPECT_TRUE(same(memory.span(), data));
  }
};
INSTANTIATE_ON_BACKENDS(pinning);

TEST_P(pinning, copies_are_right_whatever_part_is_pinned) {
  for (const std::size_t nbytes : {8 * k_page, 3 * k_mib + 4 * k_page}) {
    const pages memory(nbytes);
    const std::size_t half = nbytes / 2 / k_page * k_page;
    for (const auto& [offset, size] :
         {std::pair{std::size_t{0}, nbytes}, std::pair{std::size_t{0}, half},
          std::pair{half, nbytes - half}, std::pair{half - 100, std::size_t{200}}}) {
      const im::pin some = pin(memory.part(offset, size));
      EXPECT_EQ(some.size(), size);
      goes_there_and_back(memory);
    }
    goes_there_and_back(memory);
  }
}

TEST_P(pinning, rows_of_it_too) {
  constexpr std::size_t k_width = 1000, k_height = 3000, k_pitch = 1100;
  const pages memory(k_pitch * k_height);
  bytes want(k_width * k_height);
  for (std::size_t row = 0; row < k_height; ++row) {
    std::copy_n(memory.span().data() + row * k_pitch, k_width, want.data() + row * k_width);
  }
  const isthmus_endpoint_t host{nullptr, memory.span().data(), 0};
  for (const std::size_t height : {std::size_t{100}, k_height}) {
    for (const std::size_t pinned : {k_pitch * k_height, 50 * k_pitch + 7}) {
      const im::pin some = pin(memory.part(0, pinned));
      const im::buffer there = make(k_width * height, im::kind::device);
      const isthmus_endpoint_t device{there.get(), nullptr, 0};
      im::detail::check(isthmus_copy_2d(nullptr, &device, k_width, &host, k_pitch, k_width, height,
                                        nullptr, nullptr));
      EXPECT_TRUE(same(read(there), std::span(want).first(k_width * height)));
    }
  }
}

TEST_P(pinning, overlapping_pins_are_shared_and_the_last_one_unregisters) {
  const pages memory(64 * k_page);
  const auto* const middle = memory.span().data() + 20 * k_page;
  const bool knew = driver_knows(middle);
  im::pin first = pin(memory.part(10 * k_page, 20 * k_page));
  im::pin inner = pin(memory.part(15 * k_page + 5, 10));
  im::pin larger = pin(memory.part(k_page, 40 * k_page));
  im::pin beside = pin(memory.part(41 * k_page, 3 * k_page));
  EXPECT_EQ(driver_knows(middle), knew || registers());
  first.release();
  inner.release();
  goes_there_and_back(memory);
  EXPECT_EQ(driver_knows(middle), knew || registers());
  larger.release();
  EXPECT_EQ(driver_knows(middle), knew) << "the last pin was its end";
  EXPECT_EQ(driver_knows(memory.span().data() + 42 * k_page), knew || registers());
  beside.release();
  beside.release();
  goes_there_and_back(memory);
}

TEST_P(pinning, of_shared_pages) {
  const pages memory(4 * k_page);
  im::pin left = pin(memory.part(100, 50));
  const im::pin right = pin(memory.part(200, 2 * k_page));
  left.release();
  goes_there_and_back(memory);
}

TEST_P(pinning, memory_that_the_driver_has_already_needs_nothing) {
  for (const im::kind kind : kinds()) {
    const im::buffer own = make(10 * k_page, kind);
    if (kind == im::kind::device) {
      EXPECT_TRUE(throws(im::status::invalid_argument, {"device memory", "40 KiB"}, [&] {
        (void)im::pin(std::span(static_cast<std::byte*>(own.pointer()), own.size()), device_);
      }));
    } else {
      const im::host_view<> view = own.host();
      EXPECT_FALSE(pin(view.span().subspan(5, 100)).is_registered());
    }
  }
}

TEST_P(pinning, reports_what_is_wrong) {
  EXPECT_EQ(im::pin(std::span<std::byte>(), device_).size(), 0u);
  isthmus_pin_t* made = nullptr;
  EXPECT_TRUE(refused(isthmus_pin_add(device_.get(), nullptr, 5, 0, {}, &made),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {"NULL", "5 bytes"}));
  const pages memory(k_page);
  EXPECT_TRUE(
      refused(isthmus_pin_add(device_.get(), memory.span().data(), SIZE_MAX - 10, 0, {}, &made),
              ISTHMUS_ERROR_OUT_OF_RANGE, {"address space"}));
  EXPECT_EQ(made, nullptr);
  EXPECT_FALSE(driver_knows(memory.span().data()) && registers());
}

// If memory cannot be pinned as a whole, no part of it may stay registered.
TEST_P(pinning, all_or_nothing) {
  if (!registers()) GTEST_SKIP() << "nothing is registered";
  const pages memory(16 * k_page);
  ASSERT_EQ(munmap(memory.span().data() + 8 * k_page, k_page), 0);
  const im::pin one = pin(memory.part(2 * k_page, k_page));
  EXPECT_TRUE(throws(im::status::invalid_argument, {"did not register"},
                     [&] { (void)pin(memory.span()); }));
  EXPECT_FALSE(driver_knows(memory.span().data()));
  EXPECT_FALSE(driver_knows(memory.span().data() + 3 * k_page));
  EXPECT_TRUE(driver_knows(memory.span().data() + 2 * k_page)) << "another's";
}

TEST_P(pinning, what_the_process_may_not_write_is_read) {
  const pages memory(2 * k_mib);
  const bytes data(memory.span().begin(), memory.span().end());
  memory.protect();
  if (registers()) {
    EXPECT_TRUE(
        throws(im::status::invalid_argument, {"read-only"}, [&] { (void)pin(memory.span()); }));
  }
  im::pin constant;
  try {
    constant = im::pin(std::span<const std::byte>(memory.span()), device_);
  } catch (const im::unsupported&) {
    GTEST_SKIP() << "not on this device";
  }
  EXPECT_EQ(constant.is_registered(), registers());
  const im::buffer there = make(data.size(), im::kind::device);
  im::copy_async(there, std::span<const std::byte>(memory.span()), {.queue = queue_}).wait();
  EXPECT_TRUE(same(read(there), data));
}

TEST_P(pinning, the_end_waits_for_pending_copies) {
  if (!registers() || !can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing to wait for";
  const pages memory(k_mib);
  const bytes data(memory.span().begin(), memory.span().end());
  const im::buffer there = make(data.size(), im::kind::device);
  const im::host_event gate;
  im::pin whole = pin(memory.span());
  const im::event end = im::copy_async(there, memory.span(), {.queue = queue_, .after = {gate}});
  EXPECT_TRUE(
      refused(isthmus_pin_wait(whole.get(), 0), ISTHMUS_ERROR_TIMEOUT, {"timeout expired"}));
  std::thread opener([&] { gate.complete(); });
  whole.release();
  EXPECT_TRUE(end.done());
  opener.join();
  EXPECT_FALSE(driver_knows(memory.span().data()));
  EXPECT_TRUE(same(read(there), data));
}

// A pin that was removed while a copy of its memory was pending.
struct dropped_in_flight {
  dropped_in_flight(const im::device& device, const im::queue& queue)
      : there(memory.span().size(), im::kind::device, {.queue = queue}) {
    isthmus_pin_t* raw = nullptr;
    im::detail::check(isthmus_pin_add(
        device.get(), memory.span().data(), memory.span().size(), 0,
        {&kept, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->store(false); }}, &raw));
    end = im::copy_async(there, memory.span(), {.queue = queue, .after = {gate}});
    isthmus_pin_remove(raw, 0);
    EXPECT_TRUE(kept);
  }

  const pages memory{k_mib};
  std::atomic<bool> kept{true};
  const im::buffer there;
  const im::host_event gate;
  im::event end;
};

TEST_P(pinning, dropped_while_a_copy_is_pending_it_is_unregistered_later) {
  if (!registers() || !can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing to wait for";
  const dropped_in_flight now(device_, queue_);
  EXPECT_TRUE(driver_knows(now.memory.span().data()));
  const im::pin again = pin(now.memory.part(0, k_page));  // before the copy has completed
  EXPECT_TRUE(again.is_registered());
  now.gate.complete();
  now.end.wait();
  EXPECT_TRUE(driver_knows(now.memory.span().data()));
  EXPECT_TRUE(eventually([&] { return isthmus_pin_wait(again.get(), 0) == ISTHMUS_OK; }));
}

TEST_P(pinning, the_owner_is_released_after_unregistration) {
  if (!registers() || !can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing to wait for";
  const dropped_in_flight now(device_, queue_);
  now.gate.complete();
  now.end.wait();
  EXPECT_TRUE(eventually([&] { return !now.kept; }));
  EXPECT_FALSE(driver_knows(now.memory.span().data()));
}

TEST_P(pinning, the_owner_is_released_whatever_comes) {
  for (void* pointer : {static_cast<void*>(nullptr), static_cast<void*>(this)}) {
    bool kept = true;
    isthmus_pin_t* raw = nullptr;
    const isthmus_status_t outcome =
        isthmus_pin_add(device_.get(), pointer, 8, 0,
                        {&kept, [](void* flag) { *static_cast<bool*>(flag) = false; }}, &raw);
    EXPECT_EQ(kept, outcome == ISTHMUS_OK);
    isthmus_pin_remove(raw, 1);
    EXPECT_FALSE(kept);
  }
}

TEST_P(pinning, threads_pin_and_copy_at_once) {
  const pages memory(64 * k_page);
  const bytes data(memory.span().begin(), memory.span().end());
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      const im::buffer there = make(data.size(), im::kind::device);
      for (int round = 0; round < 30; ++round) {
        const std::size_t first = random() % 60;
        const auto part = memory.part(first * k_page, (1 + random() % (64 - first)) * k_page);
        const im::pin mine = pin(part);
        im::copy_bytes(im::at(there, first * k_page), part, part.size());
        bytes back(part.size());
        im::copy_bytes(std::span(back), im::at(there, first * k_page), part.size());
        EXPECT_TRUE(same(back, part));
      }
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_TRUE(same(memory.span(), data));
}

class write_combined : public on_backend {};
INSTANTIATE_ON_BACKENDS(write_combined);

TEST_P(write_combined, is_host_memory_or_refused) {
  const im::context home = queue_.context();
  if (!can(im::capability::write_combine)) {
    EXPECT_TRUE(throws(im::status::unsupported, {"host memory"},
                       [&] { (void)im::resource::write_combined(home, device_); }));
    return;
  }
  const im::resource memory = im::resource::write_combined(home, device_);
  const bytes data = noise(3 * k_mib);
  for (const im::resource& from : {memory, im::resource::pool(memory)}) {
    const im::buffer host(data.size(), im::kind::host, {.queue = queue_, .resource = from});
    std::copy(data.begin(), data.end(), host.host().begin());
    const im::buffer there = make(data.size(), im::kind::device);
    im::copy_async(there, host, {.queue = queue_}).wait();
    EXPECT_TRUE(same(read(there), data));
  }
  EXPECT_EQ(memory.usage().held, 0u);
}

}  // namespace
