// A unified buffer: an array of T on the host and on a device, kept the same lazily.
//
//   isthmus::unified_buffer<float> values(1 << 20);
//   std::iota(values.host().begin(), values.host().end(), 0.0f);
//   launch(values.device().pointer(), values.size());   // sends what was written
//   values.mark_device();                                // the kernel wrote it
//   float first = values.host()[0];                      // fetches it
//
// Memory is allocated at first access. Host writes are found by themselves, also through views kept
// from long ago; device writes are told by mark_device, or by the end of device_write. Only what
// changed moves. The same elements written on both sides are an error, conflict, unless a winner
// was chosen.
//
// Cost: host() and device() with nothing to do take some ten nanoseconds; while a host view lives,
// device() looks for writes: 3 us and more. Threads: any; writes of the same elements by two
// threads come in no order. Copies of a unified_buffer are references to the same one.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/event.hpp>
#include <isthmus/lent_span.hpp>

#include <ranges>
#include <span>
#include <vector>

namespace isthmus {
inline namespace v1 {

enum class unified_state : isthmus_unified_state_t {
  uninitialized = ISTHMUS_UNIFIED_UNINITIALIZED,
  host_only = ISTHMUS_UNIFIED_HOST_ONLY,
  device_only = ISTHMUS_UNIFIED_DEVICE_ONLY,
  synchronized = ISTHMUS_UNIFIED_SYNCHRONIZED,
  host_dirty = ISTHMUS_UNIFIED_HOST_DIRTY,
  device_dirty = ISTHMUS_UNIFIED_DEVICE_DIRTY,
};

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

enum class winner : isthmus_winner_t {
  none = ISTHMUS_WINNER_NONE,
  host = ISTHMUS_WINNER_HOST,
  device = ISTHMUS_WINNER_DEVICE,
};

// What finds host writes.
enum class tracking_means : isthmus_tracking_t {
  by_default = ISTHMUS_TRACKING_DEFAULT,
  pages = ISTHMUS_TRACKING_PAGES,
  bytes = ISTHMUS_TRACKING_BYTES,
  hashes = ISTHMUS_TRACKING_HASHES,
};

struct unified_options {
  queue_choice on{};      // {}: the default queue of the default device
  bool pinned = false;    // the host copy is registered with the driver
  bool separate = false;  // two copies also where one memory would serve
  winner on_conflict = winner::none;
  bool by_page = false;  // writes are told by 4 KiB from the start: for sparse ones
  tracking_means tracking = tracking_means::by_default;
  resource from{};  // of the device copy; {}: the default pool of buffers
};

// Elements [begin, end).
struct element_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const element_range&, const element_range&) noexcept = default;
};

struct unified_info {
  unified_state state = unified_state::uninitialized;
  tracking_means tracking = tracking_means::by_default;  // in force, once there is a host copy
  std::uint64_t granule = 0;                             // bytes that one write is told by at most
  bool pinned = false;
  bool one_memory = false;  // that is both copies
  std::size_t host_views = 0;
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t copies = 0;
};

namespace detail {

class unified_handle : public handle<unified_handle, isthmus_unified_t, isthmus_unified_retain,
                                     isthmus_unified_release> {
 public:
  unified_handle() noexcept = default;
  explicit unified_handle(isthmus_unified_t* raw) noexcept : handle(raw) {}
};

}  // namespace detail

template <class T>
class unified_buffer;

// The host copy of a unified buffer, or some of it, as a range of T that may be written. It keeps
// the memory. Writes are found while it lives and when it has ended.
template <class T>
class unified_view : public detail::lent_span<T, detail::unified_handle, isthmus_unified_end_host> {
 public:
  unified_view() noexcept = default;

 private:
  friend class unified_buffer<T>;
  using detail::lent_span<T, detail::unified_handle, isthmus_unified_end_host>::lent_span;
};

