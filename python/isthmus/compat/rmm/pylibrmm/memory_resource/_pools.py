# SPDX-License-Identifier: Apache-2.0
"""Resources that cache memory and sub-allocate from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus import UnsupportedError
from isthmus.compat.rmm import _device
from isthmus.compat.rmm._cuda.pools import FABRIC, KEEP_ALL, POSIX_FILE, create_pool
from isthmus.compat.rmm._sizes import RefusedError, bytes_of, count_of
from isthmus.compat.rmm.pylibrmm.logger import level_enum, log
from isthmus.memory import (
    ArenaResource,
    BinningResource,
    CustomResource,
    FailureCallbackResource,
    FixedSizeResource,
    MemoryResource,
    PoolResource,
)

from ._any_kind import of_one_kind
from ._base import DeviceMemoryResource, UpstreamResourceAdaptor
from ._driver import DriverMemoryResource
from ._per_device import changed

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus import Device

__all__ = [
    "ArenaMemoryResource",
    "BinningMemoryResource",
    "CudaAsyncMemoryResource",
    "FixedSizeMemoryResource",
    "PoolMemoryResource",
]

_GRANULE = 2 << 20  # the mapping granularity of drivers: a pool cannot hold less


class CudaAsyncMemoryResource(DeviceMemoryResource):
    """A stream-ordered pool of device memory: Isthmus' own pool, on any device.

    ``initial_pool_size``: bytes that are obtained at once. ``release_threshold``: if the pool holds
    more than this, it returns free memory to the driver before it grows; None: it never does so on
    its own. ``enable_ipc``: memory can be exported by ``isthmus.Buffer.ipc_handle()``;
    UnsupportedError, a RuntimeError, on devices without the capability "ipc". ``enable_fabric``: a
    pool of the CUDA driver whose memory has fabric handles; UnsupportedError if the driver has no
    such pools.
    """

    def __init__(
        self,
        initial_pool_size: int | str | None = None,
        release_threshold: int | None = None,
        enable_ipc: bool = False,
        enable_fabric: bool = False,
    ) -> None:
        device = _device.current()
        initial = bytes_of(
            0 if initial_pool_size is None else initial_pool_size, "initial_pool_size"
        )
        threshold = release_threshold
        if threshold is not None:  # 0 would mean no limit, so use the minimum of 1
            threshold = max(count_of(threshold, "release_threshold"), 1)
        if enable_fabric:
            types = FABRIC | POSIX_FILE if enable_ipc else FABRIC
            self._use(_of_driver(device, types, initial, threshold))
            return
        if enable_ipc and "ipc" not in device.capabilities:
            raise UnsupportedError(
                f"enable_ipc: {device.filter} lacks the capability 'ipc': "
                "Requested IPC memory handle type not supported"
            )
        self._use(
            PoolResource(
                "device",
                device,
                initial_bytes=initial,
                soft_limit_bytes=threshold,
                remap=not enable_ipc,
            )
        )


def _of_driver(device: Device, types: int, initial: int, threshold: int | None) -> MemoryResource:
    if device.backend != "cuda":
        raise UnsupportedError(
            f"enable_fabric: {device.filter} is not a CUDA device: "
            "Requested IPC memory handle type not supported"
        )
    pool = create_pool(device, types)
    pool.set_release_threshold(KEEP_ALL if threshold is None else threshold)
    pool.prime(initial, device.default_queue)
    return CustomResource(pool, "device", device)


class PoolMemoryResource(UpstreamResourceAdaptor):
    """A pool over ``upstream_mr``.

    It obtains ``initial_pool_size`` bytes (None: none) at once and holds at most
    ``maximum_pool_size``, rounded up to 2 MiB (None: no limit). Both are integers or text: "1GiB".
    Directly over driver memory, free memory is remapped to serve larger requests. A pool cannot
    have another pool as its upstream; arenas replace it in that case. RuntimeError for an initial
    size beyond the maximum, and for a maximum of 0.
    """

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        initial_pool_size: int | str | None = None,
        maximum_pool_size: int | str | None = None,
    ) -> None:
        upstream = self._set_one_kind_upstream(upstream_mr)
        initial, maximum = pool_sizes(initial_pool_size, maximum_pool_size)
        self._use(_pool_over(upstream_mr, upstream, initial, maximum))

    def pool_size(self) -> int:
        """The bytes that the pool holds, in use and free."""
        return self._resource.held_bytes


def pool_sizes(initial: int | str | None, maximum: int | str | None) -> tuple[int, int | None]:
    """Both sizes in bytes, the maximum rounded up to the pool's granularity."""
    initial_bytes = bytes_of(0 if initial is None else initial, "initial_pool_size")
    if maximum is None:
        return initial_bytes, None
    maximum_bytes = bytes_of(maximum, "maximum_pool_size")
    if maximum_bytes == 0:
        raise RefusedError("maximum_pool_size must be 1 or more, or None for no limit, not 0")
    if initial_bytes > maximum_bytes:
        raise RefusedError(
            "Initial pool size exceeds the maximum pool size: initial_pool_size is "
            f"{initial_bytes}, maximum_pool_size {maximum_bytes}"
        )
    return initial_bytes, -(-maximum_bytes // _GRANULE) * _GRANULE


def _pool_over(
    upstream_mr: DeviceMemoryResource, upstream: MemoryResource, initial: int, maximum: int | None
) -> MemoryResource:
    if isinstance(upstream_mr, DriverMemoryResource):
        return PoolResource(
            upstream.kind, upstream.device, initial_bytes=initial, limit_bytes=maximum
        )
    try:
        return PoolResource(upstream, initial_bytes=initial, limit_bytes=maximum)
    except UnsupportedError:
        return ArenaResource(upstream, maximum or 0)


class ArenaMemoryResource(UpstreamResourceAdaptor):
    """Arenas that are not shared between threads or streams.

    Together they hold at most ``arena_size`` bytes (None: no limit), an integer or text.
    RuntimeError for 0. ``dump_log_on_failure``: failed allocations write a message to the log (see
    ``level_enum``).
    """

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        arena_size: int | str | None = None,
        dump_log_on_failure: bool = False,
    ) -> None:
        upstream = self._set_one_kind_upstream(upstream_mr)
        limit = 0 if arena_size is None else bytes_of(arena_size, "arena_size")
        if limit == 0 and arena_size is not None:
            raise RefusedError("arena_size must be 1 or more, or None for no limit, not 0")
        arenas = ArenaResource(upstream, limit)
        self._use(
            FailureCallbackResource(arenas, _failure_logger(arenas))
            if dump_log_on_failure
            else arenas
        )


