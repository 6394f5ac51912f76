// SPDX-License-Identifier: Apache-2.0
// A host view: the bytes of a buffer of shared or host kind as a range of T that the host may
// access.
//
//   isthmus::host_view<float> values = buffer.host<float>();
//   std::iota(values.begin(), values.end(), 0.0f);
//
// The memory lives as long as the view, even if the buffer is freed. Operations that are submitted
// to a queue during this time do not wait for the view: the caller must synchronize them with
// accesses through the view.
//
// Cost: a wait for the operations pending on the buffer. Thread safety: the view is like any plain
// object.
#pragma once

#include <isthmus/buffer.hpp>
#include <isthmus/exported_span.hpp>

namespace isthmus {
inline namespace v1 {

// A view of the elements of T that a buffer holds. Movable, not copyable.
template <class T = std::byte>
class host_view : public detail::exported_span<T, buffer, isthmus_buffer_unexport> {
  static_assert(std::is_trivially_copyable_v<T>,
                "raw memory can only hold trivially copyable types");

 public:
  host_view() noexcept = default;
  // As buffer::host(), which lists the errors.
  explicit host_view(isthmus::buffer buffer) : host_view(export_buffer(std::move(buffer))) {}

 private:
  using detail::exported_span<T, buffer, isthmus_buffer_unexport>::exported_span;
  static host_view export_buffer(isthmus::buffer buffer) {
    const buffer_info info = buffer.info();
    require(info);
    void* pointer = nullptr;
    detail::check(isthmus_buffer_export(buffer.get(), &pointer));
    return host_view(std::move(buffer), {static_cast<T*>(pointer), info.nbytes / sizeof(T)});
  }
  static void require(const buffer_info& info) {
    if (info.read_only && !std::is_const_v<T>) {
      raise(status::read_only, "this buffer is read-only: use host<const T>()");
    }
    const auto address = reinterpret_cast<std::uintptr_t>(info.pointer);
    if (info.nbytes % sizeof(T) != 0 || address % alignof(T) != 0) {
      raise(status::invalid_argument,
            std::to_string(info.nbytes) + " bytes, whose address modulo the alignment is " +
                std::to_string(address % alignof(T)) + ", are not a whole number of objects of " +
                std::to_string(sizeof(T)) + " bytes, aligned to " + std::to_string(alignof(T)));
    }
  }
};

}  // namespace v1
}  // namespace isthmus
