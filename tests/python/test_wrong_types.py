# SPDX-License-Identifier: Apache-2.0
"""Arguments of wrong types for everything in the stubs: Isthmus reports each by its name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import isthmus
from isthmus import _core, memory

if TYPE_CHECKING:
    from collections.abc import Iterator

STUB = Path(isthmus.__file__).with_name("_core.pyi")
BINDINGS = "incompatible function arguments"  # nanobind's message, which names no argument


class Wrong:
    """A value that is no valid argument of anything."""


@pytest.fixture(scope="module")
def instances() -> dict[str, Any]:
    """An instance of each class that has methods."""
    device = isthmus.Device("host")
    queue = isthmus.Queue(device)
    pool = memory.PoolResource("host", device)
    pool.allocate(8).free()  # allocates the pool's internal memory before the first test
    counted = memory.StatisticsResource(pool)
    return {
        "Device": device,
        "Platform": device.platform,
        "Context": device.default_context,
        "Queue": queue,
        "Event": queue.fence(),
        "Buffer": isthmus.Buffer(64, kind="host", queue=queue),
        "Array": isthmus.Array(isthmus.Buffer(64, kind="host", queue=queue), 64, "u1"),
        "Budget": isthmus.Budget(1 << 30),
        "MemoryResource": pool,
        "PoolResource": pool,
        "ProviderResource": memory.ProviderResource("host", device),
        "StatisticsResource": counted,
        "StatisticsScope": counted.statistics(),
        "LogResource": memory.LogResource(pool, "/dev/null"),
        "MonotonicResource": memory.MonotonicResource(pool),
        "TrackingResource": memory.TrackingResource(pool),
        "_Memory": memory.MemoryUSMHost(64, queue=queue),
        "MemoryUSMHost": memory.MemoryUSMHost(64, queue=queue),
        "tag": isthmus.tag("mine"),
        "using": isthmus.using(pool),
    }


def fitting(annotation: str, instances: dict[str, Any]) -> Any:
    """A valid argument of that type."""
    plain = {"int": 8, "str": "host", "float": 1.0, "bool": True, "bytes": b"12345678"}
    return (plain | instances).get(annotation.split(" |")[0], bytearray(64))


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield node.name, inner


def cases() -> Iterator[Any]:
    for owner, function in functions():
        names = [getattr(each, "id", getattr(each, "attr", "")) for each in function.decorator_list]
        if {"property", "setter"} & set(names) or (
            function.name.startswith(("_", "sim_", "replay")) and function.name != "__init__"
        ):
            continue
        spec = function.args
        given = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
        for wrong in given:
            if wrong.annotation is not None and wrong.arg != "self":
                yield pytest.param(
                    owner, function, wrong.arg, id=f"{owner}.{function.name}-{wrong.arg}"
                )


def call(
    instances: dict[str, Any], owner: str, function: ast.FunctionDef, wrong: str, value: object
) -> object:
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    needed = positional[: len(positional) - len(spec.defaults)] + [
        each
        for each, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
        if default is None
    ]
    arguments = {
        each.arg: fitting(ast.unparse(each.annotation), instances)
        for each in needed
        if each.arg != "self" and each.annotation is not None
    }
    arguments[wrong] = value
    of: Any = getattr(_core, owner) if owner else _core
    if function.name == "__init__":
        return of(**arguments)
    target = instances.get(owner, of)
    return getattr(target, function.name)(**arguments)


@pytest.mark.parametrize("value", [None, Wrong()], ids=["None", "object"])
@pytest.mark.parametrize(("owner", "function", "wrong"), list(cases()))
def test_checked_by_isthmus(
    instances: dict[str, Any], owner: str, function: ast.FunctionDef, wrong: str, value: object
) -> None:
    told = ""
    try:
        with isthmus.Device("host"):  # its library has no handles and does not inspect any
            call(instances, owner, function, wrong, value)
    except Exception as problem:  # any error is acceptable for this argument
        told = str(problem)
    assert BINDINGS not in told


@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda: memory.PoolResource(None), TypeError, "kind must be 'device', .* not None"),
        (lambda: memory.PoolResource(3), TypeError, "kind must be 'device', .* not 3"),
        (lambda: memory.PoolResource(upstream=None), TypeError, "upstream must be a resource"),
        (lambda: memory.PoolResource("host", checked=1), TypeError, "checked must be True or"),
        (lambda: memory.PoolResource("host", wait=None), TypeError, "wait must be a real number"),
        (lambda: isthmus.Budget(None), TypeError, "limit must be an integer .* not None"),
        (lambda: isthmus.Budget(1, kind=None), TypeError, "kind must be 'device'"),
        (
            lambda: isthmus.Buffer.adopt(8, 8, device=3),
            TypeError,
            "device must be a Device, a dpctl device",
        ),
        (lambda: isthmus.Buffer.adopt(8, 8, device="x"), ValueError, "device filter 'x'"),
        (lambda: isthmus.Buffer.adopt(8, 8, read_only=0), TypeError, "read_only must be True or"),
    ],
    ids=range(10),
)
def test_messages(make: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        make()


def test_adopt_on_a_device() -> None:
    host = isthmus.Buffer(64, kind="host", device="host")
    adopted = isthmus.Buffer.adopt(host.ptr, 64, kind="host", device="host", owner=host)
    assert adopted.device == isthmus.Device("host")
    queue = isthmus.Queue("host")
    with pytest.raises(ValueError, match="device"):
        isthmus.Buffer.adopt(host.ptr, 64, kind="host", device="sim", queue=queue)


def test_a_pool_over_a_resource_has_its_device() -> None:
    upstream = memory.ProviderResource("host", "host")
    with pytest.raises(TypeError, match="pass neither"):
        memory.PoolResource(upstream, "host")
