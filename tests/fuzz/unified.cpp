// SPDX-License-Identifier: Apache-2.0
// Decodes bytes to calls on unified buffers, with each way of finding host writes. Whatever the
// order and the arguments, every call returns a documented status, ranges lie in the buffer, and
// views remain writable until they end. After conflicts are resolved both copies are equal.
#include <isthmus/experimental.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "devices.hpp"
#include "infos.hpp"

namespace {

using namespace fuzz;

constexpr std::size_t k_most = 4;  // objects of each type

struct made {
  isthmus_unified_t* handle;
  std::size_t nbytes;
};
// Holds a reference to the buffer until it ends.
struct view {
  isthmus_unified_t* of;
  unsigned char* at;
  std::size_t nbytes;
};

class machine {
 public:
  machine(input& from, isthmus_device_t* device) : from_(from) {
    for (auto& each : queues_) {
      require(isthmus_queue_create(nullptr, device, &each) == ISTHMUS_OK);
    }
  }
  ~machine() {
    for (isthmus_event_t* each : events_) {
      require(isthmus_event_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
      isthmus_event_release(each);
    }
    while (!views_.empty()) end_view();
    for (const made& each : all_) {
      expect_same(each);
      isthmus_unified_release(each.handle);
    }
    for (isthmus_queue_t* each : queues_) {
      require(isthmus_queue_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
      isthmus_queue_release(each);
    }
    require(isthmus_dirty_tracking_force(ISTHMUS_DIRTY_TRACKING_DEFAULT) == ISTHMUS_OK);
  }

  void step() {
    switch (from_.byte() % 20) {
      case 0: return create();
      case 1: return drop();
      case 2: return view_host();
      case 3: return write_view();
      case 4: return end_view();
      case 5: return read_host();
      case 6: return write_exactly();
      case 7: return write_on_device(isthmus_unified_device);
      case 8: return write_on_device(isthmus_unified_begin_device_write);
      case 9: return move(isthmus_unified_to_device);
      case 10: return move(isthmus_unified_to_host);
      case 11: return synchronize();
      case 12: return mark();
      case 13: return resolve();
      case 14: return forget();
      case 15: return wait();
      case 16: return tracking();
      case 17: return move_after_a_failure();
      case 18: return press();
      default: return look();
    }
  }

 private:
  struct range {
    std::size_t offset, nbytes;
  };

  made any() {
    const std::size_t index = from_.byte();
    return all_.empty() || index == 255 ? made{nullptr, 0} : all_[index % all_.size()];
  }
  isthmus_queue_t* queue() {
    const std::uint8_t which = from_.byte();
    return which % 4 == 3 ? nullptr : queues_[which % 2];
  }
  // A range that is mostly within the buffer, and sometimes past its end.
  range part(const made& of) {
    const std::size_t begin = from_.size(), nbytes = from_.size();
    if (of.nbytes == 0 || begin > 0xffff || from_.byte() == 255) return {begin, nbytes};
    const std::size_t offset = begin * (of.nbytes / 2048 + 1) % of.nbytes;
    return {offset, std::min(nbytes * (of.nbytes / 2048 + 1), of.nbytes - offset)};
  }
  static bool lies_within(const range& it, const made& of) {
    return it.offset <= of.nbytes && it.nbytes <= of.nbytes - it.offset;
  }
  bool is_ok(isthmus_status_t code, const range& it, const made& of) {
    expect_documented(code);
    require(code != ISTHMUS_OK || lies_within(it, of));
    return code == ISTHMUS_OK;
  }

  void create() {
    isthmus_unified_options_t how{};
    how.struct_size = from_.byte() == 255 ? 1 : sizeof how;
    how.pinned = from_.byte() % 4 == 0 ? 1 : 0;
    how.separate = from_.byte() % 4 != 0 ? 1 : 0;
    how.on_conflict = from_.byte() % 8 - 1;
    how.by_page = from_.byte() % 4 == 0 ? 1 : 0;
    how.tracking = from_.byte() % 6 - 1;
    const std::size_t size = from_.size(), factor = from_.byte() % 4 == 0 ? 128 : 1;
    const std::size_t nbytes = size > 0xffff ? size : size * factor;
    isthmus_unified_t* handle = nullptr;
    const isthmus_status_t code =
        isthmus_unified_create(nbytes, queues_[from_.byte() % 2], &how, &handle);
    expect_documented(code);
    require((code == ISTHMUS_OK) == (handle != nullptr));
    // A buffer of impossible size can be created, but any call that needs its memory fails, even
    // for no bytes.
    if (handle != nullptr && nbytes > (1U << 20)) {
      void* pointer = nullptr;
      require(isthmus_unified_host(handle, 0, 0, &pointer) != ISTHMUS_OK && pointer == nullptr);
      isthmus_unified_release(handle);
    } else if (handle != nullptr) {
      all_.push_back({handle, nbytes});
      if (all_.size() > k_most) drop();
    }
  }
  void drop() {
    if (all_.empty()) return;
    const std::size_t which = from_.byte() % all_.size();
    if (from_.byte() % 2 == 0) {
      isthmus_unified_free(all_[which].handle);
      isthmus_unified_info_t info{};
      info.struct_size = sizeof info;
      require(isthmus_unified_info(all_[which].handle, &info) == ISTHMUS_ERROR_CLOSED);
    }
    isthmus_unified_release(all_[which].handle);
    all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void view_host() {
    const made of = any();
    const range it = part(of);
    void* pointer = nullptr;
    if (!is_ok(isthmus_unified_host(of.handle, it.offset, it.nbytes, &pointer), it, of)) return;
    isthmus_unified_retain(of.handle);
    views_.push_back({of.handle, static_cast<unsigned char*>(pointer), it.nbytes});
    if (views_.size() > k_most) end_view();
  }
  void write_view() {
    if (views_.empty()) return;
    const view& it = views_[from_.byte() % views_.size()];
    if (it.nbytes == 0) return;
    const std::size_t at = from_.size() % it.nbytes;
    std::memset(it.at + at, from_.byte(), std::min<std::size_t>(from_.byte(), it.nbytes - at));
  }
  void end_view() {
    if (views_.empty()) return;
    isthmus_unified_end_host(views_.front().of);
    isthmus_unified_release(views_.front().of);
    views_.erase(views_.begin());
  }
  void read_host() {
    const made of = any();
    const range it = part(of);
    const void* pointer = nullptr;
    if (!is_ok(isthmus_unified_read_host(of.handle, it.offset, it.nbytes, &pointer), it, of))
      return;
    const auto* const bytes = static_cast<const unsigned char*>(pointer);
    sum_ = sum_ + std::count(bytes, bytes + it.nbytes, 0);
  }
  void write_exactly() {
    const made of = any();
    const range it = part(of);
    const int keeps = from_.byte() % 2;
    void* pointer = nullptr;
    if (!is_ok(isthmus_unified_begin_write(of.handle, it.offset, it.nbytes, keeps, &pointer), it,
               of)) {
      return;
    }
    std::memset(pointer, from_.byte(), it.nbytes);
    expect_documented(isthmus_unified_end_write(of.handle, it.offset, it.nbytes, keeps));
  }
  template <class Device>
  void write_on_device(Device device) {
    const made of = any();
    const range it = part(of);
    isthmus_queue_t* const on = queue();
    isthmus_buffer_t* memory = nullptr;
    if (!is_ok(device(of.handle, on, it.offset, it.nbytes, &memory), it, of)) return;
    const isthmus_endpoint_t to{memory, nullptr, it.offset};
    const std::uint8_t value = from_.byte();
    isthmus_event_t* event = nullptr;
    expect_documented(isthmus_fill(on, &to, &value, 1, it.nbytes, nullptr, &event));
    keep(event);
    isthmus_buffer_release(memory);
    expect_documented(isthmus_unified_mark_device(of.handle, it.offset, it.nbytes));
  }
  void keep(isthmus_event_t* event) {
    if (event != nullptr) from_.keep(events_, k_most, event, isthmus_event_release);
  }
  template <class Move>
  void move(Move bring) {
    const made of = any();
    const range it = part(of);
    isthmus_event_t* event = nullptr;
    const bool waits = from_.byte() % 2 == 0;
    is_ok(bring(of.handle, queue(), it.offset, it.nbytes, waits ? nullptr : &event), it, of);
    keep(event);
  }
  // External work on the device copy, which fails after a copy was ordered after it.
  void move_after_a_failure() {
    const made of = any();
    const range it = part(of);
    isthmus_buffer_t* memory = nullptr;
    isthmus_queue_t* const on = queue();
    if (!is_ok(isthmus_unified_device(of.handle, on, 0, 0, &memory), {0, 0}, of)) return;
    isthmus_event_t* work = nullptr;
    isthmus_event_t* event = nullptr;
    require(isthmus_event_create(&work) == ISTHMUS_OK);
    expect_documented(isthmus_buffer_record_event(memory, work));
    isthmus_buffer_release(memory);
    const auto bring = from_.byte() % 2 == 0 ? isthmus_unified_to_device : isthmus_unified_to_host;
    is_ok(bring(of.handle, queue(), it.offset, it.nbytes, &event), it, of);
    require(isthmus_event_complete(work, ISTHMUS_ERROR_CALLBACK, "it failed") == ISTHMUS_OK);
    isthmus_event_release(work);
    // The copy is ordered after that work but does not depend on it.
    if (event != nullptr) require(isthmus_event_wait(event, -1) != ISTHMUS_ERROR_DEPENDENCY);
    keep(event);
  }
  // A request of another owner, which may evict device copies.
  void press() {
    isthmus_buffer_t* memory = nullptr;
    const std::size_t nbytes = (std::size_t{1} + from_.byte()) * 256;
    expect_documented(
        isthmus_buffer_create(nbytes, ISTHMUS_KIND_DEVICE, 0, queues_[0], nullptr, &memory));
    isthmus_buffer_release(memory);
  }
  void synchronize() {
    std::vector<isthmus_unified_t*> some;
    for (int i = from_.byte() % 6; i > 0; --i) some.push_back(any().handle);
    expect_documented(isthmus_unified_synchronize(some.data(), some.size(), queue()));
  }
  void mark() {
    const made of = any();
    const range it = part(of);
    is_ok(from_.byte() % 2 == 0 ? isthmus_unified_mark_host(of.handle, it.offset, it.nbytes)
                                : isthmus_unified_mark_device(of.handle, it.offset, it.nbytes),
          it, of);
  }
  void resolve() {
    const made of = any();
    const range it = part(of);
    is_ok(isthmus_unified_resolve(of.handle, from_.byte() % 5 - 1, it.offset, it.nbytes), it, of);
  }
  // The copies may differ afterwards, until one of them is declared as written.
  void forget() {
    const made of = any();
    const isthmus_status_t code = isthmus_unified_forget(of.handle);
    expect_documented(code);
    if (code != ISTHMUS_OK || isthmus_unified_mark_host(of.handle, 0, of.nbytes) == ISTHMUS_OK) {
      return;
    }
    expect_documented(isthmus_unified_mark_device(of.handle, 0, of.nbytes));
  }
  void wait() {
    if (events_.empty()) return;
    expect_documented(isthmus_event_wait(events_[from_.byte() % events_.size()], -1));
  }
  void tracking() {
    isthmus_dirty_tracking_info_t now{};
    expect_documented(isthmus_dirty_tracking_force(from_.byte() % 6 - 1));
    require(read_info(from_, now, isthmus_dirty_tracking_info) == ISTHMUS_OK);
    require(now.mechanism >= ISTHMUS_DIRTY_TRACKING_PAGES &&
            now.mechanism <= ISTHMUS_DIRTY_TRACKING_HASHES);
    require(now.granule != 0 && now.reason != nullptr);
  }
  void look() {
    const made of = any();
    isthmus_unified_info_t info{};
    const isthmus_status_t code = read_info(from_, info, isthmus_unified_info, of.handle);
    if (code != ISTHMUS_OK) return;
    require(info.nbytes == of.nbytes && info.state >= ISTHMUS_UNIFIED_UNINITIALIZED &&
            info.state <= ISTHMUS_UNIFIED_DEVICE_DIRTY);
    const bool host_owes = expect_in_order(of, 0), device_owes = expect_in_order(of, 1);
    // A pending transfer may have completed meanwhile.
    require(!device_owes || info.state == ISTHMUS_UNIFIED_DEVICE_DIRTY);
    require(host_owes || info.state != ISTHMUS_UNIFIED_HOST_DIRTY);
  }
  // Returns whether there are any dirty ranges.
  bool expect_in_order(const made& of, int of_device) {
    isthmus_byte_range_t ranges[8];
    std::size_t count = 0;
    const std::size_t capacity = from_.byte() % 9;
    require(isthmus_unified_dirty_ranges(of.handle, of_device, ranges, capacity, &count) ==
            ISTHMUS_OK);
    std::size_t last = 0;
    for (std::size_t i = 0; i < std::min(count, capacity); ++i) {
      require(ranges[i].begin < ranges[i].end && ranges[i].end <= of.nbytes);
      require(i == 0 || last < ranges[i].begin);
      last = ranges[i].end;
    }
    return count != 0;
  }
  // If the driver has no memory, the copies may stay different.
  void expect_same(const made& of) {
    isthmus_unified_t* const it = of.handle;
    const void* host = nullptr;
    isthmus_buffer_t* device = nullptr;
    const auto wins = from_.byte() % 2 == 0 ? ISTHMUS_WINNER_HOST : ISTHMUS_WINNER_DEVICE;
    if (isthmus_unified_resolve(it, wins, 0, of.nbytes) != ISTHMUS_OK ||
        isthmus_unified_read_host(it, 0, of.nbytes, &host) != ISTHMUS_OK ||
        isthmus_unified_device(it, nullptr, 0, of.nbytes, &device) != ISTHMUS_OK) {
      return;
    }
    std::vector<unsigned char> got(of.nbytes);
    const isthmus_endpoint_t to{nullptr, got.data(), 0}, from{device, nullptr, 0};
    if (isthmus_copy(nullptr, &to, &from, of.nbytes, nullptr, nullptr) == ISTHMUS_OK) {
      require(std::memcmp(got.data(), host, of.nbytes) == 0);
    }
    isthmus_buffer_release(device);
    isthmus_unified_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_unified_info(it, &info) == ISTHMUS_OK);
    require(info.state == ISTHMUS_UNIFIED_SYNCHRONIZED);
  }

  input& from_;
  isthmus_queue_t* queues_[2] = {};
  std::vector<made> all_;
  std::vector<view> views_;
  std::vector<isthmus_event_t*> events_;
  volatile std::ptrdiff_t sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  input from(data, size);
  isthmus_device_t* device = open_device(from.byte(), "capacity=64KiB");
  {
    machine calls(from, device);
    for (int i = 0; i < 200 && from.more(); ++i) calls.step();
  }
  std::uint64_t violations = 0;
  if (isthmus_sim_calls(device, "violation", &violations) == ISTHMUS_OK) require(violations == 0);
  isthmus_device_release(device);
  return 0;
}
