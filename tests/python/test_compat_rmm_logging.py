# SPDX-License-Identifier: Apache-2.0
"""The allocation log and the debug log, by RMM's interface."""

from __future__ import annotations

import csv
import logging
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from compat_rmm_support import on
from support import program_environment, python, until

import isthmus.compat.rmm as rmm
from isthmus.compat.rmm import DeviceBuffer, mr
from isthmus.compat.rmm.pylibrmm.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from isthmus import Device

__all__ = ["on"]
pytestmark = pytest.mark.sim_and_host
LEVELS = list(rmm.level_enum)


def rows(path: str) -> list[dict[str, str]]:
    with open(path) as file:
        return list(csv.DictReader(file))


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RMM_LOG_FILE", raising=False)


@pytest.fixture
def level() -> Iterator[None]:
    yield
    rmm.set_logging_level(rmm.level_enum.info)
    rmm.set_flush_level(rmm.level_enum.off)


def test_the_log(on: Device, tmp_path: Path) -> None:
    limited = mr.LimitingResourceAdaptor(mr.CudaMemoryResource(), 2000)
    log = mr.LoggingResourceAdaptor(limited, str(tmp_path / "log.csv"))
    name = log.get_file_name()
    assert name == str(tmp_path / "log.dev0.csv")
    made = DeviceBuffer(size=1000, stream=Stream(), mr=log)
    address = made.ptr
    with pytest.raises(MemoryError):
        DeviceBuffer(size=1001, mr=log)
    made.free()

    def complete() -> bool:
        log.flush()
        return len(rows(name)) == 3

    assert until(complete)
    found = rows(name)
    assert list(found[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]
    told = {row["Action"]: (int(row["Pointer"] or "0", 16), int(row["Size"])) for row in found}
    assert told["allocate"] == told["free"] == (address, 1000)
    assert told["allocate failure"][1] == 1001


@pytest.mark.parametrize(
    ("name", "file"), [("a.csv", "a.dev0.csv"), ("a", "a.dev0"), ("b.c/a.txt", "b.c/a.dev0.txt")]
)
def test_file_names(on: Device, tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / "b.c").mkdir()
    log = mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), tmp_path / name)
    assert log.get_file_name() == str(tmp_path / file)
    assert (tmp_path / file).exists()


def test_the_name_by_the_environment(
    on: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (None, ""):
        if wrong is not None:
            monkeypatch.setenv("RMM_LOG_FILE", wrong)
        with pytest.raises(ValueError, match="RMM_LOG_FILE"):
            mr.LoggingResourceAdaptor(mr.CudaMemoryResource())
        with pytest.raises(ValueError, match="RMM_LOG_FILE"):
            rmm.enable_logging()
    monkeypatch.setenv("RMM_LOG_FILE", str(tmp_path / "log.csv"))
    log = mr.LoggingResourceAdaptor(mr.CudaMemoryResource())
    assert log.get_file_name() == str(tmp_path / "log.dev0.csv")


def test_files_that_cannot_be(on: Device, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="log"):
        mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), str(tmp_path / "none" / "log.csv"))
    with pytest.raises(TypeError):
        mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), 3)  # type: ignore[arg-type]
    first = mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), tmp_path / "log.csv")
    with pytest.raises(ValueError, match=r"log\.dev0\.csv"):
        mr.LoggingResourceAdaptor(mr.CudaMemoryResource(), tmp_path / "log.csv")
    assert os.path.exists(first.get_file_name())


def test_enable_and_disable(on: Device, tmp_path: Path) -> None:
    assert rmm.get_log_filenames() == {}
    rmm.enable_logging(log_file_name=str(tmp_path / "log.csv"))
    log = mr.get_current_device_resource()
    assert isinstance(log, mr.LoggingResourceAdaptor)
    assert isinstance(log.get_upstream(), mr.CudaMemoryResource)
    rmm.enable_logging(log_file_name=str(tmp_path / "other.csv"))
    assert mr.get_current_device_resource() is log
    names = rmm.get_log_filenames()
    assert names == {0: str(tmp_path / "log.dev0.csv")}
    kept = DeviceBuffer(size=10)
    rmm.disable_logging()
    assert [row["Action"] for row in rows(names[0] or "")] == ["allocate"]
    assert rmm.get_log_filenames() == {0: None}
    assert mr.get_current_device_resource() is log.get_upstream()
    rmm.disable_logging()
    DeviceBuffer(size=10)
    assert len(rows(names[0] or "")) == 1
    del kept


def test_reinitialize_with_a_log(on: Device, tmp_path: Path) -> None:
    for pool in (False, True):
        rmm.reinitialize(pool_allocator=pool, logging=True, log_file_name=str(tmp_path / "log.csv"))
        name = rmm.get_log_filenames()[0]
        assert name == str(tmp_path / "log.dev0.csv")
        resource: Any = mr.get_current_device_resource()
        assert isinstance(resource.get_upstream(), mr.PoolMemoryResource) == pool
        DeviceBuffer(size=10)
        resource.flush()
        assert rows(name)[0]["Size"] == "10"
        del resource


