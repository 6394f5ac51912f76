// SPDX-License-Identifier: Apache-2.0
// Copies of N-dimensional arrays.

#include <algorithm>

#include "core/arguments.hpp"
#include "transfer/bindings.hpp"
#include "transfer/transfers.hpp"

namespace isthmus::python {
namespace {

Sizes to_sizes(nb::handle argument, const char* name) {
  const nb::object all = nb::steal(PySequence_Tuple(argument.ptr()));
  if (!all.is_valid()) {
    raise_set();
  }
  Sizes sizes;
  for (nb::handle each : all) {
    sizes.push_back(to_size(each, name));
  }
  return sizes;
}

// Strides in C order, without gaps. Pre: the product of the extents was checked.
Sizes dense(const Sizes& shape, std::size_t item) {
  Sizes strides(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = item;
    item *= std::max<std::size_t>(shape[i], 1);
  }
  return strides;
}

// The bytes from the start of the first element to the end of the last one; OutOfRangeError if that
// exceeds the address space.
std::size_t extent_of(const Sizes& shape, const Sizes& strides, std::size_t item,
                      const char* role) {
  std::size_t end = item;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) {
      return 0;
    }
    std::size_t distance = 0;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &distance) ||
        __builtin_add_overflow(end, distance, &end)) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                   "%zu elements %zu bytes apart in the %s do not fit in 64 bits", shape[i],
                   strides[i], role);
    }
  }
  return end;
}

struct Side {
  const char* role;
  Endpoint endpoint;
  // As the object itself describes them.
  Sizes shape;
  Sizes strides;
  std::size_t item = 0;

  // Contiguous bytes have no layout: they take the shape of the other side.
  [[nodiscard]] bool has_layout() const { return item != 0; }
  [[nodiscard]] bool is_bytes() const {
    return item == 1 && shape.size() == 1 && (strides[0] == 1 || shape[0] <= 1);
  }
};

Side to_side(nb::handle object, Access access, const char* role) {
  auto array = to_array_endpoint(object, access, role);
  if (!array) {
    return {role, to_endpoint(object, access, role), {}, {}, 0};
  }
  const auto& layout = array->layout;
  return {role, std::move(array->endpoint), as_sizes(layout.shape), as_sizes(layout.strides),
          static_cast<std::size_t>(layout.item)};
}

struct Array {
  Sizes shape;
  std::size_t item = 1;
};

// The shape of the sides that are arrays; the shape of bytes is used only if there are none.
Array shape_of(const Side& target, const Side& source) {
  const auto is_array = [](const Side& one) { return one.has_layout() && !one.is_bytes(); };
  if (is_array(target) && is_array(source) &&
      (target.shape != source.shape || target.item != source.item)) {
    raise_python(PyExc_ValueError,
                 "destination and source differ in shape or element size: pass `shape` and "
                 "`itemsize`, and the strides of sides that are not contiguous");
  }
  for (const auto* one : {&target, &source}) {
    if (is_array(*one)) {
      return {one->shape, one->item};
    }
  }
  if (!target.has_layout() && !source.has_layout()) {
    raise_python(PyExc_ValueError,
                 "neither the destination nor the source has a shape: pass `shape` and `itemsize`");
  }
  const auto& bytes = source.has_layout() ? source : target;
  return {bytes.shape, bytes.item};
}

// The strides in `argument`, else those of the array if it has this shape, else those of packed
// elements.
Sizes strides_of(const Side& side, nb::handle argument, const Array& array) {
  if (!argument.is_none()) {
    auto strides = to_sizes(argument, "stride");
    if (strides.size() != array.shape.size()) {
      raise_python(PyExc_ValueError,
                   "strides of the %s must have one number for each of the %zu dimensions, not %zu",
                   side.role, array.shape.size(), strides.size());
    }
    return strides;
  }
  return side.has_layout() && side.shape == array.shape && side.item == array.item
             ? side.strides
             : dense(array.shape, array.item);
}

struct NdRequest {
  nb::handle dst, src, shape, itemsize, dst_strides, src_strides, dst_offset, src_offset;
};

Array to_array(const NdRequest& request, const Side& target, const Side& source) {
  if (request.shape.is_none()) {
    if (!request.itemsize.is_none()) {
      raise_python(PyExc_ValueError, "itemsize needs a shape: pass `shape` too");
    }
    return shape_of(target, source);
  }
  Array array{to_sizes(request.shape, "extent"), to_size_or(request.itemsize, "itemsize", 1)};
  std::size_t nbytes = array.item;
  for (const auto extent : array.shape) {
    if (__builtin_mul_overflow(nbytes, std::max<std::size_t>(extent, 1), &nbytes)) {
      raise_python(error_type(ISTHMUS_ERROR_OUT_OF_RANGE),
                   "an array of shape %R and itemsize %zu does not fit in 64 bits",
                   request.shape.ptr(), array.item);
    }
  }
  return array;
}

nb::object copy(const NdRequest& request, const OperationArguments& arguments) {
  Side destination = to_side(request.dst, Access::write, "destination");
  Side source = to_side(request.src, Access::read, "source");
  const auto block = to_array(request, destination, source);
  const auto destination_strides = strides_of(destination, request.dst_strides, block);
  const auto source_strides = strides_of(source, request.src_strides, block);
  destination.endpoint.raw.offset = to_size(request.dst_offset, "destination offset");
  source.endpoint.raw.offset = to_size(request.src_offset, "source offset");
  require_range(source.endpoint, extent_of(block.shape, source_strides, block.item, "source"),
                "source");
  require_range(destination.endpoint,
                extent_of(block.shape, destination_strides, block.item, "destination"),
                "destination");
  return copy_strided({destination.endpoint, source.endpoint, destination_strides, source_strides,
                       block.shape, block.item},
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
  module.def(
      "copy_nd", &copy_nd, nb::arg("dst").none(), nb::arg("src").none(), nb::kw_only(),
      nb::arg("shape") = none, nb::arg("itemsize") = none, nb::arg("dst_strides") = none,
      nb::arg("src_strides") = none, nb::arg("dst_offset").none() = 0,
      nb::arg("src_offset").none() = 0, nb::arg("queue") = none,
      nb::arg("after").none() = nb::make_tuple(), nb::arg("blocking").none() = true,
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
