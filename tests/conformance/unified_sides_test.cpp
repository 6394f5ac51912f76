// SPDX-License-Identifier: Apache-2.0
// Random operations on a unified buffer against a model of both sides, byte by byte: what each side
// holds, what it ever held, and which one is newer. Device copies are made for a part and evicted
// when memory is short, either side may win, work that a copy is ordered after may fail, and driver
// calls may fail. After each step the dirty ranges of either side are exactly the model's.
#include "support/unified.hpp"

namespace {

using namespace support;

class unified_sides : public on_unified {
 protected:
  // Makes the simulated driver fail its `call`-th call from now; 0: none.
  void refuse(std::size_t call) const {
    const auto order = "fail=" + (call == 0 ? std::string("none") : "any:" + std::to_string(call));
    if (is_simulated()) im::detail::check(isthmus_sim_configure(device_.get(), order.c_str()));
  }
  static bool is_simulated() { return GetParam().backend.starts_with("sim"); }
};
ISTHMUS_ON_UNIFIED(unified_sides);

// Which side has newer bytes. Both bits: a conflict.
constexpr unsigned k_host = 1;
constexpr unsigned k_device = 2;

struct model_side {
  explicit model_side(std::size_t nbytes) : data(nbytes), has(nbytes) {}
  bytes data;
  std::vector<bool> has;
  bool is_there = false;
};

template <class Container>
auto at(Container& all, std::size_t index) {
  return all.begin() + static_cast<std::ptrdiff_t>(index);
}

class sides_model {
 public:
  sides_model(unified it, const im::resource& pool, const im::queue& on, unsigned seed,
              bool can_hold)
      : it_(std::move(it)),
        pool_(pool),
        queue_(on),
        random_(seed),
        can_hold_(can_hold),
        host_(it_.size()),
        device_(it_.size()),
        newer_(it_.size(), 0) {}

  void step() {
    switch (random_() % 12) {
      case 0: return write_on_host();
      case 1: return write_on_device();
      case 2: return write_on_device_unsent();
      case 3: return read_host();
      case 4: return send(false);
      case 5: return send(true);
      case 6: return fetch(false);
      case 7: return fetch(true);
      case 8: return resolve_for_host();
      case 9: return resolve_for_device();
      case 10: return press();
      default: return overwrite_on_host();
    }
  }
  void expect_as_modelled() {
    if (host_.is_there && device_.is_there) {
      EXPECT_EQ(it_.dirty_on_host(), ranges_of(k_host));
      EXPECT_EQ(it_.dirty_on_device(), ranges_of(k_device));
    }
    if (!device_.is_there) return;
    const bytes got = patiently_read();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (device_.has[i] && got[i] != device_.data[i]) {
        ADD_FAILURE() << "byte " << i << " of the device copy";
        return;
      }
    }
  }
  // After resolving every part for one side or the other, both sides are equal.
  void finish() {
    for (std::size_t begin = 0; begin < it_.size(); begin += 7000) {
      const im::element_range part{begin, std::min(it_.size(), begin + 7000)};
      random_() % 2 == 0 ? win_on_host(part) : win_on_device(part);
    }
    fetch_range(it_.all());
    send_range(it_.all());
    expect_as_modelled();
    EXPECT_TRUE(same(it_.host_read(), host_.data));
    EXPECT_TRUE(same(patiently_read(), host_.data));
  }

 private:
  using range = im::element_range;

  range some() {
    const auto begin = random_() % it_.size();
    const auto longest = random_() % 4 == 0 ? it_.size() : std::min<std::size_t>(it_.size(), 9000);
    return {begin, std::min(it_.size(), begin + 1 + random_() % longest)};
  }
  bool is_in_conflict(range part) const {
    return std::any_of(at(newer_, part.begin), at(newer_, part.end),
                       [](unsigned each) { return each == (k_host | k_device); });
  }
  std::vector<range> ranges_of(unsigned which) const {
    std::vector<range> all;
    for (std::size_t i = 0; i < newer_.size(); ++i) {
      if ((newer_[i] & which) == 0) continue;
      if (!all.empty() && all.back().end == i) {
        ++all.back().end;
      } else {
        all.push_back({i, i + 1});
      }
    }
    return all;
  }
  // Repeats a call that fails because the driver fails, or that reports an earlier failure.
  template <class Call>
  void eventually(Call call) {
    for (int tries = 0;; ++tries) {
      try {
        return call();
      } catch (const im::error& problem) {
        const bool may = problem.status() == im::status::driver ||
                         problem.status() == im::status::dependency ||
                         problem.status() == im::status::out_of_memory;
        if (!may || tries == 5) throw;
      }
    }
  }
  // Returns whether the call failed with a conflict, and checks that the model predicts it.
  template <class Call>
  bool conflicts(range part, Call call) {
    if (!is_in_conflict(part)) {
      eventually(call);
      return false;
    }
    try {
      eventually(call);
      ADD_FAILURE() << "no conflict in " << part.begin << " to " << part.end;
    } catch (const im::error& problem) {
      EXPECT_EQ(problem.status(), im::status::conflict) << problem.what();
    }
    return true;
  }
  bytes patiently_read() {
    bytes got(it_.size());
    eventually([&] { im::copy(std::span(got), it_.device({0, 0})); });
    return got;
  }

