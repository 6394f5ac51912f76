# SPDX-License-Identifier: Apache-2.0
"""``asarray`` and ``array``: arrays from objects of other libraries and of Python itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import (
    Array,
    Buffer,
    DType,
    MemoryResource,
    _UnifiedMemory,
    copyto,
    current_queue,
    empty,
)
from ._host_arrays import has_array_protocol, host_array
from ._numpy_interface import extent_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._core import Device, Queue
    from ._kinds import Kind

_CPU = 1  # DLPack's number of the CPU
_SYCL_PROTOCOL = "__sycl_usm_array_interface__"


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = None,
    kind: Kind | None = None,
    device: Device | str | None = None,
    queue: Queue | None = None,
    resource: MemoryResource | None = None,
    fallback: str | None = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> Array:
    """An array with the elements of ``obj``, over the same memory where that is possible.

    ``obj``: an Array, a Buffer (its bytes), a UnifiedBuffer (its device copy), an array of another
    library with ``__sycl_usm_array_interface__``, ``__dlpack__`` or ``__cuda_array_interface__``, a
    NumPy array or another object with the buffer protocol, or a number or nested sequence of them,
    whose type is the one that NumPy chooses for it. Adopted memory is kept alive, and is read-only
    if one of the object's protocols reports that.

    ``copy`` None: a copy if one is needed; False: ValueError if one is needed; True: always a copy,
    in C order. Another ``dtype`` needs a copy, and the values are cast as by NumPy's ``astype``,
    with its ComplexWarning. Python numbers are converted as by NumPy's ``asarray``, which raises
    TypeError for a complex number as a real element.

    ``kind``, ``device`` and ``queue`` None: those of ``obj`` if its memory belongs to a device,
    else "device" and the current queue, so that plain host memory is copied; with ``kind="host"``
    and a queue of the host device it is adopted without a copy. Another queue of the same context
    and device needs no copy. ``resource``: the resource to allocate a copy from, which also
    determines kind and queue if none is named. ``fallback``: as in ``empty``, for a copy.
    ``usm_type`` and ``sycl_queue`` are aliases of ``kind`` and ``queue``.

    Raises TypeError for elements that arrays do not support (objects, text, dates, records,
    non-native byte order) and for an argument under both of its names, ValueError as above and for
    an unknown kind, OverflowError for Python integers that ``dtype`` cannot represent, BufferError
    for memory that cannot be shared.
    """
    kind = _one_of("kind", kind, "usm_type", usm_type)
    queue = _one_of("queue", queue, "sycl_queue", sycl_queue)
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy must be True, False or None, not {copy!r}")
    if resource is not None and not isinstance(resource, MemoryResource):
        raise TypeError(
            f"resource must be a resource of isthmus.memory or None, not {type(resource).__name__}"
        )
    wanted = None if dtype is None else DType(dtype)
    source = _source_of(obj, wanted)
    if copy is False and not _has_memory(obj):
        raise ValueError(
            f"copy=False, but a copy is needed: {obj!r:.40} of type {type(obj).__name__} has no "
            "memory that could be shared"
        )
    request = _Request(wanted, copy, kind, device, queue, resource, fallback)
    if not isinstance(source, Array):
        return request.from_host(source)
    return request.from_array(source, is_plain=_is_plain(obj, source))


def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    kind: Kind | None = None,
    device: Device | str | None = None,
    queue: Queue | None = None,
    resource: MemoryResource | None = None,
    fallback: str | None = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> Array:
    """Like ``asarray``, but copies by default."""
    return asarray(
        obj, dtype, copy=copy, kind=kind, device=device, queue=queue, resource=resource,
        fallback=fallback, usm_type=usm_type, sycl_queue=sycl_queue,
    )  # fmt: skip


def _one_of(name: str, value: Any, alias: str, other: Any) -> Any:
    if value is not None and other is not None:
        raise TypeError(f"got {name} and {alias}, which mean the same: pass only one of them")
    return other if value is None else value


def _source_of(obj: Any, wanted: DType | None) -> Array | NDArray[Any]:
    """An Array over the memory of ``obj`` if the library or a driver knows that memory; else a
    NumPy array.
    """
    import numpy as np

    if isinstance(obj, Array):
        return obj
    if isinstance(obj, _UnifiedMemory):
        copy = obj.device
        if isinstance(copy, Array):
            return copy
        # A NumPy array, if host memory serves as both copies.
        return _adopt(copy, DType(copy.dtype), "host", obj._queue)
    if isinstance(obj, Buffer):
        return Array(obj, (obj.nbytes,), "uint8")
    if isinstance(obj, (np.ndarray, np.generic)):
        return np.asarray(obj)
    shared = _from_protocols(obj)
    return _in_host_memory(obj, wanted) if shared is None else shared


def _has_memory(obj: Any) -> bool:
    """Whether the elements lie in the object's own memory, not in an array that NumPy created from
    it.
    """
    import numpy as np

    if isinstance(obj, np.generic):
        return False
    if isinstance(obj, (_UnifiedMemory, Array, Buffer)):
        return True
    if has_array_protocol(obj):
        return True
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _is_plain(obj: Any, source: Array) -> bool:
    """Whether ``obj`` is host memory of another library, without a queue."""
    has_queue = isinstance(obj, (Array, Buffer, _UnifiedMemory)) or hasattr(obj, _SYCL_PROTOCOL)
    return source.is_host and source.device.backend == "host" and not has_queue


def _from_protocols(obj: Any) -> Array | NDArray[Any] | None:
    """An array over memory that another library exports; None if ``obj`` has no protocol for it."""
    if hasattr(obj, _SYCL_PROTOCOL):
        tensor = getattr(obj, "__usm_ndarray__", obj)  # dpnp's arrays wrap a dpctl array
        return _core._array_from_interface(obj, getattr(tensor, "usm_data", None))
    if not hasattr(obj, "__dlpack_device__"):
        return _core._array_from_interface(obj)
    if _core._dlpack_device_of(obj)[0] != _CPU:
        return _core._array_from_dlpack(obj)
    import numpy as np

    try:
        array = np.from_dlpack(_Checked(obj))
    # Raised for types that NumPy lacks, such as bfloat16; RuntimeError by NumPy 1.x.
    except (BufferError, RuntimeError):
        return _core._array_from_dlpack(obj)
    # NumPy treats memory from DLPack before 1.0, which has no read-only flag, as read-only.
    return _as_strict(array, obj) if array.flags.writeable else _core._array_from_dlpack(obj)


class _Checked:
    """A DLPack producer whose capsules are checked before NumPy, which does not check them, reads
    them.
    """

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __dlpack__(self, **request: Any) -> Any:
        capsule = self._producer.__dlpack__(**request)
        _core._require_sound_capsule(capsule)
        return capsule

    def __dlpack_device__(self) -> Any:
        return _core._dlpack_device_of(self._producer)


def _as_strict(array: NDArray[Any], obj: Any) -> NDArray[Any]:
    """``array``, read-only if another protocol of ``obj`` reports its memory as read-only."""
    if array.flags.writeable and _core._says_read_only(obj):
        array = array.view()
        array.flags.writeable = False
    return array


def _in_host_memory(obj: Any, wanted: DType | None) -> NDArray[Any]:
    import numpy as np

    try:
        array = np.asarray(memoryview(obj))
    except (TypeError, BufferError):
        pass
    else:
        return _as_strict(array, obj)
    array = _as_strict(host_array(obj), obj)
    if array.dtype.kind in "iufcO" and wanted is not None and wanted != array.dtype:
        # NumPy checks the values only if it converts the Python numbers to the type itself:
        # OverflowError for 300 as uint8, TypeError for 1j as float64; 2**70 is accepted as a float.
        # NumPy has no bfloat16.
        return host_array(obj, "float64" if wanted.name == "bfloat16" else wanted)
    if array.dtype.kind == "O" and array.ndim == 0 and not isinstance(obj, int):
        name = type(obj).__name__
        raise TypeError(
            f"cannot create an array of {name}: pass arrays, Python or NumPy numbers, or lists "
            "of them, or pass a dtype for other numbers"
        )
    return array


@dataclass(frozen=True)
class _Request:
    """The requested properties of an array, independent of its source."""

    dtype: DType | None
    copy: bool | None
    kind: Kind | None
    device: Device | str | None
    queue: Queue | None
    resource: MemoryResource | None
    fallback: str | None

    def from_array(self, source: Array, *, is_plain: bool) -> Array:
        """An array over the same memory, or a copy. ``is_plain``: the result of ``_is_plain``."""
        kind = self.kind_or("device" if is_plain else source.kind)
        queue = self.queue_on(current_queue() if is_plain else source.queue)
        reasons = self.type_reasons(DType(source.dtype))
        if kind != source.kind:
            reasons.append(f"it is of kind {source.kind!r}, not {kind!r}")
        if queue.context != source.queue.context or queue.device != source.device:
            reasons.append(f"it is on {source.device.filter}, not on {queue.device.filter}")
        if self.needs_copy(reasons):
            return self.make_copy(source, source.dtype, kind, queue)
        return source if queue is source.queue else source.on_queue(queue)

    def from_host(self, source: NDArray[Any]) -> Array:
        """As ``from_array``, for a NumPy array."""
        dtype = DType(source.dtype)  # raises TypeError with the reason
        kind = self.kind_or("device")
        queue = self.queue_on(current_queue())
        reasons = self.type_reasons(dtype)
        reasons += _location_reasons(source, kind, queue)
        if not source.flags.aligned or any(each % dtype.itemsize for each in source.strides):
            reasons.append("its elements are not aligned")
        if self.needs_copy(reasons):
            return self.make_copy(source, dtype, kind, queue)
        return _adopt(source, dtype, kind, queue)

    def kind_or(self, default: Kind) -> Kind:
        """The requested kind, else the resource's kind, else ``default``."""
        return self.kind or (default if self.resource is None else self.resource.kind)

    def queue_on(self, default: Queue) -> Queue:
        """The requested queue; if only a device was requested, ``default`` if it is on that device.

        If neither was requested, the same with the resource's queue.
        """
        if self.queue is None and self.device is None:
            if self.resource is None:
                return default
            queue = self.resource.queue
            is_same = (queue.context, queue.device) == (default.context, default.device)
            return default if is_same else queue
        queue = _core._queue_for(self.queue, self.device)
        is_same_device = self.queue is None and queue.device == default.device
        return default if is_same_device else queue

    def type_reasons(self, dtype: DType) -> list[str]:
        """The reasons that elements of type ``dtype`` need a copy."""
        if self.dtype is None or self.dtype == dtype:
            return []
        return [f"it has the dtype {dtype}, not {self.dtype}"]

    def needs_copy(self, reasons: list[str]) -> bool:
        """Whether a copy is needed; ValueError if it is needed and not allowed."""
        if self.copy is False and reasons:
            raise ValueError(f"copy=False, but a copy is needed: {'; '.join(reasons)}")
        return bool(self.copy or reasons)

    def make_copy(
        self, source: Array | NDArray[Any], dtype: Any, kind: Kind, queue: Queue
    ) -> Array:
        """A copy in new memory, in C order."""
        array = empty(
            source.shape,
            dtype if self.dtype is None else self.dtype,
            kind=kind,
            queue=queue,
            resource=self.resource,
            fallback=self.fallback,
        )
        copyto(array, source, casting="unsafe")
        return array