def test_levels(level: None) -> None:
    assert [one.name for one in LEVELS] == [
        *("trace", "debug", "info", "warn", "error", "critical", "off", "n_levels")
    ]
    assert [int(one) for one in LEVELS] == list(range(8))
    assert rmm.get_logging_level() == rmm.level_enum.info
    assert rmm.get_flush_level() == rmm.level_enum.off
    for one in LEVELS:
        rmm.set_logging_level(one)
        assert rmm.get_logging_level() == one
        assert [rmm.should_log(other) for other in LEVELS] == [other >= one for other in LEVELS]
        rmm.set_flush_level(one)
        assert rmm.get_flush_level() == one


@pytest.mark.parametrize("bad", [2, "info", None, logging.INFO])
def test_bad_levels(bad: Any, level: None) -> None:
    for call in (rmm.should_log, rmm.set_logging_level, rmm.set_flush_level):
        with pytest.raises(TypeError, match="level_enum"):
            call(bad)
    assert rmm.get_logging_level() == rmm.level_enum.info


def test_a_level_of_pythons(level: None) -> None:
    logging.getLogger("isthmus.compat.rmm").setLevel(25)
    assert rmm.get_logging_level() == rmm.level_enum.warn
    logging.getLogger("isthmus.compat.rmm").setLevel(1000)
    assert rmm.get_logging_level() == rmm.level_enum.n_levels


class Recorder(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.flushes = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def flush(self) -> None:
        self.flushes += 1


def test_messages_and_flushes(on: Device, level: None) -> None:
    recorder, logger = Recorder(), logging.getLogger("isthmus.compat.rmm")
    logger.addHandler(recorder)
    try:
        tracked = mr.TrackingResourceAdaptor(mr.CudaMemoryResource())
        tracked.log_outstanding_allocations()
        assert recorder.texts == []
        rmm.set_logging_level(rmm.level_enum.debug)
        tracked.log_outstanding_allocations()
        assert recorder.texts == ["outstanding allocations: none"]
        before = recorder.flushes
        rmm.set_flush_level(rmm.level_enum.debug)
        tracked.log_outstanding_allocations()
        assert recorder.flushes == before + 1
        rmm.flush_logger()
        assert recorder.flushes == before + 2
    finally:
        logger.removeHandler(recorder)


def test_a_file_for_messages(tmp_path: Path) -> None:
    path = tmp_path / "debug.txt"
    program = """
from isthmus.compat import rmm
from isthmus import Device
with Device("host"):
    rmm.set_logging_level(rmm.level_enum.debug)
    rmm.mr.TrackingResourceAdaptor(rmm.mr.CudaMemoryResource()).log_outstanding_allocations()
rmm.flush_logger()
"""
    python(program, RMM_DEBUG_LOG_FILE=str(path))
    assert path.read_text().endswith("[DEBUG] outstanding allocations: none\n")


def test_a_file_for_messages_that_cannot_be(tmp_path: Path) -> None:
    """It raises a warning at once, and later errors remain unchanged."""
    path = tmp_path / "none" / "debug.txt"
    program = """
import warnings
with warnings.catch_warnings(record=True) as told:
    from isthmus.compat import rmm
assert ["RMM_DEBUG_LOG_FILE" in str(one.message) for one in told] == [True]
from isthmus import Device
with Device("host"):
    arenas = rmm.mr.ArenaMemoryResource(rmm.mr.CudaMemoryResource(), "4MiB", True)
    try:
        arenas.allocate(1 << 30)
    except MemoryError:
        print("ended well")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=program_environment(RMM_DEBUG_LOG_FILE=str(path)),
        check=True,
    )
    assert done.stdout == "ended well\n"


def test_all_logs_or_none(tmp_path: Path) -> None:
    program = """
import os
from isthmus import Device
from isthmus.compat import rmm
os.mkdir("log.dev1.csv")
with Device("sim:1"):
    rmm.mr.get_current_device_resource()
with Device("sim:0"):
    rmm.mr.get_current_device_resource()
    try:
        rmm.enable_logging("log.csv")
    except ValueError as refused:
        assert "log.dev1.csv" in str(refused)
    else:
        raise SystemExit("there is a log")
    assert rmm.get_log_filenames() == {0: None, 1: None}
with Device("host"):
    assert rmm.get_log_filenames() == {}
    rmm.enable_logging("log.csv")
    assert list(rmm.get_log_filenames().values()) == [os.path.abspath("log.dev0.csv")]
with Device("sim:0"):
    assert rmm.get_log_filenames() == {0: None, 1: None}
"""
    python(f"import os; os.chdir({str(tmp_path)!r})\n{program}", ISTHMUS_SIM="devices=2")


def test_a_log_again_at_once(on: Device, tmp_path: Path) -> None:
    """Frees that went through the previous log may be pending."""
    for _ in range(50):
        rmm.enable_logging(tmp_path / "log.csv")
        made = DeviceBuffer(size=100_000)
        assert made.ptr
        made.copy_from_host(bytes(100_000))
        del made
        rmm.disable_logging()
