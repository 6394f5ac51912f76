# SPDX-License-Identifier: Apache-2.0
"""Advice on shared memory by name, prefetch, residency. Features that a driver lacks are errors.

``Buffer.advise`` accepts the driver's own numbers.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from isthmus._byte_count import byte_count
from isthmus._core import Device, InvalidArgumentError, UnsupportedError

from .current import check
from .endpoint import Endpoint, usm_endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isthmus._byte_count import ByteCount
    from isthmus._core import Context, Event, Queue

__all__ = ["Advice", "advise", "evict", "make_resident", "prefetch"]


class Advice(enum.Enum):
    """How a program uses its shared memory; also accepted by value, such as ``"read_mostly"``."""

    READ_MOSTLY = "read_mostly"
    """Read far more often than written: each side may keep a copy."""
    CLEAR_READ_MOSTLY = "clear_read_mostly"
    PREFERRED_LOCATION = "preferred_location"
    """The memory should reside on that device or host, whichever side accesses it."""
    CLEAR_PREFERRED_LOCATION = "clear_preferred_location"
    ACCESSED_BY = "accessed_by"
    """The device accesses the memory, and should do so without page faults."""
    CLEAR_ACCESSED_BY = "clear_accessed_by"
    NON_ATOMIC_MOSTLY = "non_atomic_mostly"
    """Rarely accessed by atomic operations."""
    CLEAR_NON_ATOMIC_MOSTLY = "clear_non_atomic_mostly"
    BIAS_CACHED = "bias_cached"
    """Should be cached by the device."""
    CLEAR_BIAS_CACHED = "clear_bias_cached"
    BIAS_UNCACHED = "bias_uncached"
    """Should not be cached by the device."""
    CLEAR_BIAS_UNCACHED = "clear_bias_uncached"


_A = Advice
_CUDA = {  # CUmem_advise
    _A.READ_MOSTLY: 1,
    _A.CLEAR_READ_MOSTLY: 2,
    _A.PREFERRED_LOCATION: 3,
    _A.CLEAR_PREFERRED_LOCATION: 4,
    _A.ACCESSED_BY: 5,
    _A.CLEAR_ACCESSED_BY: 6,
}
_LEVEL_ZERO = {  # ze_memory_advice_t, which SYCL passes on unchanged
    _A.READ_MOSTLY: 0,
    _A.CLEAR_READ_MOSTLY: 1,
    _A.PREFERRED_LOCATION: 2,
    _A.CLEAR_PREFERRED_LOCATION: 3,
    _A.NON_ATOMIC_MOSTLY: 4,
    _A.CLEAR_NON_ATOMIC_MOSTLY: 5,
    _A.BIAS_CACHED: 6,
    _A.BIAS_UNCACHED: 7,
}
_LEVEL_ZERO_HOST = {_A.PREFERRED_LOCATION: 8, _A.CLEAR_PREFERRED_LOCATION: 9}
_SIM = {advice: number for number, advice in enumerate(_A)}  # accepts any number, and ignores it


def advise(
    ptr: Any,
    advice: Advice | str,
    device: Device | str | None = None,
    *,
    nbytes: ByteCount | None = None,
    queue: Queue | None = None,
    after: Event | Sequence[Event] = (),
    blocking: bool = True,
) -> Event | None:
    """Advises the driver how ``nbytes`` bytes (None: all) from ``ptr`` on are used: a hint.

    ``ptr``: a pointer, an Array without gaps or a Buffer. Advice on memory of other kinds than
    shared, which does not migrate, does nothing. ``device``: the device that the advice is about,
    "host", or None for the memory's device. ``queue`` None: the memory's queue. Order and
    ``blocking``: as Buffer.copy_from.

    Raises UnsupportedError, before anything is done, if the driver has no such advice; ValueError
    for an unknown name, OutOfRangeError past the end.
    """
    target, number = checked_number(ptr, advice, device, nbytes)
    event: Event | None = target.holder.advise(
        number,
        offset=target.offset,
        nbytes=target.nbytes,
        queue=queue,
        after=after,
        blocking=blocking,
    )
    return event


def checked_number(
    ptr: Any, advice: Advice | str, device: Device | str | None, nbytes: ByteCount | None
) -> tuple[Endpoint, int]:
    """The bytes, and the driver's number of the advice on them."""
    try:
        wanted = Advice(advice)
    except ValueError:
        names = ", ".join(each.value for each in Advice)
        raise InvalidArgumentError(f"unknown advice {advice!r}: use one of {names}") from None
    target = _target(ptr, nbytes)
    about_host = _is_host(device, target.holder.device)
    return target, _number(wanted, target.holder.device, about_host)


