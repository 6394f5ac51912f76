// SPDX-License-Identifier: Apache-2.0
// A unified buffer: an array of T with a host copy and a device copy, synchronized lazily.
//
//   isthmus::unified_buffer<float> values(1 << 20);
//   std::iota(values.host().begin(), values.host().end(), 0.0f);
//   launch(values.device().pointer(), values.size());   // uploads the written elements
//   values.mark_device();                                // declares the kernel's writes
//   float first = values.host()[0];                      // downloads them
//
// Each copy is allocated on first access. Host writes are detected automatically, also those
// through older views. Device writes are declared by mark_device(), or by the end of
// device_write(). Only changed bytes are copied. If both sides wrote the same elements,
// synchronizing them throws conflict, unless a winner was chosen.
//
// Copies of a `unified_buffer` are references to the same one. The calls throw closed after free(),
// out_of_range for a range outside of the array, and the errors of copies and allocations.
//
// Cost: host() and device() take about 10 ns if nothing has to be copied. While a host view lives,
// device() scans for writes, which takes at least 3 us. Thread-safe. Writes of the same elements by
// two threads are not ordered.
#pragma once

#include <isthmus/experimental.h>
#include <isthmus/buffer.hpp>
#include <isthmus/event.hpp>
#include <isthmus/exported_span.hpp>

#include <span>
#include <vector>

namespace isthmus {
inline namespace v1 {

// Which copies are valid and which one has newer bytes: see isthmus_unified_state_t.
enum class unified_state : isthmus_unified_state_t {
  uninitialized = ISTHMUS_UNIFIED_UNINITIALIZED,
  host_only = ISTHMUS_UNIFIED_HOST_ONLY,
  device_only = ISTHMUS_UNIFIED_DEVICE_ONLY,
  synchronized = ISTHMUS_UNIFIED_SYNCHRONIZED,
  host_dirty = ISTHMUS_UNIFIED_HOST_DIRTY,
  device_dirty = ISTHMUS_UNIFIED_DEVICE_DIRTY,
};

// "HOST_ONLY" for unified_state::host_only, and so on.
[[nodiscard]] constexpr std::string_view name(unified_state value) noexcept {
  switch (value) {
    case unified_state::uninitialized: return "UNINITIALIZED";
    case unified_state::host_only: return "HOST_ONLY";
    case unified_state::device_only: return "DEVICE_ONLY";
    case unified_state::synchronized: return "SYNCHRONIZED";
    case unified_state::host_dirty: return "HOST_DIRTY";
    case unified_state::device_dirty: return "DEVICE_DIRTY";
  }
  return "unknown";
}

// The side whose bytes win if both sides wrote; none: an error.
enum class winner : isthmus_winner_t {
  none = ISTHMUS_WINNER_NONE,
  host = ISTHMUS_WINNER_HOST,
  device = ISTHMUS_WINNER_DEVICE,
};

// How host writes are detected: by the pages that the kernel reports, by comparison with the last
// synchronized bytes, or by hashes. by_default: the best for the size.
enum class tracking_mechanism : isthmus_dirty_tracking_t {
  by_default = ISTHMUS_DIRTY_TRACKING_DEFAULT,
  pages = ISTHMUS_DIRTY_TRACKING_PAGES,
  bytes = ISTHMUS_DIRTY_TRACKING_BYTES,
  hashes = ISTHMUS_DIRTY_TRACKING_HASHES,
};

// Options of a new unified buffer.
struct unified_options {
  queue_choice queue{};  // {}: the default queue of the default device
  bool pinned = false;   // the host copy is registered with the driver
  // Two copies, even if one memory could serve as both.
  bool separate = false;
  // Whose bytes win if both sides wrote the same elements.
  winner on_conflict = winner::none;
  // Always tracks pages of 4 KiB, for sparse writes.
  bool by_page = false;
  tracking_mechanism tracking = tracking_mechanism::by_default;
  // Resource of the device copy; {}: the current one, see current_resource.hpp.
  isthmus::resource resource{};
};

// Elements [begin, end).
struct element_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const element_range&, const element_range&) noexcept = default;
};

