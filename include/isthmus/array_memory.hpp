// What arrays of a known type and of any type have in common: a reference to a buffer, and where in
// it the elements lie. To be used through array.hpp and dyn_array.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <isthmus/buffer.hpp>
#include <isthmus/default_pool.hpp>
#include <isthmus/layout.hpp>

#include <string>
#include <utility>

namespace isthmus {
inline namespace v1 {

struct array_options {
  queue_choice on{};           // {}: the default queue of the default device
  std::int64_t alignment = 0;  // of the first element; 0 or less: the device's own
  resource from{};             // {}: the default pool of the kind, see default_pool.hpp
  // What is taken where there is no memory of the kind asked for: shared, host; unknown: nothing,
  // out_of_memory. What was taken, kind() tells.
  v1::kind fallback = v1::kind::unknown;
};

namespace detail {

[[nodiscard]] inline buffer allocate_once(std::size_t nbytes, kind of, const queue& on,
                                          const array_options& options) {
  return buffer(
      nbytes, of,
      {.on = on,
       .alignment = options.alignment,
       .from = options.from ? options.from : find_default_pool(of, on.get(), pool_use::arrays)});
}
[[nodiscard]] inline buffer allocate(std::size_t nbytes, kind of, const array_options& options) {
  const queue on = chosen_queue(options.on);
  if (options.fallback == kind::unknown) return allocate_once(nbytes, of, on, options);
  try {
    return allocate_once(nbytes, of, on, options);
  } catch (const out_of_memory&) {
    return allocate_once(nbytes, options.fallback, on, {.alignment = options.alignment});
  }
}

// The buffer of an array, with what never changes of it at hand.
class array_memory {
 public:
  array_memory() noexcept = default;
  explicit array_memory(v1::buffer buffer) : buffer_(std::move(buffer)) {
    const buffer_info info = buffer_.info();
    start_ = static_cast<std::byte*>(info.pointer);
    kind_ = info.kind;
    read_only_ = info.read_only;
    if (kind_ != v1::kind::device) watch_ = watched(buffer_);
  }

  array_memory(const array_memory&) noexcept = default;
  array_memory& operator=(const array_memory&) noexcept = default;
  // What is left behind watches nothing any more.
  array_memory(array_memory&& other) noexcept
      : buffer_(std::move(other.buffer_)),
        start_(std::exchange(other.start_, nullptr)),
        watch_(std::exchange(other.watch_, k_unwatched)),
        kind_(other.kind_),
        read_only_(other.read_only_),
        freed_(other.freed_) {}
  array_memory& operator=(array_memory&& other) noexcept {
    buffer_ = std::move(other.buffer_);
    start_ = std::exchange(other.start_, nullptr);
    watch_ = std::exchange(other.watch_, k_unwatched);
    kind_ = other.kind_;
    read_only_ = other.read_only_;
    freed_ = other.freed_;
    return *this;
  }
  ~array_memory() = default;

  [[nodiscard]] bool is_there() const noexcept { return static_cast<bool>(buffer_); }
  // Or there was some, until it was freed.
  [[nodiscard]] bool was_made() const noexcept { return freed_ || is_there(); }
  // Throws closed for an array that was freed, invalid_argument for one that was never made.
  [[nodiscard]] const v1::buffer& buffer() const {
    if (!buffer_) [[unlikely]]
      raise_absent();
    return buffer_;
  }
  void let_go() noexcept {
    freed_ = freed_ || buffer_;
    buffer_ = {};
    start_ = nullptr;
    watch_ = k_unwatched;
  }
  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  // The same as far as the buffer lives, which others may have freed: else null.
  [[nodiscard]] std::byte* live_start() const noexcept {
    return static_cast<std::byte*>(isthmus_buffer_pointer(buffer_.get()));
  }
  [[nodiscard]] v1::kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }

  // That elements which lie in `bytes` are all within, and lie as their type must.
  template <std::size_t Rank>
  void require(const layout<Rank>& of, std::size_t item, std::size_t alignment) const {
    static_cast<void>(checked_count(of.shape, static_cast<std::int64_t>(item)));
    const std::size_t nbytes = buffer().size();
    if (!of.lies_within(nbytes, static_cast<std::int64_t>(item))) {
      raise(status::out_of_range, "elements of " + std::to_string(item) + " bytes from byte " +
                                      std::to_string(of.offset) + " on, of shape " +
                                      to_string(of.shape) + " and strides " +
                                      to_string(of.strides) + ", do not lie in a buffer of " +
                                      std::to_string(nbytes) + " bytes");
    }
    const auto unit = static_cast<std::int64_t>(alignment);
    const auto base =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start_) % alignment);
    bool aligned = of.count() == 0 || (base + of.offset) % unit == 0;
    for (std::size_t axis = 0; axis < of.rank(); ++axis) {
      aligned = aligned && (of.shape[axis] <= 1 || of.strides[axis] % unit == 0);
    }
    if (!aligned) {
      raise(status::invalid_argument,
            "elements from byte " + std::to_string(of.offset) + ", " + to_string(of.strides) +
                " bytes apart, are not aligned to " + std::to_string(alignment) + " bytes");
    }
  }

