// SPDX-License-Identifier: Apache-2.0
// Adaptors that select a resource by size, and the logging adaptor.
#include <unistd.h>
#include <mutex>

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class request_adaptors : public on_upstreams {};
INSTANTIATE_ON_BACKENDS(request_adaptors);

TEST_P(request_adaptors, align_large_requests) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const std::size_t most = std::min<std::uint64_t>(device_.info().max_alignment, 4096);
      const im::resource aligned = im::resource::aligned(upstream, most, 1000);
      for (std::size_t nbytes : {std::size_t{999}, std::size_t{1000}, std::size_t{100'000}}) {
        std::vector<void*> all;
        for (int i = 0; i < 5; ++i) {
          all.push_back(aligned.allocate(nbytes, 0, queue_));
          if (nbytes < 1000) continue;
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % most, 0u);
        }
        for (void* each : all) aligned.deallocate(each, nbytes, 0, queue_);
      }
      EXPECT_THROW((void)aligned.allocate(2000, 24, queue_), im::invalid_argument);
    }
    EXPECT_TRUE(throws(im::status::invalid_argument, {"0"},
                       [&] { (void)im::resource::aligned(upstreams(kind)[0], 0); }));
    EXPECT_TRUE(throws(im::status::invalid_argument, {"24"},
                       [&] { (void)im::resource::aligned(upstreams(kind)[0], 24); }));
  }
}

TEST_P(request_adaptors, choose_by_size) {
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      const im::resource small = im::resource::statistics(upstreams(kind)[0]);
      const im::resource medium = im::resource::statistics(upstreams(kind)[1]);
      const im::resource large = im::resource::statistics(upstream);
      const im::resource sorted = im::resource::binning(large, {{100, small}, {1000, medium}});
      const std::map<std::size_t, const im::resource*> goes{
          {1, &small}, {100, &small}, {101, &medium}, {1000, &medium}, {1001, &large}};
      for (const auto& [nbytes, to] : goes) {
        void* block = sorted.allocate(nbytes, 0, queue_);
        for (const im::resource* each : {&small, &medium, &large}) {
          EXPECT_EQ(im::statistics_of(*each).current_bytes, each == to ? nbytes : 0) << nbytes;
        }
        sorted.deallocate(block, nbytes, 0, queue_);
        EXPECT_THROW(sorted.deallocate(block, nbytes, 0, queue_), im::invalid_argument);
        EXPECT_EQ(im::statistics_of(*to).current_bytes, 0u);
      }
      {
        const im::buffer buffer(500, kind, {.queue = queue_, .resource = sorted});
        im::fill(buffer, static_cast<unsigned char>(1));
        EXPECT_EQ(im::statistics_of(medium).current_bytes, 500u);
      }
      EXPECT_GE(sorted.usage().held, small.usage().held);
      (void)sorted.trim();
      EXPECT_EQ(small.usage().held, 0u);
      EXPECT_TRUE(throws(im::status::invalid_argument, {"increasing size"}, [&] {
        (void)im::resource::binning(large, {{100, small}, {100, medium}});
      }));
    }
  }
  if (kinds().size() < 2) return;
  // Bins may be of different kinds: a block has the kind of its bin.
  const im::resource mixed =
      im::resource::binning(upstreams(kinds()[0])[0], {{100, upstreams(kinds()[1])[0]}});
  for (const auto& [nbytes, kind] : {std::pair{std::size_t{100}, kinds()[1]}, {101, kinds()[0]}}) {
    void* const block = mixed.allocate(nbytes, 0, queue_);
    EXPECT_EQ(im::query(block).kind, kind);
    mixed.deallocate(block, nbytes, 0, queue_);
  }
  const im::context other({device_});
  EXPECT_THROW((void)im::resource::binning(upstreams(kinds()[0])[0],
                                           {{100, im::resource::provider(other, kinds()[0])}}),
               im::wrong_context);
}

// The rows of a log.
std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    rows.emplace_back();
    std::istringstream fields(line);
    for (std::string one; std::getline(fields, one, ',');) rows.back().push_back(one);
    EXPECT_EQ(rows.back().size(), 6u) << line;
  }
  return rows;
}

std::string path_for(const char* name) {
  return testing::TempDir() + "isthmus-" + std::to_string(getpid()) + "-" + name + ".csv";
}

std::string hexadecimal(const void* pointer) {
  std::ostringstream text;
  text << pointer;
  return text.str();
}

