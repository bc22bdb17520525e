"""Files from strangers, each kind damaged at the structure that it has, and what reads them."""

from __future__ import annotations

import io
import json
import random
import tarfile
import traceback
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import tomllib

from fuzz.flatbuffer_mutants import mutant as flatbuffer
from support.device.board_files import EMULATED, HOST, REAL
from support.hostile.campaign import Result, run
from support.hostile.json_mutants import ANY_VALUES, change, places
from support.models.networks import OWN
from uaccel.accelerator.description import Accelerator, Operation
from uaccel.accelerator.discovery import from_folder
from uaccel.board import load_board
from uaccel.build.archive_reader import read_metadata
from uaccel.build.project import create_project
from uaccel.build.project_api import ProjectServer, ServerLimits, option_values
from uaccel.cli import app
from uaccel.errors import UaccelError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of
from uaccel.session.tensors import TensorType, load_inputs
from uaccel.util.files import read_tar, write_tar

SECONDS, MEGABYTES, LONGEST_LINE = 60.0, 2048, 4000


@dataclass(frozen=True)
class Kind:
    """``make`` writes the mutant of that number, ``take`` reads it; a seed that is not changed is taken."""

    name: str
    file: str
    make: Callable[[random.Random], bytes]
    take: Callable[[Path], object]
    most: int
    """Mutants of the longest test."""
    needs: str = ""
    """A package without which there are no seeds."""
    slow: bool = False
    """Its seeds take seconds to load."""

    def __str__(self) -> str:
        return self.name


def tflite(rng: random.Random) -> bytes:
    names = ("gesture", "residual", "branches", "int16", "stream", "mixed")
    return flatbuffer((OWN / f"{rng.choice(names)}.tflite").read_bytes(), rng)


def document(value: Any, rng: random.Random) -> Any:
    """With one to three changes."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice((1, 1, 2, 3))):
        if known := list(places(value)):
            change(*rng.choice(known), known, rng)
    return value


def board(rng: random.Random) -> bytes:
    text = rng.choice((EMULATED, HOST, REAL))
    if rng.random() < 0.2:
        return damaged(text.encode(), rng)
    return "".join(
        f"{_key(name)} = {_toml(value)}\n" for name, value in document(tomllib.loads(text), rng).items()
    ).encode()


def _key(name: str) -> str:
    return json.dumps(name)


def _toml(value: Any) -> str:
    """In one line; TOML has no null, so that its place is empty and the file is none."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return "" if value is None else json.dumps(value)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Some bytes flipped, cut out, doubled or of another place."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at, length = rng.randrange(len(changed)), rng.choice((1, 2, 4, 8, 64, 512))
        way = rng.randrange(4)
        if way == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif way == 1 and len(changed) > 2 * length:
            del changed[at : at + length]
        elif way == 2:
            changed[at:at] = changed[at : at + length]
        else:
            changed[at : at + length] = rng.choice((b"\0", b"\xff")) * length
    return bytes(changed)


@cache
def _archive() -> dict[str, bytes]:
    return dict(archive_of(compile_model(OWN / "gesture.tflite", board="host")))


def archive(rng: random.Random) -> bytes:
    """Another description of itself, other members, other headers."""
    files, way = dict(_archive()), rng.randrange(3)
    if way == 0:
        files["metadata.json"] = json.dumps(document(json.loads(files["metadata.json"]), rng)).encode()
    stream = io.BytesIO()
    write_tar(stream, files)
    data = stream.getvalue()
    if way == 1:
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            header = rng.choice(tar.getmembers()).offset
        return data[:header] + damaged(data[header : header + 512], rng)[:512].ljust(512, b"\0") + data[header + 512 :]
    return damaged(data, rng) if way == 2 else data


def take_archive(path: Path) -> None:
    read_metadata(path)
    with path.open("rb") as stream:
        files = read_tar(stream)
    create_project(files, load_board("host"), path.parent / f"project-{path.stat().st_mtime_ns}")


WANTED = [TensorType("a", (1, 4, 3), "int8"), TensorType("b", (1, 2), "float32")]


def npz(rng: random.Random) -> bytes:
    kinds: tuple[Any, ...] = (np.int8, np.float32, np.int64, "U3", bool, np.complex64, "M8[s]", [("x", "i4")])
    first = rng.choice(((1, 4, 3), (3, 4, 3), (1, 4, 3), (4,), (0, 4, 3)))
    name = rng.choice(("b",) * 12 + ("c", "../b", "b\0", ""))
    types = [rng.choice((*[usual] * 4, rng.choice(kinds))) for usual in (np.int8, np.float32)]
    arrays = {"a": np.zeros(first, types[0]), name: np.ones((rng.choice((1, 1, 3)), 2), types[1])}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, array in arrays.items():
            entry = io.BytesIO()
            np.lib.format.write_array(entry, array, allow_pickle=False)
            data = entry.getvalue()
            archive.writestr(f"{name}.npy", damaged(data, rng) if rng.random() < 0.2 else data)
    data = stream.getvalue()
    return damaged(data, rng) if rng.random() < 0.2 else data


