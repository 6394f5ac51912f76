# SPDX-License-Identifier: Apache-2.0
"""Checks that no modules of the Python package import each other in a cycle.

check_module_cycles.py [ROOT]

Every import statement counts, also inside of a function, which only delays the import. Those for
type checkers do not count, nor do modules that importlib imports by their names. An import of
`isthmus.memory` depends on that module. It also runs the `__init__` of `isthmus`, which does not
count: a package would otherwise form a cycle with every module that its `__init__` imports.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from check_cycles import Graph, check

FOLDER = Path("python")


def modules_of(root: Path) -> dict[str, Path]:
    """The files of the modules by their names; that of a native module is its stub."""
    modules = {}
    for path in sorted((root / FOLDER / "isthmus").rglob("*")):
        if path.suffix not in {".py", ".pyi"}:
            continue
        parts = path.relative_to(root / FOLDER).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def executed_children(node: ast.AST) -> Iterator[ast.AST]:
    """The child nodes, without the body of `if TYPE_CHECKING:`."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        yield from node.orelse
    else:
        yield from ast.iter_child_nodes(node)


def import_statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in executed_children(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        else:
            yield from import_statements(child)


def imported_names(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """Names of modules, and of what is imported from a module, as one path each."""
    prefix = ""
    if isinstance(statement, ast.ImportFrom):
        parents = package.split(".")[: 1 - statement.level or None] if statement.level else []
        prefix = ".".join([*parents, *filter(None, [statement.module])]) + "."
    for name in statement.names:
        yield prefix + name.name


def imports(root: Path) -> Graph:
    """The modules of the package that each of its modules imports."""
    modules = modules_of(root)
    graph: Graph = {}
    for module, path in modules.items():
        if path.suffix != ".py":
            continue
        package = module if path.stem == "__init__" else module.rpartition(".")[0]
        names = {
            name
            for statement in import_statements(ast.parse(path.read_text()))
            for name in imported_names(statement, package)
        }
        # A name that is no module was imported from the module before the last dot.
        found = {name if name in modules else name.rpartition(".")[0] for name in names}
        graph[module] = found & modules.keys() - {module}
    return graph


if __name__ == "__main__":
    sys.exit(check(imports, "modules import"))
