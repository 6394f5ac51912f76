// SPDX-License-Identifier: Apache-2.0
// The host runs out of memory during a call on a unified buffer. The call or the event that it
// returned fails and the call can be repeated; no write of either side is lost, and no conflict is
// reported for bytes that only one side wrote. Tested on the backends whose driver is part of the
// library, because other drivers may behave differently.
#include <algorithm>
#include <optional>

#include "support/status_of.hpp"
#include "support/unified.hpp"
#include "support/watchdog.hpp"
#include "support/without_memory.hpp"

namespace {

using namespace support;

// The host writes the first third, a call may write the second, the device writes the last.
constexpr std::size_t k_short_bytes = 12'288;

// Which side has writes that the other lacks, and which copies exist.
enum class short_state { host_only, device_only, same, host_wrote, device_wrote, both_wrote };
constexpr std::array k_short_states{short_state::host_only,    short_state::device_only,
                                    short_state::same,         short_state::host_wrote,
                                    short_state::device_wrote, short_state::both_wrote};
constexpr std::array k_short_state_names{"host only",  "device only",  "the same",
                                         "host wrote", "device wrote", "both wrote"};

// A buffer in such a state and the contents that it must have.
struct short_of_memory {
  unified it;
  bytes want;
  bytes exact;  // written to the middle third by calls that write

