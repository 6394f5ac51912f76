"""``isthmus replay``: a recorded trace, played on a device; what it costs and what it holds."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .output import bytes_text, print_json, print_line, print_table, progress

if TYPE_CHECKING:
    import numpy as np

    from isthmus import Device
    from isthmus.memory import MemoryResource
    from isthmus.trace import Replay

_HELP = "plays recorded allocations: the time of each, memory held over memory requested"
_RESOURCES = ("pool", "unchecked", "unmoved", "provider")
_NUMBERS = ("ns", "p50", "p99", "max", "requested", "held", "ratio", "maps", "unmaps")
_STYLES = ("-", "--", "-.", ":")  # two resources may hold the same
_MOST_GROWTH = 1 << 28  # MiB: 256 TiB, what addresses reach
_MOST_POINTS = 4000  # of a line in a picture: more than it has dots


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    made = commands.add_parser("replay", help=_HELP, description=_HELP)
    made.add_argument(
        "trace", type=Path, help=".npz, a .csv log as RMM writes it, or a .pickle of PyTorch's"
    )
    made.add_argument("--device", default="", metavar="F", help="filter; default: the best device")
    made.add_argument("--kind", choices=("device", "shared", "host"), default="device")
    which = made.add_mutually_exclusive_group()
    which.add_argument(
        "--resource",
        type=_known_resource,
        metavar="R",
        help=f"{', '.join(_RESOURCES)}, or MODULE:FUNCTION, a function of the kind and the device "
        "that returns one; default: pool",
    )
    which.add_argument("--compare", action="store_true", help="all resources, one after the other")
    made.add_argument("--growth", type=_growth, metavar="MIB", help="a pool's growth_bytes, in MiB")
    made.add_argument("--plot", type=Path, metavar="FILE", help="a picture of both sizes over time")
    made.add_argument("--json", action="store_true", help="one object; a list with --compare")
    made.set_defaults(run=run)


def _known_resource(name: str) -> str:
    module, _, function = name.partition(":")
    if name not in _RESOURCES and not (module and function):
        known = ", ".join(_RESOURCES)
        raise argparse.ArgumentTypeError(f"'{name}' is none of {known}, and no MODULE:FUNCTION")
    return name


def _growth(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_GROWTH:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of MiB from 1 to {_MOST_GROWTH}")
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """Plays, then prints all at once, then draws."""
    from isthmus.testing import open_device
    from isthmus.trace import TraceError, load, replay

    if chosen.plot:
        import matplotlib as mpl  # what lacks is told before anything is played

        mpl.use("Agg")
    trace = load(chosen.trace)
    if not len(trace.events):
        raise TraceError(
            f"{chosen.trace}: there is no event in it to play: record while the program allocates "
            "(failed allocations, those of 0 bytes and frees of what came before do not count)"
        )
    device = open_device(chosen.device)
    names = _RESOURCES if chosen.compare else (chosen.resource or _RESOURCES[0],)
    played: dict[str, Replay] = {}
    with progress(f"replay {trace.name}", quiet=chosen.json) as tell:
        for number, name in enumerate(names):
            tell(name, number / len(names))
            played[name] = replay(trace, make_resource(name, chosen.kind, device, chosen.growth))
    if chosen.json:
        where = {"device": device.filter, "kind": chosen.kind}
        told = [{"resource": name, **where, **each.as_dict()} for name, each in played.items()]
        print_json(told if chosen.compare else told[0])
    else:
        _print(played, device.filter, chosen.kind)
    if chosen.plot:
        _draw(played, chosen.plot)
    return 0


def make_resource(name: str, kind: str, device: Device, growth: int | None) -> MemoryResource:
    """A new resource by the name that the command has for it; ``growth`` in MiB, of pools."""
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

    module, _, function = name.partition(":")
    sys.path.insert(0, "")  # as `python -m` looks in the working directory first
    try:
        make = getattr(importlib.import_module(module), function, None)
    finally:
        sys.path.remove("")
    if not callable(make):
        raise ValueError(f"module '{module}' has no function '{function}'")
    made = make(kind, device)
    if not isinstance(made, MemoryResource):
        raise ValueError(f"{name} returned a {type(made).__name__}, not a MemoryResource")
    return made


def _print(played: dict[str, Replay], device: str, kind: str) -> None:
    first = next(iter(played.values()))
    queues = "1 queue" if first.trace.queues == 1 else f"{first.trace.queues} queues"
    title = f"{first.trace.name}: {len(first.ns):,} events, {queues}, "
    rows = [_cells(name, each.as_dict()) for name, each in played.items()]
    columns = ("resource", *(f">{name}" for name in _NUMBERS))
    print_table(f"{title}{kind} memory of {device}", columns, rows)
    print_line()
    print_line("ns: of an event, the mean of a second play with no clock in it; p50, p99, max: of")
    print_line(
        "the first, event by event. requested, held: bytes at their peak; ratio: of the two."
    )
    print_line("maps, unmaps: how often the driver gave memory, and got some back.")


def _cells(name: str, told: dict[str, Any]) -> list[str]:
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
    """Bytes requested and held, after each event."""
    from matplotlib import pyplot as plt

    first = next(iter(played.values()))
    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    events, requested = _highest(first.trace.requested)
    axes.fill_between(events, requested, alpha=0.4, label="requested")
    for (name, each), style in zip(played.items(), _STYLES, strict=False):
        events, held = _highest(each.held)
        label = f"held by {name}, {each.ratio:.3f} times at the peak"
        axes.plot(events, held, style, linewidth=1, label=label)
    axes.set(xlabel="event", ylabel="MiB", title=first.trace.name)
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def _highest(nbytes: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Numbers of events and MiB to draw, the highest of each stretch."""
    import numpy as np

    begins = np.arange(0, len(nbytes), -(-len(nbytes) // _MOST_POINTS))
    return begins, np.maximum.reduceat(nbytes, begins) / 2**20
