// SPDX-License-Identifier: Apache-2.0
// Invalid input is rejected with the right status, a message that has the value and the limit, and
// no side effects.
#include "support/backends.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class bad_input : public on_backend {};
INSTANTIATE_ON_BACKENDS(bad_input);

constexpr std::size_t k_huge[] = {std::size_t{1} << 62, std::size_t{1} << 63, SIZE_MAX};

TEST_P(bad_input, copies_past_either_end) {
  for (im::kind kind : kinds()) {
    const im::buffer buffer = make(100, kind);
    const bytes data = noise(100);
    write(buffer, data);
    bytes host(200);
    const isthmus_endpoint_t here{nullptr, host.data(), 0};
    using range = std::pair<std::size_t, std::size_t>;
    for (const auto& [offset, nbytes] :
         {range{0, 101}, range{100, 1}, range{101, 0}, range{1, 100}, range{SIZE_MAX, 1},
          range{SIZE_MAX, 2}, range{99, SIZE_MAX}}) {
      const isthmus_endpoint_t there{buffer.get(), nullptr, offset};
      // If both endpoints are out of range, either one may be reported.
      const bool both = nbytes == SIZE_MAX;
      const std::vector<std::string> told{std::to_string(nbytes),
                                          both ? "" : std::to_string(offset), both ? "" : "100"};
      EXPECT_TRUE(refused(isthmus_copy(nullptr, &there, &here, nbytes, nullptr, nullptr),
                          ISTHMUS_ERROR_OUT_OF_RANGE, told));
      EXPECT_TRUE(refused(isthmus_copy(nullptr, &here, &there, nbytes, nullptr, nullptr),
                          ISTHMUS_ERROR_OUT_OF_RANGE, told));
      isthmus_event_t* event = nullptr;
      EXPECT_TRUE(refused(isthmus_copy(nullptr, &there, &here, nbytes, nullptr, &event),
                          ISTHMUS_ERROR_OUT_OF_RANGE, told));
      EXPECT_EQ(event, nullptr);
      EXPECT_TRUE(refused(isthmus_fill(nullptr, &there, "x", 1, nbytes, nullptr, nullptr),
                          ISTHMUS_ERROR_OUT_OF_RANGE, told));
    }
    EXPECT_TRUE(same(read(buffer), data));
  }
}

TEST_P(bad_input, huge_copies_and_offsets) {
  const im::buffer buffer = make(100, kinds().front());
  const im::buffer other = make(100, kinds().back());
  for (std::size_t huge : k_huge) {
    const isthmus_endpoint_t whole{buffer.get(), nullptr, 0};
    const isthmus_endpoint_t far{other.get(), nullptr, huge};
    const isthmus_endpoint_t near{other.get(), nullptr, 0};
    EXPECT_TRUE(refused(isthmus_copy(nullptr, &whole, &near, huge, nullptr, nullptr),
                        ISTHMUS_ERROR_OUT_OF_RANGE, {std::to_string(huge), "100"}));
    EXPECT_TRUE(refused(isthmus_copy(nullptr, &whole, &far, 1, nullptr, nullptr),
                        ISTHMUS_ERROR_OUT_OF_RANGE, {std::to_string(huge), "100"}));
    EXPECT_TRUE(refused(isthmus_copy(nullptr, &far, &whole, huge, nullptr, nullptr),
                        ISTHMUS_ERROR_OUT_OF_RANGE, {std::to_string(huge)}));
  }
}

TEST_P(bad_input, the_surface_holds_the_callers_bounds) {
  const im::buffer buffer = make(100, kinds().front());
  bytes small(50);
  EXPECT_TRUE(
      throws(im::status::out_of_range, {"100", "50"}, [&] { im::copy(std::span(small), buffer); }));
  EXPECT_TRUE(throws(im::status::out_of_range, {"51", "50"},
                     [&] { im::copy_bytes(buffer, std::span(small), 51); }));
  EXPECT_TRUE(throws(im::status::out_of_range,
                     [&] { im::copy(im::at(buffer, 101), std::span(small).first(0)); }));
  EXPECT_TRUE(throws(im::status::out_of_range,
                     [&] { im::copy_2d({buffer, 50}, {std::span(small), 25}, {25, 3}); }));
}