  isthmus_unified_t* get() const noexcept { return it.get(); }
};

struct third {
  std::size_t begin, end;
};
constexpr third k_first{0, k_short_bytes / 3}, k_middle{k_short_bytes / 3, k_short_bytes / 3 * 2},
    k_last{k_short_bytes / 3 * 2, k_short_bytes};

void put(bytes& to, const third& where, const bytes& data) {
  std::copy(data.begin(), data.end(), to.begin() + static_cast<std::ptrdiff_t>(where.begin));
}

// A call, in some cases followed by the one that ends what it began. What the calls return is
// released.
using short_function = isthmus_status_t (*)(short_of_memory&, isthmus_event_t**);
struct short_form {
  const char* name;
  short_function make;
  bool waits = false;  // for operations of the device, if the device has written
};

isthmus_status_t release_buffer(isthmus_status_t status, isthmus_buffer_t* given) {
  isthmus_buffer_release(given);
  return status;
}

// The end call ends the write even if it fails; the next call then accounts for the bytes.
isthmus_status_t write_middle(short_of_memory& to, int keeps) {
  constexpr std::size_t k_nbytes = k_middle.end - k_middle.begin;
  void* at = nullptr;
  auto status = isthmus_unified_begin_write(to.get(), k_middle.begin, k_nbytes, keeps, &at);
  if (status != ISTHMUS_OK) return status;
  std::copy(to.exact.begin(), to.exact.end(), static_cast<std::byte*>(at));
  status = isthmus_unified_end_write(to.get(), k_middle.begin, k_nbytes, keeps);
  put(to.want, k_middle, to.exact);
  return status;
}

const std::vector<short_form>& short_forms() {
  static const std::vector<short_form> all{
      {"upload with an event",
       [](short_of_memory& of, isthmus_event_t** event) {
         return isthmus_unified_to_device(of.get(), nullptr, 0, k_short_bytes, event);
       }},
      {"upload",
       [](short_of_memory& of, isthmus_event_t**) {
         return isthmus_unified_to_device(of.get(), nullptr, 0, k_short_bytes, nullptr);
       }},
      {"upload of several",
       [](short_of_memory& of, isthmus_event_t**) {
         isthmus_unified_t* const it = of.get();
         return isthmus_unified_synchronize(&it, 1, nullptr);
       }},
      {"download with an event",
       [](short_of_memory& of, isthmus_event_t** event) {
         return isthmus_unified_to_host(of.get(), nullptr, 0, k_short_bytes, event);
       }},
      {"read on the host",
       [](short_of_memory& of, isthmus_event_t**) {
         const void* at = nullptr;
         return isthmus_unified_read_host(of.get(), 0, k_short_bytes, &at);
       },
       true},
      {"view on the host",
       [](short_of_memory& of, isthmus_event_t**) {
         void* at = nullptr;
         const auto status = isthmus_unified_host(of.get(), 0, k_short_bytes, &at);
         if (status == ISTHMUS_OK) isthmus_unified_end_host(of.get());
         return status;
       },
       true},
      {"write of kept bytes",
       [](short_of_memory& of, isthmus_event_t**) { return write_middle(of, 1); }, true},
      {"write of new bytes",
       [](short_of_memory& of, isthmus_event_t**) { return write_middle(of, 0); }},
      {"read on the device",
       [](short_of_memory& of, isthmus_event_t**) {
         isthmus_buffer_t* given = nullptr;
         const auto status = isthmus_unified_device(of.get(), nullptr, 0, k_short_bytes, &given);
         return release_buffer(status, given);
       }},
      {"write on the device",
       [](short_of_memory& of, isthmus_event_t**) {
         isthmus_buffer_t* given = nullptr;
         const auto status =
             isthmus_unified_begin_device_write(of.get(), nullptr, k_last.begin, 100, &given);
         return release_buffer(status, given);
       }},
      {"arrival",
       [](short_of_memory& of, isthmus_event_t** event) {
         return isthmus_unified_arrival(of.get(), nullptr, 0, k_short_bytes, ISTHMUS_ARRIVAL_FETCH,
                                        event);
       }},
      {"arrival of work",
       [](short_of_memory& of, isthmus_event_t** event) {
         return isthmus_unified_arrival(of.get(), nullptr, 0, k_short_bytes, ISTHMUS_ARRIVAL_WORK,
                                        event);
       }},
      {"state",
       [](short_of_memory& of, isthmus_event_t**) {
         isthmus_unified_info_t now{};
         now.struct_size = sizeof now;
         return isthmus_unified_info(of.get(), &now);
       }},
      {"ranges",
       [](short_of_memory& of, isthmus_event_t**) {
         isthmus_byte_range_t found[4];
         std::size_t count = 0;
         return isthmus_unified_dirty_ranges(of.get(), 0, found, 4, &count);
       }},
  };
  return all;
}

struct short_outcome {
  bool failed;    // whether an allocation failed
  bool reported;  // by the call, or by the event that it returned
};

class no_memory_unified : public on_unified {
 protected:
  // `busy`, if not null, is work on the device copy that is ordered after the device's write.
  short_of_memory make_in(short_state state, const im::host_event* busy = nullptr) const {
    short_of_memory made{unified(k_short_bytes, options()), noise(k_short_bytes, 1),
                         noise(k_middle.end - k_middle.begin, 2)};
    if (state == short_state::device_only) {
      write_there(made, {0, k_short_bytes}, made.want);
      return made;
    }
    made.it.copy_from(made.want);
    if (state != short_state::host_only) made.it.sync_to_device();
    if (state == short_state::device_wrote || state == short_state::both_wrote)
      write_there(made, k_last, noise(k_last.end - k_last.begin, 3));
    if (busy != nullptr) made.it.device().record(*busy);
    if (state == short_state::host_wrote || state == short_state::both_wrote)
      write_here(made, k_first, noise(k_first.end - k_first.begin, 4));
    return made;
  }
  static void write_here(short_of_memory& to, const third& where, const bytes& data) {
    std::copy(data.begin(), data.end(), to.it.host({where.begin, where.end}).begin());
    put(to.want, where, data);
  }
  static void write_there(short_of_memory& to, const third& where, const bytes& data) {
    to.it.device_write({where.begin, where.end}, [&](const im::buffer& all) {
      im::copy(im::at(all, where.begin), std::span(data));
    });
    put(to.want, where, data);
  }
  static short_outcome make_short(const short_form& what, short_of_memory& of, long served,
                                  shortage kind, const im::host_event* busy) {
    isthmus_event_t* made = nullptr;
    isthmus_status_t status = ISTHMUS_OK;
    bool failed = false;
    {
      const without_memory later{served, kind};
      status = what.make(of, &made);
      failed = without_memory::failed();
    }
    if (busy != nullptr) busy->complete();
    if (status == ISTHMUS_OK && made != nullptr) status = isthmus_event_wait(made, -1);
    isthmus_event_release(made);
    EXPECT_TRUE(status == ISTHMUS_OK || (failed && status == ISTHMUS_ERROR_OUT_OF_MEMORY))
        << isthmus_error_message();
    return {failed, status != ISTHMUS_OK};
  }
  static isthmus_status_t make_whole(const short_form& what, short_of_memory& of) {
    isthmus_event_t* made = nullptr;
    auto status = what.make(of, &made);
    if (status == ISTHMUS_OK && made != nullptr) status = isthmus_event_wait(made, -1);
    isthmus_event_release(made);
    return status;
  }
  // A failure of a copy without an event is reported by the next call. No failure is reported
  // twice.
  static void make_again(const short_form& what, short_of_memory& of, const short_outcome& before) {
    auto status = make_whole(what, of);
    if (status == ISTHMUS_ERROR_OUT_OF_MEMORY && before.failed && !before.reported) {
      status = make_whole(what, of);
    }
    EXPECT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
  }
  static void expect_all_there(const short_of_memory& of) {
    try {
      of.it.sync_to_device();
      EXPECT_TRUE(same(of.it.host_read(), of.want)) << "on the host";
      EXPECT_TRUE(same(read(of.it.device()), of.want)) << "on the device";
      EXPECT_EQ(of.it.state(), im::unified_state::synchronized);
    } catch (const im::error& problem) {
      ADD_FAILURE() << problem.what();
    }
  }
  // A hash covers a whole chunk, so writes of both sides to one chunk are a conflict.
  bool tells_apart(short_state state) const {
    return state != short_state::both_wrote || GetParam().means != im::tracking_mechanism::hashes;
  }
  void fail_all_of(const short_form& what, short_state state, bool beside_work) const {
    const auto told =
        std::string{what.name} + ", " + k_short_state_names[static_cast<std::size_t>(state)] + ", ";
    const watchdog guard{told};
    fail_each_allocation([&](long served, shortage kind) {
      SCOPED_TRACE(told + describe(served, kind));
      const im::host_event work;
      const auto* const busy = beside_work ? &work : nullptr;
      auto all = make_in(state, busy);
      const auto before = make_short(what, all, served, kind, busy);
      make_again(what, all, before);
      expect_all_there(all);
      return before.failed && !HasFailure();
    });
  }
};

// Thrown by a function that writes to the buffer.
struct gave_up {};

std::vector<unified_case> cases_without_memory() {
  auto all = unified_cases();
  std::erase_if(all, [](const unified_case& one) {
    return !one.separate || (one.backend != "host" && one.backend != "sim_late");
  });
  return all;
}
INSTANTIATE_TEST_SUITE_P(backends, no_memory_unified, testing::ValuesIn(cases_without_memory()),
                         [](const auto& each) { return name_of(each.param); });

TEST_P(no_memory_unified, any_allocation_of_a_call_may_fail) {
  for (const auto state : k_short_states) {
    for (const auto& what : short_forms()) {
      if (!HasFailure() && tells_apart(state)) fail_all_of(what, state, false);
    }
  }
}

// The function's own exception leaves the call, and its writes count.
TEST_P(no_memory_unified, the_end_of_a_write_that_throws_may_fail) {
  for (const bool on_device : {false, true}) {
    for (const bool throws : {false, true}) {
      fail_each_allocation([&](long served, shortage kind) {
        SCOPED_TRACE((on_device ? "on the device, " : "on the host, ") + describe(served, kind));
        auto all = make_in(short_state::same);
        std::optional<without_memory> later;
        const auto end = [&] {
          later.emplace(served, kind);
          if (throws) throw gave_up{};
        };
        const third where = on_device ? k_last : k_middle;
        bool has_thrown = false;
        im::status status = im::status::ok;
        try {
          status = status_of([&] {
            if (on_device) {
              all.it.device_write({where.begin, where.end}, [&](const im::buffer& memory) {
                im::copy(im::at(memory, where.begin), std::span<const std::byte>(all.exact));
                end();
              });
            } else {
              all.it.host_write({where.begin, where.end}, [&](std::span<std::byte> part) {
                std::ranges::copy(all.exact, part.begin());
                end();
              });
            }
          });
        } catch (const gave_up&) {
          has_thrown = true;
        } catch (const std::bad_alloc&) {
          status = im::status::out_of_memory;  // there was no memory for the message either
        }
        const bool failed = without_memory::failed();
        later.reset();
        put(all.want, where, all.exact);
        EXPECT_EQ(has_thrown, throws);
        EXPECT_TRUE(status == im::status::ok || (failed && status == im::status::out_of_memory));
        expect_all_there(all);
        return failed && !HasFailure();
      });
    }
  }
}

// If an earlier call had no memory to find out what the host wrote in a huge page, the device's
// newer bytes in that page must not be taken for older ones.
TEST_P(no_memory_unified, a_write_on_the_device_causes_no_false_conflict) {
  if (GetParam().means != im::tracking_mechanism::pages) GTEST_SKIP();
  constexpr std::size_t k_nbytes = 6 * k_mib;  // 3 huge pages, if the system has huge pages
  const std::array parts{im::element_range{100, 200}, im::element_range{2 * k_mib, 2 * k_mib + 50},
                         im::element_range{5 * k_mib, 6 * k_mib}};
  for (const auto wins : {im::winner::none, im::winner::host}) {
    fail_each_allocation([&](long served, shortage kind) {
      SCOPED_TRACE(describe(served, kind));
      auto how = options();
      how.on_conflict = wins;
      const unified it(k_nbytes, how);
      const auto view = it.host();
      auto want = noise(k_nbytes, 1);
      std::ranges::copy(want, view.begin());
      it.sync_to_device();
      bool failed = false;
      const auto short_of_memory = [&](auto&& call) {
        isthmus_status_t status = ISTHMUS_OK;
        {
          const without_memory later{served, kind};
          status = call();
          failed = failed || without_memory::failed();
        }
        if (status != ISTHMUS_OK) status = call();
        EXPECT_EQ(status, ISTHMUS_OK) << isthmus_error_message();
      };
      for (const auto& each : parts) {
        const auto nbytes = each.end - each.begin;
        im::buffer there;
        short_of_memory([&] {
          isthmus_buffer_t* made = nullptr;
          const auto status =
              isthmus_unified_begin_device_write(it.get(), nullptr, each.begin, nbytes, &made);
          there = im::buffer::take(made);
          return status;
        });
        im::fill(there.slice(each.begin, nbytes), std::byte{9});
        short_of_memory([&] { return isthmus_unified_mark_device(it.get(), each.begin, nbytes); });
        std::fill_n(want.begin() + static_cast<std::ptrdiff_t>(each.begin), nbytes, std::byte{9});
      }
      short_of_memory(
          [&] { return isthmus_unified_to_host(it.get(), nullptr, 0, k_nbytes, nullptr); });
      EXPECT_TRUE(same(view.span(), want));
      // Small pages that were merged into a huge page must not count as written either.
      im::fill(it.device().slice(300, 100), std::byte{8});
      it.mark_device({300, 400});
      EXPECT_EQ(status_of([&] { it.sync_to_host(); }), im::status::ok);
      std::fill_n(want.begin() + 300, 100, std::byte{8});
      EXPECT_TRUE(same(view.span(), want));
      it.sync_to_device();
      EXPECT_TRUE(same(read(it.device()), want));
      return failed && !HasFailure();
    });
  }
}

// The copies begin when that work has completed. Uploads are staged in memory of the library.
TEST_P(no_memory_unified, any_allocation_of_a_call_beside_work_may_fail) {
  for (const auto state : {short_state::host_wrote, short_state::both_wrote}) {
    for (const auto& what : short_forms()) {
      const bool waits = what.waits && state == short_state::both_wrote;
      if (!HasFailure() && !waits && tells_apart(state)) fail_all_of(what, state, true);
    }
  }
}

// Makes the call with memory for `served` allocations. Returns whether one failed.
template <class Call>
bool fails_within(long served, shortage kind, Call&& call) {
  const without_memory later{served, kind};
  call();
  return without_memory::failed();
}

// Host writes to the part that was fetched must be found.
TEST_P(no_memory_unified, any_allocation_of_a_first_fetch_of_a_part_may_fail) {
  (void)make(k_short_bytes).host();  // makes the allocations that a process makes only once
  fail_each_allocation([&](long served, shortage kind) {
    SCOPED_TRACE(describe(served, kind));
    const unified it = make(k_short_bytes);
    im::fill(it.device(), std::byte{3});
    const bool failed = fails_within(served, kind, [&] {
      (void)isthmus_unified_to_host(it.get(), nullptr, k_first.begin, k_first.end, nullptr);
    });
    it.sync_to_host({k_first.begin, k_first.end});
    it.host({k_first.begin, k_first.end}).span()[5] = std::byte{7};
    EXPECT_EQ(read(it.device())[5], std::byte{7});
    return failed && !HasFailure();
  });
}

TEST_P(no_memory_unified, any_allocation_may_fail_while_the_host_wins) {
  fail_each_allocation([&](long served, shortage kind) {
    SCOPED_TRACE(describe(served, kind));
    const unified it = make(k_short_bytes);
    std::ranges::fill(it.host(), std::byte{1});
    im::fill(it.device(), std::byte{2});
    it.mark_device();
    const bool failed = fails_within(served, kind, [&] {
      (void)isthmus_unified_resolve(it.get(), ISTHMUS_WINNER_HOST, 0, k_short_bytes);
    });
    it.resolve(im::winner::host);
    EXPECT_TRUE(same(read(it.device()), bytes(k_short_bytes, std::byte{1})));
    EXPECT_TRUE(same(it.host_read(), bytes(k_short_bytes, std::byte{1})));
    return failed && !HasFailure();
  });
}

// The view shows the bytes of the failed write either at once or after the next call. In both cases
// they must not replace the later write through the view.
TEST_P(no_memory_unified, a_write_through_a_view_stays_after_an_end_that_failed) {
  constexpr std::size_t k_written = 64;
  fail_each_allocation([&](long served, shortage kind) {
    SCOPED_TRACE(describe(served, kind));
    const unified it = make(k_short_bytes);
    const auto view = it.host();
    std::ranges::fill(view, std::byte{1});
    it.sync_to_device();
    void* at = nullptr;
    EXPECT_EQ(isthmus_unified_begin_write(it.get(), 0, k_written, 0, &at), ISTHMUS_OK);
    std::fill_n(static_cast<std::byte*>(at), k_written, std::byte{5});
    bool failed = false;
    {
      const without_memory later{served, kind};
      failed = isthmus_unified_end_write(it.get(), 0, k_written, 0) != ISTHMUS_OK;
    }
    view[3] = std::byte{7};
    (void)it.state();
    EXPECT_EQ(view[3], std::byte{7});
    it.sync_to_device();
    EXPECT_TRUE(same(read(it.device()), view.span()));
    EXPECT_EQ(view[4], std::byte{5});
    return failed && !HasFailure();
  });
}

// If the call fails, the buffer still knows of the host's writes.
TEST_P(no_memory_unified, any_allocation_of_a_call_that_forgets_may_fail) {
  fail_each_allocation([&](long served, shortage kind) {
    SCOPED_TRACE(describe(served, kind));
    const unified it = make(k_short_bytes);
    const auto view = it.host();
    std::ranges::fill(view, std::byte{1});
    it.sync_to_device();
    std::ranges::fill(view, std::byte{2});
    bool failed = false;
    {
      const without_memory later{served, kind};
      failed = isthmus_unified_forget(it.get()) != ISTHMUS_OK;
      EXPECT_TRUE(!failed || without_memory::failed());
    }
    if (failed) {
      EXPECT_TRUE(same(read(it.device()), bytes(k_short_bytes, std::byte{2})));
    }
    return failed && !HasFailure();
  });
}

TEST_P(no_memory_unified, any_allocation_may_fail_while_the_device_wins) {
  fail_each_allocation([&](long served, shortage kind) {
    SCOPED_TRACE(describe(served, kind));
    const unified it = make(k_short_bytes);
    const auto view = it.host();
    std::ranges::fill(view, std::byte{1});
    it.sync_to_device();
    std::ranges::fill(view, std::byte{2});
    const bool failed = fails_within(served, kind, [&] {
      (void)isthmus_unified_resolve(it.get(), ISTHMUS_WINNER_DEVICE, 0, k_short_bytes);
    });
    it.resolve(im::winner::device);
    EXPECT_TRUE(same(view.span(), bytes(k_short_bytes, std::byte{1})));
    return failed && !HasFailure();
  });
}

}  // namespace
