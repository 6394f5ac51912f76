# SPDX-License-Identifier: Apache-2.0
"""``Kind``: the kinds of USM, for type checkers."""

from typing import Literal

Kind = Literal["device", "shared", "host"]
