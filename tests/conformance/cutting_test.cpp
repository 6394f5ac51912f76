// SPDX-License-Identifier: Apache-2.0
// Custom resources that cut blocks out of a buffer.
#include <memory>
#include <mutex>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

class pieces_of_a_buffer : public on_backend {};
INSTANTIATE_ON_BACKENDS(pieces_of_a_buffer);

class numbers {
 public:
  void put(std::size_t number) {
    const std::lock_guard hold(lock_);
    all_.push_back(number);
  }
  std::size_t take() {
    const std::lock_guard hold(lock_);
    if (all_.empty()) throw std::bad_alloc();
    const std::size_t last = all_.back();
    all_.pop_back();
    return last;
  }
  std::size_t size() {
    const std::lock_guard hold(lock_);
    return all_.size();
  }

 private:
  std::mutex lock_;
  std::vector<std::size_t> all_;
};

// Divides one buffer into equal blocks.
struct cutting {
  im::buffer whole;
  std::size_t piece;
  std::shared_ptr<numbers> unused = std::make_shared<numbers>();

  cutting(const im::queue& on, im::kind kind, const im::resource& from, std::size_t nbytes,
          std::size_t count)
      : whole(nbytes * count, kind, {.queue = on, .resource = from}), piece(nbytes) {
    for (std::size_t i = 0; i < count; ++i) unused->put(i);
  }
  void* allocate(std::size_t nbytes, std::size_t, const im::queue&) {
    if (nbytes > piece) throw std::bad_alloc();
    return static_cast<std::byte*>(whole.pointer()) + unused->take() * piece;
  }
  void deallocate(void* pointer, std::size_t, const im::queue&) noexcept {
    const auto offset = static_cast<std::byte*>(pointer) - static_cast<std::byte*>(whole.pointer());
    unused->put(static_cast<std::size_t>(offset) / piece);
  }
};

TEST_P(pieces_of_a_buffer, are_as_memory_of_their_own) {
  constexpr std::size_t k_piece = 98'304;
  for (im::kind kind : kinds()) {
    for (const im::resource& under :
         {im::resource(), im::resource::pool(queue_.context(), kind, {}, device_)}) {
      cutting source(queue_, kind, under, k_piece, 4);
      const auto unused = source.unused;
      im::resource from = im::resource::custom(queue_.context(), kind, std::move(source), device_);
      std::vector<im::buffer> all;
      std::vector<bytes> wanted;
      for (unsigned i = 0; i < 4; ++i) {
        all.emplace_back(k_piece, kind, im::buffer_options{.queue = queue_, .resource = from});
        wanted.push_back(noise(k_piece, i));
        write(all.back(), wanted.back());
      }
      EXPECT_TRUE(throws(im::status::out_of_memory,
                         [&] { im::buffer(10, kind, {.queue = queue_, .resource = from}); }));
      for (unsigned i = 0; i < 4; ++i) EXPECT_TRUE(same(read(all[i]), wanted[i]));
      all.erase(all.begin() + 1, all.end());
      queue_.wait();
      EXPECT_TRUE(eventually([&] { return unused->size() == 3; }));
      void* bare = from.allocate(k_piece, 0, queue_);
      const bytes data = noise(k_piece, 9);
      bytes back(k_piece);
      const isthmus_endpoint_t there{nullptr, bare, 0};
      const isthmus_endpoint_t here{nullptr, const_cast<std::byte*>(data.data()), 0};
      const isthmus_endpoint_t out{nullptr, back.data(), 0};
      im::detail::check(isthmus_copy(queue_.get(), &there, &here, k_piece, nullptr, nullptr));
      im::detail::check(isthmus_copy(queue_.get(), &out, &there, k_piece, nullptr, nullptr));
      EXPECT_TRUE(same(back, data));
      EXPECT_TRUE(same(read(all[0]), wanted[0])) << "its neighbour";
      EXPECT_TRUE(throws(im::status::invalid_argument, {"inside"}, [&] {
        from.deallocate(static_cast<std::byte*>(bare) + 1, k_piece, 0, queue_);
      }));
      from.deallocate(bare, k_piece, 0, queue_);
      EXPECT_TRUE(throws(im::status::invalid_argument, {"before"},
                         [&] { from.deallocate(bare, k_piece, 0, queue_); }));
      from = {};
      EXPECT_TRUE(same(read(all[0]), wanted[0])) << "a piece keeps the whole alive";
    }
  }
}

TEST_P(pieces_of_a_buffer, are_freed_while_work_uses_other_pieces) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  constexpr std::size_t k_piece = 4096;
  const im::kind kind = kinds().front();
  cutting source(queue_, kind, {}, k_piece, 2);
  const auto unused = source.unused;
  const im::resource from =
      im::resource::custom(queue_.context(), kind, std::move(source), device_);
  const im::queue other(device_);
  im::host_event gate;
  {
    const im::buffer busy(k_piece, kind, {.queue = queue_, .resource = from});
    const im::buffer quiet(k_piece, kind, {.queue = other, .resource = from});
    (void)im::fill_async(busy, 1.0f, {.after = {gate}});
    im::fill(quiet, 1.0f);
  }
  EXPECT_TRUE(eventually([&] { return unused->size() == 1; }));
  gate.complete();
  queue_.wait();
  EXPECT_TRUE(eventually([&] { return unused->size() == 2; }));
}

}  // namespace