  // Whether the host may touch it and nothing is pending on it, as far as is seen without a call.
  [[nodiscard]] bool looks_idle() const noexcept {
    static_assert(ISTHMUS_WATCHED == 5);
    return !is_set(0) && !is_set(1) && !is_set(2) && !is_set(3) && !is_set(4);
  }
  [[nodiscard]] bool idle() const noexcept { return isthmus_buffer_idle(buffer_.get()) != 0; }
  // Waits for what is pending on those bytes. Throws closed for a freed buffer.
  void wait_for(std::int64_t begin, std::int64_t end) const { part(begin, end).wait(); }
  // Those bytes alone.
  [[nodiscard]] v1::buffer part(std::int64_t begin, std::int64_t end) const {
    return buffer().slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

 private:
  using watch = std::array<const unsigned char*, ISTHMUS_WATCHED>;

  // A library that has fewer flags leaves the rest to one that is never set.
  [[nodiscard]] static watch watched(const v1::buffer& of) noexcept {
    watch flags{};
    const auto told = isthmus_buffer_watch(of.get(), flags.data(), flags.size());
    std::fill(flags.begin() + static_cast<std::ptrdiff_t>(told), flags.end(), &k_clear);
    return flags;
  }
  [[nodiscard]] bool is_set(std::size_t flag) const noexcept {
    return __atomic_load_n(watch_[flag], __ATOMIC_ACQUIRE) != 0;
  }
  [[noreturn]] void raise_absent() const {
    if (freed_) raise(status::closed, "this array was freed");
    raise(status::invalid_argument, "this array is empty: it has no memory, and no elements");
  }

  v1::buffer buffer_;
  std::byte* start_ = nullptr;
  static constexpr unsigned char k_clear = 0;
  // Of device memory, and of none, a flag that is always set.
  static constexpr unsigned char k_set = 1;
  static constexpr watch k_unwatched{&k_set, &k_clear, &k_clear, &k_clear, &k_clear};
  watch watch_ = k_unwatched;
  v1::kind kind_ = v1::kind::unknown;
  bool read_only_ = false;
  bool freed_ = false;
};

// Tells constructors that what they get was checked.
struct unchecked {};

// What both forms tell of themselves.
template <std::size_t Rank>
class array_base {
 public:
  [[nodiscard]] v1::kind kind() const noexcept { return memory_.kind(); }
  [[nodiscard]] bool is_device() const noexcept { return kind() == v1::kind::device; }
  [[nodiscard]] bool is_shared() const noexcept { return kind() == v1::kind::shared; }
  [[nodiscard]] bool is_host() const noexcept { return kind() == v1::kind::host; }
  // False of one that is default-made, moved from or freed: it may be assigned to or destroyed.
  [[nodiscard]] explicit operator bool() const noexcept { return memory_.is_there(); }

  [[nodiscard]] v1::queue queue() const { return memory_.buffer().queue(); }
  [[nodiscard]] v1::device device() const { return queue().device(); }
  [[nodiscard]] v1::context context() const { return queue().context(); }

  [[nodiscard]] const axes<Rank>& shape() const noexcept { return layout_.shape; }
  [[nodiscard]] const axes<Rank>& strides() const noexcept { return layout_.strides; }  // in bytes
  [[nodiscard]] std::size_t rank() const noexcept { return layout_.rank(); }
  // Throws out_of_range where there is no such axis.
  [[nodiscard]] std::int64_t extent(std::size_t axis) const { return number_at(shape(), axis); }
  // Elements: none where no memory was ever made, whatever the shape.
  [[nodiscard]] std::size_t size() const noexcept {
    return memory_.was_made() ? static_cast<std::size_t>(layout_.count()) : 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  // Of the first element, from the buffer's start.
  [[nodiscard]] std::size_t byte_offset() const noexcept {
    return static_cast<std::size_t>(layout_.offset);
  }
  [[nodiscard]] const v1::layout<Rank>& layout() const noexcept { return layout_; }
  // All of it, whatever part of it this is.
  [[nodiscard]] const v1::buffer& buffer() const { return memory_.buffer(); }

  // Ends this array early: its use throws closed from here on, and to free it again does nothing.
  // Copies and views of it go on and keep the memory, as do host views; with the last of all these
  // it goes back, behind the work on it. Never blocks. buffer().free() ends all arrays on it.
  void free() noexcept { memory_.let_go(); }

 protected:
  array_base() noexcept = default;
  explicit array_base(const array_memory& memory) noexcept : memory_(memory) {}
  array_base(array_memory memory, const v1::layout<Rank>& where) noexcept
      : memory_(std::move(memory)), layout_(where) {}

  // Of the first element: null of no elements, and of memory that is freed.
  [[nodiscard]] std::byte* live_pointer() const noexcept {
    std::byte* const start = empty() ? nullptr : memory_.live_start();
    return start == nullptr ? nullptr : start + layout_.offset;
  }
  [[nodiscard]] v1::buffer bytes_of(std::int64_t item) const {
    if (!layout_.is_contiguous(item)) {
      raise(status::invalid_argument, "an array of shape " + to_string(shape()) + " and strides " +
                                          to_string(strides()) +
                                          " has gaps: its bytes are no buffer");
    }
    const auto all = layout_.reach(item);
    return memory_.part(all.begin, all.end);
  }
  void wait_for(std::int64_t item) const {
    const auto all = layout_.reach(item);
    memory_.wait_for(all.begin, all.end);
  }

  [[nodiscard]] bool is_at(const array_base& other) const noexcept {
    if (!*this || !other) return !*this && !other;
    return memory_.buffer() == other.memory_.buffer() && layout_.offset == other.layout_.offset &&
           shape() == other.shape() && strides() == other.strides();
  }

  array_memory memory_;
  v1::layout<Rank> layout_;
};

}  // namespace detail
}  // namespace v1
}  // namespace isthmus