TEST_P(bad_input, places_that_are_nowhere) {
  const im::buffer buffer = make(100, kinds().front());
  const isthmus_endpoint_t whole{buffer.get(), nullptr, 0};
  const isthmus_endpoint_t nowhere{nullptr, nullptr, 0};
  const auto invalid = ISTHMUS_ERROR_INVALID_ARGUMENT;
  EXPECT_TRUE(refused(isthmus_copy(nullptr, &whole, &nowhere, 1, nullptr, nullptr), invalid));
  EXPECT_TRUE(refused(isthmus_copy(nullptr, &nowhere, &whole, 1, nullptr, nullptr), invalid));
  EXPECT_TRUE(refused(isthmus_copy(nullptr, nullptr, &whole, 1, nullptr, nullptr), invalid));
  EXPECT_TRUE(refused(isthmus_copy(nullptr, &whole, nullptr, 1, nullptr, nullptr), invalid));
  EXPECT_TRUE(refused(isthmus_fill(nullptr, &nowhere, "x", 1, 1, nullptr, nullptr), invalid));
  EXPECT_TRUE(refused(isthmus_fill(nullptr, nullptr, "x", 1, 1, nullptr, nullptr), invalid));
}

TEST_P(bad_input, operations_that_are_malformed) {
  const im::buffer buffer = make(100, kinds().front());
  const isthmus_endpoint_t whole{buffer.get(), nullptr, 0};
  isthmus_operation_t how{};
  const auto attempt = [&] { return isthmus_fill(nullptr, &whole, "x", 1, 100, &how, nullptr); };
  EXPECT_TRUE(refused(attempt(), ISTHMUS_ERROR_INVALID_ARGUMENT)) << "struct_size 0";
  how.struct_size = 8;
  EXPECT_TRUE(refused(attempt(), ISTHMUS_ERROR_INVALID_ARGUMENT, {"8"}));
  how.struct_size = sizeof how;
  how.after_count = 1;
  EXPECT_TRUE(refused(attempt(), ISTHMUS_ERROR_INVALID_ARGUMENT)) << "after NULL";
  isthmus_event_t* none = nullptr;
  how.after = &none;
  EXPECT_TRUE(refused(attempt(), ISTHMUS_ERROR_INVALID_ARGUMENT)) << "a NULL event";
  how.after = nullptr;
  how.after_count = 0;
  how.owner_count = 1;
  EXPECT_TRUE(refused(attempt(), ISTHMUS_ERROR_INVALID_ARGUMENT)) << "owners NULL";
}

TEST_P(bad_input, structures_that_are_too_small) {
  const im::buffer buffer = make(100, kinds().front());
  isthmus_buffer_info_t info{};
  for (std::size_t size : {std::size_t{0}, std::size_t{7}, sizeof info - 1}) {
    info.struct_size = size;
    EXPECT_TRUE(refused(isthmus_buffer_info(buffer.get(), &info), ISTHMUS_ERROR_INVALID_ARGUMENT,
                        {std::to_string(size), std::to_string(sizeof info)}));
  }
  isthmus_pointer_info_t pointer{};
  EXPECT_TRUE(refused(isthmus_pointer_info(nullptr, buffer.pointer(), &pointer),
                      ISTHMUS_ERROR_INVALID_ARGUMENT));
}

TEST_P(bad_input, queues_of_another_platform) {
  const im::sim_device elsewhere;
  const im::queue stranger(elsewhere);
  const im::buffer buffer = make(100, kinds().front());
  EXPECT_TRUE(
      throws(im::status::wrong_context, [&] { im::fill(buffer, 'x', {.queue = stranger}); }));
  EXPECT_TRUE(throws(im::status::wrong_context, [&] { (void)buffer.on_queue(stranger); }));
  const im::resource resource = im::resource::provider(im::context::of(elsewhere), im::kind::host);
  EXPECT_TRUE(throws(im::status::wrong_context, [&] {
    im::buffer(10, im::kind::host, {.queue = queue_, .resource = resource});
  }));
  EXPECT_EQ(im::query(buffer.pointer(), stranger.context()).kind, im::kind::unknown);
}

TEST_P(bad_input, devices_that_are_not_of_the_context) {
  const im::sim_device elsewhere;
  EXPECT_THROW(im::queue(queue_.context(), elsewhere), im::error);
  EXPECT_THROW((void)im::resource::provider(queue_.context(), im::kind::device, elsewhere),
               im::error);
}

TEST_P(bad_input, adopting_nothing) {
  EXPECT_THROW((void)im::context::adopt(device_, nullptr), im::error);
  EXPECT_THROW((void)im::queue::adopt(device_, nullptr), im::error);
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = owned;
  EXPECT_THROW((void)im::context::adopt(device_, nullptr, std::move(owned)), im::error);
  EXPECT_TRUE(seen.expired()) << "the owner is released on failure";
}

TEST_P(bad_input, messages_last_until_the_next_failure_of_the_thread) {
  EXPECT_THROW((void)make(10, kinds().front(), 24), im::invalid_argument);
  const std::string said = isthmus_error_message();
  EXPECT_FALSE(said.empty());
  (void)make(10, kinds().front());
  EXPECT_EQ(said, isthmus_error_message());
  std::thread([] { EXPECT_STREQ(isthmus_error_message(), ""); }).join();
}

}  // namespace
