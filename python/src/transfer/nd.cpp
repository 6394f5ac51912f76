// SPDX-License-Identifier: Apache-2.0
// Copies of N-dimensional arrays.

#include "core/arguments.hpp"
#include "transfer/bindings.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

ArrayNumbers to_numbers(nb::handle argument, const char* name) {
  const nb::object all = steal_or_raise(PySequence_Tuple(argument.ptr()));
  ArrayNumbers numbers;
  for (nb::handle each : all) {
    numbers.push_back(static_cast<std::int64_t>(to_size(each, name)));
  }
  return numbers;
}

// The bytes from the start of the first element to the end of the last one; OutOfRangeError if that
// exceeds the address space. No stride is negative.
std::size_t extent_of(const ArrayLayout& layout, const char* role) {
  if (layout.is_empty()) {
    return 0;
  }
  const auto range = layout.checked_byte_range(layout.item);
  if (!range) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "elements of shape %R and strides %R in the %s do not fit in 63 bits",
                 to_tuple(layout.shape).ptr(), to_tuple(layout.strides).ptr(), role);
  }
  return static_cast<std::size_t>(range->end);
}

struct Side {
  const char* role;
  Endpoint endpoint;
  // As the object itself describes it. The element size is 0 for contiguous bytes, which take the
  // shape of the other side.
  ArrayLayout layout;

  [[nodiscard]] bool has_layout() const { return layout.item != 0; }
  [[nodiscard]] bool is_bytes() const {
    return layout.item == 1 && layout.shape.size() == 1 &&
           (layout.strides[0] == 1 || layout.shape[0] <= 1);
  }
  [[nodiscard]] bool has_shape(const ArrayLayout& other) const {
    return layout.shape == other.shape && layout.item == other.item;
  }
};

Side to_side(nb::handle object, Access access, const char* role) {
  if (auto array = to_array_endpoint(object, access, role)) {
    return {role, std::move(array->endpoint), std::move(array->layout)};
  }
  Side side{role, to_endpoint(object, access, role), {}};
  side.layout.item = 0;
  return side;
}

// The shape of the sides that are arrays; the shape of bytes is used only if there are none.
ArrayLayout shape_of(const Side& target, const Side& source) {
  const auto is_array = [](const Side& one) { return one.has_layout() && !one.is_bytes(); };
  if (is_array(target) && is_array(source) && !target.has_shape(source.layout)) {
    raise_python(PyExc_ValueError,
                 "destination and source differ in shape or element size: pass `shape` and "
                 "`itemsize`, and the strides of sides that are not contiguous");
  }
  for (const auto* one : {&target, &source}) {
    if (is_array(*one)) {
      return {{one->layout.shape}, one->layout.item};
    }
  }
  if (!target.has_layout() && !source.has_layout()) {
    raise_python(PyExc_ValueError,
                 "neither the destination nor the source has a shape: pass `shape` and `itemsize`");
  }
  const auto& bytes = (source.has_layout() ? source : target).layout;
  return {{bytes.shape}, bytes.item};
}

// The strides in `argument`, else those of the array if it has this shape, else those of packed
// elements. The caller has checked the size of packed elements.
ArrayLayout with_strides(const Side& side, nb::handle argument, ArrayLayout array) {
  if (argument.is_none()) {
    array.strides = side.has_layout() && side.has_shape(array)
                        ? side.layout.strides
                        : isthmus::detail::dense_strides(array.shape, array.item);
    return array;
  }
  array.strides = to_numbers(argument, "stride");
  if (array.strides.size() != array.shape.size()) {
    raise_python(PyExc_ValueError,
                 "strides of the %s must have one number for each of the %zu dimensions, not %zu",
                 side.role, array.shape.size(), array.strides.size());
  }
  return array;
}

struct NdRequest {
  nb::handle dst, src, shape, itemsize, dst_strides, src_strides, dst_offset, src_offset;
};

ArrayLayout to_array(const NdRequest& request, const Side& target, const Side& source) {
  if (request.shape.is_none()) {
    if (!request.itemsize.is_none()) {
      raise_python(PyExc_ValueError, "itemsize needs a shape: pass `shape` too");
    }
    return shape_of(target, source);
  }
  ArrayLayout array{{to_numbers(request.shape, "extent")},
                    static_cast<std::int64_t>(to_size_or(request.itemsize, "itemsize", 1))};
  if (!isthmus::detail::fits_memory(array.shape, array.item)) {
    raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                 "an array of shape %R and itemsize %lld does not fit in 63 bits",
                 request.shape.ptr(), static_cast<long long>(array.item));
  }
  return array;
}

nb::object copy(const NdRequest& request, const OperationArguments& arguments) {
  Side destination = to_side(request.dst, Access::write, "destination");
  Side source = to_side(request.src, Access::read, "source");
  const auto array = to_array(request, destination, source);
  const auto target_layout = with_strides(destination, request.dst_strides, array);
  const auto source_layout = with_strides(source, request.src_strides, array);
  destination.endpoint.raw.offset = to_size(request.dst_offset, "destination offset");
  source.endpoint.raw.offset = to_size(request.src_offset, "source offset");
  require_range(source.endpoint, extent_of(source_layout, "source"), "source");
  require_range(destination.endpoint, extent_of(target_layout, "destination"), "destination");
  return copy_strided(destination.endpoint, source.endpoint, target_layout, source_layout.strides,
                      arguments);
}

nb::object copy_nd(nb::handle dst, nb::handle src, nb::handle shape, nb::handle itemsize,
                   nb::handle dst_strides, nb::handle src_strides, nb::handle dst_offset,
                   nb::handle src_offset, nb::handle queue, nb::handle after, nb::handle blocking) {
  return copy({dst, src, shape, itemsize, dst_strides, src_strides, dst_offset, src_offset},
              {queue, after, to_flag(blocking, "blocking")});
}

}  // namespace

void bind_nd(nb::module_& module) {
  const auto none = nb::none();
  def_operation(
      module, "copy_nd", &copy_nd, nb::arg("dst").none(), nb::arg("src").none(), nb::kw_only(),
      nb::arg("shape") = none, nb::arg("itemsize") = none, nb::arg("dst_strides") = none,
      nb::arg("src_strides") = none, nb::arg("dst_offset").none() = 0,
      nb::arg("src_offset").none() = 0,
      nb::sig("def copy_nd(dst: object, src: object, *, shape: Sequence[int] | None = None, "
              "itemsize: int | None = None, dst_strides: Sequence[int] | None = None, src_strides: "
              "Sequence[int] | None = None, dst_offset: int = 0, src_offset: int = 0, queue: Queue "
              "| None = None, after: Event | Sequence[Event] = (), blocking: bool = True) -> Event "
              "| None"),
      "Copies an array whose elements need not be contiguous, of up to 8 dimensions.\n\n"
      "Arrays (numpy.ndarray and the like) have shape, strides and element size. A Buffer, and\n"
      "bytes, have the elements of the other side packed in C order. `shape`, `itemsize` (1)\n"
      "and strides, in bytes, are needed if neither side has them, and override those of the\n"
      "objects. Otherwise like Buffer.copy_from. Raises ValueError for arrays of different\n"
      "shapes and for negative strides, InvalidArgumentError if elements overlap in the\n"
      "destination.");
}

}  // namespace isthmus::python
