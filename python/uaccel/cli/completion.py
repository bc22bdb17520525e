"""Completes boards, accelerators, layers and ports in a shell. Nothing here loads TVM, which takes seconds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import typer

from uaccel.errors import UaccelError
from uaccel.util.files import accelerator_entries, accelerator_folders, data_dir
from uaccel.util.text import CPU


def _fitting(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def board_names(incomplete: str) -> list[str]:
    """Completes boards that come with uaccel; the shell itself completes board files."""
    return _fitting(sorted(file.stem for file in data_dir("boards").glob("*.toml")), incomplete)


def chip_names(incomplete: str) -> list[str]:
    """Completes chips for which a board file can be written."""
    from uaccel.board.chips import known_chips

    return _fitting(known_chips(), incomplete)


def accelerator_names(incomplete: str) -> list[str]:
    """Completes accelerators, bundled and installed ones."""
    return _fitting(sorted({*accelerator_folders(), *accelerator_entries()}), incomplete)


def ports_here(incomplete: str) -> list[str]:
    """Completes serial ports of this computer."""
    from serial.tools import list_ports

    return _fitting(sorted(str(info.device) for info in list_ports.comports()), incomplete)


def layer_and_engine(context: typer.Context, incomplete: str) -> list[str]:
    """Completes ``LAYER=ENGINE`` for the model on the command line."""
    engines = [CPU, *(Path(name).name for name in context.params.get("accelerator") or ())]
    models = [Path(word) for word in _line() if word.lower().endswith(".tflite")]
    return _fitting(
        (f"{layer}={engine}" for model in models[:1] for layer in _layers(model) for engine in engines), incomplete
    )


def _line() -> list[str]:
    """Returns the words so far, as Typer's scripts hand them over: one variable for bash, another for other shells.

    Click does not give positional words while an option still lacks its value."""
    text = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        return shlex.split(text)
    except ValueError:  # a quote is open
        return text.split()


def _layers(model: Path) -> list[str]:
    """Names the layers of a TFLite file, whose operators can be read quickly."""
    from uaccel.frontend.checks import Budget
    from uaccel.frontend.tflite.reader import read

    try:
        graph, _ = read(model, Budget(model))
    except UaccelError:
        return []
    return [f"{operator.name.lower()}_{number}" for number, operator in enumerate(graph.operators)]


# What completes a value, by what the help calls it.
COMPLETIONS: Final[Mapping[str | None, Callable[..., list[str]]]] = {
    "BOARD": board_names,
    "CHIP": chip_names,
    "LAYER=ENGINE": layer_and_engine,
    "NAME|PATH": accelerator_names,
    "PORT": ports_here,
}
