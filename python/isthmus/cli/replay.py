# SPDX-License-Identifier: Apache-2.0
"""``isthmus replay``: a recorded trace, replayed on a device; its time and the memory held."""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import isthmus

from .output import bytes_text, print_json, print_line, print_table, progress

if TYPE_CHECKING:
    import numpy as np

    from isthmus import Device
    from isthmus.memory import MemoryResource
    from isthmus.trace import Replay, Trace

    from .output import Progress

_HELP = "replays recorded allocations: the time of each, memory held over memory requested"
_RESOURCES = ("pool", "unchecked", "unmoved", "provider")
_POOLS = _RESOURCES[:3]
_NUMBERS = ("ns", "p50", "p99", "max", "requested", "held", "ratio", "maps", "unmaps")
_STYLES = ("-", "--", "-.", ":")  # two resources may hold the same
_MOST_GROWTH = 1 << 28  # MiB: 256 TiB, the size of the address space
_MOST_POINTS = 4000  # of a line in a picture: more than it has dots


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    made = commands.add_parser("replay", help=_HELP, description=_HELP)
    made.add_argument(
        "trace", type=Path, help=".npz, a .csv log of RMM, or a .pickle snapshot of PyTorch"
    )
    made.add_argument("--device", default="", metavar="F", help="filter; default: the best device")
    made.add_argument("--kind", choices=("device", "shared", "host"), default="device")
    made.add_argument(
        "--resource",
        type=_known_resource,
        metavar="R",
        help=f"{', '.join(_RESOURCES)}, or MODULE:FUNCTION, a function of the kind and the device "
        "that returns one; default: pool",
    )
    made.add_argument(
        "--compare",
        action="store_true",
        help="all resources with a name, one after the other, and that of --resource",
    )
    made.add_argument("--growth", type=_growth, metavar="MIB", help="a pool's growth_bytes, in MiB")
    made.add_argument("--plot", type=Path, metavar="FILE", help="a picture of both sizes over time")
    made.add_argument("--json", action="store_true", help="one object; a list with --compare")
    made.set_defaults(run=run, refuse=made.error)


def _known_resource(name: str) -> str:
    module, _, function = name.partition(":")
    if name not in _RESOURCES and not (
        function and all(part.isidentifier() for part in module.split("."))
    ):
        known = ", ".join(_RESOURCES)
        raise argparse.ArgumentTypeError(f"'{name}' is not one of {known}, nor a MODULE:FUNCTION")
    return name


