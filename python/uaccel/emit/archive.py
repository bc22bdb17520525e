"""The Model Library Format archive: one tar with everything, the same bytes for the same model."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from uaccel.basics.files import write_atomically
from uaccel.basics.mlf import ACCELERATORS, CODE, write_tar
from uaccel.basics.npz import write_npz
from uaccel.emit.generate import Generated
from uaccel.emit.headers import kernel_files
from uaccel.emit.metadata import metadata
from uaccel.emit.options import EmitOptions
from uaccel.lower.program import Engine, Program
from uaccel.memory.placement import Placement


def archive_files(
    program: Program, placement: Placement, generated: Generated, board: str, relax: str, options: EmitOptions
) -> dict[str, bytes]:
    """Path in the archive -> content."""
    files: dict[str, str] = {f"{CODE}/src/{name}": text for name, text in generated.sources.items()}
    files |= {f"{CODE}/src/{name}": text for name, text in generated.private_headers.items()}
    files |= {f"{CODE}/include/{name}": text for name, text in generated.public_headers.items()}
    files |= {f"{CODE}/include/{name}": text for name, text in kernel_files(generated.kernels).items()}
    files |= {f"templates/{name}": text for name, text in generated.description.items()}
    files[f"src/{program.name}.relax"] = relax
    document = metadata(program, placement, board, generated, options)
    document["uaccel"]["build"] = generated.build.hex()
    document["uaccel"]["model"]["file"] = next(iter(model_file(program)), None)
    files["metadata.json"] = json.dumps(document, indent=2) + "\n"
    encoded = {name: text.encode() for name, text in files.items()}
    encoded[f"parameters/{program.name}.npz"] = _parameters(generated)
    return encoded | model_file(program) | accelerator_files(program.engines)


def accelerator_files(engines: Sequence[Engine]) -> dict[str, bytes]:
    """Drivers, and the models of the devices for wherever there is no hardware."""
    return {
        f"{ACCELERATORS}/{engine.name}/{name}": path.read_bytes() for engine in engines for name, path in engine.files
    }


def model_file(program: Program) -> dict[str, bytes]:
    """The model as it was given, so that whoever has the archive can hold firmware against its exact meaning."""
    file = program.model.file
    return {} if file is None else {f"src/{program.name}{file.suffix}": file.data}


def _parameters(generated: Generated) -> bytes:
    """The constants as numpy reads them."""
    buffer = io.BytesIO()
    write_npz(buffer, {array.symbol: array.data for array in generated.arrays})
    return buffer.getvalue()


def write_archive(path: Path, files: dict[str, bytes], option: str = "-o") -> None:
    """The archive as a file; ``option`` is where a user chooses its place."""
    write_atomically(path, lambda stream: write_tar(stream, files), option)
