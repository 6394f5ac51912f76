// SPDX-License-Identifier: Apache-2.0
// Device memory shared by two processes: this one and a child that runs the same program.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

constexpr const char* k_handle = "ISTHMUS_TEST_IPC_HANDLE";

std::string as_text(const im::ipc_handle& handle) {
  std::string text(2 * sizeof handle, '0');
  const auto* const raw = reinterpret_cast<const unsigned char*>(&handle);
  for (std::size_t at = 0; at < sizeof handle; ++at) {
    text[2 * at] = "0123456789abcdef"[raw[at] / 16];
    text[2 * at + 1] = "0123456789abcdef"[raw[at] % 16];
  }
  return text;
}

im::ipc_handle of_text(const char* text) {
  im::ipc_handle handle;
  auto* const raw = reinterpret_cast<unsigned char*>(&handle);
  for (std::size_t at = 0; at < sizeof handle; ++at) {
    std::from_chars(text + 2 * at, text + 2 * at + 2, raw[at], 16);
  }
  return handle;
}

// Runs one test of this program in a new process. Returns whether it passed.
bool passes_elsewhere(const char* test, const im::ipc_handle& handle) {
  std::string program = "conformance";
  std::string filter = std::string("--gtest_filter=") + test;
  std::string disabled = "--gtest_also_run_disabled_tests";
  std::array<char*, 4> arguments{program.data(), filter.data(), disabled.data(), nullptr};
  setenv(k_handle, as_text(handle).c_str(), 1);
  for (const char* share : {"GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"}) {
    unsetenv(share);  // sharding might exclude the one test
  }
  pid_t child = 0;
  const bool started =
      posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ) == 0;
  unsetenv(k_handle);
  int status = -1;
  return started && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

class ipc : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && !can(im::capability::ipc)) {
      GTEST_SKIP() << "shares no memory";
    }
  }
  // Another process opens the memory and increments what it finds.
  static bool counts_up_elsewhere(const im::ipc_handle& handle) {
    return passes_elsewhere("backends/ipc_elsewhere.DISABLED_counts_up/cuda", handle);
  }
  void is_shared(const im::buffer& whole, std::size_t offset, std::size_t nbytes) const {
    bytes wanted = noise(whole.size(), 3);
    im::copy(whole, std::span<const std::byte>(wanted));
    const auto handle = im::ipc_handle::of(whole.slice(offset, nbytes));
    EXPECT_EQ(handle.nbytes, nbytes);
    ASSERT_TRUE(counts_up_elsewhere(handle));
    for (std::size_t at = offset; at < offset + nbytes; ++at) {
      wanted[at] = static_cast<std::byte>(static_cast<unsigned>(wanted[at]) + 1);
    }
    bytes found(whole.size());
    im::copy(std::span(found), whole);
    EXPECT_EQ(found, wanted);
  }
};
INSTANTIATE_ON_BACKENDS(ipc);

class ipc_elsewhere : public on_backend {
 protected:
  void SetUp() override {
    on_backend::SetUp();
    if (!IsSkipped() && std::getenv(k_handle) == nullptr) GTEST_SKIP() << "has no handle";
  }
  [[nodiscard]] static im::ipc_handle handle() { return of_text(std::getenv(k_handle)); }
};
INSTANTIATE_ON_BACKENDS(ipc_elsewhere);

TEST_P(ipc_elsewhere, DISABLED_counts_up) {
  const im::buffer there = handle().open(queue_);
  EXPECT_EQ(there.size(), handle().nbytes);
  EXPECT_EQ(there.kind(), im::kind::device);
  bytes found(there.size());
  im::copy(std::span(found), there);
  for (auto& each : found) each = static_cast<std::byte>(static_cast<unsigned>(each) + 1);
  im::copy(there, std::span<const std::byte>(found));
  EXPECT_THROW(static_cast<void>(im::ipc_handle::of(there)), im::unsupported) << "not its own";
}

// Opens the same memory twice. Uses through both buffers are ordered, and the last one to go closes
// it.
TEST_P(ipc_elsewhere, DISABLED_opens_it_again) {
  const im::queue other(device_);
  const im::buffer first = handle().open(queue_);
  auto part = handle();
  part.offset += 16;
  part.nbytes -= 16;
  im::buffer second = part.open(other);
  const bytes data = noise(first.size(), 9);
  for (int round = 0; round < 50; ++round) {
    auto filled = im::fill_async(first, std::byte{1});
    auto again = im::fill_async(second, static_cast<std::byte>(round));
    bytes found(second.size());
    im::copy(std::span(found), first.slice(16, second.size()), {.queue = queue_});
    ASSERT_EQ(found, bytes(second.size(), static_cast<std::byte>(round)));
  }
  second.free();
  im::copy(first, std::span<const std::byte>(data));
  first.free();
  const im::buffer third = handle().open(queue_);
  bytes found(third.size());
  im::copy(std::span(found), third);
  EXPECT_EQ(found, data);
}