def _failure_logger(arenas: ArenaResource) -> Callable[[int], bool]:
    def log_failure(nbytes: int) -> bool:
        log(
            level_enum.error,
            f"arenas on {arenas.device.filter} have no {nbytes} bytes: they hold "
            f"{arenas.held_bytes} bytes, of which {arenas.free_bytes} are free",
        )
        return False

    return log_failure


class FixedSizeMemoryResource(UpstreamResourceAdaptor):
    """Blocks of ``block_size`` bytes, from slabs of ``blocks_to_preallocate`` blocks.

    The first slab is allocated with the first block. MemoryError for requests larger than a block.
    """

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        block_size: int = 1 << 20,
        blocks_to_preallocate: int = 128,
    ) -> None:
        self._use(
            FixedSizeResource(
                self._set_one_kind_upstream(upstream_mr),
                count_of(block_size, "block_size"),
                count_of(blocks_to_preallocate, "blocks_to_preallocate"),
            )
        )


class BinningMemoryResource(UpstreamResourceAdaptor):
    """Selects a bin by the size of the request; larger requests are passed to ``upstream_mr``.

    Bins may have other kinds of memory than ``upstream_mr``. If both exponents are passed, there is
    a bin of fixed-size blocks for each power of two from ``2**min_size_exponent`` to
    ``2**max_size_exponent``.
    """

    def __init__(
        self,
        upstream_mr: DeviceMemoryResource,
        min_size_exponent: int = -1,
        max_size_exponent: int = -1,
    ) -> None:
        upstream = self._set_upstream(upstream_mr)
        min_exponent, max_exponent = (
            _exponent(min_size_exponent, "min_size_exponent"),
            _exponent(max_size_exponent, "max_size_exponent"),
        )
        self._bins: dict[int, MemoryResource] = {}
        self._bin_mrs: list[DeviceMemoryResource] = []
        if min_exponent != -1 and max_exponent != -1:
            resource = self._one_kind_upstream()
            for exponent in range(min_exponent, max_exponent + 1):
                self._bins[1 << exponent] = FixedSizeResource(resource, 1 << exponent)
        self._use(BinningResource(upstream, self._bins))

    def add_bin(
        self, allocation_size: int, bin_resource: DeviceMemoryResource | None = None
    ) -> None:
        """Adds a bin for requests of up to ``allocation_size`` bytes.

        ``bin_resource``: None for fixed-size blocks. An existing bin of that size is replaced; its
        memory still returns to it. RuntimeError if this is already the upstream of another
        resource, which would not use the bin; ValueError for a resource of another device.
        """
        if self._is_upstream:
            raise RefusedError(
                f"{self!r} is already the upstream of another resource: add bins before that"
            )
        size = count_of(allocation_size, "allocation_size")
        if bin_resource is None:
            resource: MemoryResource = FixedSizeResource(self._one_kind_upstream(), size)
        else:
            resource = self._bin_of(bin_resource)
        bins = self._bins | {size: resource}
        self._use(BinningResource(self._upstream_mr.resource, bins))
        self._bins = bins
        if bin_resource is not None:
            bin_resource._is_upstream = True
            is_other_kind = bin_resource.resource.kind != self._upstream_mr.resource.kind
            self._is_mixed = self._is_mixed or bin_resource._is_mixed or is_other_kind
            self._bin_mrs.append(bin_resource)
        changed(self)

    @property
    def bin_mrs(self) -> list[DeviceMemoryResource]:
        """The resources that were passed to ``add_bin``, as a new list."""
        return list(self._bin_mrs)

    def _one_kind_upstream(self) -> MemoryResource:
        upstream = self._upstream_mr
        return of_one_kind(upstream.resource) if upstream._is_mixed else upstream.resource

    def _bin_of(self, resource: DeviceMemoryResource) -> MemoryResource:
        if not isinstance(resource, DeviceMemoryResource):
            raise TypeError(f"bin_resource must be a DeviceMemoryResource, not {resource!r}")
        if resource.device != self._device:
            raise ValueError(
                f"bin_resource allocates on {resource.device.filter}, but the bins are for "
                f"{self._device.filter}: create it while that device is current"
            )
        return resource.resource


def _exponent(value: int, name: str) -> int:
    if value != -1 and not 0 <= value < 63:
        raise OverflowError(f"{name} must be from 0 to 62, or -1 for no bins, not {value}")
    return value
