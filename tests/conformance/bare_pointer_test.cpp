// SPDX-License-Identifier: Apache-2.0
// Addresses without a buffer, for every function that takes one. An address in no live block is
// rejected before anything is written. Plain host memory can be an endpoint of a copy, but a device
// does not work on it.
#include <isthmus/low_level.hpp>

#include <array>
#include <sstream>

#include "support/bytes.hpp"
#include "support/upstreams.hpp"

namespace {

using namespace support;

// `at` is the address under test; `plain` is host memory of as many bytes.
struct bare_call {
  isthmus_queue_t* queue;
  isthmus_endpoint_t at;
  isthmus_endpoint_t plain;
  std::size_t nbytes;
  isthmus_event_t** event;

  [[nodiscard]] isthmus_array_t array(const isthmus_endpoint_t& place) const {
    static constexpr std::int64_t k_step = 1;
    return {place, ISTHMUS_UINT8, 1, &count, &k_step};
  }
  std::int64_t count = static_cast<std::int64_t>(nbytes);
};

enum class bare_use { written, read, hinted };

struct bare_form {
  const char* name;
  bare_use use;
  isthmus_status_t (*call)(const bare_call&);
};

constexpr std::size_t k_one = 1;
constexpr unsigned char k_filled = 0x5a;

constexpr bare_form k_copies[] = {
    {"copy to", bare_use::written,
     [](const bare_call& it) {
       return isthmus_copy(it.queue, &it.at, &it.plain, it.nbytes, nullptr, it.event);
     }},
    {"copy from", bare_use::read,
     [](const bare_call& it) {
       return isthmus_copy(it.queue, &it.plain, &it.at, it.nbytes, nullptr, it.event);
     }},
    {"copy_2d to", bare_use::written,
     [](const bare_call& it) {
       return isthmus_copy_2d(it.queue, &it.at, 1, &it.plain, 1, 1, it.nbytes, nullptr, it.event);
     }},
    {"copy_2d from", bare_use::read,
     [](const bare_call& it) {
       return isthmus_copy_2d(it.queue, &it.plain, 1, &it.at, 1, 1, it.nbytes, nullptr, it.event);
     }},
    {"copy_ranges to", bare_use::written,
     [](const bare_call& it) {
       const isthmus_range_t all{0, 0, it.nbytes};
       return isthmus_copy_ranges(it.queue, &it.at, &it.plain, &all, 1, nullptr, it.event);
     }},
    {"copy_ranges from", bare_use::read,
     [](const bare_call& it) {
       const isthmus_range_t all{0, 0, it.nbytes};
       return isthmus_copy_ranges(it.queue, &it.plain, &it.at, &all, 1, nullptr, it.event);
     }},
    {"copy_nd to", bare_use::written,
     [](const bare_call& it) {
       return isthmus_copy_nd(it.queue, &it.at, &k_one, &it.plain, &k_one, &it.nbytes, 1, 1,
                              nullptr, it.event);
     }},
    {"copy_nd from", bare_use::read,
     [](const bare_call& it) {
       return isthmus_copy_nd(it.queue, &it.plain, &k_one, &it.at, &k_one, &it.nbytes, 1, 1,
                              nullptr, it.event);
     }},
    {"copy_array to", bare_use::written,
     [](const bare_call& it) {
       const isthmus_array_t to = it.array(it.at), from = it.array(it.plain);
       return isthmus_copy_array(it.queue, &to, &from, ISTHMUS_CASTING_NO, nullptr, it.event);
     }},
    {"copy_array from", bare_use::read,
     [](const bare_call& it) {
       const isthmus_array_t to = it.array(it.plain), from = it.array(it.at);
       return isthmus_copy_array(it.queue, &to, &from, ISTHMUS_CASTING_NO, nullptr, it.event);
     }},
};
constexpr bare_form k_fills[] = {
    {"fill", bare_use::written,
     [](const bare_call& it) {
       return isthmus_fill(it.queue, &it.at, &k_filled, 1, it.nbytes, nullptr, it.event);
     }},
    {"fill_array", bare_use::written,
     [](const bare_call& it) {
       const isthmus_array_t to = it.array(it.at);
       return isthmus_fill_array(it.queue, &to, &k_filled, ISTHMUS_UINT8, ISTHMUS_CASTING_NO,
                                 nullptr, it.event);
     }},
};
constexpr bare_form k_hints[] = {
    {"prefetch", bare_use::hinted,
     [](const bare_call& it) {
       return isthmus_prefetch(it.queue, &it.at, it.nbytes, 0, nullptr, it.event);
     }},
    {"advise", bare_use::hinted,
     [](const bare_call& it) {
       return isthmus_advise(it.queue, &it.at, it.nbytes, 0, nullptr, it.event);
     }},
};

std::string address_text(const void* pointer) {
  std::ostringstream text;
  text << pointer;
  return text.str();
}

class bare_pointers : public on_upstreams {
 protected:
  [[nodiscard]] im::resource pool(im::kind kind) const { return upstreams(kind)[0]; }

