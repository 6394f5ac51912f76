# SPDX-License-Identifier: Apache-2.0
"""The common base of a unified buffer and its parts, and the part."""

# ruff: noqa: A002 (a range is a range)

from __future__ import annotations

import operator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from isthmus._absent_methods import add_absent_methods
from isthmus._operators import NumpyOperators

from .contents import array_for, assignable
from .exact_write import end_after
from .layout import bytes_of, rows_of, same_size
from .state import (
    STATES,
    WINNERS,
    BufferState,
    DirtyRanges,
    TransferStatistics,
    describe,
    in_elements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from typing_extensions import Self

    from isthmus._core import Event, Queue

    from .buffer import UnifiedBuffer
    from .layout import Range


_DLPACK_HOST = (1, 0)  # DLPack's kDLCPU, and the number of the device


class UnifiedArray(NumpyOperators):
    """The common base of a ``UnifiedBuffer`` and its parts."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> Any: ...
        @property
        def nbytes(self) -> int: ...
        @property
        def host(self) -> NDArray[Any]: ...
        @property
        def device(self) -> Any: ...

    # -- defined by the subclasses

    @property
    def _whole(self) -> UnifiedBuffer:
        raise NotImplementedError

    @property
    def _offset(self) -> int:
        raise NotImplementedError

    # -- properties

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.nbytes // self.itemsize

    @property
    def queue(self) -> Queue:
        """The queue of transfers for which no queue is named."""
        return self._whole._queue

    @property
    def state(self) -> BufferState:
        """The current state of the copies: checks for host writes.

        For a part, the state of the whole buffer. ClosedError after ``free``.
        """
        return STATES[self._whole._state()]

    @property
    def pinned(self) -> bool:
        """Whether the host copy is registered with the device's driver now."""
        return bool(self._whole._info()["pinned"])

    @property
    def statistics(self) -> TransferStatistics:
        """Bytes and copies so far, of the whole buffer."""
        info = self._whole._info()
        return TransferStatistics(info["bytes_to_device"], info["bytes_to_host"], info["copies"])

    def dirty_ranges(self) -> DirtyRanges:
        """The bytes of each copy that the other lacks, as ranges in flat elements of this array."""
        whole, window = self._whole, (self._offset, self.nbytes, self.itemsize)
        return DirtyRanges(*(in_elements(whole._dirty(side), *window) for side in (False, True)))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    # -- ranges

    def _rows(self, bounds: Range) -> tuple[tuple[int, ...], int, int]:
        """Shape, first byte and end, in the whole buffer, of a range along the first axis."""
        start, stop = rows_of(bounds, self.shape)
        if not self.shape:
            return (), self._offset, self._offset + self.nbytes
        row_bytes = self.nbytes // self.shape[0]
        shape = (stop - start, *self.shape[1:])
        return shape, self._offset + start * row_bytes, self._offset + stop * row_bytes

    def _bytes(self, bounds: Range) -> tuple[int, int]:
        if bounds is None:
            return self._offset, self._offset + self.nbytes
        return self._rows(bounds)[1:]

    def _array(self, memory: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        import numpy as np

        array: NDArray[Any] = np.ndarray(shape, self.dtype, memory)
        return array

    # -- synchronization

    def to_numpy(self) -> NDArray[Any]:
        """The host copy, synchronized: a view of it, like ``host``."""
        return self.host

    @overload
    def sync_to_device(
        self, range: Range = None, *, queue: Queue | None = None, blocking: Literal[True] = True
    ) -> None: ...
    @overload
    def sync_to_device(
        self, range: Range = None, *, queue: Queue | None = None, blocking: bool
    ) -> Event | None: ...
    def sync_to_device(
        self, range: Range = None, *, queue: Queue | None = None, blocking: bool = True
    ) -> Event | None:
        """Uploads host writes in ``range`` (None: anywhere) to the device.

        Ordered after earlier work on ``queue`` (None: the buffer's own). Returns when the host may
        write again, without waiting for kernels: if there are kernels before the upload, its data
        are copied to temporary memory first. With ``blocking=False`` it returns at once, and the
        Event completes when the host may write again; None if there is nothing to upload. Raises
        ConflictError and the errors of copies and allocations; the ranges then remain dirty.
        """
        return self._whole._to_device(*self._bytes(range), queue, blocking)

    @overload
    def sync_to_host(
        self, range: Range = None, *, queue: Queue | None = None, blocking: Literal[True] = True
    ) -> None: ...
    @overload
    def sync_to_host(
        self, range: Range = None, *, queue: Queue | None = None, blocking: bool
    ) -> Event | None: ...
    def sync_to_host(
        self, range: Range = None, *, queue: Queue | None = None, blocking: bool = True
    ) -> Event | None:
        """Downloads device writes in ``range`` (None: anywhere), in place.

        Host arrays obtained before then contain the new data. With ``blocking=False`` it returns at
        once, and the Event completes when the data have arrived. They are visible from the next
        access on, such as `host`; an earlier host write to the same bytes is a conflict. None if
        there is nothing to download.
        """
        return self._whole._to_host(*self._bytes(range), queue, blocking)

    def prefetch_host(self, range: Range = None, *, queue: Queue | None = None) -> Event | None:
        """``sync_to_host`` without waiting."""
        return self.sync_to_host(range, queue=queue, blocking=False)

    def synchronize(self) -> None:
        """Synchronizes both copies, if there are two."""
        state = self.state
        if state in (BufferState.HOST_DIRTY, BufferState.DEVICE_DIRTY):
            self.sync_to_host()
            self.sync_to_device()

    async def on_device(self, *, queue: Queue | None = None) -> Any:
        """``device``, without blocking the loop during synchronization."""
        event = self.sync_to_device(queue=queue, blocking=False)
        if event is not None:
            await event
        return self.device

    async def on_host(self, *, queue: Queue | None = None) -> NDArray[Any]:
        """``host``, without blocking the loop during synchronization."""
        event = self.sync_to_host(queue=queue, blocking=False)
        if event is not None:
            await event
        return self.host

    # -- declared writes

    def mark_host_dirty(self, range: Range = None) -> None:
        """Declares host writes that are not detected: by io_uring's fixed buffers, RDMA, devices.
        All others are detected. ``range``: along the first axis, None: all.
        """
        self._whole._mark(*self._bytes(range), False)

    def mark_device_dirty(self, range: Range = None) -> None:
        """Declares that work already on a queue writes in ``range`` (None: anywhere) on the device.

        If the host wrote there too, the next access raises ConflictError.
        """
        self._whole._mark(*self._bytes(range), True)

    def resolve(self, winner: str, range: Range = None) -> None:
        """Chooses the side whose bytes are retained in ``range``: ``"host"`` or ``"device"``.

        The other side's writes there are dropped.
        """
        if winner not in ("host", "device"):
            raise ValueError(f"winner must be 'host' or 'device', not {winner!r}")
        self._whole._resolve(WINNERS[winner], *self._bytes(range))

    # -- exact access

    @contextmanager
    def host_read(self, range: Range = None) -> Iterator[NDArray[Any]]:
        """A read-only array of ``range``; only that range is synchronized."""
        shape, begin, end = self._rows(range)
        yield self._array(self._whole._read(begin, end), shape)

    @contextmanager
    def host_write(self, range: Range = None) -> Iterator[NDArray[Any]]:
        """A writable array of ``range``; only that range is synchronized, and counts as written.

        Host arrays obtained before contain the writes at the end of ``with`` at the latest. The
        array may have another address than theirs, so NumPy does not detect an overlap: do not
        compute its elements from a host array of the same elements. It becomes read-only at the
        end, because later writes would not be detected.
        """
        shape, begin, end = self._rows(range)
        # Read once, so that the write ends on the same buffer even if it is freed meanwhile.
        whole = self._whole
        array = self._array(whole._begin_write(begin, end, True), shape)
        with end_after(whole._end_write, begin, end, True):
            try:
                yield array
            finally:
                array.flags.writeable = False

    @contextmanager
    def device_read(self, range: Range = None, *, queue: Queue | None = None) -> Iterator[Any]:
        """The device's array of ``range``; only that range is synchronized."""
        yield self._device_part(self._whole, range, queue, is_written=False)

    @contextmanager
    def device_write(self, range: Range = None, *, queue: Queue | None = None) -> Iterator[Any]:
        """The device's array of ``range``, which counts as written by the device at the end.

        Pending host writes in the range are uploaded first.
        """
        whole = self._whole
        part = self._device_part(whole, range, queue, is_written=True)
        with end_after(whole._mark, *self._bytes(range), True):
            yield part

    def _device_part(
        self, whole: UnifiedBuffer, range: Range, queue: Queue | None, *, is_written: bool
    ) -> Any:
        shape, begin, end = self._rows(range)
        array, item = whole._device(begin, end, queue, is_written), self.itemsize
        return array.reshape(-1)[begin // item : end // item].reshape(shape)

    # -- contents

    def copy_from(self, source: Any) -> Self:
        """Copies ``source``, any object that NumPy converts to an array, into the host copy.

        Its shape is broadcast. Its dtype is cast as NumPy's ``same_kind`` allows; Python integers,
        alone and in lists, are cast to any integer type that they fit. Raises TypeError, ValueError
        or OverflowError without changing anything. Earlier writes of both sides are dropped.
        """
        import numpy as np

        array = array_for(source, self.dtype, self.shape)
        begin, end = self._bytes(None)
        whole = self._whole
        target = self._array(whole._begin_write(begin, end, False), self.shape)
        try:
            np.copyto(target, array, casting="unsafe")  # checked already
        finally:
            whole._end_write(begin, end, False)
        return self

    def copy_to(self, target: NDArray[Any]) -> None:
        """Copies the contents, synchronized, into ``target``, by NumPy's rules."""
        import numpy as np

        if not isinstance(target, np.ndarray):
            raise TypeError(
                f"target must be a numpy.ndarray, not {type(target).__name__}; numpy.asarray "
                "creates one over other writable memory"
            )
        with self.host_read() as array:
            np.copyto(target, array, casting="same_kind")

    def fill(self, value: Any) -> Self:
        """Sets all elements to ``value``."""
        return self.copy_from(value)

    def zeros(self) -> Self:
        """Sets all elements to 0."""
        import numpy as np

        return self.copy_from(np.zeros((), self.dtype))

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host, ``(1, 0)``: ``__dlpack__`` exports the host copy."""
        return _DLPACK_HOST

    def __dlpack__(self, **request: Any) -> Any:
        """The host copy, synchronized, for another library; later writes to it are detected.

        Pass ``device`` to the other library instead to share the device copy. ``request``: as for
        ``numpy.ndarray.__dlpack__``.
        """
        return self.host.__dlpack__(**request)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        import numpy as np

        array = self.host
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"cannot convert {array.dtype} to {dtype} without a copy")
            return array.astype(dtype)
        return np.array(array) if copy else array

    def __getitem__(self, key: Any) -> Any:
        """A slice along the first axis is a part that shares the state; other keys are NumPy's."""
        if isinstance(key, slice) and key.step in (None, 1) and self.shape:
            start, stop, _ = key.indices(self.shape[0])
            if start < stop:
                shape, begin, _ = self._rows((start, stop))
                return UnifiedPart(self._whole, begin, shape)
        return self.host[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[key] = assignable(value)

    def reshape(self, *shape: Any) -> UnifiedPart:
        """The same elements in another shape, which shares the state."""
        new_shape = same_size(self.shape, shape[0] if len(shape) == 1 else shape)
        return UnifiedPart(self._whole, self._offset, new_shape)

    # -- copies

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        is_overridden = type(self).__reduce__ is not UnifiedArray.__reduce__
        return self.__reduce__() if is_overridden else self._reduced(operator.index(protocol))

    def __reduce__(self) -> Any:
        return self._reduced(2)

    def _reduced(self, protocol: int) -> Any:
        with self.host_read() as array:
            return self._whole._pickled(array, protocol)

    def __copy__(self) -> UnifiedBuffer:
        with self.host_read() as array:
            return self._whole._like(array)

    def __deepcopy__(self, memo: Any) -> UnifiedBuffer:
        return self.__copy__()


add_absent_methods(UnifiedArray)


class UnifiedPart(UnifiedArray):
    """A part of a ``UnifiedBuffer``: elements in C order without gaps. Shares its state."""

    __slots__ = ("__weakref__", "_base", "_begin", "dtype", "nbytes", "shape")

    shape: tuple[int, ...]
    dtype: Any
    nbytes: int

    def __init__(self, base: UnifiedBuffer, begin: int, shape: tuple[int, ...]) -> None:
        self._base = base
        self._begin = begin
        self.shape = shape
        self.dtype = base.dtype
        self.nbytes = bytes_of(shape, base.dtype)

    @property
    def _whole(self) -> UnifiedBuffer:
        return self._base

    @property
    def _offset(self) -> int:
        return self._begin

    @property
    def base(self) -> UnifiedBuffer:
        """The buffer that this is a part of."""
        return self._base

    @property
    def host(self) -> NDArray[Any]:
        """The part's elements in the host copy, synchronized."""
        whole = self._base._host(self._begin, self._begin + self.nbytes)
        first = self._begin // self.itemsize
        part: NDArray[Any] = whole.reshape(-1)[first : first + self.size].reshape(self.shape)
        return part

    @property
    def device(self) -> Any:
        """The part's elements in the device copy, synchronized."""
        return self._device_part(self._base, None, None, is_written=False)

    def __repr__(self) -> str:
        return f"<isthmus.UnifiedPart {describe(self)}>"
