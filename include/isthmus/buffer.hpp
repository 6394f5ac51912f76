// A buffer: owns one allocation of USM, or shares somebody else's; bytes without a type.
//
//   isthmus::buffer a(1 << 20);                                   // device memory, default device
//   isthmus::buffer b(4096, isthmus::kind::shared, {.on = queue, .alignment = 64});
//   auto part = b.slice(100, 50);                                 // keeps b's memory alive
//   for (float& x : b.host<float>()) x = 0;                       // shared and host kinds
//
// Copies of a buffer are references to the same one. Dropping the last of them, or free(), never
// blocks: the memory goes back when the last operation on it has ended. Cost: an allocation from a
// pool, some ten nanoseconds, unless `from` names a resource that keeps none, as
// resource::provider, which calls the driver; a slice allocates no memory.
// Threads: any; operations on one buffer from several queues wait for each other.
#pragma once

#include <isthmus/queue.hpp>
#include <isthmus/resource.hpp>

#include <cstddef>
#include <memory>

namespace isthmus {
inline namespace v1 {

template <class T>
class host_view;

struct buffer_options {
  queue_choice on{};           // {}: the default queue of the default device
  std::int64_t alignment = 0;  // 0 or less: the device's own
  resource from{};             // {}: the default pool of buffers, see default_pool.hpp
};

struct adopt_options {
  queue_choice on{};
  v1::kind kind = v1::kind::unknown;  // unknown: what the driver says it is
  bool read_only = false;
};

struct buffer_info {
  void* pointer = nullptr;
  std::size_t nbytes = 0;
  std::size_t alignment = 0;
  v1::kind kind = v1::kind::unknown;
  bool read_only = false;
  bool is_slice = false;
  std::size_t exports = 0;
};

// Frees what buffer::disown gave.
class usm_deleter {
 public:
  usm_deleter() noexcept = default;
  explicit usm_deleter(isthmus_owner_t owner) noexcept : owner_(owner) {}
  void operator()(std::byte*) const noexcept {
    if (owner_.release != nullptr) owner_.release(owner_.object);
  }

 private:
  isthmus_owner_t owner_{};
};
using usm_pointer = std::unique_ptr<std::byte[], usm_deleter>;

class buffer : public detail::handle<buffer, isthmus_buffer_t, isthmus_buffer_retain,
                                     isthmus_buffer_release> {
 public:
  buffer() noexcept = default;
  explicit buffer(std::size_t nbytes, v1::kind of = v1::kind::device,
                  const buffer_options& options = {})
      : handle(create(nbytes, of, options)) {}

  // A buffer over USM of somebody else's, which `owner` (any object) keeps alive: it is destroyed
  // when the memory is no longer needed. The queue's context must know the memory.
  template <class T, class Owner>
  [[nodiscard]] static buffer adopt(std::span<T> memory, Owner&& owner,
                                    const adopt_options& options = {}) {
    return adopt_raw(memory.data(), memory.size_bytes(), std::is_const_v<T>, options,
                     detail::make_owner(std::forward<Owner>(owner)));
  }
  template <class T, class Deleter>
  [[nodiscard]] static buffer adopt(std::unique_ptr<T[], Deleter> memory, std::size_t count,
                                    const adopt_options& options = {}) {
    const std::span<T> all(memory.get(), count);
    return adopt(all, std::move(memory), options);
  }
  // Shares `memory` with its other owners.
  template <class T>
  [[nodiscard]] static buffer adopt(std::shared_ptr<T> memory, std::size_t count,
                                    const adopt_options& options = {}) {
    const std::span<std::remove_extent_t<T>> all(memory.get(), count);
    return adopt(all, std::move(memory), options);
  }
  // Calls `deleter(pointer)` when the memory is no longer needed.
  template <std::invocable<void*> Deleter>
  [[nodiscard]] static buffer adopt(void* pointer, std::size_t nbytes, Deleter&& deleter,
                                    const adopt_options& options = {}) {
    using held = std::unique_ptr<void, std::decay_t<Deleter>>;
    return adopt_raw(pointer, nbytes, false, options,
                     detail::make_owner(held(pointer, std::forward<Deleter>(deleter))));
  }

  // Gives the memory away: a pointer, and in it what frees it, after the work in flight. This
  // buffer is dead afterwards. Throws invalid_argument while slices, exports or views of the memory
  // live.
  [[nodiscard]] usm_pointer disown() const {
    void* pointer = nullptr;
    isthmus_owner_t owner{};
    detail::check(isthmus_buffer_disown(get(), &pointer, &owner));
    const usm_deleter deleter(owner);
    if (pointer == nullptr) deleter(nullptr);  // 0 bytes: a unique_ptr would never call it
    return usm_pointer(static_cast<std::byte*>(pointer), deleter);
  }

  [[nodiscard]] buffer slice(std::size_t offset, std::size_t nbytes) const {
    return detail::make<buffer>(isthmus_buffer_slice, get(), offset, nbytes);
  }
  // The same memory, its operations put on another queue of the context.
  [[nodiscard]] buffer on(const v1::queue& queue) const {
    return detail::make<buffer>(isthmus_buffer_on_queue, get(), queue.get());
  }
  // Dead at once, slices too: further use throws closed. Freeing twice does nothing.
  void free() const noexcept { isthmus_buffer_free(get()); }

  [[nodiscard]] buffer_info info() const {
    const isthmus_buffer_info_t raw = raw_info();
    return {raw.pointer,        raw.nbytes,        raw.alignment, static_cast<v1::kind>(raw.kind),
            raw.read_only != 0, raw.is_slice != 0, raw.exports};
  }
  [[nodiscard]] std::size_t size() const { return raw_info().nbytes; }
  [[nodiscard]] v1::kind kind() const { return info().kind; }
  // Of device memory too, for kernels; the host may touch it through host() alone.
  [[nodiscard]] void* pointer() const { return raw_info().pointer; }
  [[nodiscard]] v1::queue queue() const { return v1::queue::share(raw_info().queue); }

  // Waits for what is pending on this buffer, on any queue; errors are those of its events.
  void wait() const { detail::check(isthmus_buffer_wait(get(), -1)); }
  // The end of what is pending now, as an event that cannot fail.
  [[nodiscard]] event pending() const { return detail::make<event>(isthmus_buffer_pending, get()); }
  // Waits likewise and lets the host touch it while the view lives. T
  // const: reads only. Throws unsupported for device kind. Defined in host_view.hpp.
  template <class T = std::byte>
  [[nodiscard]] host_view<T> host() const;

  // Makes work known that the library did not start: until the event, or all now on the queue, has
  // completed the memory is not given back, and operations on other queues wait.
  void record(const event& work) const {
    detail::check(isthmus_buffer_record_event(get(), work.get()));
  }
  void record(const v1::queue& work) const {
    detail::check(isthmus_buffer_record_queue(get(), work.get()));
  }

  friend bool operator==(const buffer& a, const buffer& b) noexcept { return a.get() == b.get(); }

 private:
  isthmus_buffer_info_t raw_info() const {
    isthmus_buffer_info_t raw{};
    raw.struct_size = sizeof raw;
    detail::check(isthmus_buffer_info(get(), &raw));
    return raw;
  }
  static isthmus_buffer_t* create(std::size_t nbytes, v1::kind of, const buffer_options& options) {
    isthmus_buffer_t* raw = nullptr;
    detail::check(isthmus_buffer_create(nbytes, static_cast<isthmus_kind_t>(of), options.alignment,
                                        options.on.get(), options.from.get(), &raw));
    return raw;
  }
  static buffer adopt_raw(const void* pointer, std::size_t nbytes, bool constant,
                          const adopt_options& options, isthmus_owner_t owner) {
    return detail::make<buffer>(isthmus_buffer_adopt, const_cast<void*>(pointer), nbytes,
                                static_cast<isthmus_kind_t>(options.kind),
                                constant || options.read_only ? 1 : 0, options.on.get(), owner);
  }
};

static_assert(std::copyable<buffer> && std::equality_comparable<buffer>);
static_assert(std::is_nothrow_move_constructible_v<buffer>);
static_assert(sizeof(buffer) == sizeof(void*));
static_assert(!std::copyable<usm_pointer> && std::movable<usm_pointer>);

}  // namespace v1
}  // namespace isthmus

#include <isthmus/host_view.hpp>
#include <isthmus/submit.hpp>
