"""Quantises a float model: as requested or as a search finds, compared with the float model, and written to a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uaccel.errors import need
from uaccel.quantize.calibration import Calibration, Pixels, check_path, read_calibration, read_float_model
from uaccel.quantize.onnx import OnnxMaker, OnnxQuantOptions
from uaccel.quantize.quality import LayerQuality, Quality, frames, states_of
from uaccel.quantize.search import Goal, Maker, Progress, QuantChoice, chosen, search
from uaccel.quantize.torch import TorchMaker, read_torch
from uaccel.util import incoming
from uaccel.util.files import write_atomically

# The maker for a file, by what its name ends with.


def maker_of(
    model: Path,
    data: Path,
    labels: Path | None,
    pixels: Pixels,
    options: OnnxQuantOptions,
    folder: Path,
    step: Progress,
    state: Sequence[str] = (),
) -> tuple[Maker, Calibration]:
    """Reads the float model and the samples; ``folder`` is for intermediate files. With ``state`` samples are frames,
    and some outputs are inputs of the next one."""
    check_path(model)
    if model.suffix.lower() == ".pt2":
        need(not state, f"{model}: --state is for ONNX models here; keep the state in a buffer of the module")
        program = read_torch(model, options)
        calibration = read_calibration(data, program.inputs, labels, pixels)
        return TorchMaker(program, calibration, options, folder, step), calibration
    source = read_float_model(model)
    states = states_of(source, state)
    given = [entry for entry in source.inputs if entry.name not in states]
    calibration = frames(source, read_calibration(data, given, labels, pixels), states)
    return OnnxMaker(source, calibration, options, folder, step), calibration


# One quantised model: made, compared, and written if all goes well.


@dataclass(frozen=True)
class QuantOptions:
    """States which layers stay float or give 16 bits, by name or pattern; with ``goal`` a search adds more."""

    floats: tuple[str, ...] = ()
    sixteen: tuple[str, ...] = ()
    goal: Goal | None = None


@dataclass(frozen=True)
class Quantised:
    """Holds bytes of the file and of its constants, before and after, and the quality.

    ``gains``: what each layer that the search chose gains, in dB.
    """

    size: tuple[int, int]
    weights: tuple[int, int]
    quality: Quality
    layers: tuple[LayerQuality, ...]
    digest: str  # SHA-256 of the file.
    choice: QuantChoice
    gains: Mapping[str, float]


def quantise(maker: Maker, wishes: QuantOptions, output: Path, step: Progress) -> Quantised:
    """Makes, compares and writes the quantised model; nothing is written where a step fails."""
    choice, gains = chosen(maker, wishes.floats, wishes.sixteen), {}
    if wishes.goal is not None:
        found = search(maker, choice, wishes.goal, step)
        choice, gains = found.choice, dict(found.gains)
    step("quantise")
    made = maker.make(choice)
    step("compare with the float model")
    quality, layers = maker.quality(made), maker.compared(made)
    data = incoming.read_bytes(made)
    step(f"write {output}")
    write_atomically(output, lambda stream: stream.write(data), "-o")
    (size, weights), after = maker.sizes(), maker.weights(made)
    return Quantised(
        (size, len(data)), (weights, after), quality, layers, hashlib.sha256(data).hexdigest(), choice, gains
    )
