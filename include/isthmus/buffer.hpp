// SPDX-License-Identifier: Apache-2.0
// A buffer owns one USM allocation, or refers to memory that another library allocated. It holds
// untyped bytes.
//
//   isthmus::buffer a(1 << 20);                                   // device memory, default device
//   isthmus::buffer b(4096, isthmus::kind::shared, {.queue = queue, .alignment = 64});
//   auto part = b.slice(100, 50);                                 // keeps b's memory alive
//   for (float& x : b.host<float>()) x = 0;                       // shared and host kinds
//
// Copies of a `buffer` are references to the same buffer. Neither free() nor dropping the last
// reference blocks: the memory is released once the last operation on it has completed.
//
// Cost: an allocation from a pool takes about 10 ns. From a resource without a cache, such as
// resource::provider, it takes a driver call. A slice allocates no memory. Thread-safe. Operations
// on one buffer from several queues wait for each other.
#pragma once

#include <isthmus/queue.hpp>
#include <isthmus/resource.hpp>

#include <cstddef>
#include <memory>

namespace isthmus {
inline namespace v1 {

template <class T>
class host_view;

// Options of a new buffer.
struct buffer_options {
  queue_choice queue{};          // {}: the default queue of the default device
  std::size_t alignment = 0;     // in bytes, a power of two; 0: the device's base alignment
  isthmus::resource resource{};  // {}: the current one, see current_resource.hpp
};

// Options of buffer::adopt().
struct adopt_options {
  // {}: the default queue of the default device
  queue_choice queue{};
  v1::kind kind = v1::kind::unknown;  // unknown: the kind that the driver reports
  bool read_only = false;
};

// The properties of a buffer, as buffer::info() returns them.
struct buffer_info {
  void* pointer = nullptr;
  std::size_t nbytes = 0;
  // As requested, or the device's base alignment.
  std::size_t alignment = 0;
  v1::kind kind = v1::kind::unknown;
  bool read_only = false;
  bool is_slice = false;
  // Host views and other exports of the memory that have not ended.
  std::size_t exports = 0;
};

// Deleter of the pointer that buffer::disown() returns. The free does not block: it is deferred
// until pending operations have completed.
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

template <>
inline constexpr const char* detail::class_name<isthmus_buffer_t> = "buffer";

// A counted reference to a buffer. Calls on a freed buffer throw closed.
class buffer : public detail::handle<buffer, isthmus_buffer_t, isthmus_buffer_retain,
                                     isthmus_buffer_release> {
 public:
  buffer() noexcept = default;
  // Allocates `nbytes` bytes; 0 is allowed. The contents are undefined. Throws out_of_memory,
  // unsupported for a kind that the device lacks, invalid_argument for an alignment that is not a
  // power of two, wrong_context for a resource of another context than the queue's.
  explicit buffer(std::size_t nbytes, v1::kind kind = v1::kind::device,
                  const buffer_options& options = {})
      : handle(create(nbytes, kind, options)) {}

  // A buffer over USM that another library allocated. `owner` (any object) keeps the memory alive
  // and is destroyed when the memory is no longer needed. The buffer is read-only if T is const.
  // Throws wrong_context if the memory does not belong to the queue's context, out_of_range if it
  // extends past its allocation.
  template <class T, class Owner>
  [[nodiscard]] static buffer adopt(std::span<T> memory, Owner&& owner,
                                    const adopt_options& options = {}) {
    return adopt_raw(memory.data(), memory.size_bytes(), std::is_const_v<T>, options,
                     detail::make_owner(std::forward<Owner>(owner)));
  }
  // Adopts `count` elements, which the deleter of `memory` frees.
  template <class T, class Deleter>
  [[nodiscard]] static buffer adopt(std::unique_ptr<T[], Deleter> memory, std::size_t count,
                                    const adopt_options& options = {}) {
    const std::span<T> all(memory.get(), count);
    return adopt(all, std::move(memory), options);
  }
  // Adopts `count` elements, shared with the other owners of `memory`.
  template <class T>
  [[nodiscard]] static buffer adopt(std::shared_ptr<T> memory, std::size_t count,
                                    const adopt_options& options = {}) {
    const std::span<std::remove_extent_t<T>> all(memory.get(), count);
    return adopt(all, std::move(memory), options);
  }
  // Adopts `nbytes` bytes from `pointer` on. Calls `deleter(pointer)` when the memory is no longer
  // needed.
  template <std::invocable<void*> Deleter>
  [[nodiscard]] static buffer adopt(void* pointer, std::size_t nbytes, Deleter&& deleter,
                                    const adopt_options& options = {}) {
    using held = std::unique_ptr<void, std::decay_t<Deleter>>;
    return adopt_raw(pointer, nbytes, false, options,
                     detail::make_owner(held(pointer, std::forward<Deleter>(deleter))));
  }

  // Transfers the ownership of the memory to the returned pointer, whose deleter frees it after the
  // pending operations. This buffer is closed afterwards. Throws invalid_argument for slices, for 0
  // bytes, and while other references, slices, exports or views of the memory exist.
  [[nodiscard]] usm_pointer disown() const {
    void* pointer = nullptr;
    isthmus_owner_t owner{};
    detail::check(isthmus_buffer_disown(require(), &pointer, &owner));
    const usm_deleter deleter(owner);
    if (pointer == nullptr) deleter(nullptr);  // a unique_ptr without a pointer would not call it
    return usm_pointer(static_cast<std::byte*>(pointer), deleter);
  }

  // Bytes [offset, offset + nbytes) as a buffer that keeps this one's memory alive. Throws
  // out_of_range.
  [[nodiscard]] buffer slice(std::size_t offset, std::size_t nbytes) const {
    return detail::make<buffer>(isthmus_buffer_slice, require(), offset, nbytes);
  }
  // A buffer of the same memory whose operations are submitted to `queue`, a queue of the same
  // context. Throws wrong_context.
  [[nodiscard]] buffer on_queue(const v1::queue& queue) const {
    return detail::make<buffer>(isthmus_buffer_on_queue, require(), queue.require());
  }
  // Closes the buffer at once: further use of the buffer or of its slices throws closed. The memory
  // is released once operations and host views have ended. Freeing a slice closes only the slice. A
  // second free does nothing. Never blocks.
  void free() const noexcept { isthmus_buffer_free(get()); }

  [[nodiscard]] buffer_info info() const {
    const isthmus_buffer_info_t raw = raw_info();
    return {raw.pointer,        raw.nbytes,        raw.alignment, static_cast<v1::kind>(raw.kind),
            raw.read_only != 0, raw.is_slice != 0, raw.exports};
  }
  // The size in bytes.
  [[nodiscard]] std::size_t size() const { return raw_info().nbytes; }
  [[nodiscard]] v1::kind kind() const { return info().kind; }
  // The address of the first byte, to be passed to kernels; NULL for 0 bytes. The host accesses the
  // memory only through host(). Device memory has an address too.
  [[nodiscard]] void* pointer() const { return raw_info().pointer; }
  // The same, under the name of the standard library and of RMM.
  [[nodiscard]] void* data() const { return pointer(); }
  // The queue that operations on this buffer are submitted to by default.
  [[nodiscard]] v1::queue queue() const { return v1::queue::share(raw_info().queue); }

  // Waits for the operations that are pending on this buffer, on any queue. Errors of operations
  // are reported by their own events. Throws dependency_failed if a unified buffer's copy into
  // these bytes has failed and the bytes were not written since.
  void wait() const { detail::check(isthmus_buffer_wait(require(), -1)); }
  // An event that completes once everything that is pending now has ended. It cannot fail.
  [[nodiscard]] event pending() const {
    return detail::make<event>(isthmus_buffer_pending, require());
  }
  // Waits as wait() does and returns a view through which the host may access the memory while the
  // view lives. With a const T the view is read-only. Throws unsupported for device kind; read_only
  // for a read-only buffer unless T is const; invalid_argument if the bytes are not whole, aligned
  // objects of T. Requires host_view.hpp.
  template <class T = std::byte>
  [[nodiscard]] host_view<T> host() const {
    return host_view<T>(*this);
  }

  // Declares external work, such as a kernel of the caller, that uses the memory. Until `work`, or
  // all work submitted to that queue so far, has completed, the memory is not released and
  // operations on other queues wait.
  void record(const event& work) const {
    detail::check(isthmus_buffer_record_event(require(), work.require()));
  }
  void record(const v1::queue& work) const {
    detail::check(isthmus_buffer_record_queue(require(), work.require()));
  }

  friend bool operator==(const buffer& a, const buffer& b) noexcept { return a.get() == b.get(); }

 private:
  isthmus_buffer_info_t raw_info() const {
    return detail::read<isthmus_buffer_info_t>(isthmus_buffer_info, require());
  }
  static isthmus_buffer_t* create(std::size_t nbytes, v1::kind kind,
                                  const buffer_options& options) {
    isthmus_buffer_t* raw = nullptr;
    detail::check(isthmus_buffer_create(nbytes, static_cast<isthmus_kind_t>(kind),
                                        options.alignment, options.queue.get(),
                                        options.resource.get(), &raw));
    return raw;
  }
  static buffer adopt_raw(const void* pointer, std::size_t nbytes, bool constant,
                          const adopt_options& options, isthmus_owner_t owner) {
    return detail::make<buffer>(isthmus_buffer_adopt, const_cast<void*>(pointer), nbytes,
                                static_cast<isthmus_kind_t>(options.kind),
                                constant || options.read_only ? 1 : 0, options.queue.get(), owner);
  }
};

}  // namespace v1
}  // namespace isthmus
