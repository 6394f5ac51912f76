// SPDX-License-Identifier: Apache-2.0
// The common base of arrays of a known dtype (array.hpp) and of any dtype (dyn_array.hpp): a
// reference to a buffer, and the layout of the elements in it. Include those headers instead of
// this one.
#pragma once

#include <algorithm>
#include <array>
#include <isthmus/buffer.hpp>
#include <isthmus/current_resource.hpp>
#include <isthmus/layout.hpp>

#include <string>
#include <utility>

namespace isthmus {
inline namespace v1 {

// Options of a new array.
struct array_options {
  queue_choice queue{};          // {}: the default queue of the default device
  std::size_t alignment = 0;     // of the first element; 0: the device's base alignment
  isthmus::resource resource{};  // {}: the current one of the kind, see current_resource.hpp
  // The kind (shared or host) to use, from its current resource, if no memory of the requested kind
  // is left. `unknown`: no fallback; the request throws out_of_memory. The array's kind() reports
  // the kind used.
  v1::kind fallback = v1::kind::unknown;
};

namespace detail {

[[nodiscard]] inline buffer allocate_once(std::size_t nbytes, isthmus::kind kind,
                                          const isthmus::queue& queue,
                                          const array_options& options) {
  return buffer(
      nbytes, kind,
      {.queue = queue,
       .alignment = options.alignment,
       .resource = options.resource ? options.resource
                                    : find_current_resource(kind, queue.get(), pool_use::arrays)});
}
// Allocates as requested or, if no memory is left, from the current resource of the fallback kind.
[[nodiscard]] inline buffer allocate(std::size_t nbytes, isthmus::kind kind,
                                     const array_options& options) {
  const queue queue = chosen_queue(options.queue);
  if (options.fallback == isthmus::kind::unknown)
    return allocate_once(nbytes, kind, queue, options);
  try {
    return allocate_once(nbytes, kind, queue, options);
  } catch (const out_of_memory&) {
    return allocate_once(nbytes, options.fallback, queue, {.alignment = options.alignment});
  }
}

// The buffer of an array, with cached copies of those properties that never change.
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
  // A moved-from object watches no buffer.
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

  [[nodiscard]] bool has_buffer() const noexcept { return static_cast<bool>(buffer_); }
  // True also after the array was freed.
  [[nodiscard]] bool had_buffer() const noexcept { return freed_ || has_buffer(); }
  // Throws closed for a freed array, invalid_argument for an empty one.
  [[nodiscard]] const v1::buffer& buffer() const {
    if (!buffer_) [[unlikely]]
      raise_absent();
    return buffer_;
  }
  // Drops the reference to the buffer.
  void release() noexcept {
    freed_ = freed_ || buffer_;
    buffer_ = {};
    start_ = nullptr;
    watch_ = k_unwatched;
  }
  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  // As start(), but NULL if the buffer was freed, for example through another array on it.
  [[nodiscard]] std::byte* live_start() const noexcept {
    return static_cast<std::byte*>(isthmus_buffer_pointer(buffer_.get()));
  }
  [[nodiscard]] v1::kind kind() const noexcept { return kind_; }
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }

  // Checks that all elements of the layout lie within the buffer (out_of_range) and are aligned
  // (invalid_argument).
  template <std::size_t Rank>
  void require(const isthmus::layout<Rank>& layout, std::size_t item, std::size_t alignment) const {
    check_shape(layout.shape, static_cast<std::int64_t>(item));
    const std::size_t nbytes = buffer().size();
    if (!layout.lies_within(nbytes, static_cast<std::int64_t>(item))) {
      raise(status::out_of_range, "elements of " + std::to_string(item) + " bytes from byte " +
                                      std::to_string(layout.offset) + ", of shape " +
                                      to_string(layout.shape) + " and strides " +
                                      to_string(layout.strides) + ", do not lie in a buffer of " +
                                      std::to_string(nbytes) + " bytes");
    }
    const auto unit = static_cast<std::int64_t>(alignment);
    const auto base =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start_) % alignment);
    bool aligned = layout.is_empty() || (base + layout.offset) % unit == 0;
    for (std::size_t axis = 0; axis < layout.rank(); ++axis) {
      aligned = aligned && (layout.shape[axis] <= 1 || layout.strides[axis] % unit == 0);
    }
    if (!aligned) {
      raise(status::invalid_argument, "elements from byte " + std::to_string(layout.offset) + ", " +
                                          to_string(layout.strides) +
                                          " bytes apart, are not aligned to " +
                                          std::to_string(alignment) + " bytes");
    }
  }

  // True if the flags of isthmus_buffer_watch show that the host can access the memory and that
  // nothing is pending on it. Does not call the library. Loads each flag with acquire semantics, in
  // order.
  [[nodiscard]] bool looks_idle() const noexcept {
    static_assert(ISTHMUS_WATCHED == 5);
    return !is_set(0) && !is_set(1) && !is_set(2) && !is_set(3) && !is_set(4);
  }
  // Exact, unlike looks_idle(), which may return false for idle memory. Calls the library.
  [[nodiscard]] bool idle() const noexcept { return isthmus_buffer_idle(buffer_.get()) != 0; }
  // Waits for the operations that are pending on these bytes. Throws closed for a freed buffer.
  void wait_for(std::int64_t begin, std::int64_t end) const { part(begin, end).wait(); }
  // A slice of exactly these bytes.
  [[nodiscard]] v1::buffer part(std::int64_t begin, std::int64_t end) const {
    return buffer().slice(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

 private:
  using watch = std::array<const unsigned char*, ISTHMUS_WATCHED>;

  // If the library has fewer flags, the remaining entries point to a flag that is never set.
  [[nodiscard]] static watch watched(const v1::buffer& buffer) noexcept {
    watch flags{};
    const auto count = isthmus_buffer_watch(buffer.get(), flags.data(), flags.size());
    std::fill(flags.begin() + static_cast<std::ptrdiff_t>(count), flags.end(), &k_clear);
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
  // Device memory, and objects without memory, watch a flag that is always set, so that
  // looks_idle() is false.
  static constexpr unsigned char k_set = 1;
  static constexpr watch k_unwatched{&k_set, &k_clear, &k_clear, &k_clear, &k_clear};
  watch watch_ = k_unwatched;
  v1::kind kind_ = v1::kind::unknown;
  bool read_only_ = false;
  bool freed_ = false;
};

// Tag of constructors whose arguments were already checked.
struct unchecked {};

// The common part of array and dyn_array.
template <std::size_t Rank>
class array_base {
 public:
  [[nodiscard]] v1::kind kind() const noexcept { return memory_.kind(); }
  [[nodiscard]] bool is_device() const noexcept { return kind() == v1::kind::device; }
  [[nodiscard]] bool is_shared() const noexcept { return kind() == v1::kind::shared; }
  [[nodiscard]] bool is_host() const noexcept { return kind() == v1::kind::host; }
  // False if the array is default-constructed, moved from or freed. It may then be assigned to or
  // destroyed.
  [[nodiscard]] explicit operator bool() const noexcept { return memory_.has_buffer(); }

  // The queue, device and context of the buffer. Throw closed for a freed array, invalid_argument
  // for an empty one.
  [[nodiscard]] v1::queue queue() const { return memory_.buffer().queue(); }
  [[nodiscard]] v1::device device() const { return queue().device(); }
  [[nodiscard]] v1::context context() const { return queue().context(); }

  [[nodiscard]] const axes<Rank>& shape() const noexcept { return layout_.shape; }
  [[nodiscard]] const axes<Rank>& strides() const noexcept { return layout_.strides; }  // in bytes
  [[nodiscard]] std::size_t rank() const noexcept { return layout_.rank(); }
  // The number of elements along an axis. Throws out_of_range if there is no such axis.
  [[nodiscard]] std::int64_t extent(std::size_t axis) const { return number_at(shape(), axis); }
  // The number of elements: 0 for an array that never had memory, whatever its shape.
  [[nodiscard]] std::size_t size() const noexcept {
    return memory_.had_buffer() ? static_cast<std::size_t>(layout_.count()) : 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  // The offset of the first element from the start of the buffer.
  [[nodiscard]] std::size_t byte_offset() const noexcept {
    return static_cast<std::size_t>(layout_.offset);
  }
  [[nodiscard]] const v1::layout<Rank>& layout() const noexcept { return layout_; }
  // The whole buffer, even if the array covers only a part of it.
  [[nodiscard]] const v1::buffer& buffer() const { return memory_.buffer(); }

  // Frees this array early: further use throws closed, a second free does nothing. Copies, views
  // and host views of it remain usable and keep the memory alive. The memory is released after the
  // last of them has been dropped and the operations on it have completed. Never blocks.
  // buffer().free() instead closes all arrays on the buffer.
  void free() noexcept { memory_.release(); }

 protected:
  array_base() noexcept = default;
  explicit array_base(const array_memory& memory) noexcept : memory_(memory) {}
  array_base(array_memory memory, const v1::layout<Rank>& layout) noexcept(Rank != dynamic_rank)
      : memory_(std::move(memory)), layout_(layout) {}

  // The address of the first element, or NULL if there are no elements or the memory was freed.
  [[nodiscard]] std::byte* live_pointer() const noexcept {
    std::byte* const start = empty() ? nullptr : memory_.live_start();
    return start == nullptr ? nullptr : start + layout_.offset;
  }
  [[nodiscard]] v1::buffer bytes_of(std::int64_t item) const {
    if (!layout_.is_contiguous(item)) {
      raise(status::invalid_argument, "an array of shape " + to_string(shape()) + " and strides " +
                                          to_string(strides()) +
                                          " has gaps: its bytes cannot be a buffer");
    }
    const auto range = layout_.byte_range(item);
    return memory_.part(range.begin, range.end);
  }
  void wait_for(std::int64_t item) const {
    const auto range = layout_.byte_range(item);
    memory_.wait_for(range.begin, range.end);
  }

  [[nodiscard]] bool is_same_view(const array_base& other) const noexcept {
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
