"""Who quantises a file: by what its name ends with."""

from __future__ import annotations

from pathlib import Path

from uaccel.calibration import float_model
from uaccel.calibration.calibration import Calibration, read_calibration
from uaccel.calibration.choice import Maker, Progress
from uaccel.calibration.onnx_maker import OnnxMaker, Options
from uaccel.calibration.samples import Pixels
from uaccel.calibration.torch_maker import TorchMaker, read_torch


def maker_of(
    model: Path, data: Path, labels: Path | None, pixels: Pixels, options: Options, folder: Path, step: Progress
) -> tuple[Maker, Calibration]:
    """The float model read, and the samples; ``folder`` is for files in between."""
    float_model.check_path(model)
    if model.suffix.lower() == ".pt2":
        program = read_torch(model, options)
        calibration = read_calibration(data, program.inputs, labels, pixels)
        return TorchMaker(program, calibration, options, folder, step), calibration
    source = float_model.read(model)
    calibration = read_calibration(data, source.inputs, labels, pixels)
    return OnnxMaker(source, calibration, options, folder, step), calibration
