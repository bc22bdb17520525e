"""Runs a model twice, with uaccel's kernels and with CMSIS-NN, and sets both costs of each layer side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from uaccel.board import Board
from uaccel.build.children import environment
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError
from uaccel.frontend import FORMATS
from uaccel.memory.planner import Pool
from uaccel.peer import VARIABLE
from uaccel.runner.options import EngineRequest
from uaccel.runner.perform import Performed, perform
from uaccel.runner.prepare import prepare
from uaccel.runner.request import RunRequest, Steps
from uaccel.util.cache import Cache

NAME: Final = "CMSIS-NN"
FORMAT: Final = next(one for one in FORMATS if one.name == "tflite")  # Its arithmetic is CMSIS-NN's.
ENGINE: Final = "cmsis_nn"
TOOLCHAIN: Final = "arm-none-eabi"
BOARDS: Final = "for example mps2_an386 or mps3_an547"
URL: Final = "https://github.com/ARM-software/CMSIS-NN"
# What a checkout has, and nothing else does.
PARTS: Final = ("Include/arm_nnfunctions.h", "Source/ConvolutionFunctions/arm_convolve_wrapper_s8.c")
VERIFIED: Final = 2  # Samples whose every layer is compared with its exact meaning.


def run_against(request: RunRequest, checkout: Path, cache: Cache | None, step: Steps) -> Performed:
    """Performs the run that is asked for, and the same with CMSIS-NN; the report gets ``against``."""
    root = require_sense(request, checkout)
    theirs = peer_of(request)
    with environment({VARIABLE: str(root)}):
        step(f"look for what {NAME} computes")
        require_layers(request.model, prepare(theirs, step, cache).firmware.facts)
    wishes = replace(request.wishes, profile=True)
    ours = perform(replace(request, wishes=wishes), step, cache)
    with environment({VARIABLE: str(root)}):
        step(f"do the same with {NAME}")
        other = perform(theirs, step, cache)
    equal = ours.report["outputs"] == other.report["outputs"]
    against = compared(ours.report, other.report) | {"outputs_equal": equal}
    complaint = ours.complaint or (other.complaint and f"with {NAME}: {other.complaint}")
    return replace(ours, report=ours.report | {"against": against}, complaint=complaint)


def require_sense(request: RunRequest, checkout: Path) -> Path:
    """Returns the checkout; raises an error for what cannot be compared, before anything is compiled."""
    board = request.board
    if request.model.suffix != FORMAT.suffix:
        wanted = f"{FORMAT.suffix} files, whose arithmetic {NAME} has"
        raise UaccelError(f"--against is for {wanted}; convert {request.model.name}, or leave it away")
    if board.cpu.toolchain != TOOLCHAIN:
        raise UaccelError(f"--against is for Arm cores, and {board.name} has none; take one, {BOARDS}")
    if request.at_line or not _is_emulated(board):
        raise UaccelError(f"--against counts instructions of emulated boards, and {board.name} is none; take {BOARDS}")
    if request.engines.accelerators:
        raise UaccelError("--against compares what the CPU takes; leave --accelerator away")
    return require_checkout(checkout)


def require_checkout(folder: Path) -> Path:
    """Returns the folder of a checkout, absolute; raises an error that says what was looked for."""
    if not folder.is_dir():
        raise UaccelError(f"--against {folder}: there is no such folder; clone {URL} and name that")
    for part in PARTS:
        if not (folder / part).is_file():
            raise UaccelError(f"--against {folder}: it has no {part}; name a checkout of {URL}")
    return folder.resolve()


def _is_emulated(board: Board) -> bool:
    return board.runs[0].kind == "qemu"


def peer_of(request: RunRequest) -> RunRequest:
    """The run with CMSIS-NN in the place of kernels: every layer is judged, and nothing is written for the user."""
    nothing: dict[str, Any] = {"outputs": None, "trace": None, "report": None, "details": False, "symbols": False}
    wishes = replace(request.wishes, verify="layers", verified_samples=VERIFIED, profile=True, repeat=1, **nothing)
    if wishes.inputs is not None or wishes.sequence:
        wishes = replace(wishes, verified_samples=None)
    engines = EngineRequest(accelerators=(str(Path(__file__).parent),), allow_none=True)
    return replace(request, wishes=wishes, engines=engines, emit=_apart(request), project=None, beside=False)


def _apart(request: RunRequest) -> EmitOptions:
    """Constants lie in the largest flash where there are several: their code takes more than is kept free for ours."""
    flashes = [memory for memory in request.board.memories if memory.kind == "flash"]
    if len(flashes) < 2 or request.emit.constant_pools:
        return request.emit
    largest = max(flashes, key=lambda memory: memory.length)
    return replace(request.emit, constant_pools=(Pool(largest.name),))


def require_layers(model: Path, facts: Sequence[Mapping[str, Any]]) -> None:
    """Raises an error where CMSIS-NN computes nothing of the model, with the first reason."""
    if not any(layer["engine"] == ENGINE for layer in facts):
        reason = next((f" ({layer['name']}: {_why(layer['refused'])})" for layer in facts if layer["refused"]), "")
        raise UaccelError(f"--against: {NAME} computes no layer of {model.name}{reason}; {FORMAT.quantising}")


# Two reports side by side.


def compared(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The layers that both compute with their costs, the sums of these, and the layers that CMSIS-NN lacks."""
    peers = {row["name"]: row for row in theirs["layers"]}
    refused = {row["layer"]: _why(row["reason"]) for row in theirs["fallback"]}
    wrong = (theirs["verify"]["first_wrong_layer"] or {}).get("layer")
    equal: bool | None = True
    layers, missing = [], []
    for names, taken in groups(ours["layers"]):
        rows = [peers[name] for name in names if name in peers]
        if len(rows) == len(names) and all(row["engine"] == ENGINE for row in rows):
            equal = None if equal is False else equal and wrong not in names
            layers.append(_row(names, taken, sum(row["instructions"] for row in rows)) | {"equal": equal})
        elif taken:
            reason = next((refused[name] for name in names if name in refused), f"{NAME} has no function for it")
            missing.append({"layer": "+".join(names), "ours": taken, "reason": reason})
    sums = {side: sum(row[side] for row in layers) for side in ("ours", "theirs")}
    total = sums | {"ratio": _ratio(**sums)}
    return {"library": NAME, "layers": layers, "total": total, "missing": missing}


def groups(layers: Sequence[Mapping[str, Any]]) -> list[tuple[list[str], int]]:
    """The names of the operators that uaccel computes together, with the instructions that they take."""
    found: dict[str, tuple[list[str], int]] = {}
    for row in layers:
        names, taken = found.setdefault(row["region"] or row["name"], ([], 0))
        found[row["region"] or row["name"]] = [*names, row["name"]], taken + (row["instructions"] or 0)
    return list(found.values())


def _why(refused: str) -> str:
    """A refusal without the engine's name."""
    return refused.removeprefix(f"{ENGINE}: ")


def _row(names: Sequence[str], ours: int, theirs: int) -> dict[str, Any]:
    return {"layer": "+".join(names), "ours": ours, "theirs": theirs, "ratio": _ratio(ours, theirs)}


def _ratio(ours: int, theirs: int) -> float | None:
    return round(ours / theirs, 3) if theirs else None
