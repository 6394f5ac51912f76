# SPDX-License-Identifier: Apache-2.0
"""``isthmus info``: platforms and devices, their capabilities, and missing drivers with the
reasons.
"""

from __future__ import annotations

import os
import platform as host_platform
from typing import TYPE_CHECKING, Any

import isthmus
from isthmus import _core

from .output import bytes_text, print_fact, print_json, print_line, print_table

if TYPE_CHECKING:
    import argparse

    from isthmus._kinds import Kind

_HELP = "platforms, devices, kinds, limits, memory, and missing drivers with the reasons"
# Instructions to install a driver that was not found.
_REMEDIES = {
    "cuda": "NVIDIA's driver contains it",
    "opencl": "pip install 'isthmus[opencl]' installs Intel's driver for processors",
    "sycl": "pip install dpctl installs it",
}
_NO_LIBRARY = "cannot open shared object file"  # in the reason of the system's loader
_VARIABLES = (
    "ISTHMUS_DEVICE",
    "ISTHMUS_SIM",
    "ISTHMUS_STRICT",
    "ISTHMUS_TRACKING",
    "ISTHMUS_OPENCL_LIBRARY",
    "OCL_ICD_FILENAMES",
)


def add_to(commands: Any) -> None:
    """Adds the command to the parser's subcommands."""
    command = commands.add_parser("info", help=_HELP, description=_HELP)
    command.add_argument(
        "-v", "--verbose", action="store_true", help="limits, libraries, capabilities, variables"
    )
    command.add_argument("--json", action="store_true", help="everything, as one JSON document")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the requested information."""
    info = gather()
    if args.json:
        print_json(info)
        return 0
    print_line(f"Isthmus {info['version']}, Python {info['python']}")
    _print_devices(info["platforms"], info["default"])
    _print_resources(info["platforms"])
    _print_missing(info)
    if args.verbose:
        _print_details(info)
    return 0


def gather() -> dict[str, Any]:
    """All information, in the form of the JSON output."""
    return {
        "version": isthmus.__version__,
        "python": host_platform.python_version(),
        "library": isthmus.get_library(),
        "default": isthmus.current_device().filter,
        "platforms": [_platform(each) for each in isthmus.platforms()],
        "absent": [{"backend": name, "reason": reason} for name, reason in isthmus.absent()],
        "tracking": _tracking(),
        "environment": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def _tracking() -> dict[str, Any]:
    """The mechanism that detects host writes to unified buffers; the reason is "" for page
    tracking.
    """
    means, granule, reason = _core._tracking_in_force()
    return {"means": means, "granule": granule, "reason": reason}


def _platform(platform: isthmus.Platform) -> dict[str, Any]:
    return {
        "backend": platform.backend,
        "name": platform.name,
        "vendor": platform.vendor,
        "version": platform.version,
        "library": platform.library,
        "devices": [_device(each) for each in platform.devices],
    }


def _device(device: isthmus.Device) -> dict[str, Any]:
    free, total = _memory(device)
    return {
        "filter": device.filter,
        "name": device.name,
        "vendor": device.vendor,
        "type": device.type,
        "driver_version": device.driver_version,
        "kinds": list(device.kinds),
        "capabilities": sorted(device.capabilities),
        "compute_units": device.compute_units,
        "copy_engines": device.copy_engines,
        "memory": {"free": free, "total": total},
        "max_allocation": device.max_allocation,
        "base_alignment": device.base_alignment,
        "max_alignment": device.max_alignment,
        "limitations": device.limitations,
        "resources": {kind: _resources(device, kind) for kind in device.kinds},
    }


def _resources(device: isthmus.Device, kind: Kind) -> dict[str, Any]:
    """What serves requests without a resource: the class of the current resource, None unless one
    was set, and the uses of each default pool. Opens the device only if a resource was set.
    """
    current = isthmus.current_resource(kind, device) if _core._resources_in_use() else None
    # As default_pool documents: memory that moves cannot be shared with other processes.
    is_divided = kind != "shared" and {"ipc", "remap"} <= set(device.capabilities)
    return {
        "current": None if current is None else type(current).__name__,
        "default_pools": [["arrays"], ["buffers"]] if is_divided else [["arrays", "buffers"]],
    }


def _memory(device: isthmus.Device) -> tuple[int | None, int]:
    """Free and total memory; the free memory is None if the driver does not report it."""
    try:
        return device.memory_info()
    except isthmus.UnsupportedError:
        return None, device.total_memory


def _print_devices(platforms: list[dict[str, Any]], default: str) -> None:
    columns = ("device", "name", "kinds", ">free", ">of", ">largest", ">copies")
    rows = []
    for device in (each for platform in platforms for each in platform["devices"]):
        free, total = device["memory"]["free"], device["memory"]["total"]
        rows.append(
            (
                device["filter"] + (" *" if device["filter"] == default else ""),
                device["name"].strip(),
                ", ".join(device["kinds"]) or "none",
                "unknown" if free is None else bytes_text(free),
                bytes_text(total),
                bytes_text(device["max_allocation"]),
                str(device["copy_engines"]),
            )
        )
    print_table("devices", columns, rows)
    print_line()
    print_line("* the default; ISTHMUS_DEVICE, or `with isthmus.Device(...)`, chooses another")
    print_line("largest: the largest allocation; copies: the number of copy engines")


def _print_resources(platforms: list[dict[str, Any]]) -> None:
    rows = [
        (device["filter"], ", ".join(kinds), current, pools)
        for device in (each for platform in platforms for each in platform["devices"])
        for (current, pools), kinds in _served(device["resources"]).items()
    ]
    columns = ("device", "kinds", "current resource", "default pools")
    print_table("memory without a resource", columns, rows)
    print_line()
    print_line("set_resource and using select the current resource; default_pool returns a pool")


def _served(resources: dict[str, dict[str, Any]]) -> dict[tuple[str, str], list[str]]:
    """The kinds with the same current resource and the same default pools."""
    served: dict[tuple[str, str], list[str]] = {}
    for kind, resource in resources.items():
        uses = (" and ".join(pool) for pool in resource["default_pools"])
        pools = ", ".join(f"one for {each}" for each in uses)
        served.setdefault((resource["current"] or "default pool", pools), []).append(kind)
    return served


def _print_missing(info: dict[str, Any]) -> None:
    for platform in info["platforms"]:
        for device in platform["devices"]:
            if device["limitations"]:
                print_line(f"{device['filter']} has limitations: {device['limitations']}")
    for absent in info["absent"]:
        print_line(_absence(absent["backend"], absent["reason"]), "dim")


def _absence(backend: str, reason: str) -> str:
    if _NO_LIBRARY not in reason:
        return f"not in use: {backend}: {reason}"
    remedy = _REMEDIES.get(backend)
    return f"not installed: {backend}: {reason}" + (f"; {remedy}" if remedy else "")


def _print_details(info: dict[str, Any]) -> None:
    print_line()
    print_line(f"library: {info['library']}")
    print_line(f"tracking: {_tracking_text(**info['tracking'])}")
    for name, value in info["environment"].items():
        print_line(f"{name}={value}")
    for platform in info["platforms"]:
        _print_platform(platform)


def _tracking_text(means: str, granule: int, reason: str) -> str:
    text = f"{means}, with a granularity of {bytes_text(granule)}"
    return f"{text}: {reason}" if reason else text


def _print_platform(platform: dict[str, Any]) -> None:
    print_line()
    print_line(f"{platform['backend']}: {platform['name']}", "bold")
    for key in ("vendor", "version", "library"):
        if platform[key]:
            print_fact(f"  {key:<15} ", platform[key])
    for device in platform["devices"]:
        print_line(f"  {device['filter']}", "bold")
        for key, value in _facts(device):
            print_fact(f"    {key:<15} ", value)


def _facts(device: dict[str, Any]) -> list[tuple[str, str]]:
    largest = device["max_alignment"]
    return [
        ("name", device["name"].strip()),
        ("type", f"{device['type']} of {device['vendor']}"),
        ("driver", device["driver_version"]),
        ("compute units", str(device["compute_units"])),
        ("copy engines", str(device["copy_engines"])),
        ("alignment", f"{bytes_text(device['base_alignment'])}, at most {bytes_text(largest)}"),
        ("allocation", f"at most {bytes_text(device['max_allocation'])}"),
        ("capabilities", ", ".join(device["capabilities"])),
        ("limitations", device["limitations"] or "nothing"),
    ]
