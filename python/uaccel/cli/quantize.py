"""Defines ``uaccel quantize``, which turns a float ONNX or PyTorch model into a quantised one."""

from __future__ import annotations

import tempfile
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uaccel.cli.command import Command
from uaccel.cli.output import emit, progress
from uaccel.errors import UaccelError, escape_terminal
from uaccel.util.files import require_writable
from uaccel.util.option import argument, option
from uaccel.util.text import named

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.quantize.onnx import OnnxQuantOptions
    from uaccel.quantize.quantize import Quantised
    from uaccel.quantize.search import Goal


NOISIEST = 3  # How many of the noisiest layers are named.


class QuantizeCommand(Command):
    """Quantise a float model with ONNX Runtime's quantiser or PyTorch's, and say what it cost."""

    model: Path = argument("The float model: .onnx or .pt2.", "MODEL")
    calibration: Path = option(MISSING, "Samples: .npz, .npy, or a folder of images or .npy.", "-c", metavar="DATA")
    output: Path | None = option(None, "The quantised model (MODEL_int8 beside it).", "-o", metavar="OUT")
    labels: Path | None = option(None, "The class of each sample (.npz, .npy), for top-1.", metavar="LABELS")
    mean: str = option("0", "Of images: taken off pixels of 0 to 1.", metavar="R,G,B")
    std: str = option("1", "Of images: what is left is divided by it.", metavar="R,G,B")
    format: Literal["qdq", "qoperator"] = option("qdq", "QDQ, or operators such as QLinearConv (ONNX).")
    activations: Literal["int8", "uint8", "int16"] = option("int8", "What tensors become.")
    weights: Literal["int8"] = option("int8", "What weights become.")
    per_channel: bool = option(True, "Scales of weights.", "--per-channel/--per-tensor")
    method: Literal["minmax", "entropy", "percentile"] = option("minmax", "How ranges are found from the samples.")
    leave_out: tuple[str, ...] = option((), "A layer that stays float; a name or pattern.", metavar="LAYER")
    sixteen: tuple[str, ...] = option((), "A layer whose result has 16 bits.", metavar="LAYER")
    min_snr: float | None = option(None, "Trade layers until every output has it.", metavar="DB")
    max_loss: float | None = option(None, "Trade layers until top-1 loses no more.", metavar="POINTS", least=0)
    state: tuple[str, ...] = option(
        (), "Samples are frames: an output that is an input of the next ('auto' pairs usual names).", metavar="OUT=IN"
    )
    trade: Literal["float", "int16"] = option("int16", "What layers become that lose most.")

    def run(self) -> None:
        model, wide = self.model, "int16" if self.activations == "int16" else "int8"
        target = self.output or model.with_name(f"{model.stem}_{wide}{model.suffix}")
        require_writable(target, "-o")
        if target.exists() and model.exists() and target.samefile(model):
            raise UaccelError(f"-o {target} is the float model itself; choose another name")
        with progress() as step, tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
            from uaccel.quantize.calibration import Pixels
            from uaccel.quantize.onnx import OnnxQuantOptions
            from uaccel.quantize.quantize import QuantOptions, maker_of, quantise
            from uaccel.quantize.search import Goal

            wanted = self.min_snr is not None or self.max_loss is not None
            goal = Goal(self.min_snr, self.max_loss, self.trade) if wanted else None
            options = OnnxQuantOptions(self.format, self.activations, self.weights, self.per_channel, self.method)
            pixels = Pixels(_numbers("--mean", self.mean), _numbers("--std", self.std))
            step(f"read {model}")
            data = self.calibration
            maker, samples = maker_of(model, data, self.labels, pixels, options, Path(folder), step, self.state)
            if self.max_loss is not None and samples.labels is None:
                raise UaccelError("--max-loss takes labels; give --labels, or data with a folder for each class")
            done = quantise(maker, QuantOptions(self.leave_out, self.sixteen, goal), target, step)
        report = _report(model, target, options, len(samples.samples), done) | {"goal": _goal(goal)}
        emit(report, self.as_json, lambda console: _show(console, report))


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise UaccelError(
            f'{option} "{text}" is no list of numbers; give one, or one for each channel: 0.5,0.5,0.5'
        ) from error


def _goal(goal: Goal | None) -> dict[str, Any] | None:
    return None if goal is None else {"min_snr": goal.snr, "max_loss": goal.loss, "trade": goal.trade}


def _report(model: Path, target: Path, options: OnnxQuantOptions, samples: int, done: Quantised) -> dict[str, Any]:
    quality = done.quality
    top1 = quality.top1
    return {
        "model": str(model),
        "output": str(target),
        "sha256": done.digest,
        **named(options, "format", "activations", "weights", "per_channel", "method"),
        "samples": samples,
        "file_bytes": {"before": done.size[0], "after": done.size[1]},
        "weight_bytes": {"before": done.weights[0], "after": done.weights[1]},
        "outputs": {
            name: {"snr_db": output.snr, "max_difference": output.largest_difference, "agreement": output.agreement}
            for name, output in quality.outputs.items()
        },
        "layers": [
            {
                **named(layer, "name", "op", "tensor"),
                "snr_db": layer.snr,
                "max_difference": layer.largest_difference,
            }
            for layer in done.layers
        ],
        "top1": None if top1 is None else {"before": top1[0], "after": top1[1]},
        "kept": [
            {"name": name, "as": kind, "gain_db": done.gains.get(name)} for name, kind in done.choice.kinds.items()
        ],
    }


def _show(console: Console, report: dict[str, Any]) -> None:
    files, weights = report["file_bytes"], report["weight_bytes"]
    lines = [
        f"  Size      {files['before']:,} -> {files['after']:,} bytes, "
        f"of which weights {weights['before']:,} -> {weights['after']:,}"
    ]
    lines += [
        f"  Accuracy  {name}: {_quality(output, report['samples'])}" for name, output in report["outputs"].items()
    ]
    if report["top1"] is not None:
        before, after = (f"{100 * report['top1'][key]:.1f} %" for key in ("before", "after"))
        lines.append(f"  Top-1     {before} -> {after} of {report['samples']} labels")
    noisy = sorted((row for row in report["layers"] if row["snr_db"] is not None), key=lambda row: row["snr_db"])
    if noisy:
        names = ", ".join(f"{row['name']} ({row['op']}) {row['snr_db']:.1f} dB" for row in noisy[:NOISIEST])
        lines.append(f"  Layers    least signal to noise: {names}")
    if report["kept"]:
        lines.append(f"  Kept      {', '.join(_kept(row) for row in report['kept'])}")
    lines.append(f"  Model     {report['output']}")
    for line in lines:
        console.print(escape_terminal(line), soft_wrap=True)


def _kept(row: dict[str, Any]) -> str:
    gain = "" if row["gain_db"] is None else f" ({row['gain_db']:+.1f} dB alone)"
    return f"{row['name']} in {row['as']}{gain}"


def _quality(output: dict[str, Any], samples: int) -> str:
    noise = "no difference" if output["snr_db"] is None else f"signal to noise {output['snr_db']:.1f} dB"
    words = f"{noise}, largest difference {output['max_difference']:.3g}"
    if output["agreement"] is None:
        return words
    same = round(output["agreement"] * samples)
    return f"the same class as the float model in {same} of {samples} samples, {words}"
