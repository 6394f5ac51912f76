// SPDX-License-Identifier: Apache-2.0
// Calls that C++ programs write first: copies of containers, lists of events, typed functions on
// queues, pools of a device or queue, output to streams, and errors as std::exception.
#include <array>
#include <isthmus/host_resource.hpp>
#include <numeric>
#include <sstream>
#include <string>

#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class first_calls : public on_backend {
 protected:
  im::kind host_kind() const {
    return can(im::capability::shared_kind) ? im::kind::shared : im::kind::host;
  }
  bool runs_functions() const { return can(im::capability::run_functions); }
};
INSTANTIATE_ON_BACKENDS(first_calls);

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}
std::string printed(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
template <class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const std::exception& problem) {
    return problem.what();
  }
  return "";
}

TEST_P(first_calls, containers_are_copied) {
  const auto values = counted(100);
  const im::buffer buffer = make(400, kinds().front());
  im::copy(buffer, values);
  std::vector<float> back(100);
  im::copy(back, buffer);
  EXPECT_EQ(back, values);

  std::array<float, 10> few{};
  im::copy_bytes(few, buffer, sizeof few);
  EXPECT_EQ(few[9], 10.0F);
  float plain[2] = {-1, -2};
  im::copy(buffer, plain);
  im::copy_async(few, buffer.slice(0, 40)).wait();
  EXPECT_EQ(few[1], -2.0F);
  const std::string word = "isthmus";
  im::copy(buffer, word);
  std::string read(7, ' ');
  im::copy(read, buffer.slice(0, 7));
  EXPECT_EQ(read, word);
  EXPECT_THROW(im::copy(back, make(401, kinds().front())), im::out_of_range);
}

TEST_P(first_calls, bytes_are_counted_not_elements) {
  const auto values = counted(4);
  const im::buffer buffer = make(16, kinds().front());
  im::copy(buffer, values);
  std::vector<float> back(4);
  im::copy_bytes(back, buffer, 8);
  EXPECT_EQ(back, (std::vector<float>{1, 2, 0, 0}));
  im::copy_bytes_async(back, buffer, 12).wait();
  EXPECT_EQ(back, (std::vector<float>{1, 2, 3, 0}));
}

TEST_P(first_calls, a_list_of_events_may_be_any_container) {
  const im::buffer buffer = make(64, kinds().front());
  std::vector<im::event> several;
  for (int i = 0; i < 3; ++i)
    several.push_back(im::fill_async(buffer, static_cast<std::uint8_t>(i)));
  const std::array<im::event, 1> one{im::fill_async(buffer, std::uint8_t{3}, {.after = several})};
  const std::span<const im::event> part(several.data(), 2);
  im::fill_async(buffer, std::uint8_t{4}, {.after = one}).wait();
  im::fill_async(buffer, std::uint8_t{5}, {.after = part}).wait();
  im::fill_async(buffer, std::uint8_t{6}, {.after = several.front()}).wait();
  im::fill_async(buffer, std::uint8_t{7}, {.after = {several[0], several[1]}}).wait();
  queue_.fence(several).wait();
  EXPECT_EQ(read(buffer), bytes(64, std::byte{7}));
  EXPECT_EQ(message_of([&] { (void)queue_.fence(std::vector<im::event>(1)); }),
            "this isthmus::event is empty: it was moved from, or never assigned");
}

TEST_P(first_calls, all_events_are_waited_for) {
  const im::host_event good, bad, late;
  bad.fail("first failure");
  im::wait_all({});
  std::thread completing([&] {
    std::this_thread::sleep_for(5ms);
    good.complete();
    late.fail("second failure");
  });
  const std::vector<im::host_event> events{good, bad, late};
  const std::string message = message_of([&] { im::wait_all(events); });
  EXPECT_TRUE(late.done());
  completing.join();
  EXPECT_NE(message.find("first failure"), std::string::npos) << message;
  EXPECT_NO_THROW(im::wait_all({good, good}));
}

TEST_P(first_calls, a_function_takes_typed_spans_and_arrays) {
  if (!runs_functions()) GTEST_SKIP();
  const im::buffer buffer = make(40, host_kind());
  im::copy(buffer, counted(10), {});
  const auto array = im::empty<double>({2, 3}, host_kind(), {.queue = queue_});
  im::fill(array, 0.5);
  const im::array<const double, 2> constants = array;
  const im::event done = queue_.submit(
      [](std::span<float> values, std::span<const std::byte> same, auto raw,
         std::span<double> elements) {
        for (float& value : values) value *= 2;
        elements[5] = static_cast<double>(same.size() + raw.size());
      },
      buffer, buffer, buffer, array);
  done.wait();
  EXPECT_EQ(buffer.host<float>()[9], 20.0F);
  EXPECT_EQ(array(1, 2), 80.0);
  double seen = 0;
  queue_
      .submit_after(
          done, [&](std::span<const double> elements) { seen = elements[5]; }, constants)
      .wait();
  EXPECT_EQ(seen, 80.0);
  EXPECT_THROW(queue_.submit([](std::span<double>) {}, array.transpose()), im::invalid_argument);
  const im::event odd = queue_.submit([](std::span<float>) {}, buffer.slice(0, 7));
  EXPECT_EQ(
      message_of([&] { odd.wait(); }).find("7 bytes are not whole, aligned elements of 4 bytes"),
      message_of([&] { odd.wait(); }).find("7 bytes"));
  EXPECT_THROW(odd.wait(), im::callback_failed);
}

