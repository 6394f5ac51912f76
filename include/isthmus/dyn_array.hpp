// SPDX-License-Identifier: Apache-2.0
// An array whose dtype and rank (up to 64 axes) are known at run time only, for example those of
// data from a file or from another language.
//
//   auto any = isthmus::empty(isthmus::dtype::float32, {2, 3, 4});      // array_make.hpp
//   auto typed = any.as<float, 3>();                  // the same elements; throws for other types
//   float x = any.get<float>({0, 1, 2});
//
// Everything else, including cost and thread safety, is as for array<T, N>, which converts to
// dyn_array.
#pragma once

#include <isthmus/array.hpp>

namespace isthmus {
inline namespace v1 {

// An array of any dtype and rank. A default-constructed, moved-from or freed one is empty.
class dyn_array : public detail::array_base<dynamic_rank> {
  using base = detail::array_base<dynamic_rank>;

 public:
  using axes_type = axes<dynamic_rank>;

  dyn_array() noexcept = default;
  // An array over a buffer: dense, in row-major order, from `byte_offset` on. Throws out_of_range
  // for more elements than the buffer holds; invalid_argument for an unknown dtype, for too many
  // axes, and for elements that would not be aligned.
  dyn_array(v1::buffer memory, v1::dtype dtype, const axes_type& shape, std::size_t byte_offset = 0)
      : dyn_array(std::move(memory), dtype,
                  v1::layout<dynamic_rank>::dense(shape, item_of(dtype),
                                                  static_cast<std::int64_t>(byte_offset))) {}
  // The same with any layout.
  template <std::same_as<v1::layout<dynamic_rank>> Layout>
  dyn_array(v1::buffer memory, v1::dtype dtype, const Layout& layout)
      : base(detail::array_memory(std::move(memory)), layout),
        type_(dtype),
        read_only_(memory_.read_only()) {
    memory_.require(layout_, v1::nbytes(dtype), alignment_of(dtype));
  }
  // The same elements; read-only if T is const.
  template <class T, std::size_t N>
  dyn_array(const array<T, N>& other)
      : base(detail::array_memory(other.memory_),
             {other.shape(), other.strides(), other.layout().offset}),
        type_(dtype_of<T>),
        read_only_(std::is_const_v<T>) {}

  [[nodiscard]] v1::dtype type() const noexcept { return type_; }
  [[nodiscard]] std::size_t nbytes() const { return size() * v1::nbytes(type_); }
  // True for arrays of const elements and of read-only buffers.
  [[nodiscard]] bool read_only() const noexcept { return read_only_; }
  // The address of the first element; NULL if there are no elements or the memory was freed. If
  // read_only() is true the memory must not be written, which the type does not express.
  [[nodiscard]] void* pointer() const noexcept { return live_pointer(); }
  [[nodiscard]] bool is_contiguous() const { return layout_.is_contiguous(item()); }
  // Exactly the array's bytes, as array::bytes().
  [[nodiscard]] v1::buffer bytes() const { return bytes_of(item()); }

  // The same elements as an array of a type known at compile time. Throws invalid_argument for
  // another dtype or rank, read_only if the array is read-only and T is not const.
  template <element T, std::size_t N>
  [[nodiscard]] array<T, N> as() const {
    if (dtype_of<T> != type_ || rank() != N) {
      raise(status::invalid_argument, "an array of " + std::to_string(rank()) + " axes and " +
                                          std::string(name(type_)) +
                                          " cannot be viewed as one of " + std::to_string(N) +
                                          " axes and " + std::string(name(dtype_of<T>)));
    }
    if (read_only_ && !std::is_const_v<T>) {
      raise(status::read_only, "this array is read-only: use as<const T, N>()");
    }
    v1::layout<N> typed_layout{{}, {}, layout_.offset};
    for (std::size_t axis = 0; axis < N; ++axis) {
      typed_layout.shape[axis] = layout_.shape[axis];
      typed_layout.strides[axis] = layout_.strides[axis];
    }
    return array<T, N>(memory_, typed_layout, detail::unchecked{});
  }

  // As array::host(). Throws as as().
  template <element T, std::size_t N>
  [[nodiscard]] host_array_view<T, N> host() const {
    return as<T, N>().host();
  }

  // One element, as array::operator(). Throws as as(), and out_of_range.
  template <element T>
  [[nodiscard]] T get(const axes_type& index) const {
    return at(index).template as<const T, 0>()();
  }
  template <element T>
  void set(const axes_type& index, std::type_identity_t<T> value) const {
    at(index).template as<T, 0>()() = value;
  }

  // As the functions of array with these names. More keys than axes throw invalid_argument.
  template <array_key... Keys>
  [[nodiscard]] dyn_array view(const Keys&... keys) const {
    dyn_array result(memory_, type_, read_only_);
    detail::slice_into(result.layout_, layout_, keys...);
    return result;
  }
  template <array_key Key>
  [[nodiscard]] dyn_array operator[](const Key& key) const {
    return view(key);
  }
  [[nodiscard]] dyn_array transpose() const { return with_layout(layout_.transposed()); }
  [[nodiscard]] dyn_array permute(const axes_type& order) const {
    return with_layout(layout_.permuted(order));
  }
  [[nodiscard]] dyn_array reshape(const axes_type& shape) const {
    return with_layout(layout_.reshaped(shape, item()));
  }
  // Read-only, because one element may have several indices.
  [[nodiscard]] dyn_array broadcast_to(const axes_type& shape) const {
    dyn_array result = with_layout(layout_.broadcast_to(shape, item()));
    result.read_only_ = true;
    return result;
  }
  [[nodiscard]] dyn_array reinterpret(v1::dtype target_dtype) const {
    dyn_array result = with_layout(layout_.reinterpreted(item(), item_of(target_dtype)));
    memory_.require(result.layout_, v1::nbytes(target_dtype), alignment_of(target_dtype));
    result.type_ = target_dtype;
    return result;
  }

  // Waits for the operations that are pending on the array's bytes, on any queue.
  void wait() const { wait_for(item()); }

  // True if both refer to the same elements of the same buffer. Arrays without memory are equal.
  friend bool operator==(const dyn_array& a, const dyn_array& b) noexcept {
    return a.type_ == b.type_ && a.is_same_view(b);
  }

 private:
  // The caller sets the layout.
  dyn_array(const detail::array_memory& memory, v1::dtype dtype, bool read_only) noexcept
      : base(memory), type_(dtype), read_only_(read_only) {}
  [[nodiscard]] std::int64_t item() const { return item_of(type_); }
  [[nodiscard]] static std::int64_t item_of(v1::dtype dtype) {
    return static_cast<std::int64_t>(v1::nbytes(dtype));
  }
  [[nodiscard]] static std::size_t alignment_of(v1::dtype dtype) {
    return detail::facts_of(dtype).alignment;
  }
  [[nodiscard]] dyn_array with_layout(v1::layout<dynamic_rank> layout) const {
    dyn_array result(memory_, type_, read_only_);
    result.layout_ = std::move(layout);
    return result;
  }
  [[nodiscard]] dyn_array at(const axes_type& index) const {
    if (index.size() != rank()) {
      raise(status::invalid_argument, std::to_string(index.size()) + " indices for an array of " +
                                          std::to_string(rank()) + " axes");
    }
    v1::layout<dynamic_rank> element_layout;
    element_layout.offset = layout_.offset;
    for (std::size_t axis = 0; axis < rank(); ++axis) {
      element_layout.offset +=
          detail::normalize_index(index[axis], shape()[axis], axis) * strides()[axis];
    }
    return with_layout(std::move(element_layout));
  }

  v1::dtype type_ = dtype::float32;
  bool read_only_ = false;
};

}  // namespace v1
}  // namespace isthmus
