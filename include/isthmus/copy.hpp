// SPDX-License-Identifier: Apache-2.0
// Copies between any two endpoints: buffers of any kind, device and platform, and plain host memory
// of the caller.
//
//   isthmus::copy(buffer, values);                                // returns when it has completed
//   isthmus::copy(values, isthmus::at(buffer, 4096));             // from an offset
//   auto done = isthmus::copy_async(a, b, {.after = ready, .keep = isthmus::keep(owner)});
//
// Plain memory is a vector, array, string or span. A copy has the size of its source, or `nbytes`
// bytes for copy_bytes(); the destination must be at least as large. Throws out_of_range if an
// endpoint is too small, invalid_argument for overlapping ranges, closed for a freed buffer,
// read_only for a read-only destination. The `_async` functions return an event, which reports the
// errors of the copy itself.
//
// Cost: the host copies memory that it can access if nothing is pending on it; otherwise a queue
// executes the copy. The code in this header does not allocate for an asynchronous copy without
// `after` and `keep`. Thread-safe.
#pragma once

#include <isthmus/buffer.hpp>

namespace isthmus {
inline namespace v1 {

// The bytes of a buffer from `offset` on. Borrows the buffer; created by at().
struct buffer_part {
  const v1::buffer& buffer;
  std::size_t offset = 0;
};
[[nodiscard]] inline buffer_part at(const buffer& buffer, std::size_t offset) noexcept {
  return {buffer, offset};
}

// Plain memory in one piece: a vector, array, string or span. Elements that cannot be copied as
// bytes are refused with a message of their own.
template <class X>
concept plain_memory = std::ranges::contiguous_range<X>;

namespace detail {

template <class X>
using element_of = std::remove_reference_t<std::ranges::range_reference_t<X>>;

// Fails to compile, with the remedy, for memory that a copy cannot use.
template <class Memory, bool Written>
constexpr void require_bytes() noexcept {
  using type = element_of<Memory>;
  static_assert(std::is_trivially_copyable_v<type>,
                "the elements are copied as bytes: their type must be trivially copyable");
  static_assert(!Written || !std::is_const_v<type>, "the destination's elements are const");
  static_assert(
      std::is_lvalue_reference_v<Memory> || std::ranges::borrowed_range<Memory>,
      "a temporary container may end before the copy has: give it a name, or pass a std::span");
}

}  // namespace detail

// The source of a copy. Borrows the buffer or the memory: use it as a function argument only.
class source {
 public:
  source(const buffer& whole) : source(buffer_part{whole, 0}) {}
  source(buffer_part part) : raw_{part.buffer.get(), nullptr, part.offset} {
    const std::size_t buffer_bytes = part.buffer.size();
    nbytes_ = part.offset <= buffer_bytes ? buffer_bytes - part.offset : 0;
  }
  template <plain_memory Memory>
  source(Memory&& memory) noexcept
      : raw_{nullptr, const_cast<void*>(static_cast<const void*>(std::data(memory))), 0},
        nbytes_(std::size(memory) * sizeof(detail::element_of<Memory>)) {
    detail::require_bytes<Memory, false>();
  }

  [[nodiscard]] const isthmus_endpoint_t* raw() const noexcept { return &raw_; }
  [[nodiscard]] std::size_t size() const noexcept { return nbytes_; }

 private:
  isthmus_endpoint_t raw_;
  std::size_t nbytes_ = 0;
};

// The destination of a copy or fill. Borrows the buffer or the memory: use it as a function
// argument only.
class destination : public source {
 public:
  destination(const buffer& whole) : source(whole) {}
  destination(buffer_part part) : source(part) {}
  template <plain_memory Memory>
  destination(Memory&& memory) noexcept : source(std::forward<Memory>(memory)) {
    detail::require_bytes<Memory, true>();
  }
};

// Objects that an operation keeps alive until it has ended, created by keep(a, b, ...). They are
// destroyed on any thread: their destructors may release buffers, but must neither wait nor submit.
class keepers {
 public:
  keepers() noexcept = default;
  keepers(keepers&& other) noexcept : owners_(std::exchange(other.owners_, {})) {}
  keepers& operator=(keepers&& other) noexcept {
    std::swap(owners_, other.owners_);
    return *this;
  }
  ~keepers() {
    for (const isthmus_owner_t& owner : owners_) owner.release(owner.object);
  }

  template <class Value>
  void add(Value&& value) {
    owners_.reserve(owners_.size() + 1);  // push_back must not throw: it would leak the owner
    owners_.push_back(detail::make_owner(std::forward<Value>(value)));
  }
  // Transfers the owners to the library, which releases them.
  [[nodiscard]] std::vector<isthmus_owner_t> detach() noexcept {
    return std::exchange(owners_, {});
  }

 private:
  std::vector<isthmus_owner_t> owners_;
};
// Keepers that own copies of `values`, or the values themselves if they are moved.
template <class... Values>
[[nodiscard]] keepers keep(Values&&... values) {
  keepers result;
  (result.add(std::forward<Values>(values)), ...);
  return result;
}

// Options of an operation.
struct operation {
  queue_choice queue{};  // {}: the destination buffer's queue, else the source's
  dependencies after{};  // events that it waits for; if one fails, the operation fails
  keepers keep{};        // objects that live until it has ended
};

namespace detail {

// Calls a function of the C ABI with the operation and `event`, and throws if it fails. If `event`
// is null, the call blocks.
template <class Function>
void run(isthmus::operation& operation, isthmus_event_t** event, Function function) {
  const std::vector<isthmus_owner_t> owners = operation.keep.detach();
  isthmus_operation_t raw{};
  raw.struct_size = sizeof raw;
  raw.after = operation.after.data();
  raw.after_count = operation.after.size();
  raw.owners = owners.data();
  raw.owner_count = owners.size();
  check(function(&raw, event));
}
template <class Function>
event run_async(isthmus::operation& operation, Function function) {
  isthmus_event_t* raw = nullptr;
  run(operation, &raw, function);
  return event::take(raw);
}

inline void check_bounds(const source& endpoint, std::size_t nbytes, const char* name) {
  if (nbytes <= endpoint.size()) return;
  raise(status::out_of_range, std::to_string(nbytes) + " bytes do not fit in the " + name + " of " +
                                  std::to_string(endpoint.size()) + " bytes");
}

// The call of the C ABI for one copy. Checks the bounds here, since the library does not know where
// the caller's memory ends.
inline auto copy_call(const isthmus::destination& destination, const isthmus::source& source,
                      std::size_t nbytes, queue_choice queue) {
  check_bounds(source, nbytes, "source");
  check_bounds(destination, nbytes, "destination");
  return [&destination, &source, nbytes, queue](const isthmus_operation_t* operation,
                                                isthmus_event_t** event) {
    return isthmus_copy(queue.get(), destination.raw(), source.raw(), nbytes, operation, event);
  };
}

}  // namespace detail

// Copies and waits until the copy has completed; throws its error.
inline void copy(const isthmus::destination& destination, const isthmus::source& source,
                 isthmus::operation operation = {}) {
  detail::run(operation, nullptr,
              detail::copy_call(destination, source, source.size(), operation.queue));
}
// The same from a temporary container. The asynchronous functions do not accept one.
template <plain_memory Memory>
  requires(!std::is_lvalue_reference_v<Memory> && !std::ranges::borrowed_range<Memory>)
void copy(const isthmus::destination& destination, Memory&& source,
          isthmus::operation operation = {}) {
  copy(destination, std::span(source), std::move(operation));
}
// Submits the copy and returns an event that completes with it. Plain memory must live until then.
inline event copy_async(const isthmus::destination& destination, const isthmus::source& source,
                        isthmus::operation operation = {}) {
  return detail::run_async(operation,
                           detail::copy_call(destination, source, source.size(), operation.queue));
}
// The same for the first `nbytes` bytes. std::copy_n, in contrast, counts elements.
inline void copy_bytes(const isthmus::destination& destination, const isthmus::source& source,
                       std::size_t nbytes, isthmus::operation operation = {}) {
  detail::run(operation, nullptr, detail::copy_call(destination, source, nbytes, operation.queue));
}
inline event copy_bytes_async(const isthmus::destination& destination,
                              const isthmus::source& source, std::size_t nbytes,
                              isthmus::operation operation = {}) {
  return detail::run_async(operation,
                           detail::copy_call(destination, source, nbytes, operation.queue));
}

}  // namespace v1
}  // namespace isthmus
