// SPDX-License-Identifier: Apache-2.0
// Scattering arrays over several devices and gathering them, also when a copy of one device fails.
#include <future>

#include "support/array_model.hpp"
#include "support/bytes.hpp"

namespace {

using namespace support;

class scattered : public leak_checked {
 protected:
  // Operations take effect as late as possible, so that a missing wait shows in the result.
  static std::vector<im::queue> four(const im::sim_device& third = late()) {
    return {im::queue(late()), im::queue(late()), im::queue(third), im::queue(late())};
  }
  static im::sim_device late() { return im::sim_device("effect=late"); }
  static std::vector<float> counting(std::size_t count) {
    std::vector<float> made(count);
    std::iota(made.begin(), made.end(), 0.0f);
    return made;
  }
  // The table of default pools keeps the pools, and their free memory.
  static void trim(const std::vector<im::queue>& all) {
    for (const im::queue& on : all) im::default_pool(im::kind::device, on).trim();
  }
  static std::uint64_t copies_on(const im::queue& on) {
    std::uint64_t count = 0;
    EXPECT_EQ(isthmus_sim_calls(on.device().get(), "copy", &count), ISTHMUS_OK);
    return count;
  }
  // All queues are blocked until each of them has received a copy.
  template <class Copies>
  static void expect_together(const std::vector<im::queue>& all, Copies&& copies) {
    std::vector<std::uint64_t> before;
    const im::host_event gate;
    for (const im::queue& on : all) {
      before.push_back(copies_on(on));
      (void)on.fence({gate});
    }
    const auto ended = std::async(std::launch::async, copies);
    for (std::size_t each = 0; each < all.size(); ++each) {
      EXPECT_TRUE(eventually([&] { return copies_on(all[each]) > before[each]; }))
          << "the copy of part " << each << " comes behind the end of another";
    }
    gate.complete();
  }
};

TEST_F(scattered, are_cut_as_evenly_as_can_be) {
  const auto queues = four();
  {
    const auto data = counting(22);
    const auto parts = im::scatter(data, queues);
    ASSERT_EQ(parts.size(), 4u);
    const std::size_t sizes[] = {6, 6, 5, 5};
    for (std::size_t part = 0; part < 4; ++part) {
      EXPECT_EQ(parts[part].size(), sizes[part]);
      EXPECT_EQ(parts[part].queue(), queues[part]);
    }
    EXPECT_EQ(im::to_vector(parts[1]), (std::vector<float>{6, 7, 8, 9, 10, 11}));
    EXPECT_EQ(im::gather(parts), data);
    EXPECT_EQ(im::gather(im::scatter(counting(3), queues)), counting(3));
  }
  trim(queues);
}

TEST_F(scattered, copies_to_all_devices_run_at_the_same_time) {
  const auto queues = four();
  {
    const auto data = counting(22);
    std::vector<im::array<float, 1>> parts;
    expect_together(queues, [&] { parts = im::scatter(data, queues); });
    std::vector<float> back;
    expect_together(queues, [&] { back = im::gather(parts); });
    EXPECT_EQ(back, data);
  }
  trim(queues);
}

TEST_F(scattered, of_arrays_with_gaps) {
  const auto queues = four();
  {
    const im::array_options how{.queue = queues[1]};
    const auto a = im::to_array(counting(60), {5, 12}, im::kind::device, how);
    const auto columns = a.view(im::every, im::slice(0, 12, 2)).transpose();
    const auto parts = im::scatter(columns, queues);
    EXPECT_EQ(parts[0].shape(), (im::axes<2>{2, 5}));
    EXPECT_EQ(im::gather(parts), im::to_vector(columns));
    const auto back = im::zeros<float>({6, 5}, im::kind::device, {.queue = queues[3]});
    im::gather(back, parts);
    EXPECT_EQ(im::to_vector(back), im::to_vector(columns));
    const auto refuses = [](const std::vector<std::string>& parts_of_text, auto&& call) {
      EXPECT_TRUE(throws(im::status::invalid_argument, parts_of_text, call));
    };
    refuses({"(6, 5)", "(5, 6)"}, [&] { im::gather(back.reshape({5, 6}), parts); });
    std::vector<float> few(29);
    refuses({"(6, 5)", "(29,)"}, [&] { im::gather(few, parts); });
    refuses({"first axis"}, [&] { (void)im::gather(std::vector{parts[0], back.transpose()}); });
    refuses({"at least one"}, [&] { (void)im::scatter(a, std::vector<im::device>()); });
    refuses({"at least one"}, [&] { (void)im::gather(std::vector<im::array<float, 1>>()); });
  }
  trim(queues);
}

TEST_F(scattered, one_copy_that_fails_leaves_nothing) {
  const im::sim_device third("effect=late,fail=copy:1");
  const auto queues = four(third);
  EXPECT_THROW((void)im::scatter(counting(4000), queues), im::error);
  for (const im::queue& on : queues) {
    const im::resource pool = im::default_pool(im::kind::device, on);
    pool.trim();
    EXPECT_EQ(pool.usage().held, 0u) << "a copy goes on, or its memory is not given back";
  }
}

TEST_F(scattered, all_are_waited_for_where_one_cannot_be_gathered) {
  const im::sim_device third = late();
  const auto queues = four(third);
  {
    const auto parts = im::scatter(counting(4000), queues);
    third.configure("fail=copy:1");
    std::vector<float> back(4000);
    EXPECT_THROW(im::gather(back, parts), im::error);
    EXPECT_EQ(back[1999], 1999.0f) << "a copy that had begun was not waited for";
  }
  trim(queues);
}

}  // namespace
