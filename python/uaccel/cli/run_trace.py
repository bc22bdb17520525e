"""``uaccel run --trace FILE``: when the CPU and the engines of accelerators worked, for Perfetto."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from uaccel.basics.files import write_atomically

OPTION = "--trace"
TraceOption = Annotated[
    Path | None,
    typer.Option(
        OPTION, metavar="FILE.json", help="Write when the CPU and the accelerators' engines worked, for Perfetto."
    ),
]


def write_trace(path: Path, document: Mapping[str, Any]) -> None:
    def write(stream: IO[bytes]) -> None:
        stream.write((json.dumps(document, indent=1) + "\n").encode())

    write_atomically(path, write, OPTION)
