"""Modules that load neither TVM nor numpy stay so: commands start fast, and a bench needs no compiler.

``without_tvm`` and ``without_numpy`` of ``[tool.uaccel.layers]`` list them: ``cli`` stands for the module and all below
it, ``lab.__init__`` for a package's own module alone.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import accumulate

import pytest

from package.test_layers import PACKAGE, layers, module_name, reachable, sources

HEAVY = ("tvm", "numpy")


def when_loaded(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is loaded: those in functions, or for types alone, do not."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If):
            for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            yield from when_loaded(node.orelse if for_types else node.body + node.orelse)
        elif isinstance(node, ast.Try):
            yield from when_loaded([*node.body, *node.orelse, *(one for each in node.handlers for one in each.body)])
        elif isinstance(node, (ast.With, ast.ClassDef)):
            yield from when_loaded(node.body)


def names_of(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]


def with_parents(name: str) -> list[str]:
    """A module, and the packages around it, which are loaded before it."""
    return list(accumulate(name.split("."), "{}.{}".format))


def load_graph() -> dict[str, set[str]]:
    """For each module of uaccel, what it loads when it is loaded itself; of the world outside, only what is heavy."""
    texts = {module_name(file): (PACKAGE / file).read_text(encoding="utf-8") for file in sources()}
    known = {*texts, *HEAVY}
    graph: dict[str, set[str]] = {name: set() for name in HEAVY}
    for module, text in texts.items():
        named = [name for node in when_loaded(ast.parse(text).body) for name in names_of(node)]
        graph[module] = {one for name in [*named, module] for one in with_parents(name)} & known - {module}
    return graph


def listed(prefixes: list[str], modules: set[str]) -> set[str]:
    found: set[str] = set()
    for prefix in prefixes:
        alone = f"uaccel.{prefix}".removesuffix(".__init__")
        under = {one for one in modules if one.startswith(f"{alone}.")} if not prefix.endswith("__init__") else set()
        assert alone in modules or under, f"{prefix}: there is no such module"
        found |= {alone, *under} & modules
    return found


@pytest.mark.parametrize("key", ["without_tvm", "without_numpy"])
def test_the_list_is_complete(key: str) -> None:
    """By the statements of all modules: one that became light goes onto the list, so that it stays so."""
    avoided = HEAVY[:1] if key == "without_tvm" else HEAVY
    graph = load_graph()
    modules = set(graph) - set(HEAVY)
    light = {module for module in modules if not reachable(graph, module) & set(avoided)}
    wanted = listed(layers()[key], modules)
    assert (sorted(wanted - light), sorted(light - wanted)) == ([], []), "too heavy for its list; not on it"


def test_they_load_what_the_list_says() -> None:
    """By loading them all, those without numpy first."""
    modules = {module_name(file) for file in sources()}
    begins_at_once = {"uaccel.__main__"}
    plain = listed(layers()["without_numpy"], modules) - begins_at_once
    light = listed(layers()["without_tvm"], modules) - begins_at_once
    assert plain <= light
    program = f"""
        import importlib, sys
        for names, heavy in (({sorted(plain)!r}, {HEAVY!r}), ({sorted(light)!r}, {HEAVY[:1]!r})):
            for name in names:
                importlib.import_module(name)
                assert not set(heavy) & set(sys.modules), name
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("import numpy as np", {"numpy"}),
        ("def f():\n    import numpy", set()),
        ("if TYPE_CHECKING:\n    import numpy\nelse:\n    import tvm", {"tvm"}),
        ("try:\n    import tvm\nexcept ImportError:\n    import numpy", {"tvm", "numpy"}),
        ("from numpy import typing", {"numpy", "numpy.typing"}),
    ],
)
def test_the_reader_of_imports(text: str, wanted: set[str]) -> None:
    assert {name for node in when_loaded(ast.parse(text).body) for name in names_of(node)} == wanted