// The state and the counters of a unified buffer.
struct unified_info {
  unified_state state = unified_state::uninitialized;
  // The mechanism in use; by_default before there is a host copy.
  tracking_mechanism tracking = tracking_mechanism::by_default;
  // Bytes that one write dirties at most; 0 before there is a host copy.
  std::uint64_t granule = 0;
  bool pinned = false;
  bool one_memory = false;  // one memory serves as both copies
  // Writable views of the host copy.
  std::size_t host_views = 0;
  // Copied so far.
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  // Operations so far, each of any number of ranges.
  std::uint64_t copies = 0;
};

namespace detail {

template <>
inline constexpr const char* class_name<isthmus_unified_t> = "unified_buffer";

class unified_handle : public handle<unified_handle, isthmus_unified_t, isthmus_unified_retain,
                                     isthmus_unified_release> {
 public:
  unified_handle() noexcept = default;
  explicit unified_handle(isthmus_unified_t* raw) noexcept : handle(raw) {}
};

}  // namespace detail

template <class T>
class unified_buffer;

// A writable view of the host copy of a unified buffer, or of a part of it, as a range of T. It
// keeps the memory alive. Writes through it are detected even if the scan takes place after its
// destruction. Movable, not copyable.
template <class T>
class unified_view
    : public detail::exported_span<T, detail::unified_handle, isthmus_unified_end_host> {
 public:
  unified_view() noexcept = default;

 private:
  friend class unified_buffer<T>;
  using detail::exported_span<T, detail::unified_handle, isthmus_unified_end_host>::exported_span;
};

