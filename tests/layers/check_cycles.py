# SPDX-License-Identifier: Apache-2.0
"""Checks that no units include each other in a cycle.

check_cycles.py [ROOT]

A unit is a source file together with the header of the same name, below src/ or python/src/. Each
header of include/isthmus/ is a unit of its own.
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from check_layers import INCLUDE, SOURCES, files, resolve

ROOTS = {"src": "", "python/src": "python/"}
PUBLIC = Path("include")
Graph = dict[str, set[str]]


def unit_of(path: Path) -> str | None:
    """The path below ROOTS without suffix, as "memory/pool/pool", or the path below PUBLIC, as
    "isthmus/buffer.hpp"; None for other files.
    """
    if path.is_relative_to(PUBLIC):
        return path.relative_to(PUBLIC).as_posix()
    for folder, prefix in ROOTS.items():
        if path.is_relative_to(folder):
            return prefix + path.relative_to(folder).with_suffix("").as_posix()
    return None


def includes(root: Path) -> Graph:
    """The units that each unit includes."""
    graph: Graph = defaultdict(set)
    for path in files(root):
        unit = unit_of(path)
        if unit is None or path.suffix not in SOURCES:
            continue
        for name in INCLUDE.finditer((root / path).read_text()):
            public = PUBLIC / name[2]
            target = public if (root / public).is_file() else resolve(root, path, name[2])
            included = unit_of(target) if target else None
            if included:
                graph[unit] |= {included} - {unit}
    return graph


def reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for unit in graph.get(waiting.pop(), set()) - seen:
            seen.add(unit)
            waiting.append(unit)
    return seen


def cycles_of(graph: Graph) -> set[frozenset[str]]:
    """The largest sets of units that all include each other, directly or not."""
    reached = {unit: reachable(graph, unit) for unit in graph}
    in_cycle = [unit for unit in graph if unit in reached[unit]]
    return {
        frozenset(other for other in in_cycle if other in reached[unit] and unit in reached[other])
        for unit in in_cycle
    }


def check(find_graph: Callable[[Path], Graph], action: str) -> int:
    """Prints the cycles of the graph of the root that the command line names, by default this one.
    Returns the exit status. `action`: "units include", say.
    """
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    graph = find_graph(root)
    cycles = cycles_of(graph)
    for cycle in sorted(map(sorted, cycles)):
        print(f"these {action} each other in a cycle: " + " ".join(cycle))
    if graph and not cycles:
        print(f"{len(graph)} {action} each other in no cycle")
    return 0 if graph and not cycles else 1


if __name__ == "__main__":
    sys.exit(check(includes, "units include"))
