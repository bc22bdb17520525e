"""What a shell offers behind an option: boards, ports, accelerators, layers. Nothing here loads TVM."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import typer

from uaccel.errors import UaccelError
from uaccel.resources import accelerator_entries, accelerator_folders, data_dir

CPU = "cpu"


def board_names(incomplete: str) -> list[str]:
    """Of boards that come with uaccel; a board file of one's own is a file name, which the shell knows."""
    return [name for name in sorted(file.stem for file in data_dir("boards").glob("*.toml")) if _fits(name, incomplete)]


def chip_names(incomplete: str) -> list[str]:
    """Of chips that a board file can be written for."""
    from uaccel.board.chips import known_chips

    return [name for name in known_chips() if _fits(name, incomplete)]


def accelerator_names(incomplete: str) -> list[str]:
    """Bundled and installed ones."""
    return [name for name in sorted({*accelerator_folders(), *accelerator_entries()}) if _fits(name, incomplete)]


def ports_here(incomplete: str) -> list[str]:
    """Serial ports of this computer."""
    from serial.tools import list_ports

    return [port for port in sorted(str(info.device) for info in list_ports.comports()) if _fits(port, incomplete)]


def layer_and_engine(context: typer.Context, incomplete: str) -> list[str]:
    """``LAYER=ENGINE`` for the model that stands on the line."""
    engines = [CPU, *(Path(name).name for name in context.params.get("accelerator") or ())]
    models = [Path(word) for word in _line() if word.lower().endswith(".tflite")]
    offered = [f"{layer}={engine}" for model in models[:1] for layer in _layers(model) for engine in engines]
    return [words for words in offered if _fits(words, incomplete)]


def _line() -> list[str]:
    """The words so far, as Typer's scripts for bash, and for other shells, hand them over. Click gives no positional
    one where an option still lacks its value."""
    text = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    try:
        return shlex.split(text)
    except ValueError:  # a quote is open
        return text.split()


def _fits(word: str, incomplete: str) -> bool:
    return word.startswith(incomplete)


def _layers(model: Path) -> list[str]:
    """Of a TFLite file, whose operators are read in a moment."""
    from uaccel.frontend.budget import Budget
    from uaccel.frontend.tflite.reader import read

    try:
        graph, _ = read(model, Budget(model))
    except UaccelError:
        return []
    return [f"{operator.name.lower()}_{number}" for number, operator in enumerate(graph.operators)]
