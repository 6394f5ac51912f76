// SPDX-License-Identifier: Apache-2.0
#pragma once
// A simulated device with its default context and queue, and shorthands to use them.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backend/queue.hpp"
#include "backend/simulation.hpp"

namespace isthmus::sim_test {

template <class T>
T expect_value(Result<T> from) {
  EXPECT_TRUE(from) << (from ? "" : from.failure().message());
  if (!from) {
    std::abort();
  }
  return *std::move(from);
}

template <class T>
void expect_failure(const Result<T>& from, Status code, const std::string& part = "") {
  ASSERT_FALSE(from);
  EXPECT_EQ(from.failure().code(), code) << from.failure().message();
  EXPECT_NE(std::string{from.failure().message()}.find(part), std::string::npos)
      << from.failure().message();
}

inline std::vector<unsigned char> counted(std::size_t nbytes, unsigned first = 0) {
  std::vector<unsigned char> bytes(nbytes);
  for (std::size_t at = 0; at < nbytes; ++at) {
    bytes[at] = static_cast<unsigned char>(first + at * 7);
  }
  return bytes;
}

struct rig {
  explicit rig(const std::string& options = "")
      : test_device{expect_value(create_simulated_device(options))},
        test_context{expect_value(test_device->platform().default_context())},
        queue{expect_value(Platform::default_queue(*test_device))} {}
  ~rig() {
    if (test_device) {
      EXPECT_EQ(calls("violation"), allowed_violations);
    }
  }
  rig(const rig&) = delete;
  rig& operator=(const rig&) = delete;

  unsigned char* make(std::size_t nbytes, UsmKind kind = ISTHMUS_KIND_DEVICE) {
    return static_cast<unsigned char*>(
        expect_value(test_context->allocate(*test_device, {kind, nbytes, 0})));
  }
  void free(void* pointer, std::size_t nbytes, UsmKind kind = ISTHMUS_KIND_DEVICE) {
    test_context->deallocate(pointer, kind, nbytes);
  }
  Ref<Event> copy(void* to, const void* from, std::size_t nbytes,
                  std::vector<Ref<Event>> after = {}) {
    return expect_value(queue->copy(to, from, nbytes, after));
  }
  // Reads memory once all operations of the queue have ended.
  std::vector<unsigned char> read(const void* from, std::size_t nbytes) {
    std::vector<unsigned char> bytes(nbytes);
    auto read = copy(bytes.data(), from, nbytes)->wait({});
    EXPECT_TRUE(read) << read.failure().message();
    return bytes;
  }
  void configure(const std::string& options) {
    auto done = configure_simulated_device(*test_device, options);
    EXPECT_TRUE(done) << done.failure().message();
  }
  [[nodiscard]] std::uint64_t calls(const std::string& kind) const {
    return expect_value(simulated_calls(*test_device, kind));
  }
  [[nodiscard]] std::uint64_t clock() const {
    return expect_value(state_of_simulated_device(*test_device)).clock_ns;
  }

  Ref<Device> test_device;
  Ref<Context> test_context;
  Ref<Queue> queue;
  std::uint64_t allowed_violations = 0;
};

}  // namespace isthmus::sim_test
