# SPDX-License-Identifier: Apache-2.0
"""RMM's debug log, as a logger of Python's ``logging`` with the name ``isthmus.compat.rmm``.

The program's ``logging`` configuration decides where messages go. If ``RMM_DEBUG_LOG_FILE`` is set
when this module is first imported, they are also written to that file, which is created at that
time; a warning reports failure.
"""

from __future__ import annotations

import logging
import os
import warnings
from enum import IntEnum

__all__ = [
    "flush_logger",
    "get_flush_level",
    "get_logging_level",
    "level_enum",
    "set_flush_level",
    "set_logging_level",
    "should_log",
]


class level_enum(IntEnum):  # noqa: N801 (RMM's name)
    """Levels, the most verbose first."""

    trace = 0
    debug = 1
    info = 2
    warn = 3
    error = 4
    critical = 5
    off = 6
    n_levels = 7


_logger = logging.getLogger("isthmus.compat.rmm")
_NUMBERS = {
    level_enum.trace: 5,
    level_enum.debug: logging.DEBUG,
    level_enum.info: logging.INFO,
    level_enum.warn: logging.WARNING,
    level_enum.error: logging.ERROR,
    level_enum.critical: logging.CRITICAL,
    level_enum.off: logging.CRITICAL + 10,
    level_enum.n_levels: logging.CRITICAL + 20,
}
_flush_level = level_enum.off


def should_log(level: level_enum) -> bool:
    """Whether a message of that level is written. TypeError unless it is a ``level_enum``."""
    return _number(level) >= _logger.level


def set_logging_level(level: level_enum) -> None:
    """Sets the lowest level that is written. TypeError as for ``should_log``."""
    _logger.setLevel(_number(level))


def get_logging_level() -> level_enum:
    """The lowest level that is written."""
    return min(
        (level for level, number in _NUMBERS.items() if number >= _logger.level),
        default=level_enum.n_levels,
    )


def flush_logger() -> None:
    """Flushes all handlers that receive messages."""
    logger: logging.Logger | None = _logger
    while logger is not None:
        for handler in logger.handlers:
            handler.flush()
        logger = logger.parent if logger.propagate else None


def set_flush_level(level: level_enum) -> None:
    """Sets the lowest level whose messages are flushed at once. TypeError as for ``should_log``."""
    global _flush_level
    _number(level)
    _flush_level = level


def get_flush_level() -> level_enum:
    """The lowest level whose messages are flushed at once."""
    return _flush_level


def log(level: level_enum, text: str) -> None:
    """Writes a message of this package."""
    _logger.log(_number(level), "%s", text)
    if level >= _flush_level:
        flush_logger()


def _number(level: object) -> int:
    if not isinstance(level, level_enum):
        raise TypeError(f"level must be one of level_enum, not {level!r}")
    return _NUMBERS[level]


def _begin() -> None:
    _logger.setLevel(logging.INFO)
    path = os.environ.get("RMM_DEBUG_LOG_FILE")
    if not path:
        return
    try:
        file = logging.FileHandler(path)
    except OSError as failed:
        # Warn here rather than at the first message, which may itself report a failure.
        warnings.warn(f"RMM_DEBUG_LOG_FILE: no debug log is written: {failed}", stacklevel=2)
        return
    file.setFormatter(logging.Formatter("[%(process)d][%(asctime)s][%(levelname)s] %(message)s"))
    _logger.addHandler(file)


_begin()
