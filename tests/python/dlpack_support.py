# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules built field by field, as a faulty producer would build them, and producers."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}  # a capsule does not copy its name
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_kept: list[Made] = []  # consumers may read the memory after the test ends


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class Made:
    """A capsule with these fields. ``deleted`` counts the calls of its deleter."""

    def __init__(
        self,
        data: int | None,
        shape: Sequence[int] | None,
        strides: Sequence[int] | None = None,
        *,
        ndim: int | None = None,
        dtype: tuple[int, int, int] = (2, 32, 1),
        byte_offset: int = 0,
        device: tuple[int, int] = (1, 0),
        version: tuple[int, int] | None = (1, 0),
        flags: int = 0,
        has_deleter: bool = True,
    ) -> None:
        _kept.append(self)
        self.deleted = 0
        self.managed = Managed() if version is None else Versioned()
        if isinstance(self.managed, Versioned):
            self.managed.version[:] = version
            self.managed.flags = flags
        self._delete = _DELETER(self._count) if has_deleter else _DELETER()
        self.managed.deleter = self._delete
        self._numbers = [
            None if numbers is None else (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
            for numbers in (shape, strides)
        ]
        tensor = self.managed.tensor
        tensor.data, tensor.byte_offset = data, byte_offset
        tensor.device[:] = device
        tensor.ndim = len(shape or ()) if ndim is None else ndim
        tensor.code, tensor.bits, tensor.lanes = dtype
        for name, numbers in zip(("shape", "strides"), self._numbers, strict=True):
            if numbers is not None:
                pointer = ctypes.POINTER(ctypes.c_int64)
                setattr(tensor, name, ctypes.cast(numbers, pointer))
        self.capsule = new_capsule(
            ctypes.addressof(self.managed), _NAMES[version is not None], None
        )

    def _count(self, _: int) -> None:
        self.deleted += 1


class Producer:
    """Exports one capsule, and records the arguments of each request for it."""

    def __init__(self, capsule: object, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device
        self.requests: list[dict[str, Any]] = []

    def __dlpack__(self, **request: Any) -> object:
        self.requests.append(request)
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device
