# SPDX-License-Identifier: Apache-2.0
"""The element types of arrays, by name: ``isthmus.float32``."""

from __future__ import annotations

from ._core import DType

bool = DType("bool")  # noqa: A001
int8, int16, int32, int64 = map(DType, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(DType, ("uint8", "uint16", "uint32", "uint64"))
float16, bfloat16, float32, float64 = map(DType, ("float16", "bfloat16", "float32", "float64"))
complex64, complex128 = map(DType, ("complex64", "complex128"))
longdouble, clongdouble = map(DType, ("longdouble", "clongdouble"))