  // Waits for the completion of an asynchronous call.
  isthmus_status_t run(const bare_form& form, const void* at, void* plain, std::size_t nbytes,
                       bool is_blocking) const {
    isthmus_event_t* event = nullptr;
    const bare_call it{queue_.get(),
                       {nullptr, const_cast<void*>(at), 0},
                       {nullptr, plain, 0},
                       nbytes,
                       is_blocking ? nullptr : &event};
    const isthmus_status_t status = form.call(it);
    if (event != nullptr) im::event::take(event).wait();
    return status;
  }
  template <class Forms>
  void expect_refused(const Forms& forms, const void* at, std::size_t nbytes,
                      isthmus_status_t want) const {
    const bytes before = noise(nbytes, 3);
    for (const bare_form& form : forms) {
      for (const bool is_blocking : {true, false}) {
        bytes plain = before;
        EXPECT_TRUE(
            refused(run(form, at, plain.data(), nbytes, is_blocking), want, {address_text(at)}))
            << form.name;
        EXPECT_TRUE(same(plain, before)) << form.name;
      }
    }
  }
  void expect_all_refused(const void* at, std::size_t nbytes, isthmus_status_t want) const {
    expect_refused(k_copies, at, nbytes, want);
    expect_refused(k_fills, at, nbytes, want);
    expect_refused(k_hints, at, nbytes, want);
  }
  void put(void* at, const bytes& data) const {
    bytes from = data;
    ASSERT_EQ(run(k_copies[0], at, from.data(), data.size(), true), ISTHMUS_OK);
  }
  [[nodiscard]] bytes get(const void* at, std::size_t nbytes) const {
    bytes into(nbytes);
    EXPECT_EQ(run(k_copies[1], at, into.data(), nbytes, true), ISTHMUS_OK);
    return into;
  }
  // Expects that every form succeeds on a live block.
  void expect_all_work(void* at, std::size_t nbytes) const {
    const bytes data = noise(nbytes, 7), other = noise(nbytes, 8);
    for (const bare_form& form : k_copies) {
      put(at, data);
      bytes plain = other;
      EXPECT_EQ(run(form, at, plain.data(), nbytes, true), ISTHMUS_OK) << form.name;
      EXPECT_TRUE(same(plain, form.use == bare_use::read ? data : other)) << form.name;
      EXPECT_TRUE(same(get(at, nbytes), form.use == bare_use::read ? data : other)) << form.name;
    }
    for (const bare_form& form : k_fills) {
      put(at, data);
      EXPECT_EQ(run(form, at, nullptr, nbytes, false), ISTHMUS_OK) << form.name;
      EXPECT_TRUE(same(get(at, nbytes), bytes(nbytes, std::byte{k_filled}))) << form.name;
    }
  }
};
INSTANTIATE_ON_BACKENDS(bare_pointers);

constexpr std::size_t k_block_bytes = 1000;
constexpr std::size_t k_run_bytes = 300'001;  // in a pool, a page run of its own

TEST_P(bare_pointers, into_freed_blocks_of_a_pool_are_refused) {
  for (const im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    for (const std::size_t nbytes : {k_block_bytes, k_run_bytes}) {
      SCOPED_TRACE(std::string(name(kind)) + " " + std::to_string(nbytes));
      auto* const freed = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
      void* const live = from.allocate(nbytes, 0, queue_);
      const bytes data = noise(nbytes);
      put(live, data);
      from.deallocate(freed, nbytes, 0, queue_);
      expect_all_refused(freed, 16, ISTHMUS_ERROR_INVALID_ARGUMENT);
      expect_all_refused(freed + 1, nbytes - 1, ISTHMUS_ERROR_INVALID_ARGUMENT);
      EXPECT_TRUE(same(get(live, nbytes), data)) << "its neighbour";
      expect_all_work(live, nbytes);
      from.deallocate(live, nbytes, 0, queue_);
    }
  }
}

TEST_P(bare_pointers, refusals_say_what_lies_there) {
  for (const im::kind kind : kinds()) {
    const im::resource from = pool(kind);
    void* const block = from.allocate(k_block_bytes, 0, queue_);
    from.deallocate(block, k_block_bytes, 0, queue_);
    EXPECT_TRUE(refused(run(k_fills[0], block, nullptr, 16, true), ISTHMUS_ERROR_INVALID_ARGUMENT,
                        {address_text(block), "free memory of a pool of", std::string(name(kind)),
                         std::string(device_.info().filter)}));
  }
}

// An address near `block` in memory of the pool that was never allocated.
const std::byte* never_allocated_near(const std::byte* block) {
  constexpr std::ptrdiff_t k_step = 64 * 1024;
  for (std::ptrdiff_t steps = 1; steps < 32; ++steps) {
    for (const std::ptrdiff_t offset : {steps * k_step, -steps * k_step}) {
      if (im::query(block + offset).state == im::memory_state::free) return block + offset;
    }
  }
  return nullptr;
}

TEST_P(bare_pointers, into_memory_that_a_pool_never_allocated_are_refused) {
  for (const im::kind kind : kinds()) {
    const im::resource from =
        im::resource::pool(queue_.context(), kind, {.initial_bytes = 4 * k_mib}, device_);
    auto* const block = static_cast<std::byte*>(from.allocate(k_run_bytes, 0, queue_));
    const std::byte* const unused = never_allocated_near(block);
    ASSERT_NE(unused, nullptr);
    expect_all_refused(unused, 100, ISTHMUS_ERROR_INVALID_ARGUMENT);
    expect_all_work(block, k_block_bytes);
    from.deallocate(block, k_run_bytes, 0, queue_);
  }
}

TEST_P(bare_pointers, past_the_end_of_a_block_are_refused) {
  for (const im::kind kind : kinds()) {
    const im::resource from =
        im::resource::pool(queue_.context(), kind, {.initial_bytes = 4 * k_mib}, device_);
    for (const std::size_t nbytes : {k_block_bytes, k_run_bytes}) {
      SCOPED_TRACE(std::string(name(kind)) + " " + std::to_string(nbytes));
      auto* const block = static_cast<std::byte*>(from.allocate(nbytes, 0, queue_));
      const std::size_t usable = im::query(block).nbytes;
      ASSERT_GE(usable, nbytes);
      put(block, noise(usable));
      expect_all_refused(block, usable + 1, ISTHMUS_ERROR_OUT_OF_RANGE);
      expect_all_refused(block + usable - 1, 2, ISTHMUS_ERROR_OUT_OF_RANGE);
      if (im::query(block + usable).state == im::memory_state::free) {
        expect_all_refused(block + usable, 1, ISTHMUS_ERROR_INVALID_ARGUMENT);
      }
      EXPECT_TRUE(same(get(block, usable), noise(usable)));
      from.deallocate(block, nbytes, 0, queue_);
    }
  }
}

TEST_P(bare_pointers, into_freed_blocks_of_what_cuts_them_are_refused) {
  for (const im::kind kind : kinds()) {
    for (const im::resource& bottom : upstreams(kind)) {
      for (const im::resource& from :
           {im::resource::arena(bottom), im::resource::fixed_size(bottom, 1024, 4),
            im::resource::monotonic(bottom, 8 * k_kib)}) {
        void* const freed = from.allocate(k_block_bytes, 0, queue_);
        void* const live = from.allocate(k_block_bytes, 0, queue_);
        const bytes data = noise(k_block_bytes);
        put(live, data);
        from.deallocate(freed, k_block_bytes, 0, queue_);
        expect_all_refused(freed, 100, ISTHMUS_ERROR_INVALID_ARGUMENT);
        EXPECT_TRUE(same(get(live, k_block_bytes), data));
        from.deallocate(live, k_block_bytes, 0, queue_);
      }
    }
  }
}

// Memory of a provider: only its allocation record says that it was freed.
TEST_P(bare_pointers, into_a_providers_memory_that_waits_for_work_are_refused) {
  if (!can(im::capability::wait_for_host)) GTEST_SKIP() << "nothing can be held up";
  for (const im::kind kind : kinds()) {
    const im::resource from = im::resource::provider(queue_.context(), kind, device_);
    const im::host_event gate;
    im::buffer made(k_block_bytes, kind, {.queue = queue_, .resource = from});
    const auto* const at = static_cast<const std::byte*>(made.pointer());
    (void)im::fill_async(made, std::byte{1}, {.after = gate});
    made = {};
    EXPECT_EQ(im::query(at).state, im::memory_state::waiting);
    expect_all_refused(at, 100, ISTHMUS_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(throws(im::status::invalid_argument, {"freed"}, [&] { from.record(at, queue_); }));
    gate.complete();
    queue_.wait();
    EXPECT_TRUE(eventually([&] { return im::query(at).state == im::memory_state::unknown; }));
  }
}

// Adopted memory still belongs to its owner, who may use it while work of a destroyed buffer is
// pending.
TEST_P(bare_pointers, into_adopted_memory_that_waits_for_work_are_the_owners) {
  if (GetParam() != "host") GTEST_SKIP() << "which takes what no driver has given";
  bytes plain = noise(k_block_bytes), back(k_block_bytes);
  const im::host_event gate;
  {
    const im::buffer adopted =
        im::buffer::adopt(plain.data(), k_block_bytes, [](void*) noexcept {}, {.queue = queue_});
    (void)im::fill_async(adopted, std::byte{1}, {.after = gate});
  }
  const isthmus_endpoint_t from{nullptr, plain.data(), 0}, to{nullptr, back.data(), 0};
  EXPECT_EQ(isthmus_copy(nullptr, &to, &from, k_block_bytes, nullptr, nullptr), ISTHMUS_OK);
  EXPECT_TRUE(same(back, noise(k_block_bytes)));
  gate.complete();
  queue_.wait();
}

// An unchecked pool does not know which small blocks are live, but it knows which page runs are.
TEST_P(bare_pointers, into_freed_runs_of_an_unchecked_pool_are_refused) {
  for (const im::kind kind : kinds()) {
    const im::resource from =
        im::resource::pool(queue_.context(), kind, {.checked = false}, device_);
    void* const block = from.allocate(k_run_bytes, 0, queue_);
    expect_all_work(block, k_block_bytes);
    from.deallocate(block, k_run_bytes, 0, queue_);
    expect_all_refused(block, 100, ISTHMUS_ERROR_INVALID_ARGUMENT);
  }
}

TEST_P(bare_pointers, to_plain_memory_are_ends_of_copies) {
  const bytes data = noise(k_block_bytes);
  bytes from = data;
  for (const bare_form& form : k_copies) {
    for (const bool is_blocking : {true, false}) {
      bytes at(k_block_bytes), plain(k_block_bytes);
      (form.use == bare_use::read ? at : plain) = data;
      EXPECT_EQ(run(form, at.data(), plain.data(), k_block_bytes, is_blocking), ISTHMUS_OK)
          << form.name;
      EXPECT_TRUE(same(at, data)) << form.name;
      EXPECT_TRUE(same(plain, data)) << form.name;
    }
  }
}

TEST_P(bare_pointers, to_plain_memory_are_not_what_a_device_fills) {
  const bytes before = noise(k_block_bytes), filled(k_block_bytes, std::byte{k_filled});
  const bool is_refused = contains(GetParam(), "sim") || GetParam() == "cuda";
  for (const bare_form& form : k_fills) {
    for (const bool is_blocking : {true, false}) {
      bytes plain = before;
      const isthmus_status_t got = run(form, plain.data(), nullptr, k_block_bytes, is_blocking);
      if (got != ISTHMUS_OK) {  // other backends accept it if the device can access host memory
        EXPECT_NE(GetParam(), "host");
        EXPECT_TRUE(refused(got, ISTHMUS_ERROR_INVALID_ARGUMENT,
                            {address_text(plain.data()), "plain host memory"}));
      } else {
        EXPECT_FALSE(is_refused) << form.name;
      }
      EXPECT_TRUE(same(plain, got == ISTHMUS_OK ? filled : before)) << form.name;
    }
  }
}

TEST_P(bare_pointers, to_plain_memory_are_filled_without_a_queue) {
  bytes plain = noise(k_block_bytes);
  const isthmus_endpoint_t at{nullptr, plain.data(), 0};
  EXPECT_EQ(isthmus_fill(nullptr, &at, &k_filled, 1, k_block_bytes, nullptr, nullptr), ISTHMUS_OK);
  EXPECT_TRUE(same(plain, bytes(k_block_bytes, std::byte{k_filled})));
}

TEST_P(bare_pointers, to_plain_memory_take_no_hints) {
  bytes plain = noise(k_block_bytes);
  if (GetParam() == "host") {  // host memory is the device's memory there
    EXPECT_EQ(run(k_hints[0], plain.data(), nullptr, k_block_bytes, true), ISTHMUS_OK);
  } else {
    expect_refused(k_hints, plain.data(), k_block_bytes, ISTHMUS_ERROR_INVALID_ARGUMENT);
  }
  const isthmus_endpoint_t at{nullptr, plain.data(), 0};
  EXPECT_TRUE(refused(isthmus_prefetch(nullptr, &at, k_block_bytes, 0, nullptr, nullptr),
                      ISTHMUS_ERROR_INVALID_ARGUMENT, {address_text(plain.data())}));
  EXPECT_TRUE(same(plain, noise(k_block_bytes)));
}

TEST_P(bare_pointers, of_the_low_level_functions_are_refused) {
  namespace low = im::low_level;
  const im::context home = im::context::of(device_);
  const im::queue on = low::global_queue(home, device_);
  const im::kind kind = kinds().front();
  const im::resource from = im::resource::pool(home, kind, {}, device_);
  void* const freed = from.allocate(k_block_bytes, 0, on);
  from.deallocate(freed, k_block_bytes, 0, on);
  bytes plain = noise(k_block_bytes);
  const auto refuses = [&](auto&& call) {
    EXPECT_TRUE(throws(im::status::invalid_argument, {"not allocated"}, call));
  };
  refuses([&] { (void)low::unsafe_copyto<std::byte>(home, device_, freed, plain.data(), 9); });
  refuses([&] { (void)low::unsafe_copyto<std::byte>(home, device_, plain.data(), freed, 9); });
  refuses([&] { (void)low::unsafe_fill<std::byte>(home, device_, freed, std::byte{1}, 9); });
  refuses([&] { low::prefetch(on, freed, 9); });
  refuses([&] {
    low::command_list list;
    list.append_fill(freed, std::byte{1}, 9);
    low::execute(on, list).wait();
  });
  EXPECT_TRUE(same(plain, noise(k_block_bytes)));
}

}  // namespace
