"""Mutants of ONNX models, each compiled in a worker of its own: what may not happen, however wrong the file."""

from __future__ import annotations

import random
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from support.campaign import Result, run
from support.onnx_mutants import mutant
from uaccel.cli import app
from uaccel.errors import UaccelError
from uaccel.pipeline import compile_model

SECONDS = 60.0
MEGABYTES = 2048
PATIENCE = 4
"""Times the seconds by the clock, since other work may have the processor."""
STATUSES = (0, 1)


def seed_of(number: int, seeds: list[list[Any]]) -> Any:
    """One model for each number, of each group alike."""
    rng = random.Random(number)
    return rng.choice(rng.choice([group for group in seeds if group]))


def results(numbers: Iterable[int], seeds: list[list[Any]], folder: Path) -> Iterator[Result]:
    """How compiling each mutant ended; ``seeds`` in groups."""
    others = [model for group in seeds for model in group]
    path = folder / "mutant.onnx"

    def one(number: int) -> tuple[int, str]:
        path.write_bytes(mutant(seed_of(number, seeds), number, others))
        return compiled(path)

    return run(numbers, one, PATIENCE * SECONDS, 4 * MEGABYTES)


def compiled(path: Path) -> tuple[int, str]:
    """The exit status that the command line would give, and its line."""
    try:
        compile_model(path, board="host")
    except Exception as error:
        failure = app._describe(error)
        more = "" if isinstance(error, UaccelError) else traceback.format_exc()[-1500:]
        return failure.status, f"{failure.message}\n{more}" if more else failure.message
    return 0, ""


def fault(result: Result) -> str:
    """What is wrong with how a command ended; nothing where all is well."""
    if result.signal:
        return f"ended by signal {result.signal} ({result.words}) after {result.seconds:.0f} s"
    if result.status not in STATUSES:
        return f"exit status {result.status}: {result.words}"
    if result.status and (not result.words.strip() or "\n" in result.words):
        return f"no line that says what is wrong: {result.words!r}"
    if result.seconds > SECONDS or result.megabytes > MEGABYTES:
        return f"{result.seconds:.1f} s and {result.megabytes} MB"
    return ""