TEST_P(ipc_elsewhere, DISABLED_refuses_what_is_not_there) {
  auto beyond = handle();
  beyond.nbytes = std::uint64_t{1} << 40;
  EXPECT_THROW(static_cast<void>(beyond.open(queue_)), im::out_of_range);
  beyond = handle();
  beyond.offset = UINT64_MAX - 4;
  EXPECT_THROW(static_cast<void>(beyond.open(queue_)), im::out_of_range);
  beyond = handle();
  beyond.nbytes = 0;
  EXPECT_THROW(static_cast<void>(beyond.open(queue_)), im::invalid_argument);
  EXPECT_EQ(handle().open(queue_).size(), handle().nbytes) << "all were closed";
}

TEST_P(ipc, is_memory_of_two_processes) {
  const im::buffer whole = make(1 << 20, im::kind::device);
  is_shared(whole, 0, 1 << 20);
  is_shared(whole, 4096, 100);
  is_shared(make(100, im::kind::device), 0, 100);
  is_shared(make(100, im::kind::device), 10, 1);
}

TEST_P(ipc, shares_what_a_pool_has_that_does_not_remap) {
  const auto pool =
      im::resource::pool(queue_.context(), im::kind::device, im::pool_options{.remap = false});
  for (const std::size_t nbytes : {100U, 5000U, 1U << 20}) {
    const im::buffer before(nbytes, im::kind::device, {.queue = queue_, .resource = pool});
    const im::buffer whole(nbytes, im::kind::device, {.queue = queue_, .resource = pool});
    is_shared(whole, 0, nbytes);
    is_shared(whole, nbytes / 2, nbytes / 3);
  }
}

TEST_P(ipc, reports_which_pool_to_use_for_memory_that_can_move) {
  if (!can(im::capability::remap)) GTEST_SKIP() << "no memory moves";
  const auto pool = im::resource::pool(queue_.context(), im::kind::device);
  const im::buffer moves(4096, im::kind::device, {.queue = queue_, .resource = pool});
  try {
    static_cast<void>(im::ipc_handle::of(moves));
    FAIL() << "it cannot be shared";
  } catch (const im::unsupported& told) {
    EXPECT_TRUE(contains(told.what(), "remap=False")) << told.what();
    EXPECT_TRUE(contains(told.what(), "can move")) << told.what();
  }
}

TEST_P(ipc, shares_no_other_kind) {
  for (const im::kind one : kinds()) {
    if (one != im::kind::device) {
      EXPECT_THROW(static_cast<void>(im::ipc_handle::of(make(4096, one))), im::unsupported);
    }
  }
}

TEST_P(ipc, waits_for_what_is_pending) {
  constexpr std::size_t k_large = std::size_t{16} << 20;
  const im::buffer whole = make(k_large, im::kind::device);
  im::event last;
  for (int value = 0; value < 20; ++value) {
    last = im::fill_async(whole, static_cast<std::byte>(value));
  }
  static_cast<void>(im::ipc_handle::of(whole));
  EXPECT_TRUE(last.done());
}

TEST_P(ipc, opens_no_handle_of_its_own) {
  const im::buffer whole = make(4096, im::kind::device);
  const auto handle = im::ipc_handle::of(whole);
  try {
    static_cast<void>(handle.open(queue_));
    FAIL() << "it is here already";
  } catch (const im::invalid_argument& told) {
    EXPECT_TRUE(contains(told.what(), "process that created it")) << told.what();
  }
  EXPECT_TRUE(queue_.fence().wait_for(30s)) << "the device is not lost for it";
}

TEST_P(ipc, opens_no_handle_that_is_none) {
  im::ipc_handle none;
  none.nbytes = 4096;
  EXPECT_THROW(static_cast<void>(none.open(queue_)), im::invalid_argument);
  none.handle.fill(0x5A);
  EXPECT_THROW(static_cast<void>(none.open(queue_)), im::invalid_argument);
}

TEST_P(ipc, refuses_buffers_without_memory) {
  EXPECT_THROW(static_cast<void>(im::ipc_handle::of(make(0, im::kind::device))),
               im::invalid_argument);
  const im::buffer gone = make(4096, im::kind::device);
  gone.free();
  EXPECT_THROW(static_cast<void>(im::ipc_handle::of(gone)), im::closed);
}

TEST_P(ipc, may_be_opened_several_times) {
  const im::buffer whole = make(1 << 16, im::kind::device);
  const auto handle = im::ipc_handle::of(whole.slice(100, 1 << 15));
  EXPECT_TRUE(passes_elsewhere("backends/ipc_elsewhere.DISABLED_opens_it_again/cuda", handle));
  EXPECT_TRUE(
      passes_elsewhere("backends/ipc_elsewhere.DISABLED_refuses_what_is_not_there/cuda", handle));
}

class no_ipc : public on_backend {};
INSTANTIATE_ON_BACKENDS(no_ipc);

TEST_P(no_ipc, is_reported_where_a_device_cannot) {
  if (can(im::capability::ipc)) GTEST_SKIP() << "it can";
  const im::kind one = kinds().front();
  im::ipc_handle handle;
  handle.nbytes = 1;
  EXPECT_THROW(static_cast<void>(im::ipc_handle::of(make(4096, one))), im::unsupported);
  EXPECT_THROW(static_cast<void>(handle.open(queue_)), im::unsupported);
}

}  // namespace
