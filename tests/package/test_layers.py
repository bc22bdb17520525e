"""Dependencies inside the package run one way, in the order that pyproject.toml states."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "uaccel"


def layers() -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    section: dict[str, Any] = project["tool"]["uaccel"]["layers"]
    return section


def rank_of_modules(order: list[list[str]]) -> dict[str, int]:
    return {module: rank for rank, group in enumerate(order) for module in group}


def imports(tree: ast.AST, package: list[str], *, aliases: bool = False) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a file of a package imports, wherever in the file.

    With ``aliases`` every imported name is added to its module's, as it may be a module itself.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from uaccel import errors` names the module in the alias.
            whole = origin == "uaccel" or aliases
            names = [f"{origin}.{alias.name}" for alias in node.names] if whole else [origin]
            yield from ((node.lineno, name) for name in names)


def violations(source: str, path: str, rank: dict[str, int]) -> list[str]:
    """What a source file, at a path inside the package, imports against the rules."""
    found = []
    module = path.partition("/")[0].removesuffix(".py")
    package = ["uaccel", *path.split("/")[:-1]]
    for line, name in imports(ast.parse(source), package):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top in ("tvm", "tvm_ffi") and module != "tvm_api":
            found.append(f"{line}: {name} is imported by tvm_api alone; have it from there")
        if top == "uaccel" and target and rank.get(target, -1) > rank[module]:
            found.append(f"{line}: {module} imports {name}, which stands below it")
    return found


def sources() -> list[str]:
    """Every file of the package, as a path inside it."""
    return [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]


def modules() -> set[str]:
    """The names directly below ``uaccel``."""
    return {file.partition("/")[0].removesuffix(".py") for file in sources()}


def module_name(file: str) -> str:
    return ".".join(["uaccel", *file.removesuffix(".py").split("/")]).removesuffix(".__init__")


def graph_of(files: Mapping[str, str]) -> dict[str, set[str]]:
    """For each module, given as its path and source, the modules of the package that it imports."""
    known = {module_name(file) for file in files}
    folders = {name.rpartition(".")[0] for name in known}  # which need not be modules
    graph = {}
    for file, source in files.items():
        found = imports(ast.parse(source), ["uaccel", *file.split("/")[:-1]], aliases=True)
        names = {name if name in known | folders else name.rpartition(".")[0] for _, name in found}
        graph[module_name(file)] = (names & known) - {module_name(file)}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The modules from which a way of imports leads back to them: those that reach each other together."""
    reached = {module: reachable(graph, module) for module in graph}
    rings = {tuple(sorted(one for one in reached[module] if module in reached[one])) for module in graph}
    return sorted(list(ring) for ring in rings if ring)


def reachable(graph: Mapping[str, set[str]], module: str) -> set[str]:
    found: set[str] = set()
    left = [module]
    while left:
        fresh = graph[left.pop()] - found
        found |= fresh
        left += fresh
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(graph_of({file: (PACKAGE / file).read_text(encoding="utf-8") for file in sources()})) == []


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"a": "from uaccel.ops.b import x", "b": "import uaccel.errors"}, ""),
        ({"a": "from uaccel.ops.b import x", "b": "def f():\n    from . import a"}, "ab"),
        ({"a": "from . import b", "b": "from uaccel.ops import c", "c": "from .a import x"}, "abc"),
        ({"a": "from uaccel.ops import a_name", "__init__": "from uaccel.ops.b import x", "b": ""}, ""),
    ],
)
def test_the_search_sees_circles(files: dict[str, str], wanted: str) -> None:
    rings = [[f"uaccel.ops.{name}" for name in wanted]] if wanted else []
    assert circles(graph_of({f"ops/{name}.py": source for name, source in files.items()})) == rings


def test_every_module_has_its_place() -> None:
    placed = rank_of_modules(layers()["order"])
    assert len(placed) == sum(len(group) for group in layers()["order"]), "a module stands there twice"
    homeless = sorted(modules() - set(placed))
    assert homeless == [], "give them a place in [tool.uaccel.layers] of pyproject.toml"


def test_dependencies_run_one_way() -> None:
    rank = rank_of_modules(layers()["order"])
    found = [
        f"python/uaccel/{file}:{violation}"
        for file in sources()
        for violation in violations((PACKAGE / file).read_text(encoding="utf-8"), file, rank)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("from uaccel.errors import ModelError\nimport uaccel.version", []),
        ("from uaccel import errors", []),
        ("from uaccel.codegen.c import x", ["1: ops imports uaccel.codegen.c, which stands below it"]),
        ("from uaccel import cli", ["1: ops imports uaccel.cli, which stands below it"]),
        ("def f():\n    import uaccel.cli", ["2: ops imports uaccel.cli, which stands below it"]),
        ("import tvm.relax", ["1: tvm.relax is imported by tvm_api alone; have it from there"]),
        ("from tvm import tir", ["1: tvm is imported by tvm_api alone; have it from there"]),
        ("import tvmfoo", []),
        ("from . import base\nfrom .base import x", []),
        ("from .. import errors", []),
        ("from .. import cli", ["1: ops imports uaccel.cli, which stands below it"]),
        ("from ..codegen.c import x", ["1: ops imports uaccel.codegen.c, which stands below it"]),
    ],
)
def test_the_rules_see_what_breaks_them(source: str, wanted: list[str]) -> None:
    assert violations(source, "ops/conv.py", rank_of_modules(layers()["order"])) == wanted
