# SPDX-License-Identifier: Apache-2.0
"""``UnifiedBuffer`` as in PyDotCompute's release 0.2.0 and as in its documentation."""

# ruff: noqa: A002 (a range is a range)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isthmus import BufferState, Error, InvalidArgumentError
from isthmus._not_loaded import loads_pickles
from isthmus._pickle import device_or_default
from isthmus.compat.pydotcompute.exceptions import (
    NOT_ALLOCATED,
    BufferNotAllocatedError,
    BufferSyncError,
    MetalError,
    both,
    sync_error,
)
from isthmus.unified.buffer import pickled_array

from ._creation_lock import creation_lock
from ._location import as_cupy, cupy_device, default_queue
from ._pools import resource_of
from ._sync_errors import (
    TO_DEVICE,
    TO_HOST,
    SyncErrorBuffer,
    get_device,
    get_host,
    sync_errors,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self

    from isthmus import Device, Queue
    from isthmus.unified.layout import Range

__all__ = ["BufferState", "UnifiedBuffer"]

T = TypeVar("T", bound="np.generic")


class UnifiedBuffer(SyncErrorBuffer, Generic[T]):
    """A host copy and a device copy of one array: an ``isthmus.UnifiedBuffer``.

    It differs where programs for PyDotCompute require it: it has ``allocate()`` and
    ``is_allocated``, can be used again after ``free()``, has ``ensure_on_host()`` and
    ``ensure_on_device()``, NumPy's indexing, a ``to_numpy()`` that copies, and errors that are also
    PyDotCompute's. Calling ``allocate()`` or marking host writes is not required: both copies are
    created on first use, and host writes are detected.

    ``shape``, ``dtype``, ``pinned`` and ``options`` are those of ``isthmus.UnifiedBuffer``, as are
    the errors. ``device``, ``queue``: None for the current one, except that the host device
    replaces a driver's device for the processor, so that ``device`` is a NumPy array there. On a
    CUDA device ``device`` is a CuPy array on CuPy's current stream, if CuPy is installed.

    Thread-safe. An operation during which another thread calls ``free()`` raises ClosedError; one
    that begins after ``free()`` does not.
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        dtype: Any = "float32",
        *,
        pinned: bool = False,
        device: Device | str | None = None,
        queue: Queue | None = None,
        **options: Any,
    ) -> None:
        if queue is None:
            queue = default_queue(device)
        self._resource = options.get("resource")
        if self._resource is None:
            options["resource"] = resource_of(queue)
        super().__init__(shape, dtype, pinned=pinned, device=device, queue=queue, **options)
        self._cupy_device = cupy_device(queue)
        self._is_original = True  # not freed yet: this object owns the memory
        self._reallocated: SyncErrorBuffer | None = None  # allocated after the last `free`

    # -- allocation, release and reallocation

    @property
    def _whole(self) -> SyncErrorBuffer:
        if self._is_original:
            return self
        reallocated = self._reallocated
        return self._reallocate() if reallocated is None else reallocated

    def _reallocate(self) -> SyncErrorBuffer:
        with creation_lock:
            if self._reallocated is None:
                resource = resource_of(self._queue) if self._resource is None else self._resource
                self._reallocated = SyncErrorBuffer(
                    self.shape,
                    self.dtype,
                    queue=self._queue,
                    resource=resource,
                    **self._options(),
                )
            return self._reallocated

    @property
    def is_allocated(self) -> bool:
        """Whether either copy exists."""
        return self.state is not BufferState.UNINITIALIZED

    def allocate(self, *, host: bool = True, device: bool = True) -> Self:
        """Creates the requested copies if they do not exist, and synchronizes them.

        With neither requested it creates the host copy. Existing contents are preserved. Raises
        BufferSyncError with its ``cause`` if memory is not available, and one that is also a
        ConflictError if both sides wrote the same bytes.
        """
        if host or not device:
            _ = self._whole.host
        if device:
            _ = self._whole.device
        return self

    def free(self) -> None:
        """Frees both copies; the buffer is UNINITIALIZED afterwards and can be used again.

        Idempotent. Host arrays obtained before remain valid. Parts obtained before, for example by
        ``reshape()``, and an unfinished ``with host_write()`` refer to the freed memory: they raise
        ClosedError, also after the buffer was allocated again.
        """
        with creation_lock:
            current = self if self._is_original else self._reallocated
            self._is_original, self._reallocated = False, None
        if current is not None:
            current._free()

    def _forget(self) -> None:
        SyncErrorBuffer._forget(self._whole)

    # -- the two copies

    @property
    def host(self) -> NDArray[Any]:
        """The host copy, synchronized, as a NumPy array. Writes to it are detected."""
        try:
            array: NDArray[Any] = get_host(self) if self._is_original else self._whole.host
            return array
        except BufferSyncError:
            raise
        except Error as cause:
            raise sync_error(TO_HOST, cause) from cause

    @property
    def device(self) -> Any:
        """The device copy, synchronized: a CuPy array, a NumPy array or an ``Array``."""
        try:
            array = get_device(self) if self._is_original else self._whole.device
            return array if self._cupy_device is None else as_cupy(array, self, self._cupy_device)
        except BufferSyncError:
            raise
        except Error as cause:
            raise sync_error(TO_DEVICE, cause) from cause

    @property
    def metal(self) -> Any:
        """Always raises: MetalError, since Isthmus has no backend for Metal.

        BufferNotAllocatedError if there is no copy at all.
        """
        raise self._no_metal()

    def mark_metal_dirty(self) -> None:
        """Always raises as ``metal``: there is no Metal copy that could have been written."""
        raise self._no_metal()

    def _no_metal(self) -> Exception:
        if not self.is_allocated:
            return BufferNotAllocatedError()
        return MetalError("Metal not available: Isthmus has no backend for it, use .device")

    def to_numpy(self) -> NDArray[Any]:
        """A copy of the contents; ``host`` is a view instead."""
        with self.host_read() as array:
            copied: NDArray[Any] = array.copy()
        return copied

    def mark_host_dirty(self, range: Range = None) -> None:
        """Declares host writes, which are detected even without it. BufferNotAllocatedError without
        a copy.
        """
        self._mark_dirty(range, is_device=False)

    def mark_device_dirty(self, range: Range = None) -> None:
        """Declares device writes in ``range``. BufferNotAllocatedError if there is no device copy.

        Earlier host writes are not dropped: if both sides wrote the same bytes, the next access
        raises ConflictError, which ``resolve()`` resolves.
        """
        self._mark_dirty(range, is_device=True)

    def _mark_dirty(self, range: Range, *, is_device: bool) -> None:
        begin, end = self._bytes(range)
        try:
            self._whole._mark(begin, end, is_device)
        except InvalidArgumentError as cause:
            error = both(BufferNotAllocatedError, InvalidArgumentError)
            raise error(f"{NOT_ALLOCATED} ({cause})") from cause

    async def ensure_on_host(self) -> None:
        """Synchronizes the host copy without blocking the event loop."""
        with sync_errors(TO_HOST):
            await self.on_host()

    async def ensure_on_device(self) -> None:
        """Synchronizes the device copy without blocking the event loop."""
        with sync_errors(TO_DEVICE):
            await self.on_device()

    def fill(self, value: Any) -> Self:
        """Sets all elements to ``value``, cast as by NumPy's ``fill`` if the cast is exact.

        Raises TypeError for 2.5 in a buffer of integers or in an integer field of a struct,
        OverflowError for 300 in a buffer of bytes, ValueError for text that would be truncated.
        """
        import numpy as np

        cast = np.empty((), self.dtype)
        cast.fill(value)
        if not _is_preserved(cast, value):
            return super().fill(value)
        whole, nbytes = self._whole, self.nbytes
        memory = whole._begin_write(0, nbytes, False)
        try:
            np.ndarray(self.shape, self.dtype, memory).fill(value)
        finally:
            whole._end_write(0, nbytes, False)
        return self

    @property
    def _cuda_available(self) -> bool:
        return self._queue.device.backend == "cuda"

    def __repr__(self) -> str:
        return (
            f"UnifiedBuffer(shape={self.shape}, dtype={self.dtype}, state={self.state.name}, "
            f"cuda={self._cuda_available}, metal=False)"
        )

    # -- indexing

    def __getitem__(self, key: Any) -> Any:
        """Indexes the host copy as NumPy does.

        ``reshape(shape)[a:b]`` returns a part that shares the state instead.
        """
        return self.host[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[key] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.host)

    # -- PyDotCompute compares buffers, not elements

    __eq__ = object.__eq__
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    # -- copies

    def _reduced(self, protocol: int) -> Any:
        return self._pickled(self.to_numpy(), protocol)

    @property
    def _loader(self) -> Callable[..., UnifiedBuffer[Any]]:
        return _load

    def __copy__(self) -> UnifiedBuffer[T]:
        buf: UnifiedBuffer[T] = UnifiedBuffer(
            self.shape, self.dtype, queue=self._queue, **self._options()
        )
        with self.host_read() as array:
            return buf.copy_from(array)

    def __deepcopy__(self, memo: Any) -> UnifiedBuffer[T]:
        return self.__copy__()


@loads_pickles
def _load(
    contents: Any,
    options: dict[str, Any],
    device: str,
    shape: tuple[int, ...] | None = None,
    dtype: Any = None,
) -> UnifiedBuffer[Any]:
    array = pickled_array(contents, shape, dtype)
    buf: UnifiedBuffer[Any] = UnifiedBuffer(
        array.shape, array.dtype, device=device_or_default(device), **options
    )
    return buf.copy_from(array)


def _is_preserved(cast: Any, value: Any) -> bool:
    """Whether NumPy's cast preserved the value. NaN never compares equal."""
    import numpy as np

    kind = cast.dtype.kind
    if kind in "SU" and cast != np.asarray(value).astype(kind):
        raise ValueError(f"{value!r} is too long for {cast.dtype}: it would be truncated")
    if kind == "V":
        return isinstance(value, tuple) and _are_preserved(cast, value)
    if isinstance(value, (str, bytes)) and kind in "iufc":  # a number as text, which NumPy parses
        return True
    return kind in "SU" or bool(cast == value)


def _are_preserved(cast: Any, fields: tuple[Any, ...]) -> bool:
    try:
        same = cast.item() == fields
    except ValueError:  # arrays among the fields, whose comparison has no single truth value
        same = False
    if not same:
        raise TypeError(
            f"{fields!r} cannot be converted exactly to {cast.dtype}: convert it with "
            "np.array(value, buf.dtype)"
        )
    return True
