"""Dependencies inside the package run one way, in the order that pyproject.toml states."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
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


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a file imports, wherever in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            # `from uaccel import errors` names the module in the alias.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((node.lineno, name) for name in (names if node.module == "uaccel" else [node.module]))


def violations(source: str, module: str, rank: dict[str, int]) -> list[str]:
    """What a source file of a top-level module imports against the rules."""
    found = []
    for line, name in imports(ast.parse(source)):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if top in ("tvm", "tvm_ffi") and module != "tvm_api":
            found.append(f"{line}: {name} is imported by tvm_api alone; have it from there")
        if top == "uaccel" and target and rank.get(target, -1) > rank[module]:
            found.append(f"{line}: {module} imports {name}, which stands below it")
    return found


def sources() -> list[tuple[str, Path]]:
    """Every file of the package with the top-level module it belongs to."""
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path != PACKAGE / "__init__.py"]
    return [(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path) for path in files]


def test_every_module_has_its_place() -> None:
    placed = rank_of_modules(layers()["order"])
    homeless = sorted({module for module, _ in sources()} - set(placed))
    assert homeless == [], "give them a place in [tool.uaccel.layers] of pyproject.toml"


def test_dependencies_run_one_way() -> None:
    rank = rank_of_modules(layers()["order"])
    found = [
        f"{path.relative_to(ROOT)}:{violation}"
        for module, path in sources()
        for violation in violations(path.read_text(encoding="utf-8"), module, rank)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("from uaccel.errors import ModelError\nimport uaccel.version", []),
        ("from uaccel import errors", []),
        ("from uaccel.emit.c import x", ["1: ops imports uaccel.emit.c, which stands below it"]),
        ("from uaccel import cli", ["1: ops imports uaccel.cli, which stands below it"]),
        ("def f():\n    import uaccel.cli", ["2: ops imports uaccel.cli, which stands below it"]),
        ("import tvm.relax", ["1: tvm.relax is imported by tvm_api alone; have it from there"]),
        ("from tvm import tir", ["1: tvm is imported by tvm_api alone; have it from there"]),
        ("import tvmfoo", []),
    ],
)
def test_the_rules_see_what_breaks_them(source: str, wanted: list[str]) -> None:
    assert violations(source, "ops", rank_of_modules(layers()["order"])) == wanted


def test_what_needs_no_tvm_loads_none() -> None:
    placed = {module for module, _ in sources()}
    light = [module for module in layers()["without_tvm"] if module in placed]
    assert {"board", "cli", "toolchain"} <= set(light)
    program = f"""
        import importlib, sys
        for module in {light!r}:
            importlib.import_module("uaccel." + module)
            assert "tvm" not in sys.modules, module
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr.splitlines()[-1]
