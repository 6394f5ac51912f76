// SPDX-License-Identifier: Apache-2.0
// Whether operations are pending on a buffer, queried without blocking: by a call, and by flags in
// memory.
#include <algorithm>
#include <array>

#include "support/backends.hpp"
#include "support/eventually.hpp"

namespace {

using namespace support;

class idle : public on_backend {
 protected:
  static bool tells(const im::buffer& of) { return isthmus_buffer_idle(of.get()) != 0; }
  // Checks the flags that `isthmus_buffer_watch` returns: all 0 means idle.
  static bool looks(const im::buffer& of) {
    std::array<const unsigned char*, ISTHMUS_WATCHED> flags{};
    EXPECT_EQ(isthmus_buffer_watch(of.get(), flags.data(), flags.size()), flags.size());
    return std::ranges::all_of(flags, [](const unsigned char* flag) {
      return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0;
    });
  }
};
INSTANTIATE_ON_BACKENDS(idle);

TEST_P(idle, until_something_is_pending) {
  for (const im::kind kind : kinds()) {
    const im::buffer memory = make(1000, kind);
    const im::buffer part = memory.slice(100, 50);
    EXPECT_TRUE(tells(memory) && tells(part) && looks(memory) && looks(part));
    if (!can(im::capability::wait_for_host)) continue;
    const im::host_event gate;
    const im::event filled = im::fill_async(part, std::byte{1}, {.queue = queue_, .after = gate});
    EXPECT_FALSE(tells(memory) || tells(part) || looks(memory) || looks(part));
    gate.complete();
    filled.wait();
    EXPECT_TRUE(eventually([&] { return tells(memory); })) << name(kind);
    EXPECT_TRUE(looks(memory) && looks(part)) << "the call sees to the flags";
  }
}

TEST_P(idle, and_never_once_it_is_freed) {
  for (const im::kind kind : kinds()) {
    const im::buffer memory = make(1000, kind);
    const im::buffer part = memory.slice(100, 50), other = memory.slice(0, 10);
    part.free();
    EXPECT_FALSE(tells(part) || looks(part));
    EXPECT_TRUE(tells(memory) && looks(memory) && looks(other));
    memory.free();
    EXPECT_FALSE(tells(memory) || looks(memory) || tells(other) || looks(other));
  }
  EXPECT_EQ(isthmus_buffer_idle(nullptr), 0);
  const unsigned char* flag = nullptr;
  EXPECT_EQ(isthmus_buffer_watch(nullptr, &flag, 1), 1U);
  EXPECT_EQ(*flag, 1);
  const im::buffer nothing = make(0, im::kind::device);
  EXPECT_TRUE(tells(nothing) && looks(nothing));
}

// A caller built against a library with fewer flags passes a smaller array.
TEST_P(idle, never_reported_beyond_the_callers_array) {
  const im::buffer memory = make(1000, im::kind::device);
  std::array<const unsigned char*, 2> flags{};
  EXPECT_EQ(isthmus_buffer_watch(memory.get(), flags.data(), 1), 1U);
  EXPECT_EQ(*flags[0], 1);
  EXPECT_EQ(flags[1], nullptr);
  EXPECT_EQ(isthmus_buffer_watch(memory.get(), flags.data(), 0), 0U);
  EXPECT_EQ(isthmus_buffer_watch(memory.get(), nullptr, 5), 0U);
}

TEST_P(idle, not_with_possible_external_work) {
  const im::buffer memory = make(1000, im::kind::device);
  const im::queue other(device_);
  {
    const im::buffer view = memory.on_queue(other);
    EXPECT_FALSE(looks(memory)) << "a view may put work on its queue";
    EXPECT_TRUE(tells(memory)) << "which has none";
  }
  EXPECT_TRUE(eventually([&] { return tells(memory) && looks(memory); }));
  if (!can(im::capability::export_handles)) return;
  static_cast<void>(queue_.export_native());
  EXPECT_FALSE(tells(memory) || looks(memory));
}

}  // namespace
