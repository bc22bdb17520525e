"""What accelerators import of uaccel is public, and what is public says what it is."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

import uaccel
from package.test_layers import imports
from uaccel.build.board_json import SIMULATED_BOARD
from uaccel.frontend.torch.isolated import WORKER

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTIONS = ("uaccel.accelerator", "uaccel.streams")
TESTS = (*DESCRIPTIONS, "uaccel", "uaccel.testing")
FOLDERS = ("accelerators", "accelerator_template", "examples/library-call", "examples/stream-machine")


def foreign(source: str, public: tuple[str, ...]) -> list[str]:
    """What a file imports of uaccel besides."""
    return [
        f"{line}: {name}"
        for line, name in imports(ast.parse(source), [])
        if name.partition(".")[0] == "uaccel" and name not in public
    ]


def test_accelerators_import_what_is_public() -> None:
    found = {}
    for path in [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py")]:
        wrong = foreign(path.read_text(encoding="utf-8"), TESTS if "tests" in path.parts else DESCRIPTIONS)
        if wrong:
            found[str(path.relative_to(ROOT))] = wrong
    assert found == {}


def test_those_without_streams_of_the_planner_need_one_module() -> None:
    for name in ("vanilla", "nuc_fpga", "matrix8"):
        for path in ROOT.glob(f"accelerators/{name}/*.py"):
            assert foreign(path.read_text(encoding="utf-8"), DESCRIPTIONS[:1]) == [], path


def test_the_rule_sees_what_breaks_it() -> None:
    source = (
        "from uaccel.accelerator import Region\nfrom uaccel.accelerator.region import region_of\nimport uaccel.ops\n"
    )
    assert foreign(source, DESCRIPTIONS) == ["2: uaccel.accelerator.region", "3: uaccel.ops"]


@pytest.mark.parametrize("module", ["uaccel.accelerator", "uaccel.testing"])
def test_public_names_are_there_and_documented(module: str) -> None:
    """Each in the module's own text, and each with a word of its own where it can have one."""
    public = importlib.import_module(module)
    for name in public.__all__:
        value = getattr(public, name)
        assert f"`{name}`" in (public.__doc__ or ""), name
        assert value.__doc__, name


def test_no_public_name_is_a_module() -> None:
    """Importing ``uaccel.run`` as a module would put it in the place of the function."""
    assert {name for name in uaccel.__all__ if importlib.util.find_spec(f"uaccel.{name}")} == set()


@pytest.mark.parametrize("module", [SIMULATED_BOARD, WORKER])
def test_modules_that_are_named_in_text_can_be_run(module: str) -> None:
    """The first stands in projects on users' disks, the second in the words of a Python process."""
    assert callable(importlib.import_module(module).main)


def test_what_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^module 'uaccel.testing' has no attribute 'nothing'$"):
        importlib.import_module("uaccel.testing").nothing  # noqa: B018
