// SPDX-License-Identifier: Apache-2.0
// Decodes bytes to calls of the C interface, on the host and on a simulated device with late
// effects. Whatever the order and the arguments, every call returns a documented status, nothing is
// leaked, nothing hangs, and ASan and UBSan find no error.
#include <isthmus/experimental.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "devices.hpp"
#include "pools.hpp"

namespace {

using fuzz::expect_documented;
using fuzz::require;

constexpr std::size_t k_most = 6;  // objects of each type

class machine {
 public:
  machine(fuzz::input& from, isthmus_device_t* device) : from_(from), device_(device) {
    require(isthmus_queue_create(nullptr, device_, &first_) == ISTHMUS_OK);
    queues_.push_back(first_);
    isthmus_queue_retain(first_);
  }
  ~machine() {
    // Destroying a gate fails what waits for it.
    for (isthmus_event_t* one : gates_) isthmus_event_release(one);
    for (isthmus_event_t* one : events_) {
      require(isthmus_event_wait(one, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
      isthmus_event_release(one);
    }
    for (isthmus_buffer_t* one : buffers_) isthmus_buffer_release(one);
    for (isthmus_pin_t* one : pins_) isthmus_pin_remove(one, 1);
    while (!blocks_.empty()) require(give_back(blocks_.size() - 1) == ISTHMUS_OK);
    for (isthmus_resource_t* one : pools_) isthmus_resource_release(one);
    isthmus_budget_release(budget_);
    for (isthmus_queue_t* one : queues_) {
      require(isthmus_queue_wait(one, 20'000'000'000) != ISTHMUS_ERROR_TIMEOUT);
      isthmus_queue_release(one);
    }
    isthmus_queue_release(first_);
  }

  void step() {
    switch (from_.byte() % 27) {
      case 0: return create();
      case 1: return slice();
      case 2: return drop();
      case 3: isthmus_buffer_free(any(buffers_)); return;
      case 4: return copy();
      case 5: return copy_rows();
      case 6: return fill();
      case 7: return new_queue();
      case 8: return new_gate();
      case 9: return open_gate();
      case 10: return fence();
      case 11: return look();
      case 12: return export_it();
      case 13: return record();
      case 14: return give_away();
      case 15: return new_pool();
      case 16: return take();
      case 17: return give_back();
      case 18: return trim();
      case 19: return play();
      case 20: return pin();
      case 21: return unpin();
      case 22: return copy_ranges();
      case 23: return copy_nd();
      case 24: return copy_array();
      case 25: return fill_array();
      default: return submit();
    }
  }

 private:
  template <class T>
  T* any(const std::vector<T*>& all) {
    return from_.any(all);
  }
  template <class T>
  void keep(std::vector<T*>& all, T* made, void (*release)(T*) noexcept) {
    from_.keep(all, k_most, made, release);
  }
  // An endpoint. Host memory is always valid and is never freed while work is pending.
  isthmus_endpoint_t place() {
    if (from_.byte() % 3 == 0) return {nullptr, host_, from_.byte()};
    if (!blocks_.empty() && from_.byte() % 3 == 0) {
      const block& one = blocks_[from_.byte() % blocks_.size()];
      return {nullptr, one.memory, from_.size() % one.nbytes};  // a block without a buffer
    }
    return {any(buffers_), nullptr, from_.size()};
  }
  static bool is_own(const isthmus_endpoint_t& place) {
    return place.buffer == nullptr && place.pointer == host_;
  }
  // The caller is responsible for the bounds of host memory, so `nbytes` is limited to its size.
  std::size_t held(const isthmus_endpoint_t& a, const isthmus_endpoint_t& b, std::size_t nbytes) {
    return is_own(a) || is_own(b) ? std::min<std::size_t>(nbytes, 2048) : nbytes;
  }
  isthmus_operation_t how() {
    isthmus_operation_t result{};
    result.struct_size = from_.byte() == 255 ? 1 : sizeof result;
    after_ = from_.byte() % 2 == 0 ? any(events_) : any(gates_);
    result.after = &after_;
    result.after_count = after_ != nullptr ? 1 : 0;
    return result;
  }
  // All calls are asynchronous: a blocking call that waits for one of our gates would hang.
  void put(isthmus_status_t code, isthmus_event_t* event) {
    expect_documented(code);
    require((code == ISTHMUS_OK) == (event != nullptr));
    if (event != nullptr) keep(events_, event, isthmus_event_release);
  }

  void create() {
    isthmus_buffer_t* made = nullptr;
    const auto kind = static_cast<isthmus_kind_t>(from_.byte() % 5);
    const auto alignment = static_cast<std::size_t>(from_.byte()) - 1;
    const std::size_t nbytes = from_.size();
    isthmus_queue_t* on = any(queues_);
    const isthmus_status_t code =
        isthmus_buffer_create(nbytes, kind, alignment, on != nullptr ? on : first_, nullptr, &made);
    expect_documented(code);
    if (code == ISTHMUS_OK) keep(buffers_, made, isthmus_buffer_release);
  }
  void slice() {
    isthmus_buffer_t* made = nullptr;
    const std::size_t offset = from_.size();
    const isthmus_status_t code = isthmus_buffer_slice(any(buffers_), offset, from_.size(), &made);
    expect_documented(code);
    if (code == ISTHMUS_OK) keep(buffers_, made, isthmus_buffer_release);
  }
  void drop() {
    if (buffers_.empty()) return;
    isthmus_buffer_release(buffers_.back());
    buffers_.pop_back();
  }
  void copy() {
    const isthmus_endpoint_t to = place();
    const isthmus_endpoint_t source = place();
    const std::size_t nbytes = held(to, source, from_.size());
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_copy(any(queues_), &to, &source, nbytes, &options, &event), event);
  }
  void copy_rows() {
    const isthmus_endpoint_t to = place();
    const isthmus_endpoint_t source = place();
    const bool own = is_own(to) || is_own(source);
    const std::size_t width = own ? from_.byte() % 32 : from_.size();
    const std::size_t height = own ? from_.byte() % 32 : from_.size();
    const std::size_t to_pitch = own ? from_.byte() % 48 : from_.size();
    const std::size_t source_pitch = own ? from_.byte() % 48 : from_.size();
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_copy_2d(any(queues_), &to, to_pitch, &source, source_pitch, width, height, &options,
                        &event),
        event);
  }
  void copy_ranges() {
    const isthmus_endpoint_t to = place();
    const isthmus_endpoint_t source = place();
    const bool own = is_own(to) || is_own(source);
    isthmus_range_t ranges[12];
    const std::size_t count = from_.byte() % 13;
    for (std::size_t i = 0; i < count; ++i) {
      ranges[i] =
          own ? isthmus_range_t{from_.size() % 4096, from_.size() % 4096, from_.size() % 2048}
              : isthmus_range_t{from_.size(), from_.size(), from_.size()};
    }
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_copy_ranges(any(queues_), &to, &source, ranges, count, &options, &event), event);
  }
  void copy_nd() {
    const isthmus_endpoint_t to = place();
    const isthmus_endpoint_t source = place();
    const bool own = is_own(to) || is_own(source);
    std::size_t numbers[3][9];
    const std::size_t dimensions = from_.byte() % 10;
    for (auto& each : numbers) {
      // Within our host memory: 3 bytes and 2 times 999 in each of 3 dimensions.
      std::generate_n(each, dimensions, [&] { return own ? from_.size() % 1000 : from_.size(); });
    }
    for (std::size_t i = 0; i < dimensions && own; ++i)
      numbers[2][i] = i < 3 ? numbers[2][i] % 4 : 1;
    const std::size_t item = own ? from_.byte() % 4 : from_.size();
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_copy_nd(any(queues_), &to, numbers[0], &source, numbers[1], numbers[2], dimensions,
                        item, &options, &event),
        event);
  }
  struct array {
    isthmus_array_t given{};
    std::int64_t shape[9]{};
    std::int64_t strides[9]{};
  };
  // Within our host memory: from its middle, 3 times 900 bytes in either direction.
  void decode(array& made) {
    isthmus_endpoint_t at = place();
    const bool own = is_own(at);
    if (own) at.offset = sizeof host_ / 2;
    made.given = {at, from_.byte() % 19, from_.byte() % std::size_t{10}, made.shape, made.strides};
    for (std::size_t i = 0; i < made.given.dimensions; ++i) {
      const auto count = static_cast<std::int64_t>(from_.size());
      const auto stride = static_cast<std::int64_t>(from_.size());
      made.shape[i] = own ? (i < 3 ? count & 3 : 1) : count % 256 == 255 ? -count : count % 256;
      made.strides[i] = own ? stride % 300 : stride;
      if (from_.byte() % 4 == 0) made.strides[i] = -made.strides[i];
    }
  }
  void copy_array() {
    array to, source;
    decode(to);
    decode(source);
    if (from_.byte() % 2 == 0) {  // compatible shapes are rare otherwise
      source.given.dimensions = std::min(source.given.dimensions, to.given.dimensions);
      const auto skipped = to.given.dimensions - source.given.dimensions;
      for (std::size_t i = 0; i < source.given.dimensions; ++i) {
        source.shape[i] = std::min(source.shape[i], to.shape[i + skipped]);
        if (!is_own(to.given.endpoint) && !is_own(source.given.endpoint)) {
          to.shape[i + skipped] = source.shape[i];
        }
      }
    }
    require(isthmus_arrays_overlap(&to.given, &source.given) ==
            isthmus_arrays_overlap(&source.given, &to.given));
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_copy_array(any(queues_), &to.given, &source.given, from_.byte() % 5, &options,
                           &event),
        event);
  }
  void fill_array() {
    array to;
    decode(to);
    const std::uint64_t value[4] = {1, 2, 3, 4};
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_fill_array(any(queues_), &to.given, value, from_.byte() % 19, from_.byte() % 5,
                           &options, &event),
        event);
  }
  void fill() {
    const isthmus_endpoint_t to = place();
    const std::size_t nbytes = held(to, to, from_.size());
    const std::uint64_t pattern[4] = {1, 2, 3, 4};
    const std::size_t pattern_bytes = from_.byte() % 33;
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_fill(any(queues_), &to, pattern, pattern_bytes, nbytes, &options, &event), event);
  }
  void new_queue() {
    isthmus_queue_t* made = nullptr;
    require(isthmus_queue_create(nullptr, device_, &made) == ISTHMUS_OK);
    if (from_.byte() % 8 == 0) require(isthmus_queue_close(made) == ISTHMUS_OK);
    keep(queues_, made, isthmus_queue_release);
  }
  void new_gate() {
    isthmus_event_t* made = nullptr;
    require(isthmus_event_create(&made) == ISTHMUS_OK);
    keep(gates_, made, isthmus_event_release);
  }
  void open_gate() {
    const auto code = static_cast<isthmus_status_t>(from_.byte() % 20) - 16;
    expect_documented(
        isthmus_event_complete(any(gates_), code, from_.byte() % 2 ? "why" : nullptr));
  }
  void fence() {
    const isthmus_operation_t options = how();
    isthmus_event_t* event = nullptr;
    put(isthmus_queue_fence(any(queues_), options.after, options.after_count, &event), event);
    isthmus_event_t* mark = nullptr;
    put(isthmus_queue_mark(any(queues_), &mark), mark);
    std::int64_t elapsed = 0;
    expect_documented(isthmus_event_elapsed(any(events_), any(events_), &elapsed));
  }
  void look() {
    expect_documented(isthmus_event_wait(any(events_), from_.byte()));
    (void)isthmus_event_status(any(events_));
    (void)isthmus_queue_idle(any(queues_));
    isthmus_buffer_info_t info{};
    info.struct_size = sizeof info;
    expect_documented(isthmus_buffer_info(any(buffers_), &info));
  }
  // An export waits for pending operations, so the gates are completed first.
  void export_it() {
    while (!gates_.empty()) {
      (void)isthmus_event_complete(gates_.back(), ISTHMUS_OK, nullptr);
      isthmus_event_release(gates_.back());
      gates_.pop_back();
    }
    isthmus_buffer_t* buffer = any(buffers_);
    isthmus_buffer_info_t info{};
    info.struct_size = sizeof info;
    void* pointer = nullptr;
    if (isthmus_buffer_info(buffer, &info) != ISTHMUS_OK) return;
    static_cast<void>(isthmus_buffer_pointer(buffer));
    expect_documented(isthmus_buffer_wait(buffer, from_.byte() * 1000));
    expect_documented(isthmus_buffer_wait_for_writers(buffer, from_.byte() * 1000));
    if (isthmus_buffer_export(buffer, &pointer) != ISTHMUS_OK) return;
    if (from_.byte() % 4 == 0) isthmus_buffer_free(buffer);
    if (info.nbytes != 0) std::memset(pointer, 1, info.nbytes);
    isthmus_buffer_unexport(buffer);
  }
  void record() {
    isthmus_event_t* event = any(gates_);
    if (event != nullptr) expect_documented(isthmus_buffer_record_event(any(buffers_), event));
    expect_documented(isthmus_buffer_record_queue(any(buffers_), any(queues_)));
    record_block();
  }
  void give_away() {
    void* pointer = nullptr;
    isthmus_owner_t owner{};
    isthmus_buffer_t* buffer = any(buffers_);
    if (isthmus_buffer_disown(buffer, &pointer, &owner) != ISTHMUS_OK) return;
    owner.release(owner.object);
  }
  isthmus_budget_t* budget() {
    if (budget_ == nullptr) budget_ = fuzz::new_budget(from_);
    if (budget_ != nullptr) fuzz::expect_sound(budget_);
    return budget_;
  }
  void new_pool() {
    const isthmus_pool_options_t options = fuzz::checked_pool_options(from_, budget());
    isthmus_context_t* home = nullptr;
    require(isthmus_context_default(device_, &home) == ISTHMUS_OK);
    isthmus_resource_t* made = nullptr;
    const isthmus_status_t code =
        isthmus_resource_pool(home, device_, from_.byte() % 5, &options, &made);
    isthmus_context_release(home);
    expect_documented(code);
    if (code == ISTHMUS_OK) keep(pools_, made, isthmus_resource_release);
  }
  void take() {
    isthmus_resource_t* from = any(pools_);
    void* memory = nullptr;
    const std::size_t nbytes = from_.size() * (from_.byte() % 4 == 0 ? 1024 : 1);
    const std::size_t alignment = from_.byte() % 8 == 0 ? from_.size() : 0;
    const isthmus_status_t code =
        isthmus_resource_allocate(from, nbytes, alignment, any(queues_), &memory);
    expect_documented(code);
    if (code != ISTHMUS_OK || memory == nullptr) return;
    isthmus_pointer_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_pointer_info(nullptr, memory, &info) == ISTHMUS_OK);
    require(info.base == memory && info.nbytes >= nbytes);
    isthmus_resource_retain(from);
    blocks_.push_back({from, memory, std::max<std::size_t>(nbytes, 1)});
  }
  isthmus_status_t give_back(std::size_t which) {
    const block gone = blocks_[which];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(which));
    const isthmus_status_t code =
        isthmus_resource_deallocate(gone.from, gone.memory, 0, 0, queues_.front());
    // A pointer that is not live is rejected without any effect.
    require(isthmus_resource_deallocate(gone.from, gone.memory, 0, 0, first_) != ISTHMUS_OK);
    isthmus_resource_release(gone.from);
    return code;
  }
  void give_back() {
    if (blocks_.empty()) return;
    const std::size_t which = from_.byte() % blocks_.size();
    auto* memory = static_cast<unsigned char*>(blocks_[which].memory);
    const std::size_t inside = 1 + from_.byte() % 63;
    require(isthmus_resource_deallocate(blocks_[which].from, memory + inside, 0, 0, first_) ==
            ISTHMUS_ERROR_INVALID_ARGUMENT);
    isthmus_resource_t* other = any(pools_);
    if (other != blocks_[which].from) {
      require(isthmus_resource_deallocate(other, memory, 0, 0, first_) ==
              ISTHMUS_ERROR_INVALID_ARGUMENT);
    }
    require(give_back(which) == ISTHMUS_OK);
  }
  void trim() {
    std::uint64_t given_back = 0;
    expect_documented(isthmus_resource_trim(any(pools_), from_.size(), &given_back));
    isthmus_resource_info_t info{};
    info.struct_size = sizeof info;
    isthmus_resource_t* of = any(pools_);
    expect_documented(isthmus_resource_info(of, &info));
    require(info.free_bytes <= info.held_bytes);
    isthmus_snapshot_t seen{};
    seen.struct_size = sizeof seen;
    if (isthmus_resource_snapshot(of, &seen) == ISTHMUS_OK) fuzz::expect_sound(seen);
    fuzz::expect_stage_counts(from_, of, from_.byte() % 10 - 1);
  }
  void record_block() {
    if (blocks_.empty()) return;
    const auto* memory = static_cast<unsigned char*>(blocks_.back().memory);
    isthmus_event_t* event = any(gates_);
    if (event != nullptr) expect_documented(isthmus_record_event(memory, event));
    expect_documented(isthmus_record_queue(memory + from_.byte(), any(queues_)));
  }
  void play() {
    isthmus_trace_event_t events[16];
    isthmus_trace_sample_t samples[16];
    const std::size_t count = from_.byte() % 17;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint8_t what = from_.byte();
      events[i] = {from_.size(), what % 8U, static_cast<std::uint16_t>(what >> 4 & 1),
                   static_cast<std::uint16_t>(what == 255 ? 2 : what >> 3 & 1)};
    }
    isthmus_queue_t* const on[] = {any(queues_), any(queues_)};
    isthmus_replay_result_t seen{};
    seen.struct_size = from_.byte() == 255 ? 1 : sizeof seen;
    const bool looks = from_.byte() % 2 == 0;
    expect_documented(isthmus_resource_replay(any(pools_), on, 2, events, count,
                                              looks ? samples : nullptr, &seen));
  }
  void pin() {
    isthmus_pin_t* made = nullptr;
    const isthmus_endpoint_t where = place();
    void* start = where.buffer != nullptr ? isthmus_buffer_pointer(where.buffer) : where.pointer;
    const isthmus_status_t code = isthmus_pin_add(from_.byte() == 255 ? nullptr : device_, start,
                                                  from_.size(), from_.byte() % 2, {}, &made);
    expect_documented(code);
    if (code != ISTHMUS_OK) return;
    isthmus_pin_info_t info{};
    info.struct_size = sizeof info;
    require(isthmus_pin_info(made, &info) == ISTHMUS_OK && info.pointer == start);
    pins_.push_back(made);
  }
  void unpin() {
    if (pins_.empty()) return;
    expect_documented(isthmus_pin_wait(pins_.back(), from_.byte()));
    isthmus_pin_remove(pins_.back(), 0);
    pins_.pop_back();
  }
  void submit() {
    isthmus_buffer_t* buffer = any(buffers_);
    const isthmus_operation_t options = how();
    const isthmus_function_t run = [](void*, const isthmus_view_t* views, std::size_t count,
                                      const char** message) -> isthmus_status_t {
      if (count == 1 && views[0].nbytes != 0) std::memset(views[0].data, 2, views[0].nbytes);
      *message = "odd";
      return count % 2 == 0 ? ISTHMUS_ERROR_CALLBACK : ISTHMUS_OK;
    };
    isthmus_event_t* event = nullptr;
    put(isthmus_queue_submit(any(queues_), run, {}, &buffer, buffer != nullptr ? 1 : 0,
                             options.after, options.after_count, &event),
        event);
  }

  struct block {
    isthmus_resource_t* from;
    void* memory;
    std::size_t nbytes;
  };

  fuzz::input& from_;
  isthmus_device_t* device_;
  isthmus_queue_t* first_ = nullptr;
  isthmus_event_t* after_ = nullptr;
  // Static: operations that waited for a dropped gate may complete after the end of a run.
  static inline unsigned char host_[8192] = {};
  std::vector<isthmus_queue_t*> queues_;
  std::vector<isthmus_buffer_t*> buffers_;
  std::vector<isthmus_event_t*> events_;
  std::vector<isthmus_event_t*> gates_;
  std::vector<isthmus_resource_t*> pools_;
  isthmus_budget_t* budget_ = nullptr;
  std::vector<block> blocks_;
  std::vector<isthmus_pin_t*> pins_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  fuzz::input from(data, size);
  isthmus_device_t* device = fuzz::open_device(from.byte(), "capacity=8KiB");
  {
    machine calls(from, device);
    for (int i = 0; i < 200 && from.more(); ++i) calls.step();
  }
  std::uint64_t violations = 0;
  if (isthmus_sim_calls(device, "violation", &violations) == ISTHMUS_OK) require(violations == 0);
  isthmus_device_release(device);
  return 0;
}