// A counted reference to a unified buffer of elements of T.
template <class T>
class unified_buffer {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "both copies are raw memory: T is trivially copyable and not const");

 public:
  unified_buffer() noexcept = default;
  // `count` elements. Allocates nothing yet. Throws invalid_argument for 0 elements and for more
  // than memory can hold; wrong_context for a resource that does not provide device memory of the
  // queue's context.
  explicit unified_buffer(std::size_t count, const unified_options& options = {})
      : raw_(create(count, options)), count_(count) {}
  // A unified buffer whose host copy contains `values`.
  explicit unified_buffer(std::span<const T> values, const unified_options& options = {})
      : unified_buffer(values.size(), options) {
    copy_from(values);
  }

  // The C handle, still owned by this object.
  [[nodiscard]] isthmus_unified_t* get() const noexcept { return raw_.get(); }
  // The same. Throws invalid_argument if this object is empty.
  [[nodiscard]] isthmus_unified_t* require() const { return raw_.require(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(raw_); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return count_ * sizeof(T); }
  [[nodiscard]] element_range all() const noexcept { return {0, count_}; }
  // Closes the unified buffer at once: further calls throw closed. The host memory lives until its
  // last view has ended.
  void free() const noexcept { isthmus_unified_free(raw_.get()); }

  // Scans for host writes, so that the state is current.
  [[nodiscard]] unified_state state() const { return static_cast<unified_state>(raw_info().state); }
  // Scans likewise.
  [[nodiscard]] unified_info info() const {
    const isthmus_unified_info_t raw = raw_info();
    return {static_cast<unified_state>(raw.state),
            static_cast<tracking_mechanism>(raw.tracking),
            raw.granule,
            raw.pinned != 0,
            raw.one_memory != 0,
            raw.host_views,
            raw.bytes_to_device,
            raw.bytes_to_host,
            raw.copies};
  }
  // Elements that one side wrote and the other lacks, in ascending order; bytes are widened to
  // whole elements.
  [[nodiscard]] std::vector<element_range> dirty_on_host() const { return dirty(0); }
  [[nodiscard]] std::vector<element_range> dirty_on_device() const { return dirty(1); }

  // Synchronizes the host copy in the range (default: all elements) and returns a view that may be
  // written while it lives. Waits for the download of device writes.
  [[nodiscard]] unified_view<T> host() const { return host(all()); }
  [[nodiscard]] unified_view<T> host(element_range range) const {
    void* start = nullptr;
    detail::check(isthmus_unified_host(raw_.require(), offset(range), bytes(range), &start));
    return {raw_, {static_cast<T*>(start), range.end - range.begin}};
  }
  // Synchronizes likewise, for reading only. Valid while this buffer is referenced.
  [[nodiscard]] std::span<const T> host_read() const { return host_read(all()); }
  [[nodiscard]] std::span<const T> host_read(element_range range) const {
    const void* start = nullptr;
    detail::check(isthmus_unified_read_host(raw_.require(), offset(range), bytes(range), &start));
    return {static_cast<const T*>(start), range.end - range.begin};
  }
  // Calls `write(std::span<T>)` with the range. Elements that `write` does not assign keep their
  // values. Exactly this range counts as written, even if `write` throws. Needs no scan.
  template <std::invocable<std::span<T>> Write>
  void host_write(element_range range, Write&& write) const {
    void* start = nullptr;
    detail::check(
        isthmus_unified_begin_write(raw_.require(), offset(range), bytes(range), 1, &start));
    write_then_end(
        [&] { write(std::span<T>(static_cast<T*>(start), range.end - range.begin)); },
        [&] { return isthmus_unified_end_write(raw_.get(), offset(range), bytes(range), 1); });
  }
  // Replaces all elements, and discards earlier writes of either side. Throws invalid_argument
  // unless there are size() values.
  void copy_from(std::span<const T> values) const {
    if (values.size() != count_) {
      raise(status::invalid_argument, std::to_string(values.size()) +
                                          " elements do not match a unified buffer of " +
                                          std::to_string(count_) + " elements");
    }
    void* start = nullptr;
    detail::check(isthmus_unified_begin_write(raw_.require(), 0, nbytes(), 0, &start));
    std::copy(values.begin(), values.end(), static_cast<T*>(start));
    detail::check(isthmus_unified_end_write(raw_.require(), 0, nbytes(), 0));
  }

  // Returns the device copy, synchronized in the range (default: all elements), for work submitted
  // to the queue from now on ({}: the unified buffer's own queue). The buffer that it returns
  // contains all elements. Returns when the host may write again, without waiting for kernels.
  [[nodiscard]] buffer device(queue_choice queue = {}) const { return device(all(), queue); }
  [[nodiscard]] buffer device(element_range range, queue_choice queue = {}) const {
    return detail::make<buffer>(isthmus_unified_device, raw_.require(), queue.get(), offset(range),
                                bytes(range));
  }
  // Calls `write(buffer)`, which submits work to the queue that writes the range and nothing else.
  // The range then counts as written by the device, even if `write` throws.
  template <std::invocable<buffer> Write>
  void device_write(element_range range, Write&& write, queue_choice queue = {}) const {
    buffer memory = detail::make<buffer>(isthmus_unified_begin_device_write, raw_.require(),
                                         queue.get(), offset(range), bytes(range));
    write_then_end(
        [&] { write(std::move(memory)); },
        [&] { return isthmus_unified_mark_device(raw_.get(), offset(range), bytes(range)); });
  }

  // Synchronizes the device copy in the range (default: all elements). Blocks until the host may
  // write again.
  void sync_to_device(queue_choice queue = {}) const { sync_to_device(all(), queue); }
  void sync_to_device(element_range range, queue_choice queue = {}) const {
    detail::check(isthmus_unified_to_device(raw_.require(), queue.get(), offset(range),
                                            bytes(range), nullptr));
  }
  // Synchronizes the host copy likewise. Blocks until the bytes have arrived.
  void sync_to_host(queue_choice queue = {}) const { sync_to_host(all(), queue); }
  void sync_to_host(element_range range, queue_choice queue = {}) const {
    detail::check(
        isthmus_unified_to_host(raw_.require(), queue.get(), offset(range), bytes(range), nullptr));
  }
  // The same without blocking. The event of sync_to_device_async() completes when the host may
  // write again, that of sync_to_host_async() when the bytes have arrived. The next host(),
  // host_read(), host_write() or sync_to_host() of the range makes these bytes visible. Returns an
  // empty event if there is nothing to copy.
  [[nodiscard]] event sync_to_device_async(element_range range, queue_choice queue = {}) const {
    return detail::make<event>(isthmus_unified_to_device, raw_.require(), queue.get(),
                               offset(range), bytes(range));
  }
  [[nodiscard]] event sync_to_host_async(element_range range, queue_choice queue = {}) const {
    return detail::make<event>(isthmus_unified_to_host, raw_.require(), queue.get(), offset(range),
                               bytes(range));
  }

  // Declares host writes that are not detected, such as those of RDMA, io_uring's fixed buffers and
  // other devices. Throws invalid_argument if there is no host copy.
  void mark_host() const { mark_host(all()); }
  void mark_host(element_range range) const {
    detail::check(isthmus_unified_mark_host(raw_.require(), offset(range), bytes(range)));
  }
  // Declares writes of the device. Throws invalid_argument if there is no device copy.
  void mark_device() const { mark_device(all()); }
  void mark_device(element_range range) const {
    detail::check(isthmus_unified_mark_device(raw_.require(), offset(range), bytes(range)));
  }
  // Resolves a conflict in the range: the winner's bytes remain, the other side's are discarded.
  void resolve(winner side) const { resolve(side, all()); }
  void resolve(winner side, element_range range) const {
    detail::check(isthmus_unified_resolve(raw_.require(), static_cast<isthmus_winner_t>(side),
                                          offset(range), bytes(range)));
  }

 private:
  isthmus_unified_info_t raw_info() const {
    return detail::read<isthmus_unified_info_t>(isthmus_unified_info, raw_.require());
  }
  // Calls `write`, and then `end` in any case. If `write` throws, an error of `end` is dropped in
  // favour of that exception: the next call on the unified buffer accounts for it, or reports it.
  template <class Write, class End>
  static void write_then_end(Write&& write, End&& end) {
    try {
      write();
    } catch (...) {
      static_cast<void>(end());
      throw;
    }
    detail::check(end());
  }

  static detail::unified_handle create(std::size_t count, const unified_options& options) {
    if (count > SIZE_MAX / sizeof(T)) {
      raise(status::invalid_argument, std::to_string(count) + " elements of " +
                                          std::to_string(sizeof(T)) +
                                          " bytes exceed the address space");
    }
    isthmus_unified_options_t raw{};
    raw.struct_size = sizeof raw;
    raw.pinned = options.pinned ? 1 : 0;
    raw.separate = options.separate ? 1 : 0;
    raw.on_conflict = static_cast<isthmus_winner_t>(options.on_conflict);
    raw.by_page = options.by_page ? 1 : 0;
    raw.tracking = static_cast<isthmus_dirty_tracking_t>(options.tracking);
    raw.element_bytes = sizeof(T);
    raw.resource = options.resource.get();
    isthmus_unified_t* created = nullptr;
    detail::check(isthmus_unified_create(count * sizeof(T), options.queue.get(), &raw, &created));
    return detail::unified_handle(created);
  }
  [[nodiscard]] std::size_t offset(element_range range) const {
    if (range.begin > range.end || range.end > count_) {
      raise(status::out_of_range,
            "elements " + std::to_string(range.begin) + " to " + std::to_string(range.end) +
                " do not lie in a unified buffer of " + std::to_string(count_) + " elements");
    }
    return range.begin * sizeof(T);
  }
  [[nodiscard]] static std::size_t bytes(element_range range) noexcept {
    return (range.end - range.begin) * sizeof(T);
  }
  [[nodiscard]] std::vector<element_range> dirty(int on_device) const {
    std::vector<isthmus_byte_range_t> raw(16);
    std::size_t count = 0;
    for (;;) {
      detail::check(
          isthmus_unified_dirty_ranges(raw_.require(), on_device, raw.data(), raw.size(), &count));
      if (count <= raw.size()) break;
      raw.resize(count);
    }
    std::vector<element_range> elements;
    for (std::size_t i = 0; i < count; ++i) {
      elements.push_back({raw[i].begin / sizeof(T), (raw[i].end + sizeof(T) - 1) / sizeof(T)});
    }
    return elements;
  }

  detail::unified_handle raw_;
  std::size_t count_ = 0;
};

// Synchronizes the device copies of several unified buffers with a single scan for host writes. A
// failure does not stop the other copies; the first one is thrown.
template <class... T>
void synchronize(const unified_buffer<T>&... buffers) {
  isthmus_unified_t* const raw[] = {buffers.require()...};
  detail::check(isthmus_unified_synchronize(raw, sizeof...(T), nullptr));
}

}  // namespace v1
}  // namespace isthmus
