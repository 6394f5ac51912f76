"""The native part of isthmus."""

from isthmus import (
    AbandonedError as AbandonedError,
    Buffer as Buffer,
    CallbackError as CallbackError,
    ClosedError as ClosedError,
    Context as Context,
    DependencyError as DependencyError,
    Device as Device,
    DeviceLostError as DeviceLostError,
    DeviceNotFoundError as DeviceNotFoundError,
    DriverError as DriverError,
    Error as Error,
    Event as Event,
    ForkedError as ForkedError,
    InternalError as InternalError,
    InvalidArgumentError as InvalidArgumentError,
    OutOfRangeError as OutOfRangeError,
    Platform as Platform,
    Queue as Queue,
    ReadOnlyError as ReadOnlyError,
    USMAllocationError as USMAllocationError,
    UnsupportedError as UnsupportedError,
    WaitTimeoutError as WaitTimeoutError,
    WrongContextError as WrongContextError
)
from isthmus.memory import (
    MemoryUSMDevice as MemoryUSMDevice,
    MemoryUSMHost as MemoryUSMHost,
    MemoryUSMShared as MemoryUSMShared,
    ProviderResource as ProviderResource
)


def platforms() -> list[Platform]:
    """Every platform found. Opens every driver on the first call."""

def devices(filter: str | None = None) -> list[Device]:
    """
    Every device that fits `filter`, the best one first; None: all of them. A filter that
    nothing fits gives an empty list. Simulated devices are listed only if the environment
    variable ISTHMUS_SIM is set or the filter names them. Opens drivers on the first call.
    Raises ValueError for what is no filter.
    """

def absent() -> list[tuple[str, str]]:
    """
    (back-end, reason) of each driver that was looked for and cannot be used. Opens every
    driver on the first call.
    """

def current_device() -> Device:
    """
    The device that `with device:` or `with queue:` set for this thread and asyncio task,
    else the default one: the environment variable ISTHMUS_DEVICE, else the best with USM.
    Opens drivers on the first call. Raises DeviceNotFoundError.
    """

def current_queue() -> Queue:
    """
    The queue that `with queue:` set for this thread and asyncio task, else the
    default queue of the current device. Opens drivers on the first call. Raises
    DeviceNotFoundError.
    """

def live(kind: str | None = None) -> tuple[int, int]:
    """
    (allocations, bytes) that live in this process, of one kind (None: all). Memory whose
    free waits for work in flight counts.
    """

def as_usm_memory(obj: object) -> MemoryUSMDevice | MemoryUSMShared | MemoryUSMHost:
    """
    The memory of any object with __sycl_usm_array_interface__, without a copy, as the class
    that fits its kind. Raises ValueError for a dictionary whose values cannot be or a
    pointer that its context does not know, OutOfRangeError (a ValueError) past either end
    of the allocation, TypeError for entries of a wrong type.
    """

def sim_create(options: str | None = None) -> Device:
    """
    A new simulated device of a platform of its own; `options` as in ISTHMUS_SIM.
    """

def sim_configure(device: Device, options: str) -> None:
    """Changes the options that may change while the device lives."""

def sim_calls(device: Device, kind: str = 'any') -> int:
    """
    Driver calls of one kind made so far: "allocate", "copy", ...; "any": all.
    """

def sim_state(device: Device) -> tuple[int, int, int]:
    """
    (virtual time in ns, bytes of device memory, bytes of other memory) of the device now.
    """

__pyx_capi__: dict = ...
