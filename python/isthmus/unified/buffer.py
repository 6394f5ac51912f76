# SPDX-License-Identifier: Apache-2.0
"""``UnifiedBuffer``: one array on the host and on a device, synchronized lazily."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus import _core
from isthmus._host_arrays import host_array
from isthmus._iterables import iterator
from isthmus._not_loaded import loads_pickles

from .array import UnifiedArray
from .contents import contents_of
from .layout import bytes_of, shape_of
from .state import WINNERS, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray
    from typing_extensions import Self

    from isthmus._core import Queue

_TRACKING = {None: 0, "pages": 1, "bytes": 2, "hashes": 3}
_OPTIONS = ("pinned", "separate", "granularity", "on_conflict", "tracking")
_GRANULARITIES = {"auto": 0, "page": 1}


# Recent arguments, converted for the library: creating a buffer costs little more than looking them
# up.
_option_codes: dict[Any, tuple[int, ...]] = {}
_dtypes: dict[Any, Any] = {}


def _codes_of(options: tuple[Any, ...]) -> tuple[int, ...]:
    pinned, separate, granularity, on_conflict, tracking = options
    codes = (
        int(bool(pinned)),
        int(bool(separate)),
        _one_of("granularity", granularity, _GRANULARITIES),
        _one_of("on_conflict", on_conflict, WINNERS),
        _one_of("tracking", tracking, _TRACKING),
    )
    if isinstance(pinned, bool) and isinstance(separate, bool):
        _option_codes[options] = codes
    return codes


def _dtype_of(dtype: Any) -> Any:
    import numpy as np

    result = np.dtype(dtype)
    if isinstance(dtype, (str, type)):
        _dtypes[dtype] = result
    return result


def _one_of(name: str, value: Any, codes: dict[Any, int]) -> int:
    try:
        return codes[value]
    except (KeyError, TypeError):
        raise ValueError(f"{name} must be one of {tuple(codes)}, not {value!r}") from None


class UnifiedBuffer(_core._UnifiedMemory, UnifiedArray):
    """One array on the host and on a device; only changed ranges are copied, and no write is lost.

    ``shape``: extents in elements, or an array, whose shape, dtype and elements the buffer gets; a
    list is a shape, as in NumPy (``from_array`` takes lists of numbers). ``dtype``: anything that
    NumPy accepts except objects; None: float32, or that of the array. Memory is allocated at first
    access. ``host`` and ``device`` are synchronized when they are accessed. Host writes are
    detected automatically, also through arrays obtained long before. Writes of a device are
    declared by ``mark_device_dirty``, or done in ``with buf.device_write()``.

    ``pinned``: registers the host copy with the device's driver: faster copies, slower creation.
    ``device``, ``queue``: the location of the device copy, and the queue of transfers; None: the
    current ones. ``separate``: two copies even if the device accesses host memory at full speed, so
    that one would suffice. ``granularity``: ``"page"`` if all host writes are sparse; they are then
    always detected in units of 4 KiB.
    ``on_conflict``: the side whose bytes are retained if both wrote, ``"host"`` or ``"device"``;
    None: a ConflictError. ``tracking``: forces a mechanism of dirty tracking, ``"pages"``,
    ``"bytes"`` or ``"hashes"``. ``resource``: allocates the device copy; None: the current one.

    Thread-safe, except that concurrent writes of the same bytes have no order.
    """

    def __init__(
        self,
        shape: int | Sequence[int] | Any,
        dtype: Any = None,
        *,
        pinned: bool = False,
        device: _core.Device | str | None = None,
        queue: Queue | None = None,
        separate: bool = False,
        granularity: str = "auto",
        on_conflict: str | None = None,
        tracking: str | None = None,
        resource: Any = None,
    ) -> None:
        options = (pinned, separate, granularity, on_conflict, tracking)
        try:
            codes = _option_codes[options]
        except (KeyError, TypeError):
            codes = _codes_of(options)
        contents = None if isinstance(shape, (int, tuple, list)) else contents_of(shape)
        if dtype is None:
            dtype = "float32" if contents is None else contents.dtype
        try:
            kind = _dtypes[dtype]
        except (KeyError, TypeError):
            kind = _dtype_of(dtype)
        extents = shape_of(shape) if contents is None else contents.shape
        super().__init__(extents, kind, bytes_of(extents, kind), queue, device, codes, resource)
        self._given_options = options
        if contents is not None:
            self.copy_from(contents)

    @classmethod
    def from_array(cls, contents: Any, dtype: Any = None, **options: Any) -> Self:
        """A buffer with the elements of ``contents``: an array, a number or a list of numbers.

        ``dtype`` None: that of the array, or the one that NumPy chooses for numbers. ``options``:
        as for ``UnifiedBuffer``. Raises the errors of ``copy_from``.
        """
        array = contents_of(contents)
        if array is not None:
            return cls(array, dtype, **options)
        array = host_array(contents)
        return cls(array.shape, array.dtype if dtype is None else dtype, **options).copy_from(
            contents
        )

    @property
    def _whole(self) -> UnifiedBuffer:
        return self

    @property
    def _offset(self) -> int:
        return 0

    def free(self) -> None:
        """Frees both copies; freeing twice does nothing. Later use raises ClosedError.

        Host arrays remain valid: their memory is freed with the last of them.
        """
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.free()

    def _options(self) -> dict[str, Any]:
        return dict(zip(_OPTIONS, self._given_options, strict=True))

    def _pickled(self, contents: NDArray[Any], protocol: int) -> Any:
        location = (self._options(), self.queue.device.filter)
        if protocol < 5:
            return self._loader, (contents, *location)
        from pickle import PickleBuffer

        raw: Any = contents.reshape(-1).view("u1")
        return self._loader, (PickleBuffer(raw), *location, contents.shape, contents.dtype)

    @property
    def _loader(self) -> Callable[..., UnifiedBuffer]:
        return load

    def _like(self, contents: NDArray[Any]) -> UnifiedBuffer:
        buf = UnifiedBuffer(contents.shape, contents.dtype, queue=self.queue, **self._options())
        return buf.copy_from(contents)

    def __repr__(self) -> str:
        return f"<isthmus.UnifiedBuffer {describe(self)}>"


@loads_pickles
def load(
    contents: Any,
    options: dict[str, Any],
    device: str,
    shape: tuple[int, ...] | None = None,
    dtype: Any = None,
) -> UnifiedBuffer:
    """Recreates a pickled buffer, on its device if that exists, else on the default device."""
    from isthmus._pickle import device_or_default

    array = pickled_array(contents, shape, dtype)
    buf = UnifiedBuffer(array.shape, array.dtype, device=device_or_default(device), **options)
    return buf.copy_from(array)


def pickled_array(contents: Any, shape: tuple[int, ...] | None, dtype: Any) -> NDArray[Any]:
    """The contents of a pickle: an array (shape None), or bytes passed outside of the pickle.

    ValueError if the number of bytes does not match the shape.
    """
    import numpy as np

    from isthmus import _pickle

    if shape is None:
        array: NDArray[Any] = contents
        return array
    return np.frombuffer(_pickle.frame_of(contents, bytes_of(shape, dtype)), dtype).reshape(shape)


def synchronize(buffers: Iterable[UnifiedArray], *, queue: Queue | None = None) -> None:
    """Synchronizes the device copies of many buffers, with one check for host writes.

    The copies run concurrently, on ``queue`` (None: each on its buffer's queue). Returns when
    ``sync_to_device`` would. If one fails the others are still performed; the first failure is
    raised. TypeError for objects other than unified buffers and parts of them.
    """
    if isinstance(buffers, UnifiedArray):
        raise TypeError("synchronize() takes several unified buffers: pass a list of them")
    each = list(iterator("buffers", buffers))
    for buf in each:
        if not isinstance(buf, UnifiedArray):
            raise TypeError(f"synchronize() takes unified buffers, not {type(buf).__name__}")
    _core._synchronize([buf._whole for buf in each], queue)
