// SPDX-License-Identifier: Apache-2.0
// Decodes bytes to buffers over adopted memory and on other queues, hints, and actions at the
// completion of events. Whatever the order, every call returns a documented status, every owner is
// released once, every descriptor is notified once, and ASan and UBSan find no error.
#include <isthmus/experimental.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "checks.hpp"
#include "devices.hpp"
#include "infos.hpp"

namespace {

using namespace fuzz;

constexpr isthmus_status_t k_invalid = ISTHMUS_ERROR_INVALID_ARGUMENT;
constexpr std::size_t k_most = 6;           // objects of each type
constexpr std::size_t k_block_bytes = 512;  // of each block that buffers are made over

std::atomic<int> lent{0};  // owners that were not released yet

// The objects that an owner keeps alive and releases with itself. Either may be NULL.
struct kept {
  isthmus_buffer_t* buffer;
  isthmus_event_t* event;
};

isthmus_owner_t lend(const kept& with) {
  ++lent;
  isthmus_buffer_retain(with.buffer);
  isthmus_event_retain(with.event);
  return {new kept{with}, [](void* object) {
            auto* const gone = static_cast<kept*>(object);
            isthmus_buffer_release(gone->buffer);
            isthmus_event_release(gone->event);
            delete gone;
            --lent;
          }};
}

class machine {
 public:
  machine(input& from, isthmus_device_t* device, isthmus_device_t* other) : from_(from) {
    for (isthmus_device_t* each : {device, device, other}) {
      isthmus_queue_t* made = nullptr;
      require(isthmus_queue_create(nullptr, each, &made) == ISTHMUS_OK);
      queues_.push_back(made);
    }
    for (int kind = 1; kind <= 3; ++kind) add_block(kind);
    require((told_ = eventfd(0, EFD_NONBLOCK)) >= 0);
  }
  ~machine() {
    // Destroying a gate fails what waits for it.
    for (isthmus_event_t* each : gates_) isthmus_event_release(each);
    for (isthmus_event_t* each : events_) {
      require(isthmus_event_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
      isthmus_event_release(each);
    }
    for (isthmus_buffer_t* each : buffers_) isthmus_buffer_release(each);
    for (isthmus_queue_t* each : queues_) {
      require(isthmus_queue_wait(each, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
    }
    // A buffer that was adopted without a queue uses one of its own, which the loop above does not
    // wait for. A free that names no queue is ordered after all uses that the library knows.
    for (const block& each : blocks_) {
      require(isthmus_resource_deallocate(each.from, each.memory, k_block_bytes, 0, nullptr) ==
              ISTHMUS_OK);
      isthmus_resource_release(each.from);
    }
    expect_soon([] { return lent == 0; });
    expect_all_told();
    for (isthmus_queue_t* each : queues_) isthmus_queue_release(each);
    (void)close(told_);
  }

  void step() {
    switch (from_.byte() % 16) {
      case 0: return adopt();
      case 1: return adopt_own();
      case 2: return create();
      case 3: return view();
      case 4: return slice();
      case 5: return drop();
      case 6: return fill();
      case 7: return new_gate();
      case 8: return open_gate();
      case 9: return then();
      case 10: return notify();
      case 11: return prefetch();
      case 12: return pending();
      case 13: return ask_for_native();
      case 14: return read_infos();
      default: return look();
    }
  }

 private:
  struct block {
    isthmus_resource_t* from;
    void* memory;
  };

  // From a pool or from the driver.
  void add_block(isthmus_kind_t kind) {
    isthmus_context_t* const home = context_of(queues_[0]);
    block made{};
    require((from_.byte() % 2 == 0
                 ? isthmus_resource_provider(home, nullptr, kind, &made.from)
                 : isthmus_resource_pool(home, nullptr, kind, nullptr, &made.from)) == ISTHMUS_OK);
    require(isthmus_resource_allocate(made.from, k_block_bytes, 0, queues_[0], &made.memory) ==
            ISTHMUS_OK);
    blocks_.push_back(made);
  }
  void keep(isthmus_status_t code, isthmus_buffer_t* made) {
    expect_documented(code);
    require((code == ISTHMUS_OK) == (made != nullptr));
    if (made != nullptr) from_.keep(buffers_, k_most, made, isthmus_buffer_release);
  }
  void keep(isthmus_status_t code, isthmus_event_t* made) {
    expect_documented(code);
    require((code == ISTHMUS_OK) == (made != nullptr));
    if (made != nullptr) from_.keep(events_, k_most, made, isthmus_event_release);
  }
  isthmus_event_t* any_event() { return from_.any(from_.byte() % 2 == 0 ? events_ : gates_); }
  // Never a gate: one that keeps itself alive would never complete.
  isthmus_owner_t owner() {
    const std::uint8_t what = from_.byte();
    return lend({what % 4 == 0 ? from_.any(buffers_) : nullptr,
                 what % 4 == 1 ? from_.any(events_) : nullptr});
  }

  // Also past the end. Not for plain host memory, whose end no one else knows.
  void adopt() {
    static unsigned char plain[k_block_bytes];
    const std::uint8_t which = from_.byte();
    const std::size_t offset = from_.byte() * std::size_t{2};
    const std::size_t nbytes = from_.size();
    if (which == 255)
      return adopt(plain + offset, std::min(nbytes, k_block_bytes - offset), offset);
    adopt(static_cast<unsigned char*>(blocks_[which % 3U].memory) + offset, nbytes, offset);
  }
  void adopt(unsigned char* at, std::size_t nbytes, std::size_t offset) {
    const auto kind = static_cast<isthmus_kind_t>(from_.byte() % 5);
    const int read_only = from_.byte() % 4 == 0 ? 1 : 0;
    isthmus_buffer_t* made = nullptr;
    const isthmus_status_t code =
        isthmus_buffer_adopt(at, nbytes, kind, read_only, from_.any(queues_), owner(), &made);
    if (code == ISTHMUS_OK && nbytes != 0) {
      require(isthmus_buffer_pointer(made) == at && nbytes <= k_block_bytes - offset);
    }
    keep(code, made);
  }
  // Adopts a part of another buffer, which may be released first.
  void adopt_own() {
    isthmus_buffer_info_t info{};
    info.struct_size = sizeof info;
    isthmus_buffer_t* const of = from_.any(buffers_);
    if (isthmus_buffer_info(of, &info) != ISTHMUS_OK || info.nbytes == 0) return;
    const std::size_t offset = from_.byte() % info.nbytes;
    isthmus_buffer_t* made = nullptr;
    const isthmus_status_t code = isthmus_buffer_adopt(
        static_cast<unsigned char*>(info.pointer) + offset, info.nbytes - offset,
        ISTHMUS_KIND_UNKNOWN, 0, info.queue, owner(), &made);
    require(code == ISTHMUS_OK);
    keep(code, made);
  }
  void create() {
    isthmus_buffer_t* made = nullptr;
    const auto kind = static_cast<isthmus_kind_t>(1 + from_.byte() % 3);
    const std::size_t nbytes = from_.size();
    keep(isthmus_buffer_create(nbytes, kind, 0, queues_[from_.byte() % 2], nullptr, &made), made);
  }
  void view() {
    isthmus_buffer_t* made = nullptr;
    isthmus_buffer_t* const base = from_.any(buffers_);
    isthmus_queue_t* const on = from_.any(queues_);
    const isthmus_status_t code = isthmus_buffer_on_queue(base, on, &made);
    if (code == ISTHMUS_OK) {
      require(isthmus_buffer_pointer(made) == isthmus_buffer_pointer(base));
      isthmus_buffer_info_t info{};
      info.struct_size = sizeof info;
      require(isthmus_buffer_info(made, &info) == ISTHMUS_OK);
      require(isthmus_queue_key(info.queue) == isthmus_queue_key(on));
    }
    keep(code, made);
  }
  void slice() {
    isthmus_buffer_t* made = nullptr;
    const std::size_t offset = from_.size();
    keep(isthmus_buffer_slice(from_.any(buffers_), offset, from_.size(), &made), made);
  }
  void drop() {
    if (buffers_.empty()) return;
    if (from_.byte() % 4 == 0) return isthmus_buffer_free(buffers_.back());
    isthmus_buffer_release(buffers_.back());
    buffers_.pop_back();
  }

  // Makes a call that depends on an event and has owners. All calls are asynchronous, because one
  // of our gates may block them.
  template <class Call>
  void put(Call call) {
    isthmus_event_t* const after = any_event();
    const isthmus_owner_t owners[] = {owner(), owner()};
    const isthmus_operation_t how{sizeof how, &after, after != nullptr ? 1U : 0U, owners, 2};
    isthmus_event_t* event = nullptr;
    const isthmus_status_t code = call(how, &event);
    keep(code, event);
  }
  void fill() {
    const isthmus_endpoint_t to{from_.any(buffers_), nullptr, from_.byte()};
    const std::size_t nbytes = from_.size();
    isthmus_queue_t* const on = from_.any(queues_);
    put([&](const isthmus_operation_t& how, isthmus_event_t** event) {
      return isthmus_fill(on, &to, "x", 1, nbytes, &how, event);
    });
  }
  void prefetch() {
    isthmus_endpoint_t at{from_.any(buffers_), nullptr, from_.byte()};
    if (from_.byte() % 4 == 0) at = {nullptr, blocks_[from_.byte() % 3U].memory, at.offset};
    const std::size_t nbytes = from_.size();
    isthmus_queue_t* const on = from_.any(queues_);
    const std::uint8_t what = from_.byte();
    put([&](const isthmus_operation_t& how, isthmus_event_t** event) {
      return what % 3 == 2 ? isthmus_advise(on, &at, nbytes, what / 3U, &how, event)
                           : isthmus_prefetch(on, &at, nbytes, what % 3, &how, event);
    });
  }

  void new_gate() {
    isthmus_event_t* made = nullptr;
    require(isthmus_event_create(&made) == ISTHMUS_OK);
    from_.keep(gates_, k_most, made, isthmus_event_release);
  }
  // Also with codes that are no status. Not with INTERNAL, which a waiter would take for a bug.
  void open_gate() {
    const isthmus_status_t code = from_.byte() % 20 - 18;
    const isthmus_status_t with = code == ISTHMUS_ERROR_INTERNAL ? INT32_MIN : code;
    const isthmus_status_t told = isthmus_event_complete(from_.any(gates_), with, nullptr);
    expect_documented(told);
    if (told == ISTHMUS_OK) require(with >= ISTHMUS_ERROR_DEADLOCK && with <= ISTHMUS_OK);
  }
  void then() {
    isthmus_event_t* const event = any_event();
    const isthmus_status_t code = isthmus_event_then(event, owner());
    expect_documented(code);
    require((code == ISTHMUS_OK) == (event != nullptr));
  }
  void notify() {
    isthmus_event_t* const event = any_event();
    const std::uint8_t which = from_.byte();
    const isthmus_status_t code = isthmus_event_notify(event, which == 255 ? -1 : told_);
    expect_documented(code);
    require((code == ISTHMUS_OK) == (event != nullptr && which != 255));
    to_tell_ += code == ISTHMUS_OK ? 1 : 0;
  }
  void expect_all_told() {
    std::uint64_t seen = 0;
    expect_soon([&] {
      std::uint64_t more = 0;
      if (read(told_, &more, sizeof more) == sizeof more) seen += more;
      return seen >= to_tell_;
    });
    require(seen == to_tell_);
  }
  void pending() {
    isthmus_event_t* made = nullptr;
    if (from_.byte() % 2 == 0) {
      keep(isthmus_buffer_pending(from_.any(buffers_), &made), made);
    } else {
      keep(isthmus_queue_pending(from_.any(queues_), &made), made);
    }
  }
  isthmus_queue_info_t info_of(isthmus_queue_t* queue) {
    isthmus_queue_info_t info{};
    require(read_info(from_, info, isthmus_queue_info, queue) ==
            (queue != nullptr ? ISTHMUS_OK : k_invalid));
    return info;
  }
  isthmus_context_t* context_of(isthmus_queue_t* queue) { return info_of(queue).context; }
  // The properties of a queue and of the objects that it refers to agree with one another.
  void read_infos() {
    isthmus_queue_t* const of = from_.any(queues_);
    const isthmus_queue_info_t queue = info_of(of);
    if (of == nullptr) return;
    require(queue.key == isthmus_queue_key(of));
    isthmus_context_info_t context{};
    require(read_info(from_, context, isthmus_context_info, queue.context) == ISTHMUS_OK);
    require(context.key == isthmus_context_key(queue.context) && context.device_count != 0);
    isthmus_device_info_t device{};
    require(read_info(from_, device, isthmus_device_info, queue.device) == ISTHMUS_OK);
    isthmus_device_memory_info_t memory{};
    const isthmus_status_t code =
        read_info(from_, memory, isthmus_device_memory_info, queue.device);
    if (code == ISTHMUS_OK) require(memory.free_bytes <= memory.total_bytes);
    isthmus_platform_info_t platform{};
    require(read_info(from_, platform, isthmus_platform_info, device.platform) == ISTHMUS_OK);
    require(std::strcmp(device.backend, platform.backend) == 0);
    isthmus_event_t* const event = any_event();
    isthmus_event_info_t state{};
    require(read_info(from_, state, isthmus_event_info, event) ==
            (event != nullptr ? ISTHMUS_OK : k_invalid));
    isthmus_buffer_info_t buffer{};
    (void)read_info(from_, buffer, isthmus_buffer_info, from_.any(buffers_));
  }
  // Neither the host nor a simulated device has native handles.
  void ask_for_native() {
    isthmus_queue_t* const of = from_.any(queues_);
    void* native = this;
    require(isthmus_queue_export_native(of, &native) == (of != nullptr ? ISTHMUS_OK : k_invalid));
    require(native == (of != nullptr ? nullptr : this));
    isthmus_queue_t* made = nullptr;
    isthmus_context_t* home = nullptr;
    isthmus_device_t* const device = info_of(queues_[0]).device;
    require(isthmus_queue_adopt(device, &told_, owner(), &made) == ISTHMUS_ERROR_UNSUPPORTED);
    require(isthmus_context_adopt(device, &told_, owner(), &home) == ISTHMUS_ERROR_UNSUPPORTED);
    require(isthmus_context_share(context_of(queues_[0]), device, &home) ==
            ISTHMUS_ERROR_UNSUPPORTED);
    isthmus_event_t* event = nullptr;
    require(isthmus_event_adopt(context_of(queues_[0]), &told_, owner(), &event) ==
            ISTHMUS_ERROR_UNSUPPORTED);
    require(made == nullptr && home == nullptr && event == nullptr);
  }
  void look() {
    isthmus_event_t* const event = any_event();
    const isthmus_status_t now = isthmus_event_wait(event, 0);
    expect_documented(now);
    isthmus_event_times_info_t times{};
    times.struct_size = sizeof times;
    const isthmus_status_t code = isthmus_event_times_info(event, &times);
    expect_documented(code);
    if (code == ISTHMUS_OK) {
      require(times.submitted_ns <= times.started_ns && times.started_ns <= times.ended_ns);
    }
    expect_documented(isthmus_buffer_wait(from_.any(buffers_), 0));
  }

  input& from_;
  int told_ = -1;  // an eventfd that counts the notifications
  std::uint64_t to_tell_ = 0;
  std::vector<isthmus_queue_t*> queues_;  // the last one belongs to another context
  std::vector<isthmus_buffer_t*> buffers_;
  std::vector<isthmus_event_t*> events_;
  std::vector<isthmus_event_t*> gates_;
  std::vector<block> blocks_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  input from(data, size);
  isthmus_device_t* device = open_device(from.byte(), "capacity=64MiB");
  isthmus_device_t* other = open_device(0, "capacity=64MiB");
  {
    machine calls(from, device, other);
    for (int i = 0; i < 200 && from.more(); ++i) calls.step();
  }
  std::uint64_t violations = 0;
  if (isthmus_sim_calls(device, "violation", &violations) == ISTHMUS_OK) require(violations == 0);
  isthmus_device_release(other);
  isthmus_device_release(device);
  return 0;
}