TEST_P(request_adaptors, log_every_request) {
  const std::string path = path_for("rows");
  for (im::kind kind : kinds()) {
    for (const im::resource& upstream : upstreams(kind)) {
      im::resource logged = im::resource::log(upstream, path);
      void* first = logged.allocate(1000, 0, queue_);
      EXPECT_THROW((void)logged.allocate(std::size_t{1} << 62, 0, queue_), im::out_of_memory);
      int local = 0;
      EXPECT_THROW(logged.deallocate(&local, 10, 0, queue_), im::invalid_argument);
      EXPECT_EQ(rows_of(path).size(), 1u) << "not before it is flushed";
      im::flush_log(logged);
      EXPECT_EQ(rows_of(path).size(), 3u);
      logged.deallocate(first, 1000, 0, queue_);
      EXPECT_THROW(logged.deallocate(first, 1000, 0, queue_), im::invalid_argument);
      void* second = logged.allocate(20, 0, queue_);
      logged.deallocate(second, 20, 0, queue_);
      logged = {};
      const auto rows = rows_of(path);
      ASSERT_EQ(rows.size(), 6u);
      EXPECT_EQ(rows[0], (std::vector<std::string>{"Thread", "Time", "Action", "Pointer", "Size",
                                                   "Stream"}));
      const std::vector<std::array<std::string, 3>> wanted{
          {"allocate", hexadecimal(first), "1000"},
          {"allocate failure", "0x0", std::to_string(std::size_t{1} << 62)},
          {"free", hexadecimal(first), "1000"},
          {"allocate", hexadecimal(second), "20"},
          {"free", hexadecimal(second), "20"}};
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto& row = rows[i + 1];
        EXPECT_EQ((std::array{row[2], row[3], row[4]}), wanted[i]);
        EXPECT_EQ(row[1].size(), 15u) << row[1];
        EXPECT_EQ(row[5], rows[1][5]) << "one queue";
      }
    }
  }
  std::remove(path.c_str());
  EXPECT_TRUE(throws(im::status::invalid_argument, {"/none/there"},
                     [&] { (void)im::resource::log(upstreams(kinds()[0])[0], "/none/there"); }));
  EXPECT_THROW(im::flush_log(upstreams(kinds()[0])[0]), im::invalid_argument);
}

TEST_P(request_adaptors, log_rows_of_threads_in_order) {
  const std::string path = path_for("threads");
  const im::kind kind = kinds().front();
  constexpr int k_rounds = 3000;
  {
    const im::resource logged = im::resource::log(upstreams(kind)[0], path);
    std::mutex lock;
    std::vector<std::pair<void*, std::size_t>> between;
    const auto work = [&](unsigned seed) {
      std::mt19937 random(seed);
      for (int i = 0; i < k_rounds; ++i) {
        const std::size_t nbytes = 1 + random() % 500;
        void* mine = logged.allocate(nbytes, 0, queue_);
        std::unique_lock hold(lock);
        between.emplace_back(mine, nbytes);
        std::swap(between[random() % between.size()], between.back());
        const auto [theirs, size] = between.back();
        between.pop_back();
        hold.unlock();
        logged.deallocate(theirs, size, 0, queue_);
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i <= 3; ++i) threads.emplace_back(work, i);
    threads.emplace_back([&] {
      int local = 0;
      for (int i = 0; i < k_rounds; ++i) {
        EXPECT_THROW(logged.deallocate(&local, 10, 0, queue_), im::invalid_argument);
      }
    });
    for (std::thread& each : threads) each.join();
    for (const auto& [pointer, nbytes] : between) logged.deallocate(pointer, nbytes, 0, queue_);
  }
  const auto rows = rows_of(path);
  std::remove(path.c_str());
  ASSERT_EQ(rows.size(), 1u + 2 * 3 * k_rounds) << "none is lost";
  std::map<std::string, std::string> live;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[i];
    if (row[2] == "allocate") {
      ASSERT_TRUE(live.emplace(row[3], row[4]).second) << "before its last free, row " << i;
    } else {
      const auto found = live.find(row[3]);
      ASSERT_NE(found, live.end()) << "before its allocation, row " << i;
      EXPECT_EQ(found->second, row[4]);
      live.erase(found);
    }
  }
  EXPECT_TRUE(live.empty());
}

}  // namespace