REPLY = {
    "platform_name": "uaccel",
    "is_template": False,
    "model_library_format_path": "model.tar",
    "protocol_version": 1,
    "project_options": [
        {"name": "port", "type": "str", "optional": ["open_transport"], "help": "Where it is.", "default": None},
        {"name": "observe", "type": "bool", "optional": ["build"], "default": False, "choices": [True, False]},
        {"name": "level", "type": "int", "required": ["build"], "default": 3, "choices": [1, 2, 3], "help": "Which."},
    ],
}


def options(rng: random.Random) -> bytes:
    """What a server says of itself, and options that a user gives."""
    given = {rng.choice(("port", "observe", "level", "levle")): rng.choice(("1", "yes", "3", "x", "", None, 1, True))}
    return json.dumps([document(REPLY, rng), given]).encode()


class Silent:
    """In place of a server's process."""

    where = "the server"

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    def exchange(self, request: Any, limit: float) -> Any:
        return {"jsonrpc": "2.0", "id": request["id"], "result": self._reply}

    def kill(self) -> None:
        """There is none."""

    def words(self) -> str:
        return ""


def take_options(path: Path) -> None:
    reply, given = json.loads(path.read_bytes())
    server = ProjectServer.__new__(ProjectServer)
    vars(server).update(folder=path.parent, _process=Silent(reply), _given=given, _limits=ServerLimits(), _next=1)
    option_values("the server", "build", server._query().project_options, given)


ACCELERATOR = """from uaccel.accelerator import Accelerator, Operation, pattern
operation = dict(name="relu", pattern=pattern("relax.nn.relu"), lower=lambda region: [])
device = dict(name="device", description="a device", operations=[Operation(**operation | {!r})], headers=['device.h'])
ACCELERATOR = Accelerator(**device | {!r})
"""


def accelerator(rng: random.Random) -> bytes:
    """Another value in one or two fields."""
    kinds = (Accelerator, Operation, Accelerator)
    changed: list[dict[str, Any]] = [{}, {}]
    for kind in rng.sample(kinds, rng.choice((1, 1, 2))):
        changed[kind is Accelerator][rng.choice(fields(kind)).name] = rng.choice(ANY_VALUES)
    return ACCELERATOR.format(*changed).encode()


def take_accelerator(path: Path) -> None:
    for folder in ("driver", "device"):
        (path.parent / folder).mkdir(exist_ok=True)
        (path.parent / folder / "device.c").touch()
    (path.parent / "driver" / "device.h").touch()
    from_folder(path.parent)


@cache
def _networks() -> list[list[Any]]:
    from fuzz.onnx_seeds import own, quantised_networks

    return [own(), quantised_networks()]


@cache
def _operators() -> list[list[Any]]:
    from fuzz.onnx_seeds import official

    return [*_networks(), official()]


def onnx(groups: list[list[Any]], rng: random.Random) -> bytes:
    """Of a model of any group alike; the others lend it their parts."""
    from support.hostile.onnx_mutants import mutant

    return mutant(rng.choice(rng.choice(groups)), rng.getrandbits(32), [model for group in groups for model in group])


def take_model(path: Path) -> None:
    compile_model(path, board="host")


KINDS: Final = (
    Kind("TFLite", "mutant.tflite", tflite, take_model, 3_000),
    Kind("ONNX", "mutant.onnx", lambda rng: onnx(_networks(), rng), take_model, 3_000, "onnx"),
    Kind("ONNX of operators", "mutant.onnx", lambda rng: onnx(_operators(), rng), take_model, 7_000, "onnx", slow=True),
    Kind("board files", "mutant.toml", board, load_board, 2_000),
    Kind("archives", "mutant.tar", archive, take_archive, 1_500),
    Kind("arrays", "mutant.npz", npz, lambda path: load_inputs(path, WANTED), 1_500),
    Kind("options of projects", "mutant.json", options, take_options, 1_000),
    Kind("accelerators", "accelerator.py", accelerator, take_accelerator, 1_000),
)


def results(kind: Kind, numbers: Iterable[int], folder: Path) -> Iterator[Result]:
    """How reading each mutant ended."""
    path = folder / kind.file
    kind.make(random.Random(0))  # workers share the seeds that it loads

    def one(number: int) -> tuple[int, str]:
        path.write_bytes(kind.make(random.Random(number)))
        try:
            kind.take(path)
        except Exception as error:
            failure = app._describe(error)
            more = "" if isinstance(error, UaccelError) else traceback.format_exc()[-1500:]
            return failure.status, f"{failure.message}\n{more}" if more else failure.message
        return 0, ""

    return run(numbers, one, 4 * SECONDS, 4 * MEGABYTES)


def fault(result: Result) -> str:
    """What is wrong with how it ended; nothing where all is well."""
    if result.signal:
        return f"ended by signal {result.signal} ({result.words}) after {result.seconds:.0f} s"
    if result.status not in (0, 1):
        return f"exit status {result.status}: {result.words}"
    if result.status and not (result.words.isprintable() and 0 < len(result.words) < LONGEST_LINE):
        return f"no line that says what is wrong: {result.words!r}"
    if result.seconds > SECONDS or result.megabytes > MEGABYTES:
        return f"{result.seconds:.1f} s and {result.megabytes} MB"
    return ""
