# SPDX-License-Identifier: Apache-2.0
"""``UnifiedBuffer`` as in PyDotCompute's release 0.2.0 and as in its documentation."""

# ruff: noqa: A002 (a range is a range)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isthmus import BufferState, Error, InvalidArgumentError
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

from ._making import making
from ._place import as_cupys, cupys_device, default_queue
from ._pools import resource_of
from ._telling import TO_DEVICE, TO_HOST, TellingBuffer, device_of, host_of, telling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self

    from isthmus import Device, Queue
    from isthmus.unified.layout import Range

__all__ = ["BufferState", "UnifiedBuffer"]

T = TypeVar("T", bound="np.generic")


class UnifiedBuffer(TellingBuffer, Generic[T]):
    """A host copy and a device copy of one array: an ``isthmus.UnifiedBuffer``.

    It differs where programs for PyDotCompute expect it: it has ``allocate()`` and
    ``is_allocated``, can be used again after ``free()``, has ``ensure_on_host()`` and
    ``ensure_on_device()``, NumPy's indexing, a ``to_numpy()`` that copies, and errors that are also
    PyDotCompute's. Calling ``allocate()`` or marking host writes is not required: both copies are
    created on first use, and host writes are detected.

    ``shape``, ``dtype``, ``pinned`` and ``options`` are those of ``isthmus.UnifiedBuffer``, as are
    the errors. ``device``, ``queue``: None for the current one, except that the host device
    replaces a driver's device for the processor, so that ``device`` is a NumPy array there. On a
    CUDA device ``device`` is a CuPy array on CuPy's current stream, if CuPy is installed.

    Thread-safe. An operation that another thread's ``free()`` overtakes raises ClosedError; one
    that begins after it does not.
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
        self._cupys = cupys_device(queue)
        self._is_own = True  # not freed yet: the memory is that of this object
        self._later: TellingBuffer | None = None  # allocated after the last `free`

    # -- allocation, release and reallocation

    @property
    def _whole(self) -> TellingBuffer:
        if self._is_own:
            return self
        later = self._later
        return self._renewed() if later is None else later

    def _renewed(self) -> TellingBuffer:
        with making:
            if self._later is None:
                resource = resource_of(self._queue) if self._resource is None else self._resource
                self._later = TellingBuffer(
                    self.shape,
                    self.dtype,
                    queue=self._queue,
                    resource=resource,
                    **self._options(),
                )
            return self._later

    @property
    def is_allocated(self) -> bool:
        """Whether either copy exists."""
        return self.state is not BufferState.UNINITIALIZED

    def allocate(self, *, host: bool = True, device: bool = True) -> Self:
        """Creates the requested copies if they do not exist, and brings them up to date.

        With neither requested it creates the host copy. Existing contents are kept. Raises
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

        Idempotent. Host arrays obtained before stay valid. Parts obtained before, for example by
        ``reshape()``, and an unfinished ``with host_write()`` refer to the freed memory: they raise
        ClosedError, also after the buffer was allocated again.
        """
        with making:
            had = self if self._is_own else self._later
            self._is_own, self._later = False, None
        if had is not None:
            had._free()

    def _forget(self) -> None:
        TellingBuffer._forget(self._whole)

    # -- the two copies

    @property
    def host(self) -> NDArray[Any]:
        """The host copy, brought up to date, as a NumPy array. Writes to it are detected."""
        try:
            array: NDArray[Any] = host_of(self) if self._is_own else self._whole.host
            return array
        except BufferSyncError:
            raise
        except Error as cause:
            raise sync_error(TO_HOST, cause) from cause

    @property
    def device(self) -> Any:
        """The device copy, brought up to date: a CuPy array, a NumPy array or an ``Array``."""
        try:
            array = device_of(self) if self._is_own else self._whole.device
            return array if self._cupys is None else as_cupys(array, self, self._cupys)
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
        """A copy of the contents; ``host`` is the view."""
        with self.host_read() as array:
            copied: NDArray[Any] = array.copy()
        return copied

    def mark_host_dirty(self, range: Range = None) -> None:
        """Declares host writes, which are detected anyway. BufferNotAllocatedError if no copy."""
        self._mark_as_told(range, is_device=False)

    def mark_device_dirty(self, range: Range = None) -> None:
        """Declares device writes in ``range``. BufferNotAllocatedError if there is no device copy.

        Earlier host writes are not dropped: if both sides wrote the same bytes, the next access
        raises ConflictError, which ``resolve()`` settles.
        """
        self._mark_as_told(range, is_device=True)

    def _mark_as_told(self, range: Range, *, is_device: bool) -> None:
        begin, end = self._bytes(range)
        try:
            self._whole._mark(begin, end, is_device)
        except InvalidArgumentError as cause:
            error = both(BufferNotAllocatedError, InvalidArgumentError)
            raise error(f"{NOT_ALLOCATED} ({cause})") from cause

    async def ensure_on_host(self) -> None:
        """Brings the host copy up to date without blocking the event loop."""
        with telling(TO_HOST):
            await self.on_host()

    async def ensure_on_device(self) -> None:
        """Brings the device copy up to date without blocking the event loop."""
        with telling(TO_DEVICE):
            await self.on_device()

    def fill(self, value: Any) -> Self:
        """Sets all elements to ``value``, cast as by NumPy's ``fill`` if the cast is exact.

        Raises TypeError for 2.5 in a buffer of integers or in an integer field of a struct,
        OverflowError for 300 in a buffer of bytes, ValueError for text that would be truncated.
        """
        import numpy as np

        cast = np.empty((), self.dtype)
        cast.fill(value)
        if not _is_kept(cast, value):
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

    # -- copies

    def _reduced(self, protocol: int) -> Any:
        return self._pickled(self.to_numpy(), protocol)

    @property
    def _loader(self) -> Callable[..., UnifiedBuffer[Any]]:
        return _load

    def __copy__(self) -> UnifiedBuffer[T]:
        made: UnifiedBuffer[T] = UnifiedBuffer(
            self.shape, self.dtype, queue=self._queue, **self._options()
        )
        with self.host_read() as array:
            return made.copy_from(array)

    def __deepcopy__(self, memo: Any) -> UnifiedBuffer[T]:
        return self.__copy__()


def _load(
    contents: Any,
    options: dict[str, Any],
    device: str,
    shape: tuple[int, ...] | None = None,
    dtype: Any = None,
) -> UnifiedBuffer[Any]:
    array = pickled_array(contents, shape, dtype)
    made: UnifiedBuffer[Any] = UnifiedBuffer(
        array.shape, array.dtype, device=device_or_default(device), **options
    )
    return made.copy_from(array)


def _is_kept(cast: Any, value: Any) -> bool:
    """Whether NumPy's cast preserved the value. NaN never compares equal."""
    import numpy as np

    kind = cast.dtype.kind
    if kind in "SU" and cast != np.asarray(value).astype(kind):
        raise ValueError(f"{value!r} is too long for {cast.dtype}, which would cut it off")
    if kind == "V":
        return isinstance(value, tuple) and _are_kept(cast, value)
    if isinstance(value, (str, bytes)) and kind in "iufc":  # a number as text, which NumPy parses
        return True
    return kind in "SU" or bool(cast == value)


def _are_kept(cast: Any, fields: tuple[Any, ...]) -> bool:
    try:
        same = cast.item() == fields
    except ValueError:  # arrays among the fields, whose comparison has no single truth value
        same = False
    if not same:
        raise TypeError(
            f"{fields!r} is not exactly a {cast.dtype}: give what NumPy makes of it, "
            "np.array(value, buf.dtype)"
        )
    return True