def _growth(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_GROWTH:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a number of MiB from 1 to {_MOST_GROWTH}"
        )
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Replays, then prints everything at once, then draws."""
    from isthmus.testing import open_device
    from isthmus.trace import TraceError, load

    names = _names(chosen)
    if chosen.plot:
        import matplotlib as mpl  # a missing package is reported before anything is replayed

        mpl.use("Agg")
    trace = load(chosen.trace)
    if not len(trace.events):
        raise TraceError(
            f"{chosen.trace}: it contains no events to replay: record while the program allocates "
            "(failed allocations, those of 0 bytes and frees of earlier ones do not count)"
        )
    device = open_device(chosen.device)
    with progress(f"replay {trace.name}", quiet=chosen.json) as tell:
        told = _play(trace, names, chosen, device, tell)
    played = {name: each for name, each in told.items() if not isinstance(each, Exception)}
    if not played:
        raise next(each for each in told.values() if isinstance(each, Exception))
    if chosen.json:
        where = {"device": device.filter, "kind": chosen.kind}
        rows = [{"resource": name, **where, **_numbers(each)} for name, each in told.items()]
        print_json(rows if chosen.compare else rows[0])
    else:
        _print(told, trace, f"{chosen.kind} memory of {device.filter}")
    if chosen.plot:
        _draw(played, chosen.plot)
    return 0


def _names(chosen: argparse.Namespace) -> tuple[str, ...]:
    """The names of the resources to use; ends the program if the options contradict each other."""
    name = chosen.resource or _RESOURCES[0]
    if chosen.compare:  # named ones come first: their errors are reported before much is replayed
        return tuple(dict.fromkeys((name, *_RESOURCES)))
    if chosen.growth is not None and name not in _POOLS:
        chosen.refuse(f"argument --growth: applies to {', '.join(_POOLS)}, not to {name}")
    return (name,)


def _play(
    trace: Trace, names: tuple[str, ...], chosen: argparse.Namespace, device: Device, tell: Progress
) -> dict[str, Replay | Exception]:
    """The result of each resource, or why there is none."""
    from isthmus.trace import replay

    told: dict[str, Replay | Exception] = {}
    for number, name in enumerate(names):
        tell(name, number / len(names))
        try:
            told[name] = replay(trace, make_resource(name, chosen.kind, device, chosen.growth))
        except (isthmus.Error, MemoryError) as fault:
            # Its frames would keep the resource, and with it memory that the next one needs.
            told[name] = fault.with_traceback(None)
    return told


def make_resource(name: str, kind: str, device: Device, growth: int | None) -> MemoryResource:
    """Creates a resource by its name in the command; ``growth`` in MiB, of pools."""
    from isthmus.memory import PoolResource, ProviderResource

    if ":" in name:
        return _resource_of_function(name, kind, device)
    if name == "provider":
        return ProviderResource(kind, device)
    growth_bytes = None if growth is None else growth << 20
    return PoolResource(
        kind,
        device,
        growth_bytes=growth_bytes,
        checked=name != "unchecked",
        remap=name != "unmoved",
    )


def _resource_of_function(name: str, kind: str, device: Device) -> MemoryResource:
    from isthmus.memory import MemoryResource

    make = _function(name)
    try:
        made = make(kind, device)
    except (isthmus.Error, OSError, MemoryError):
        raise
    except Exception as fault:  # anything that a user's function may raise
        raise ValueError(
            f"{name}, called with {kind!r} and the device, raised {type(fault).__name__}: {fault}"
        ) from fault
    if not isinstance(made, MemoryResource):
        raise ValueError(
            f"{name} returned a {type(made).__name__}, not a resource of isthmus.memory"
        )
    return made


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    sys.path.insert(0, "")  # `python -m` also looks in the working directory first
    try:
        found = getattr(importlib.import_module(module), function, None)
    finally:
        sys.path.remove("")
    if not callable(found):
        raise ValueError(f"module '{module}' has no function '{function}'")
    return found


def _numbers(told: Replay | Exception) -> dict[str, Any]:
    return {"error": str(told)} if isinstance(told, Exception) else told.as_dict()


def _print(told: dict[str, Replay | Exception], trace: Trace, where: str) -> None:
    queues = "1 queue" if trace.queues == 1 else f"{trace.queues} queues"
    title = f"{trace.name}: {len(trace.events):,} events, {queues}, {where}"
    columns = ("resource", *(f">{name}" for name in _NUMBERS))
    print_table(title, columns, [_cells(name, each) for name, each in told.items()])
    print_line()
    if trace.frees_before:
        frees = "1 free" if trace.frees_before == 1 else f"{trace.frees_before:,} frees"
        print_line(f"left out: {frees} of memory that was allocated before the trace begins")
    for name, each in told.items():
        if isinstance(each, Exception):
            print_line(f"{name}: {each}")
    print_line("ns: mean time of an event in a second replay without clock; p50, p99, max: of")
    print_line(
        "the first, event by event. requested, held: peak bytes; ratio: held over requested."
    )
    print_line("maps, unmaps: how often memory came from the driver, and was returned to it.")


def _cells(name: str, seen: Replay | Exception) -> list[str]:
    if isinstance(seen, Exception):
        why = "no memory" if isinstance(seen, MemoryError) else "refused"
        return [name, why, *[""] * (len(_NUMBERS) - 1)]
    told = seen.as_dict()
    return [
        name,
        *(f"{told[key]:,.0f}" for key in ("mean_ns", "p50_ns", "p99_ns", "max_ns")),
        bytes_text(told["peak_requested_bytes"]),
        bytes_text(told["peak_held_bytes"]),
        f"{told['ratio']:.3f}",
        f"{told['maps']:,}",
        f"{told['unmaps']:,}",
    ]


def _draw(played: dict[str, Replay], file: Path) -> None:
    """Draws the bytes requested and held, after each event."""
    from matplotlib import pyplot as plt

    first = next(iter(played.values()))
    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    events, requested = _highest(first.trace.requested)
    axes.fill_between(events, requested, alpha=0.4, label="requested")
    for (name, each), style in zip(played.items(), itertools.cycle(_STYLES), strict=False):
        events, held = _highest(each.held)
        label = f"held by {name}, {each.ratio:.3f} times at the peak"
        axes.plot(events, held, style, linewidth=1, label=label)
    axes.set(xlabel="event", ylabel="MiB", title=first.trace.name)
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _highest(nbytes: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """The event numbers and MiB to draw: the maximum of each stretch."""
    import numpy as np

    begins = np.arange(0, len(nbytes), -(-len(nbytes) // _MOST_POINTS))
    return begins, np.maximum.reduceat(nbytes, begins) / 2**20
