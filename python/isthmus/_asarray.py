"""``asarray`` and ``array``: arrays of what other libraries, and Python itself, have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _core
from ._core import Array, Buffer, DType, copyto, current_queue, empty
from .unified import UnifiedBuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._core import Device, MemoryResource, Queue

_CPU = 1  # DLPack's number of the host


def asarray(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = None,
    kind: str | None = None,
    device: Device | str | None = None,
    queue: Queue | None = None,
    resource: MemoryResource | None = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> Array:
    """An array with the elements of ``obj``, over the same memory where that is possible.

    ``obj``: an Array, a Buffer (its bytes), a UnifiedBuffer (its device copy), an array of another
    library with ``__sycl_usm_array_interface__``, ``__dlpack__`` or ``__cuda_array_interface__``, a
    NumPy array or another object with the buffer protocol, or a number or nested sequence of them,
    whose type is the one that NumPy gives it. What is adopted is kept alive, and read-only where it
    was.

    ``copy`` None: a copy where one is needed, False: ValueError where one is needed, True: always
    one, in C order. ``dtype``: another type needs one, and the values are cast as by NumPy's
    ``astype``. ``kind``, ``device`` and ``queue`` None: those of ``obj`` where it is memory that a
    device has, else "device" and the current queue, so that what lies in plain host memory is
    copied; with ``kind="host"`` and a queue of the host device it is taken as it is. Another queue
    of the same context and device needs no copy. ``resource``: where a copy's memory comes from.
    ``usm_type`` and ``sycl_queue`` are other names of ``kind`` and ``queue``.

    Raises TypeError for elements that no array has (objects, text, dates, records, another order
    of bytes) and for two names of one argument, ValueError as above and for a bad kind, BufferError
    for memory that cannot be shared.
    """
    kind = _one_of("kind", kind, "usm_type", usm_type)
    queue = _one_of("queue", queue, "sycl_queue", sycl_queue)
    if copy is not None and not isinstance(copy, bool):
        raise TypeError(f"copy must be True, False or None, not {copy!r}")
    wanted = None if dtype is None else DType(dtype)
    source = _source_of(obj, wanted)
    request = _Request(wanted, copy, kind, device, queue, resource)
    if not isinstance(source, Array):
        return request.of_host(source)
    is_ours = isinstance(obj, (Array, Buffer, UnifiedBuffer))
    is_plain = source.is_host and source.device.backend == "host" and not is_ours
    return request.of_array(source, is_plain=is_plain)


def array(
    obj: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    kind: str | None = None,
    device: Device | str | None = None,
    queue: Queue | None = None,
    resource: MemoryResource | None = None,
    usm_type: str | None = None,
    sycl_queue: Queue | None = None,
) -> Array:
    """As ``asarray``, with a copy in any case."""
    return asarray(
        obj, dtype, copy=copy, kind=kind, device=device, queue=queue, resource=resource,
        usm_type=usm_type, sycl_queue=sycl_queue,
    )  # fmt: skip


def _one_of(name: str, value: Any, alias: str, other: Any) -> Any:
    if value is not None and other is not None:
        raise TypeError(f"got {name} and {alias}, which mean the same: give one of them")
    return other if value is None else value


def _source_of(obj: Any, wanted: DType | None) -> Array | NDArray[Any]:
    """Without a copy: an Array where a device, or the library, knows the memory."""
    import numpy as np

    if isinstance(obj, Array):
        return obj
    if isinstance(obj, UnifiedBuffer):
        return obj.device  # type: ignore[no-any-return]
    if isinstance(obj, Buffer):
        return Array(obj, (obj.nbytes,), "uint8")
    if isinstance(obj, (np.ndarray, np.generic)):
        return np.asarray(obj)
    shared = _lent(obj)
    return _in_host_memory(obj, wanted) if shared is None else shared


def _lent(obj: Any) -> Array | NDArray[Any] | None:
    """What another library lends; None for what has no such protocol."""
    is_sycls = hasattr(type(obj), "__sycl_usm_array_interface__")
    if is_sycls or not hasattr(obj, "__dlpack_device__"):
        return _core._array_from_interface(obj)
    if obj.__dlpack_device__()[0] != _CPU:
        return _core._array_from_dlpack(obj)
    import numpy as np

    try:
        return np.from_dlpack(obj)
    except BufferError:  # a type that NumPy has not, as bfloat16
        return _core._array_from_dlpack(obj)


def _in_host_memory(obj: Any, wanted: DType | None) -> NDArray[Any]:
    import numpy as np

    try:
        return np.asarray(memoryview(obj))
    except (TypeError, BufferError):
        pass
    made = np.asarray(obj)
    is_told = wanted is not None and wanted.name != "bfloat16"
    if made.dtype.kind == "O" and is_told:
        return np.asarray(obj, wanted)  # integers beyond 64 bits, say, as floats
    return made


@dataclass(frozen=True)
class _Request:
    """What is wanted of an array, whatever it is made of."""

    dtype: DType | None
    copy: bool | None
    kind: str | None
    device: Device | str | None
    queue: Queue | None
    resource: MemoryResource | None

    def of_array(self, source: Array, *, is_plain: bool) -> Array:
        """The same memory, or a copy; ``is_plain``: the host's, which no device knows."""
        kind = self.kind or ("device" if is_plain else source.kind)
        queue = self.queue_on(current_queue() if is_plain else source.queue)
        reasons = self.reasons_of_type(DType(source.dtype))
        if kind != source.kind:
            reasons.append(f"it is of kind {source.kind!r}, not {kind!r}")
        if queue.context != source.queue.context or queue.device != source.device:
            reasons.append(f"it is on {source.device.filter}, not on {queue.device.filter}")
        if self.needs_copy(reasons):
            return self.copied(source, source.dtype, kind, queue)
        return source if queue is source.queue else source.on_queue(queue)

    def of_host(self, source: NDArray[Any]) -> Array:
        """The same for an array of NumPy's."""
        own = DType(source.dtype)  # TypeError with the reason
        kind = self.kind or "device"
        queue = self.queue_on(current_queue())
        reasons = self.reasons_of_type(own)
        if kind != "host" or queue.device.backend != "host":
            reasons.append(
                f"plain host memory is of kind 'host' on the device 'host', not {kind!r} on "
                f"{queue.device.filter!r}"
            )
        if not source.flags.aligned or any(each % own.itemsize for each in source.strides):
            reasons.append("its elements are not aligned")
        if self.needs_copy(reasons):
            return self.copied(source, own, kind, queue)
        return _adopted(source, own, queue)

    def queue_on(self, otherwise: Queue) -> Queue:
        """The queue that is named; where only a device is, ``otherwise`` if it is on that."""
        if self.queue is None and self.device is None:
            return otherwise
        named = _core._queue_for(self.queue, self.device)
        is_its_device = self.queue is None and named.device == otherwise.device
        return otherwise if is_its_device else named

    def reasons_of_type(self, own: DType) -> list[str]:
        """Why its type needs a copy."""
        if self.dtype is None or self.dtype == own:
            return []
        return [f"it has the dtype {own}, not {self.dtype}"]

    def needs_copy(self, reasons: list[str]) -> bool:
        """ValueError where one is needed and not wanted."""
        if self.copy is False and reasons:
            raise ValueError(f"copy=False, but a copy is needed: {'; '.join(reasons)}")
        return bool(self.copy or reasons)

    def copied(self, source: Array | NDArray[Any], own: Any, kind: str, queue: Queue) -> Array:
        """In new memory, in C order."""
        made = empty(
            source.shape,
            own if self.dtype is None else self.dtype,
            kind=kind,
            queue=queue,
            resource=self.resource,
        )
        copyto(made, source, casting="unsafe")
        return made


def _adopted(source: NDArray[Any], own: DType, queue: Queue) -> Array:
    """Over the box around all elements, of which some may lie before the first."""
    if source.size == 0:
        return empty(source.shape, own, kind="host", queue=queue)
    steps = [
        (extent - 1) * stride for extent, stride in zip(source.shape, source.strides, strict=True)
    ]
    before = -sum(step for step in steps if step < 0)
    nbytes = before + sum(step for step in steps if step > 0) + own.itemsize
    memory = Buffer.adopt(
        source.__array_interface__["data"][0] - before,
        nbytes,
        kind="host",
        queue=queue,
        owner=source,
        read_only=not source.flags.writeable,
    )
    return Array(memory, source.shape, own, strides=source.strides, offset=before)
