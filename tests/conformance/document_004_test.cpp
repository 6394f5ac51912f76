// SPDX-License-Identifier: Apache-2.0
// Every block of the document on typed arrays (oneAPI.jl's page on memory) in its order, in C++.
// The lines between two marks are shown beside the Julia in docs/typed-arrays.md. Runs on the
// default device; tests/CMakeLists.txt runs it once for each backend.
#include <gtest/gtest.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <isthmus/isthmus.hpp>
#include <isthmus/low_level.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "support/backends.hpp"
#include "support/bytes.hpp"
#include "support/launch.hpp"

namespace {

using support::launch;

// The backend of the default device, by the name that the other suites use.
std::string default_backend() {
  const char* const variable = std::getenv("ISTHMUS_DEVICE");
  const std::string filter = variable != nullptr ? variable : "";
  const std::string name = filter.substr(0, filter.find(':'));
  return name == "opencl" ? "intel" : name;
}

class document_004 : public ::testing::Test {
 protected:
  void SetUp() override try {
    device_ = isthmus::low_level::device();
  } catch (const isthmus::error& problem) {
    const std::string name = default_backend();
    if (support::required_by(name).empty() || support::is_required(name)) FAIL() << problem.what();
    GTEST_SKIP() << problem.what();
  }
  // What the pools keep counts as live, and others look for that.
  void TearDown() override {
    for (const auto kind : {isthmus::kind::device, isthmus::kind::shared, isthmus::kind::host}) {
      if (device_ && offers(kind)) isthmus::default_pool(kind).trim();
    }
  }
  bool offers(isthmus::kind which) const { return device_.offers(which); }