  void begin_host() {
    if (host_.is_there) return;
    host_.is_there = true;
    host_.has.assign(it_.size(), !device_.is_there);
    newer_.assign(it_.size(), device_.is_there ? k_device : 0);
  }
  void begin_device() {
    if (device_.is_there) return;
    device_.is_there = true;
    device_.has.assign(it_.size(), !host_.is_there);
    newer_.assign(it_.size(), host_.is_there ? k_host : 0);
    if (!host_.is_there) fill_all_of_device();
  }
  // New device memory has undefined contents, so all of it is written first.
  void fill_all_of_device() {
    const auto data = noise(it_.size(), static_cast<unsigned>(random_()));
    eventually([&] { im::copy(it_.device({0, 0}), std::span(data)); });
    device_.data = data;
  }
  void take(model_side& to, const model_side& from, unsigned newer, range part) {
    for (auto i = part.begin; i < part.end; ++i) {
      if (newer_[i] != newer) continue;
      EXPECT_TRUE(from.has[i]) << "byte " << i << " is to come from a side that never held it";
      to.data[i] = from.data[i];
      to.has[i] = true;
      newer_[i] = 0;
    }
  }
  void put(model_side& to, unsigned newer, range part, const bytes& data) {
    std::copy(data.begin(), data.end(), at(to.data, part.begin));
    std::fill(at(to.has, part.begin), at(to.has, part.end), true);
    for (auto i = part.begin; i < part.end; ++i) newer_[i] |= newer;
  }