def _location_reasons(source: NDArray[Any], kind: Kind, queue: Queue) -> list[str]:
    """The reasons that NumPy's memory needs a copy to become an array of that kind on that
    queue.
    """
    record = _core.query(source.__array_interface__["data"][0])
    if record.kind != "unknown":  # USM that NumPy has a view of
        matches = (record.kind, record.context) == (kind, queue.context)
        description = f"USM of kind {record.kind!r} in a context of {record.device or 'the host'}"
    else:
        matches = kind == "host" and queue.device.backend == "host"
        description = "plain host memory, of kind 'host' on the device 'host'"
    return [] if matches else [f"it is {description}, not {kind!r} on {queue.device.filter!r}"]


def _adopt(source: NDArray[Any], dtype: DType, kind: Kind, queue: Queue) -> Array:
    """An array over ``source``. Adopts all memory that ``source`` is a view of, so that arrays over
    different views share that memory.
    """
    if source.size == 0:
        return empty(source.shape, dtype, kind=kind, queue=queue)
    low, high = extent_of(_owner_of(source))
    memory = Buffer.adopt(
        low,
        high - low,
        kind=kind,
        queue=queue,
        owner=source,
        read_only=not source.flags.writeable,
    )
    first = source.__array_interface__["data"][0]
    return Array(memory, source.shape, dtype, strides=source.strides, offset=first - low)


def _owner_of(source: NDArray[Any]) -> NDArray[Any]:
    """The NumPy array that ``source`` is a view of and that contains all of its elements."""
    import numpy as np

    owner = source
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low, high = extent_of(source)
    begin, end = extent_of(owner)
    return owner if begin <= low and high <= end else source