TEST_P(first_calls, a_pool_belongs_to_a_device_or_queue) {
  const im::kind kind = kinds().front();
  const im::queue standard = im::queue::of(device_);
  for (const im::resource& pool :
       {im::resource::pool(device_, kind), im::resource::pool(standard, kind),
        im::resource::provider(device_, kind),
        im::resource::pool(device_, kind, {.limit_bytes = 1 << 24})}) {
    void* const block = pool.allocate(1000);
    EXPECT_EQ(im::query(block).context, standard.context());
    pool.deallocate(block, 1000);
    void* const aligned = pool.allocate(1000, 128, standard);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 128, 0U);
    pool.deallocate(aligned, 1000, 128);
  }
  const im::buffer pooled(64, kind,
                          {.queue = queue_, .resource = im::resource::pool(queue_, kind)});
  EXPECT_EQ(pooled.queue(), queue_);
}

TEST_P(first_calls, views_are_iterated) {
  const auto array =
      im::to_array({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {2, 3}, host_kind(), {.queue = queue_});
  const auto view = array.host();
  for (float& value : view) value += 1;
  EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0.0F), 27.0F);
  static_assert(std::ranges::contiguous_range<decltype(view)>);
  const auto turned = array.transpose().host();
  EXPECT_THROW((void)turned.begin(), im::invalid_argument);
  const auto line = im::to_array({true, false}, host_kind(), {.queue = queue_});
  EXPECT_EQ(im::to_vector(line), (std::vector<bool>{true, false}));
  EXPECT_EQ(array.data(), array.pointer());
  EXPECT_EQ(array.buffer().data(), array.buffer().pointer());
}

TEST_P(first_calls, objects_are_printed) {
  EXPECT_EQ(printed(device_), device_.info().filter);
  EXPECT_EQ(printed(im::device()), "(no device)");
  EXPECT_EQ(printed(im::kind::shared), "shared");
  EXPECT_EQ(printed(im::status::out_of_memory), name(im::status::out_of_memory));
  EXPECT_EQ(printed(im::device_type::gpu), "gpu");
  EXPECT_EQ(printed(im::capability::prefetch), "prefetch");
  EXPECT_EQ(printed(im::unified_state::host_only), "HOST_ONLY");
  const im::buffer buffer = make(40, kinds().front());
  const std::string filter(device_.info().filter);
  EXPECT_EQ(printed(buffer),
            "buffer " + std::string(name(kinds().front())) + ", 40 bytes on " + filter);
  buffer.free();
  EXPECT_EQ(printed(buffer), "buffer, freed");
  EXPECT_EQ(im::describe(im::buffer()), "buffer, empty");
}

TEST_P(first_calls, an_empty_handle_names_its_class) {
  im::buffer buffer = make(40, kinds().front());
  const im::buffer moved = std::move(buffer);
  const auto text = [](const std::string& type) {
    return "this isthmus::" + type + " is empty: it was moved from, or never assigned";
  };
  EXPECT_EQ(message_of([&] { (void)buffer.size(); }), text("buffer"));
  EXPECT_EQ(message_of([&] { im::copy(buffer, moved); }), text("buffer"));
  EXPECT_EQ(message_of([&] { im::fill(buffer, 1); }), text("buffer"));
  EXPECT_EQ(message_of([&] { im::event().wait(); }), text("event"));
  EXPECT_EQ(message_of([&] { im::queue().wait(); }), text("queue"));
  EXPECT_EQ(message_of([&] { (void)queue_.submit([](std::span<std::byte>) {}, buffer); }),
            text("buffer"));
  EXPECT_EQ(message_of([&] { (void)im::device().info(); }), text("device"));
  EXPECT_EQ(message_of([&] { (void)im::resource().allocate(1, 0, queue_); }), text("resource"));
  EXPECT_EQ(message_of([&] { im::resource().deallocate(this, 1, 0, queue_); }), text("resource"));
  const auto pool = im::resource::pool(device_, kinds().front());
  EXPECT_EQ(message_of([&] { (void)pool.allocate(1, 0, im::queue()); }), text("queue"));
  EXPECT_EQ(message_of([&] { (void)im::unified_buffer<float>().state(); }), text("unified_buffer"));
  EXPECT_EQ(message_of([&] { (void)im::resource::pool(im::device(), kinds().front()); }),
            text("device"));
}

TEST_P(first_calls, messages_name_no_function_of_c) {
  const auto pool = im::resource::pool(device_, kinds().front());
  for (const std::string& message :
       {message_of([&] { (void)im::statistics_of(pool); }),
        message_of([&] { (void)im::limit_of(pool); }), message_of([&] { im::flush_log(pool); }),
        message_of([&] { im::release_monotonic(pool); })}) {
    EXPECT_FALSE(message.empty());
    EXPECT_EQ(message.find("isthmus_"), std::string::npos) << message;
  }
}

TEST_P(first_calls, each_lack_of_memory_is_a_std_exception) {
  const auto limited = im::resource::limit(im::resource::provider(queue_, host_kind()), 100);
  EXPECT_THROW(im::buffer(200, host_kind(), {.queue = queue_, .resource = limited}),
               im::out_of_memory);
  EXPECT_THROW(im::buffer(200, host_kind(), {.queue = queue_, .resource = limited}), im::error);
  EXPECT_NE(message_of([&] {
              (void)im::buffer(200, host_kind(), {.queue = queue_, .resource = limited});
            }),
            "");
  im::host_resource memory(limited, queue_);
  EXPECT_THROW((std::pmr::vector<float>(100, &memory)), std::bad_alloc);
  EXPECT_NE(message_of([&] { std::pmr::vector<float> values(100, &memory); }), "");
}

}  // namespace