  void write_on_host() {
    const auto part = some();
    const auto data = noise(part.end - part.begin, static_cast<unsigned>(random_()));
    begin_host();
    const bool refused = conflicts(part, [&] {
      it_.host_write(part, [&](std::span<std::byte> all) {
        take(host_, device_, k_device, part);
        EXPECT_TRUE(same(all, std::span(host_.data).subspan(part.begin, all.size())));
        std::copy(data.begin(), data.end(), all.begin());
      });
    });
    if (!refused) put(host_, k_host, part, data);
  }
  // Overwrites the whole buffer, whatever either side holds.
  void overwrite_on_host() {
    if (random_() % 4 != 0) return;
    const auto data = noise(it_.size(), static_cast<unsigned>(random_()));
    begin_host();
    eventually([&] { it_.copy_from(std::span<const std::byte>(data)); });
    newer_.assign(it_.size(), 0);
    put(host_, k_host, it_.all(), data);
  }
  // With hashes, uploads send whole chunks.
  range widened(range part) const {
    const auto info = it_.info();
    if (info.tracking != im::tracking_mechanism::hashes || !host_.is_there) return part;
    const auto chunk = info.granule;
    return {part.begin / chunk * chunk,
            std::min(it_.size(), (part.end + chunk - 1) / chunk * chunk)};
  }
  void write_on_device() {
    const auto part = some();
    const auto data = noise(part.end - part.begin, static_cast<unsigned>(random_()));
    begin_device();
    const auto sent = widened(part);
    const bool refused = conflicts(sent, [&] {
      it_.device_write(part, [&](const im::buffer& all) {
        im::copy(all.slice(part.begin, data.size()), std::span(data));
      });
    });
    if (refused) return;
    take(device_, host_, k_host, sent);
    put(device_, host_.is_there ? k_device : 0, part, data);
  }
  // As a kernel does that writes outside the part that its caller requested.
  void write_on_device_unsent() {
    const auto part = some();
    const auto data = noise(part.end - part.begin, static_cast<unsigned>(random_()));
    begin_device();
    eventually(
        [&] { im::copy(it_.device({0, 0}).slice(part.begin, data.size()), std::span(data)); });
    eventually([&] { it_.mark_device(part); });
    put(device_, host_.is_there ? k_device : 0, part, data);
  }
  void read_host() {
    const auto part = some();
    begin_host();
    std::span<const std::byte> got;
    if (conflicts(part, [&] { got = it_.host_read(part); })) return;
    take(host_, device_, k_device, part);
    EXPECT_TRUE(same(got, std::span(host_.data).subspan(part.begin, got.size())));
  }
  void send_range(range part) {
    begin_device();
    if (conflicts(part, [&] { it_.sync_to_device(part); })) return;
    take(device_, host_, k_host, part);
  }
  // With an event, or ordered after external work that fails.
  void send(bool after_failure) {
    const auto part = some();
    begin_device();
    if (after_failure && can_hold_) {
      const im::host_event work;
      eventually([&] { it_.device({0, 0}).record(work); });
      const bool refused = conflicts(part, [&] { (void)it_.sync_to_device_async(part); });
      work.fail("another library's work failed");
      if (!refused) settle_upload(part);
      return;
    }
    if (!conflicts(part, [&] {
          const im::event sent = it_.sync_to_device_async(part);
          if (sent) sent.wait();
        })) {
      take(device_, host_, k_host, part);
    }
  }
  // A driver failure that no caller waited for is reported by the next call, and the upload is
  // repeated.
  void settle_upload(range part) {
    eventually([&] { queue_.fence().wait(); });
    eventually([&] { it_.sync_to_device(part); });
    take(device_, host_, k_host, part);
  }
  void fetch_range(range part) {
    begin_host();
    if (conflicts(part, [&] { it_.sync_to_host(part); })) return;
    take(host_, device_, k_device, part);
  }
  void fetch(bool with_event) {
    const auto part = some();
    begin_host();
    const bool refused = conflicts(part, [&] {
      if (!with_event) return it_.sync_to_host(part);
      const im::event got = it_.sync_to_host_async(part);
      if (got) got.wait();
    });
    if (!refused) take(host_, device_, k_device, part);
  }
  void win_on_host(range part) {
    eventually([&] { it_.resolve(im::winner::host, part); });
    for (auto i = part.begin; i < part.end; ++i) {
      if ((newer_[i] & k_device) != 0 && host_.has[i]) newer_[i] = k_host;
    }
  }
  void win_on_device(range part) {
    if (!device_.is_there) return;
    eventually([&] { it_.resolve(im::winner::device, part); });
    begin_host();
    for (auto i = part.begin; i < part.end; ++i) {
      if ((newer_[i] & k_host) != 0 && device_.has[i]) newer_[i] = k_device;
    }
    take(host_, device_, k_device, part);
  }
  void resolve_for_host() { win_on_host(some()); }
  void resolve_for_device() { win_on_device(some()); }
  // A request of another owner evicts the device copy if the host copy is as recent.
  void press() {
    const bool may_go = device_.is_there && host_.is_there && ranges_of(k_device).empty();
    try {
      const im::buffer all(4 * k_mib - 64 * k_kib, im::kind::device,
                           {.queue = queue_, .resource = pool_});
    } catch (const im::error&) {
      // The device copy takes the rest.
    }
    if (device_.is_there && it_.state() == im::unified_state::host_only) {
      EXPECT_TRUE(may_go) << "the device's bytes are lost";
      device_.is_there = false;
      newer_.assign(it_.size(), 0);
    }
  }

  unified it_;
  im::resource pool_;
  im::queue queue_;
  std::mt19937_64 random_;
  bool can_hold_;
  model_side host_;
  model_side device_;
  std::vector<unsigned> newer_;
};

TEST_P(unified_sides, random_operations) {
  if (one_memory()) GTEST_SKIP() << "there are no two sides";
  const bool can_hold = device_.can(im::capability::wait_for_host);
  for (const std::size_t nbytes : {std::size_t{100}, std::size_t{40'000}, std::size_t{200'000}}) {
    const unsigned seeds = nbytes > 100'000 || k_slower > 1 ? 2 : 6;
    for (unsigned seed = 1; seed <= seeds; ++seed) {
      SCOPED_TRACE(std::to_string(nbytes) + " bytes, seed " + std::to_string(seed));
      const im::resource pool = im::resource::pool(queue_.context(), im::kind::device,
                                                   {.limit_bytes = 4 * k_mib}, device_);
      auto how = options();
      how.resource = pool;
      sides_model run(unified(nbytes, how), pool, queue_, seed, can_hold);
      for (int i = 0; i < 60 && !HasFailure(); ++i) {
        SCOPED_TRACE("step " + std::to_string(i));
        if (seed % 2 == 0 && i % 3 == 0) refuse(1 + static_cast<std::size_t>(i) / 3 % 5);
        run.step();
        refuse(0);
        run.expect_as_modelled();
      }
      run.finish();
      if (HasFailure()) return;
    }
  }
}

}  // namespace
