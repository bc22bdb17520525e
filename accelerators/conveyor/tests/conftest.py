"""The accelerator's own modules, and its driver and device model as a program."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from uaccel.accelerator import Accelerator, load_accelerator

CONVEYOR = load_accelerator(str(Path(__file__).resolve().parents[1]))


def part(name: str) -> Any:
    """A module of the folder, as the accelerator itself imports it."""
    assert CONVEYOR.stream is not None
    package = CONVEYOR.stream.__module__.rpartition(".")[0]
    return importlib.import_module(f"{package}.{name}")


@pytest.fixture(scope="session")
def conveyor() -> Accelerator:
    return CONVEYOR


@pytest.fixture(scope="session")
def parts() -> SimpleNamespace:
    names = ("commands", "packed", "readable", "stream", "tests.machine")
    return SimpleNamespace(**{name.rpartition(".")[2]: part(name) for name in names})


@pytest.fixture(scope="session")
def machine(parts: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return parts.machine.Machine(tmp_path_factory.mktemp("conveyor"))


@pytest.fixture(scope="session")
def run(parts: SimpleNamespace, machine: Any) -> Any:
    """Lowers an example, plays it, and compares every output with what the module means."""

    def run(example: Any, inputs: Any) -> Any:
        files = parts.stream.lower_region(example.region).artefacts
        stream = parts.packed.unpack(files["stream.bin"])
        played = machine.play(stream.places, files["stream.bin"], files.get("constants.bin", b""), inputs)
        assert (played.status, played.failure) == (0, "")
        assert played.outputs == [output.tobytes() for output in example.expected(inputs)]
        assert (played.calls, played.cycles) == (len(stream.commands), stream.cycles)
        return stream

    return run