  isthmus::device device_;
};

std::vector<float> rand(std::size_t count) {
  std::vector<float> made(count);
  for (std::size_t at = 0; at < count; ++at) made[at] = static_cast<float>(at * 7 % 1000) / 1000;
  return made;
}

void kernel(std::span<float> a) {
  for (float& each : a) each += 1;
}
void add(std::span<float> a, std::span<float> b, std::span<float> c) {
  for (std::size_t at = 0; at < c.size(); ++at) c[at] = a[at] + b[at];
}
void twice(std::span<float> result, std::span<float> a) {
  for (std::size_t at = 0; at < a.size(); ++at) result[at] = 2 * a[at];
}
isthmus::array<float, 1> compute(const isthmus::array<float, 1>& a) {
  const auto result = isthmus::like(a);
  launch(twice, result, a);
  return result;
}
float process(const isthmus::array<float, 1>& a) {
  const auto values = isthmus::to_vector(a);
  return std::accumulate(values.begin(), values.end(), 0.0f);
}

// ## Memory Types

// ### Device Memory (Default)
TEST_F(document_004, device_memory) {
  //! [device memory]
  // Create array in device memory (default)
  auto a = isthmus::empty<float>(1000);
  assert(a.is_device());

  // Or explicitly specify
  auto b = isthmus::empty<float>(1000, isthmus::kind::device);
  //! [device memory]
  EXPECT_TRUE(a.is_device() && b.is_device());
}

// ### Shared Memory
TEST_F(document_004, shared_memory) {
  if (!offers(isthmus::kind::shared)) GTEST_SKIP() << "no shared memory";
  //! [shared memory]
  // Create array in shared memory
  auto a = isthmus::empty<float>(1000, isthmus::kind::shared);
  assert(a.is_shared());

  // Can access from CPU
  a(0) = 42.0f;                     // Automatic migration to CPU
  std::printf("%g\n", a(0).get());  // Read from CPU

  // Can use in GPU kernels
  launch(kernel, a);      // Automatic migration to GPU
  assert(a(0) == 43.0f);  // Waits for the kernel
  //! [shared memory]
  EXPECT_EQ(a(0), 43.0f);
}

// ### Host Memory
TEST_F(document_004, host_memory) {
  if (!offers(isthmus::kind::host)) GTEST_SKIP() << "no host memory";
  //! [host memory]
  // Create array in host memory
  auto a = isthmus::empty<float>(1000, isthmus::kind::host);
  assert(a.is_host());

  // Direct CPU access
  a(0) = 42.0f;

  // Can be used by GPU (but slower than device memory)
  launch(kernel, a);
  //! [host memory]
  EXPECT_EQ(a(0), 43.0f);
}

// ## Memory Allocation and Deallocation

// ### Automatic Management
//! [automatic]
std::vector<float> allocate_and_compute() {
  auto a = isthmus::to_array(rand(1000));
  auto b = isthmus::to_array(rand(1000));
  auto c = isthmus::like(a);
  launch(add, a, b, c);
  return isthmus::to_vector(c);  // Only c is copied back
  // a, b and c return to the pool here, ordered after the work that uses them
}
//! [automatic]
TEST_F(document_004, automatic_management) { EXPECT_EQ(allocate_and_compute()[1], 0.014f); }

// ### Manual Garbage Collection
TEST_F(document_004, garbage_collection) {
  //! [garbage collection]
  // Allocate large arrays
  auto a = isthmus::to_array(rand(10'000'000));
  auto b = isthmus::to_array(rand(10'000'000));

  // Clear references: the memory is free for the next array
  a = {};
  b = {};

  // Return the pool's cached memory to the driver
  isthmus::default_pool(isthmus::kind::device).trim();
  //! [garbage collection]
  EXPECT_FALSE(static_cast<bool>(a));
}

// ### Explicit Freeing
TEST_F(document_004, explicit_freeing) {
  //! [explicit freeing]
  auto a = isthmus::to_array(rand(1000));
  // ... use a ...

  // Explicitly free
  a.free();

  // a is now invalid: using it throws isthmus::closed
  try {
    isthmus::fill(a, 1.0f);
  } catch (const isthmus::closed& error) {
    std::printf("%s\n", error.what());
  }
  a.free();  // a second call does nothing
  //! [explicit freeing]
  EXPECT_THROW(isthmus::fill(a, 1.0f), isthmus::closed);
}

// ### Do-Block Pattern
TEST_F(document_004, do_block) {
  //! [do block]
  float result = isthmus::with_empty<float>(1000, [](const auto& temp) {
    // temp is automatically freed when the function ends
    isthmus::fill(temp, 1.0f);
    const auto values = isthmus::to_vector(temp);
    return std::accumulate(values.begin(), values.end(), 0.0f);
  });
  {
    isthmus::scratch scratch;  // its destructor frees everything allocated from it
    auto x = scratch.full<float>({1000}, 1.0f);
    auto y = scratch.zeros<int>({3, 4});
  }
  //! [do block]
  EXPECT_EQ(result, 1000.0f);
}

// ## Memory Pooling
TEST_F(document_004, pooling) {
  //! [pooling]
  // Allocations are pooled
  for (int i = 0; i < 100; ++i) {
    auto a = isthmus::to_array(rand(1000));
    // ... use a ...
    // Memory is returned to the pool, not freed
  }
  //! [pooling]
  const auto pool = isthmus::default_pool();
  const auto before = pool.usage().maps;
  for (int i = 0; i < 100; ++i) static_cast<void>(isthmus::to_array(rand(1000)));
  EXPECT_EQ(pool.usage().maps, before);
}

// ## Checking Memory Usage
TEST_F(document_004, memory_usage) {
  //! [memory usage]
  auto dev = isthmus::low_level::device();
  auto props = isthmus::low_level::memory_properties(dev);

  for (const auto& prop : props) {
    std::printf("Memory size: %llu GB\n", static_cast<unsigned long long>(prop.total_size >> 30));
  }
  //! [memory usage]
  EXPECT_EQ(props.size(), 1u);
}

// ## Out of Memory Errors

// ### 1. Reduce Batch Size
TEST_F(document_004, batches) {
  float total = 0;
  //! [batches]
  const auto huge_data = rand(10'000);
  // Instead of processing all at once
  auto result = process(isthmus::to_array(huge_data));

  // Process in smaller batches
  for (auto batch : isthmus::batches(huge_data, 1000)) {
    result = process(isthmus::to_array(batch));
    // Process result...
    total += result;
  }

  // Or find the size automatically: it is halved whenever memory runs out
  isthmus::batches(huge_data, [&](auto batch) { result = process(isthmus::to_array(batch)); });
  //! [batches]
  EXPECT_NEAR(total, process(isthmus::to_array(huge_data)), 1.0f);
}

// ### 2. Free Unused Arrays
TEST_F(document_004, free_unused) {
  //! [free unused]
  auto a = isthmus::to_array(rand(1'000'000));
  auto b = compute(a);

  // If 'a' is no longer needed
  a.free();

  // Continue with 'b'
  auto result = process(b);
  //! [free unused]
  EXPECT_GT(result, 900'000.0f);
}

// ### 3. Use Shared or Host Memory
TEST_F(document_004, shared_or_host_memory) {
  if (!offers(isthmus::kind::shared)) GTEST_SKIP() << "no shared memory";
  //! [shared or host memory]
  const auto huge_size = 1'000'000;
  // Instead of device memory
  auto a = isthmus::empty<float>(huge_size);

  // Use shared memory (can swap to system RAM)
  a = isthmus::empty<float>(huge_size, isthmus::kind::shared);

  // Or device memory while it lasts, then shared memory
  a = isthmus::empty<float>(huge_size, isthmus::kind::device, {.fallback = isthmus::kind::shared});
  std::printf("%s\n", isthmus::name(a.kind()).data());  // the kind that was allocated
  //! [shared or host memory]
  EXPECT_TRUE(a.is_device());
}

// ### 4. Force Garbage Collection
TEST_F(document_004, collection) {
  //! [collection]
  auto large_array = isthmus::to_array(rand(1'000'000));
  // After freeing references
  large_array = {};  // Immediately reclaims the memory
  //! [collection]
  EXPECT_FALSE(static_cast<bool>(large_array));
}

// ### 5. Use Multiple Devices
TEST_F(document_004, several_devices) {
  const auto huge_data = rand(10'000);
  std::vector<float> all;
  std::vector<isthmus::device> devices;
  for (const auto& each : isthmus::devices()) {
    if (each.offers(isthmus::kind::device)) devices.push_back(each);
  }
  ASSERT_FALSE(devices.empty());
  //! [several devices]
  // Distribute work across devices
  const auto share = (huge_data.size() + devices.size() - 1) / devices.size();
  std::vector<std::future<std::vector<float>>> results;
  for (auto partition : isthmus::batches(huge_data, share)) {
    results.push_back(std::async(std::launch::async, [partition, dev = devices[results.size()]] {
      const isthmus::queue queue(dev);
      auto a = isthmus::to_array(partition, isthmus::kind::device, {.queue = queue});
      return isthmus::to_vector(compute(a));
    }));
  }

  // Or without threads: all copies run concurrently, and so does the work
  auto parts = isthmus::scatter(huge_data, devices);
  for (const auto& part : parts) {
    if (!part.empty()) launch(kernel, part);
  }
  const std::vector<float> gathered = isthmus::gather(parts);
  //! [several devices]
  for (auto& each : results) {
    const auto part = each.get();
    all.insert(all.end(), part.begin(), part.end());
  }
  ASSERT_EQ(all.size(), huge_data.size());
  EXPECT_EQ(all[7777], 2 * huge_data[7777]);
  EXPECT_EQ(gathered[7777], huge_data[7777] + 1);
  parts.clear();
  for (const auto& each : devices) {
    isthmus::default_pool(isthmus::kind::device, isthmus::queue::of(each)).trim();
  }
}

// ## Low-Level Memory Operations
// The block frees what it copied to: its memory is read right before that.
namespace read_when_freed {

using namespace isthmus::low_level;

std::vector<float> seen;

void free(const isthmus::context& ctx, void* pointer) {
  seen.resize(256);
  unsafe_copyto<float>(ctx, device(), seen.data(), pointer, seen.size()).wait();
  isthmus::low_level::free(ctx, pointer);
}

}  // namespace read_when_freed
TEST_F(document_004, low_level_operations) {
  namespace low_level = read_when_freed;
  //! [low level]
  auto ctx = low_level::context();
  auto dev = low_level::device();

  // Allocate device memory
  void* ptr = low_level::device_alloc(ctx, dev, 1024, 8);  // 1024 bytes, 8-byte aligned

  // Copy data
  const auto data = rand(256);
  const auto copied = low_level::unsafe_copyto<float>(ctx, dev, ptr, data.data(), 256);
  copied.wait();  // data must live until then

  // Free memory
  low_level::free(ctx, ptr);
  //! [low level]
  EXPECT_EQ(low_level::properties(ptr).state == isthmus::memory_state::live, false);
  EXPECT_EQ(low_level::seen, data);
}

// ## Memory Advise and Prefetch
TEST_F(document_004, advise_and_prefetch) {
  namespace low_level = isthmus::low_level;
  if (!offers(isthmus::kind::shared)) GTEST_SKIP() << "no shared memory";
  const bool can_prefetch = device_.can(isthmus::capability::prefetch);
  const auto blocks = [&] {
    //! [advise and prefetch]
    auto a = isthmus::empty<float>(1000, isthmus::kind::shared);

    // Advise that this will be read-only on the device
    try {
      isthmus::advise(a.bytes(), isthmus::advice::read_mostly);
    } catch (const isthmus::unsupported& error) {
      std::printf("%s\n", error.what());  // the driver lacks this advice
    }

    // Prefetch to device
    auto ctx = low_level::context();
    auto dev = low_level::device();
    auto queue = low_level::global_queue(ctx, dev);

    auto moved = low_level::execute(
        queue, [&](auto& list) { list.append_prefetch(a.pointer(), a.nbytes()); });
    //! [advise and prefetch]
    moved.wait();
  };
  if (can_prefetch) {
    blocks();
  } else {
    EXPECT_THROW(blocks(), isthmus::unsupported);
  }
}

// ## Example: Efficient Memory Usage
//! [efficient pipeline]
void process_kernel(std::span<float> result, std::span<float> input) {
  for (std::size_t i = 0; i < input.size(); ++i) result[i] = 0.5f * input[i];
}

template <class Batches>
std::vector<float> efficient_pipeline(const Batches& data_batches) {
  // Allocate output buffer once
  auto result = isthmus::empty<float>(1000);
  std::vector<float> results;

  for (auto batch : data_batches) {
    // Reuse input buffer: the pool returns the previous batch's memory
    auto input = isthmus::to_array(batch);

    // Compute in-place when possible
    launch(process_kernel, result, input);

    // Copy result back
    auto values = isthmus::to_vector(result);
    results.insert(results.end(), values.begin(), values.end());

    // input is freed when the loop continues
  }
  return results;
}
//! [efficient pipeline]
TEST_F(document_004, efficient_memory_usage) {
  const auto data = rand(20'000);
  const auto results = efficient_pipeline(isthmus::batches(data, 1000));
  ASSERT_EQ(results.size(), data.size());
  for (std::size_t at = 0; at < data.size(); ++at) ASSERT_EQ(results[at], 0.5f * data[at]);
}

}  // namespace
