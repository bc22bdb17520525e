"""Firmware whose model calls an accelerator of the tests, written by hand: project, build, session."""

from __future__ import annotations

import json
from pathlib import Path

from uaccel.board import Board
from uaccel.build.archive_reader import project_devices
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.session.connect import ProcessTransport
from uaccel.session.qemu import QemuTransport
from uaccel.session.session import Session
from uaccel.util.files import data_dir

ACCELERATORS = tuple(Path(__file__).with_name("accelerators") / name for name in ("adder", "swapper"))
MODEL = Path(__file__).with_name("adder_model")
ARENA, INPUTS, KNOWN = 1000, 1000, 40
LAYERS = (("up", INPUTS), ("down", INPUTS), ("table", KNOWN))


def tensor(size: int) -> dict[str, object]:
    return {"shape": [size], "dtype": "int8", "scale": None, "zero_point": None}


def layer(index: int, name: str, size: int) -> dict[str, object]:
    words = dict.fromkeys(("reason", "refused", "tensor", "variant"), "")
    numbers = {"index": index, "operator": index, "macs": 0}
    return words | numbers | {"name": name, "op": "add", "engine": "adder", "covers": [], "outputs": [tensor(size)]}


def chain_files() -> dict[str, bytes]:
    """An archive of the model ``chain`` (adder_model/chain.h)."""
    main = {
        "workspace_size_bytes": ARENA,
        "io_size_bytes": 2 * INPUTS + KNOWN,
        "constants_size_bytes": KNOWN,
        "inputs": {"wave": {"size": INPUTS}},
        "outputs": {"sum": {"size": INPUTS}, "known": {"size": KNOWN}},
    }
    own = {
        "board": "any",
        "model": {"name": "chain", "sha256": "00" * 32},
        "build": "00" * 8,
        "device_constants": KNOWN,
        "inputs": {"wave": tensor(INPUTS)},
        "outputs": {"sum": tensor(INPUTS), "known": tensor(KNOWN)},
        "arena": {"bytes": ARENA, "lower_bound": ARENA},
        "layers": [layer(i, name, size) for i, (name, size) in enumerate(LAYERS)],
    }
    metadata = {
        "version": 7,
        "modules": {"chain": {"memory": {"functions": {"main": [main]}}}},
        "uaccel": own | {"accelerators": [{"name": folder.name, "tolerance": 0} for folder in ACCELERATORS]},
    }
    files = {"metadata.json": json.dumps(metadata).encode()}
    files["codegen/host/src/chain.c"] = (MODEL / "chain.c").read_bytes()
    files["codegen/host/include/chain.h"] = (MODEL / "chain.h").read_bytes()
    for header in ("kernels/common/uaccel_kernel.h", "include/uaccel_observe.h"):
        source = data_dir("firmware") / header
        files[f"codegen/host/include/{source.name}"] = source.read_bytes()
    files["templates/describe.c"] = (MODEL / "describe.c").read_bytes()
    for folder in ACCELERATORS:
        for source in sorted(folder.rglob("*.[ch]")):
            name = source.relative_to(folder.parent).as_posix()
            files[f"project/accelerators/{name}"] = source.read_bytes()
    return files


def build_chain(board: Board, folder: Path, *, observe: bool = False) -> Path:
    """The firmware; ``folder`` becomes the project."""
    create_project(chain_files(), board, folder)
    return firmware_of(build_project(folder, observe=observe))


def run_chain(board: Board, firmware: Path) -> Session:
    """A session with it, its devices behind it."""
    if board.cpu.arch == "native":
        return Session(ProcessTransport([str(firmware)]))
    devices = project_devices(firmware.parent.parent)
    return Session(QemuTransport(board, firmware, devices=devices))
