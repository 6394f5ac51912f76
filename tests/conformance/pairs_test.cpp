// SPDX-License-Identifier: Apache-2.0
// Copies between every two backends of this machine, and between contexts of one backend.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

std::vector<im::kind> kinds_of(const im::device& device) {
  std::vector<im::kind> result;
  for (im::kind one : {im::kind::device, im::kind::shared, im::kind::host}) {
    if (device.offers(one)) result.push_back(one);
  }
  return result;
}

void expect_moves(const im::queue& from, im::kind source, const im::queue& to, im::kind target) {
  for (std::size_t nbytes : {std::size_t{100}, (std::size_t{1} << 20) + 3}) {
    const bytes data = noise(nbytes);
    const im::buffer a(nbytes, source, {.queue = from});
    const im::buffer b(nbytes, target, {.queue = to});
    write(a, data);
    im::copy(b, a);
    EXPECT_TRUE(same(read(b), data)) << name(source) << " to " << name(target);
    im::fill(b, std::byte{0});
    const im::event filled = im::fill_async(a, std::byte{7});
    im::copy_bytes_async(im::at(b, 10), im::at(a, 5), 80, {.after = filled}).wait();
    bytes want(nbytes);
    std::fill_n(want.begin() + 10, 80, std::byte{7});
    EXPECT_TRUE(same(read(b), want)) << name(source) << " to " << name(target) << " later";
  }
}

void expect_all_kinds_move(const im::queue& from, const im::queue& to) {
  for (im::kind source : kinds_of(from.device())) {
    for (im::kind target : kinds_of(to.device())) expect_moves(from, source, to, target);
  }
}

using pair_of_names = std::tuple<std::string, std::string>;
std::string pair_label(const ::testing::TestParamInfo<pair_of_names>& instance) {
  return std::get<0>(instance.param) + "_to_" + std::get<1>(instance.param);
}

class pairs : public leak_checked, public ::testing::WithParamInterface<pair_of_names> {};
INSTANTIATE_TEST_SUITE_P(backends, pairs,
                         ::testing::Combine(::testing::ValuesIn(backend_names()),
                                            ::testing::ValuesIn(backend_names())),
                         pair_label);

TEST_P(pairs, move_every_kind) {
  const im::device from = open_backend(std::get<0>(GetParam()));
  const im::device to = open_backend(std::get<1>(GetParam()));
  if (!from || !to) GTEST_SKIP() << "not on this machine";
  expect_all_kinds_move(im::queue(from), im::queue(to));
}

TEST_P(pairs, order_one_queue_after_the_other) {
  const im::device first = open_backend(std::get<0>(GetParam()));
  const im::device second = open_backend(std::get<1>(GetParam()));
  if (!first || !second) GTEST_SKIP() << "not on this machine";
  const im::queue a(first);
  const im::queue b(second);
  const im::buffer here(1 << 20, kinds_of(first).front(), {.queue = a});
  const im::buffer there(1 << 20, kinds_of(second).front(), {.queue = b});
  bytes between(1 << 20);
  const im::event filled = im::fill_async(here, std::byte{3});
  const im::event out = im::copy_async(std::span(between), here, {.after = filled});
  const im::event in = im::copy_async(there, std::span(between), {.after = out});
  in.wait();
  EXPECT_EQ(out.status(), im::status::ok);
  EXPECT_TRUE(same(read(there), bytes(1 << 20, std::byte{3})));
}

// A queue that cannot wait for a thread of the library reads the source at once, so later writes to
// the source do not affect the copy.
class snapshot : public leak_checked {};

TEST_F(snapshot, is_what_a_queue_that_cannot_wait_for_the_host_writes) {
  const im::queue from{im::sim_device("effect=early")};
  const im::queue to{im::sim_device("wait_for_host=0,effect=late")};
  const bytes data = noise((std::size_t{5} << 20) + 3);
  const im::buffer a(data.size(), im::kind::device, {.queue = from});
  const im::buffer b(data.size(), im::kind::device, {.queue = to});
  write(a, data);
  const im::event copied = im::copy_async(b, a);
  EXPECT_FALSE(copied.done());
  im::fill(a, std::byte{0});
  EXPECT_TRUE(same(read(b), data));
  EXPECT_TRUE(copied.done());
}

TEST_F(snapshot, comes_after_what_it_waits_for_or_not_at_all) {
  const im::queue from{im::sim_device("effect=late")};
  const im::queue to{im::sim_device("wait_for_host=0,effect=late")};
  const im::buffer a(4096, im::kind::device, {.queue = from});
  const im::buffer b(4096, im::kind::device, {.queue = to});
  im::fill(b, std::byte{1});
  const im::event filled = im::fill_async(a, std::byte{2});
  im::host_event gate;
  std::thread worker([&] { gate.fail("the worker died"); });
  EXPECT_THROW(im::copy_async(b, a, {.after = {gate, filled}}), im::dependency_failed);
  worker.join();
  EXPECT_TRUE(same(read(b), bytes(4096, std::byte{1})));
  im::copy_async(b, a).wait();
  EXPECT_TRUE(same(read(b), bytes(4096, std::byte{2})));
}

class contexts : public on_backend {};
INSTANTIATE_ON_BACKENDS(contexts);

TEST_P(contexts, of_one_device_exchange_bytes) {
  const im::context own({device_});
  expect_all_kinds_move(queue_, im::queue(own, device_));
}

TEST_P(contexts, buffers_are_refused_on_queues_of_another) {
  const im::context own({device_});
  const im::queue other(own, device_);
  const im::buffer buffer = make(100, kinds().front());
  EXPECT_TRUE(throws(im::status::wrong_context, [&] { (void)buffer.on_queue(other); }));
  EXPECT_TRUE(
      throws(im::status::wrong_context, [&] { im::fill(buffer, std::byte{0}, {.queue = other}); }));
  if (can(im::capability::run_functions)) {
    EXPECT_TRUE(throws(im::status::wrong_context,
                       [&] { (void)other.submit([](std::span<std::byte>) {}, buffer); }));
  }
  const im::resource resource = im::resource::provider(own, kinds().front());
  EXPECT_TRUE(throws(im::status::wrong_context, [&] {
    im::buffer(10, kinds().front(), {.queue = queue_, .resource = resource});
  }));
  EXPECT_TRUE(throws(im::status::wrong_context, [&] { (void)resource.allocate(10, 0, queue_); }));
}

TEST_P(contexts, of_devices_of_two_platforms_are_refused) {
  const im::sim_device stranger;
  EXPECT_THROW(im::context({device_, stranger}), im::error);
  EXPECT_THROW(im::queue(im::context::of(stranger), device_), im::error);
  EXPECT_THROW(im::context(std::initializer_list<im::device>{}), im::invalid_argument);
}

TEST_P(contexts, live_as_long_as_their_buffers) {
  im::buffer buffer;
  {
    const im::context own({device_});
    buffer = im::buffer(100, kinds().front(), {.queue = im::queue(own, device_)});
  }
  const bytes data = noise(100);
  write(buffer, data);
  EXPECT_TRUE(same(read(buffer), data));
}

}  // namespace
