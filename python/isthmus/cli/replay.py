# SPDX-License-Identifier: Apache-2.0
"""``isthmus replay``: a recorded trace, replayed on a device; its time and the memory held."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import isthmus

from .arguments import byte_count
from .output import bytes_text, print_json, print_line, print_table, progress

if TYPE_CHECKING:
    from isthmus import Device
    from isthmus._kinds import Kind
    from isthmus.memory import MemoryResource
    from isthmus.trace import Replay, Trace

    from .output import Progress

_HELP = "replays recorded allocations: the time of each, memory held over memory requested"
_RESOURCES = ("pool", "unchecked", "unmoved", "provider")
_POOLS = _RESOURCES[:3]
_NUMBERS = ("ns", "p50", "p99", "max", "requested", "held", "ratio", "maps", "unmaps")
_MAX_GROWTH = 1 << 48  # 256 TiB, the size of the address space


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    command = commands.add_parser("replay", help=_HELP, description=_HELP)
    command.add_argument(
        "trace", type=Path, help=".npz, a .csv log of RMM, or a .pickle snapshot of PyTorch"
    )
    command.add_argument(
        "--device", default="", metavar="F", help="filter; default: the best device"
    )
    command.add_argument("--kind", choices=("device", "shared", "host"), default="device")
    command.add_argument(
        "--resource",
        type=_known_resource,
        metavar="R",
        help=f"{', '.join(_RESOURCES)}, or MODULE:FUNCTION, a function of the kind and the device "
        "that returns one; default: pool",
    )
    command.add_argument(
        "--compare",
        action="store_true",
        help="all resources with a name, one after the other, and that of --resource",
    )
    command.add_argument(
        "--growth", type=_growth, metavar="SIZE", help="a pool's growth_bytes, as in 64MiB"
    )
    command.add_argument(
        "--plot", type=Path, metavar="FILE", help="a picture of both sizes over time"
    )
    command.add_argument("--json", action="store_true", help="one object; a list with --compare")
    command.set_defaults(run=run, refuse=command.error)


def _known_resource(name: str) -> str:
    module, _, function = name.partition(":")
    if name not in _RESOURCES and not (
        function and all(part.isidentifier() for part in module.split("."))
    ):
        names = ", ".join(_RESOURCES)
        raise argparse.ArgumentTypeError(f"'{name}' is not one of {names}, nor a MODULE:FUNCTION")
    return name


def _growth(text: str) -> int:
    if text.isdecimal():  # bytes elsewhere, but a pool does not grow by so few
        raise argparse.ArgumentTypeError(f"'{text}' needs a unit: write {text}MiB")
    nbytes = byte_count(text)
    if nbytes > _MAX_GROWTH:
        raise argparse.ArgumentTypeError(f"'{text}' is more than the address space, 256TiB")
    return nbytes


def run(args: argparse.Namespace) -> int:
    """Replays the trace, then prints all results, then draws them."""
    from isthmus.testing import open_device
    from isthmus.trace import TraceError, load

    names = _names(args)
    if args.plot:
        from isthmus._figure import check_matplotlib

        check_matplotlib()  # before anything is replayed
    trace = load(args.trace)
    if not len(trace.events):
        raise TraceError(
            f"{args.trace}: it contains no events to replay: record while the program allocates "
            "(failed allocations, allocations of 0 bytes and frees of earlier ones do not count)"
        )
    device = open_device(args.device)
    with progress(f"replay {trace.name}", quiet=args.json) as report:
        results = _replay_all(trace, names, args, device, report)
    succeeded = {name: each for name, each in results.items() if not isinstance(each, Exception)}
    if not succeeded:
        raise next(each for each in results.values() if isinstance(each, Exception))
    if args.json:
        common = {"device": device.filter, "kind": args.kind}
        rows = [{"resource": name, **common, **_numbers(each)} for name, each in results.items()]
        print_json(rows if args.compare else rows[0])
    else:
        _print(results, trace, f"{args.kind} memory of {device.filter}")
    if args.plot:
        from .replay_picture import draw

        draw(succeeded, device, args.kind, args.plot)
    return 0


def _names(args: argparse.Namespace) -> tuple[str, ...]:
    """The names of the resources to use; ends the program if the options contradict each other."""
    name = args.resource or _RESOURCES[0]
    if args.compare:  # the named resource is first, so that its errors are reported early
        return tuple(dict.fromkeys((name, *_RESOURCES)))
    if args.growth is not None and name not in _POOLS:
        args.refuse(f"argument --growth: applies to {', '.join(_POOLS)}, not to {name}")
    return (name,)


def _replay_all(
    trace: Trace, names: tuple[str, ...], args: argparse.Namespace, device: Device, report: Progress
) -> dict[str, Replay | Exception]:
    """The result of each resource, or the exception that prevented it."""
    from isthmus.trace import replay

    results: dict[str, Replay | Exception] = {}
    for number, name in enumerate(names):
        report(name, number / len(names))
        try:
            results[name] = replay(trace, make_resource(name, args.kind, device, args.growth))
        except (isthmus.Error, MemoryError) as error:
            # Its frames would keep the resource alive, and with it memory that the next resource
            # needs.
            results[name] = error.with_traceback(None)
    return results


def make_resource(name: str, kind: Kind, device: Device, growth: int | None) -> MemoryResource:
    """Creates a resource by its name in the command; ``growth``: of pools, in bytes."""
    from isthmus.memory import PoolResource, ProviderResource

    if ":" in name:
        return _resource_from_function(name, kind, device)
    if name == "provider":
        return ProviderResource(kind, device)
    return PoolResource(
        kind,
        device,
        growth_bytes=growth,
        checked=name != "unchecked",
        remap=name != "unmoved",
    )


def _resource_from_function(name: str, kind: Kind, device: Device) -> MemoryResource:
    from isthmus.memory import MemoryResource

    create = _function(name)
    try:
        resource = create(kind, device)
    except (isthmus.Error, OSError, MemoryError):
        raise
    except Exception as error:  # a user's function may raise any exception
        raise ValueError(
            f"{name}, called with {kind!r} and the device, raised {type(error).__name__}: {error}"
        ) from error
    if not isinstance(resource, MemoryResource):
        raise ValueError(
            f"{name} returned a {type(resource).__name__}, not a resource of isthmus.memory"
        )
    return resource


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    sys.path.insert(0, "")  # `python -m` also searches the working directory first
    try:
        target = getattr(importlib.import_module(module), function, None)
    finally:
        sys.path.remove("")
    if not callable(target):
        raise ValueError(f"module '{module}' has no function '{function}'")
    return target


def _numbers(result: Replay | Exception) -> dict[str, Any]:
    return {"error": str(result)} if isinstance(result, Exception) else result.as_dict()


def _print(results: dict[str, Replay | Exception], trace: Trace, memory: str) -> None:
    queues = "1 queue" if trace.queues == 1 else f"{trace.queues} queues"
    title = f"{trace.name}: {len(trace.events):,} events, {queues}, {memory}"
    columns = ("resource", *(f">{name}" for name in _NUMBERS))
    print_table(title, columns, [_table_row(name, each) for name, each in results.items()])
    print_line()
    if trace.frees_before:
        frees = "1 free" if trace.frees_before == 1 else f"{trace.frees_before:,} frees"
        print_line(f"left out: {frees} of memory that was allocated before the trace begins")
    for name, each in results.items():
        if isinstance(each, Exception):
            print_line(f"{name}: {each}")
    print_line(
        "ns: mean time of an event in a second replay without clock; p50, p99, max: of the first, "
        "event by event. requested, held: peak bytes; ratio: held over requested. maps, unmaps: "
        "how often the driver provided memory, and received it back."
    )


def _table_row(name: str, result: Replay | Exception) -> list[str]:
    if isinstance(result, Exception):
        reason = "no memory" if isinstance(result, MemoryError) else "refused"
        return [name, reason, *[""] * (len(_NUMBERS) - 1)]
    numbers = result.as_dict()
    return [
        name,
        *(f"{numbers[key]:,.0f}" for key in ("mean_ns", "p50_ns", "p99_ns", "max_ns")),
        bytes_text(numbers["peak_requested_bytes"]),
        bytes_text(numbers["peak_held_bytes"]),
        f"{numbers['ratio']:.3f}",
        f"{numbers['maps']:,}",
        f"{numbers['unmaps']:,}",
    ]