def _number(advice: Advice, dev: Device, about_host: bool) -> int:
    if "advise" not in dev.capabilities:
        raise UnsupportedError(
            f"{dev.filter} does not support advice on memory: it lacks the capability 'advise'"
        )
    number = _numbers_of(dev, about_host).get(advice)
    if number is None:
        if dev.backend == "cuda" and about_host and advice in _CUDA:
            raise UnsupportedError(
                f"advice {advice.value!r} about the host is not passed to the driver of "
                f"{dev.filter}: pass the memory's own device, or None"
            )
        about = " about the host" if about_host else ""
        raise UnsupportedError(
            f"the driver of {dev.filter} does not support advice {advice.value!r}{about}"
        )
    return number


def _numbers_of(dev: Device, about_host: bool) -> dict[Advice, int]:
    if dev.backend == "cuda":
        return {} if about_host else _CUDA
    if dev.backend == "sycl" and "level-zero" in dev.platform.name.lower().replace(" ", "-"):
        return _LEVEL_ZERO_HOST if about_host else _LEVEL_ZERO
    # OpenCL's extension has a parameter for such numbers, but defines none.
    return _SIM if dev.backend == "sim" else {}


def prefetch(
    ptr: Any,
    nbytes: ByteCount | None = None,
    device: Device | str | None = None,
    *,
    queue: Queue | None = None,
    after: Event | Sequence[Event] = (),
    blocking: bool = True,
) -> Event | None:
    """Requests that the driver move ``nbytes`` bytes (None: all) from ``ptr`` on: a hint.

    ``ptr`` as in ``advise``. ``device``: "host", or None for the memory's device. The order and
    ``blocking`` are those of Buffer.copy_from. Raises UnsupportedError for a device without the
    capability "prefetch", and for any other device.
    """
    target, to_host = prefetched(ptr, nbytes, device)
    return prefetch_on(queue, target, to_host, after, blocking)


def prefetched(
    ptr: Any, nbytes: ByteCount | None, device: Device | str | None
) -> tuple[Endpoint, bool]:
    """The bytes, and whether they move to the host."""
    target = _target(ptr, nbytes)
    own = target.holder.device
    if "prefetch" not in own.capabilities:
        raise UnsupportedError(
            f"{own.filter} cannot prefetch memory: it lacks the capability 'prefetch'"
        )
    return target, _is_host(device, own)


def prefetch_on(
    queue: Queue | None, target: Endpoint, to_host: bool, after: Any = (), blocking: bool = False
) -> Event | None:
    """Submits the prefetch to ``queue`` (None: the memory's queue)."""
    event: Event | None = target.holder.prefetch(
        offset=target.offset, nbytes=target.nbytes, to_host=to_host, queue=queue, after=after,
        blocking=blocking,
    )  # fmt: skip
    return event


def _target(ptr: Any, nbytes: ByteCount | None) -> Endpoint:
    target = usm_endpoint(ptr, "memory")
    assert target.nbytes is not None
    if nbytes is None:
        return target
    count = byte_count("nbytes", nbytes)
    if count < 0:
        raise InvalidArgumentError(f"nbytes must be 0 or more, not {count}")
    target.check_bounds(count, "memory")
    return target._replace(nbytes=count)


def _is_host(named: Device | str | None, own: Device) -> bool:
    """Whether ``named`` is the host. UnsupportedError for another device than the memory's."""
    if named is None or named == own:
        return False
    if not isinstance(named, (str, Device)):
        raise TypeError(f"device must be a Device or a filter, not {type(named).__name__}")
    target = Device(named)
    if target == own:
        return False
    if target.backend == "host":
        return True
    raise UnsupportedError(
        f"memory of {own.filter} can move only to that device or the host, not to "
        f"{target.filter}: allocate it there, or copy it"
    )


def make_resident(ctx: Context, dev: Device, ptr: Any, nbytes: ByteCount | None = None) -> None:
    """Always UnsupportedError: no supported driver needs it or has a call for it.

    Allocated memory is resident. Level Zero, which has the call, is used through SYCL, which calls
    it itself.
    """
    _refuse_residency(ctx, dev, ptr, nbytes)


def evict(ctx: Context, dev: Device, ptr: Any, nbytes: ByteCount | None = None) -> None:
    """Always UnsupportedError, like ``make_resident``; use ``free`` for memory that is not
    needed.
    """
    _refuse_residency(ctx, dev, ptr, nbytes)


def _refuse_residency(ctx: Context, dev: Device, ptr: Any, nbytes: ByteCount | None) -> None:
    check(ctx, dev)
    _target(ptr, nbytes)
    raise UnsupportedError(
        f"the driver of {dev.filter} has no call for residency: all allocated memory is resident"
    )