template <class T>
class unified_buffer {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                "both copies are raw memory: T is trivially copyable and not const");

 public:
  unified_buffer() noexcept = default;
  // Throws invalid_argument for no elements, and for more than memory can have.
  explicit unified_buffer(std::size_t count, const unified_options& options = {})
      : raw_(create(count, options)), count_(count) {}
  // With these elements in the host copy.
  explicit unified_buffer(std::span<const T> values, const unified_options& options = {})
      : unified_buffer(values.size(), options) {
    copy_from(values);
  }

  [[nodiscard]] isthmus_unified_t* get() const noexcept { return raw_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(raw_); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return count_ * sizeof(T); }
  [[nodiscard]] element_range all() const noexcept { return {0, count_}; }
  void free() const noexcept { isthmus_unified_free(raw_.get()); }

  // True when it is given: looks for writes.
  [[nodiscard]] unified_state state() const {
    isthmus_unified_state_t now = 0;
    detail::check(isthmus_unified_state(raw_.get(), &now));
    return static_cast<unified_state>(now);
  }
  [[nodiscard]] unified_info info() const {
    isthmus_unified_info_t raw{};
    raw.struct_size = sizeof raw;
    detail::check(isthmus_unified_info(raw_.get(), &raw));
    return {static_cast<unified_state>(raw.state),
            static_cast<tracking_means>(raw.tracking),
            raw.granule,
            raw.pinned != 0,
            raw.one_memory != 0,
            raw.host_views,
            raw.bytes_to_device,
            raw.bytes_to_host,
            raw.copies};
  }
  // What one side wrote and the other lacks, widened to whole elements.
  [[nodiscard]] std::vector<element_range> dirty_on_host() const { return dirty(0); }
  [[nodiscard]] std::vector<element_range> dirty_on_device() const { return dirty(1); }

  // Brings the host copy up to date in the range, which may be written while the view lives.
  [[nodiscard]] unified_view<T> host() const { return host(all()); }
  [[nodiscard]] unified_view<T> host(element_range range) const {
    void* start = nullptr;
    detail::check(isthmus_unified_host(raw_.get(), offset(range), bytes(range), &start));
    return {raw_, {static_cast<T*>(start), range.end - range.begin}};
  }
  // For reading alone, while this buffer lives.
  [[nodiscard]] std::span<const T> host_read() const { return host_read(all()); }
  [[nodiscard]] std::span<const T> host_read(element_range range) const {
    const void* start = nullptr;
    detail::check(isthmus_unified_read_host(raw_.get(), offset(range), bytes(range), &start));
    return {static_cast<const T*>(start), range.end - range.begin};
  }
  // Calls `write(std::span<T>)` with the range, which alone counts as written, also where `write`
  // throws.
  template <std::invocable<std::span<T>> Write>
  void host_write(element_range range, Write&& write) const {
    void* start = nullptr;
    detail::check(isthmus_unified_begin_write(raw_.get(), offset(range), bytes(range), 1, &start));
    write_until(
        [&] { write(std::span<T>(static_cast<T*>(start), range.end - range.begin)); },
        [&] { return isthmus_unified_end_write(raw_.get(), offset(range), bytes(range), 1); });
  }
  // All of it anew; what either side wrote before is dropped.
  void copy_from(std::span<const T> values) const {
    if (values.size() != count_) {
      raise(status::invalid_argument, std::to_string(values.size()) +
                                          " elements do not fill a unified buffer of " +
                                          std::to_string(count_));
    }
    void* start = nullptr;
    detail::check(isthmus_unified_begin_write(raw_.get(), 0, nbytes(), 0, &start));
    std::copy(values.begin(), values.end(), static_cast<T*>(start));
    detail::check(isthmus_unified_end_write(raw_.get(), 0, nbytes(), 0));
  }

  // The device copy, up to date for what is put on the queue from here on ({}: the buffer's own).
  // Returns when the host may write again, without waiting for kernels.
  [[nodiscard]] buffer device(queue_choice on = {}) const { return device(all(), on); }
  [[nodiscard]] buffer device(element_range range, queue_choice on = {}) const {
    return detail::make<buffer>(isthmus_unified_device, raw_.get(), on.get(), offset(range),
                                bytes(range));
  }
  // Calls `write(buffer)`, which puts work on the queue that writes the range and nothing else. The
  // range counts as written by the device, also where `write` throws.
  template <std::invocable<buffer> Write>
  void device_write(element_range range, Write&& write, queue_choice on = {}) const {
    buffer memory = detail::make<buffer>(isthmus_unified_begin_device_write, raw_.get(), on.get(),
                                         offset(range), bytes(range));
    write_until(
        [&] { write(std::move(memory)); },
        [&] { return isthmus_unified_mark_device(raw_.get(), offset(range), bytes(range)); });
  }

  void sync_to_device(queue_choice on = {}) const { sync_to_device(all(), on); }
  void sync_to_device(element_range range, queue_choice on = {}) const {
    detail::check(
        isthmus_unified_to_device(raw_.get(), on.get(), offset(range), bytes(range), nullptr));
  }
  void sync_to_host(queue_choice on = {}) const { sync_to_host(all(), on); }
  void sync_to_host(element_range range, queue_choice on = {}) const {
    detail::check(
        isthmus_unified_to_host(raw_.get(), on.get(), offset(range), bytes(range), nullptr));
  }
  // Without waiting: an event that ends when the host may write again, or when what the device
  // wrote has arrived, for the next host(), host_read(), host_write() or sync_to_host() to show.
  // An empty one where nothing is to be moved.
  [[nodiscard]] event sync_to_device_async(element_range range, queue_choice on = {}) const {
    return detail::make<event>(isthmus_unified_to_device, raw_.get(), on.get(), offset(range),
                               bytes(range));
  }
  [[nodiscard]] event sync_to_host_async(element_range range, queue_choice on = {}) const {
    return detail::make<event>(isthmus_unified_to_host, raw_.get(), on.get(), offset(range),
                               bytes(range));
  }

  void mark_host() const { mark_host(all()); }
  void mark_host(element_range range) const {
    detail::check(isthmus_unified_mark_host(raw_.get(), offset(range), bytes(range)));
  }
  void mark_device() const { mark_device(all()); }
  void mark_device(element_range range) const {
    detail::check(isthmus_unified_mark_device(raw_.get(), offset(range), bytes(range)));
  }
  void resolve(winner which) const { resolve(which, all()); }
  void resolve(winner which, element_range range) const {
    detail::check(isthmus_unified_resolve(raw_.get(), static_cast<isthmus_winner_t>(which),
                                          offset(range), bytes(range)));
  }

 private:
  // Calls `write`, and then `end` whatever became of it. An exception of `write` comes first: what
  // `end` fails to do then, the next call on the buffer does, or reports why not.
  template <class Write, class End>
  static void write_until(Write&& write, End&& end) {
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
                                          " bytes are more than memory can have");
    }
    isthmus_unified_options_t raw{};
    raw.struct_size = sizeof raw;
    raw.pinned = options.pinned ? 1 : 0;
    raw.separate = options.separate ? 1 : 0;
    raw.on_conflict = static_cast<isthmus_winner_t>(options.on_conflict);
    raw.by_page = options.by_page ? 1 : 0;
    raw.tracking = static_cast<isthmus_tracking_t>(options.tracking);
    raw.element_bytes = sizeof(T);
    raw.resource = options.from.get();
    isthmus_unified_t* made = nullptr;
    detail::check(isthmus_unified_create(count * sizeof(T), options.on.get(), &raw, &made));
    return detail::unified_handle(made);
  }
  [[nodiscard]] std::size_t offset(element_range range) const {
    if (range.begin > range.end || range.end > count_) {
      raise(status::out_of_range,
            "elements " + std::to_string(range.begin) + " to " + std::to_string(range.end) +
                " do not lie in a unified buffer of " + std::to_string(count_));
    }
    return range.begin * sizeof(T);
  }
  [[nodiscard]] static std::size_t bytes(element_range range) noexcept {
    return (range.end - range.begin) * sizeof(T);
  }
  [[nodiscard]] std::vector<element_range> dirty(int of_device) const {
    std::vector<isthmus_byte_range_t> raw(16);
    std::size_t count = 0;
    for (;;) {
      detail::check(
          isthmus_unified_dirty_ranges(raw_.get(), of_device, raw.data(), raw.size(), &count));
      if (count <= raw.size()) break;
      raw.resize(count);
    }
    std::vector<element_range> found;
    for (std::size_t i = 0; i < count; ++i) {
      found.push_back({raw[i].begin / sizeof(T), (raw[i].end + sizeof(T) - 1) / sizeof(T)});
    }
    return found;
  }

  detail::unified_handle raw_;
  std::size_t count_ = 0;
};

// The device copies of many, with one look for host writes.
template <class... T>
void synchronize(const unified_buffer<T>&... buffers) {
  isthmus_unified_t* const raw[] = {buffers.get()...};
  detail::check(isthmus_unified_synchronize(raw, sizeof...(T), nullptr));
}

static_assert(std::copyable<unified_buffer<float>>);
static_assert(std::movable<unified_view<float>> && !std::copyable<unified_view<float>>);
static_assert(std::ranges::contiguous_range<unified_view<float>>);

}  // namespace v1
}  // namespace isthmus
