"""Defines ``uaccel quantize``, which turns a float ONNX or PyTorch model into a quantised one."""

from __future__ import annotations

import tempfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.errors import UaccelError, escape_terminal
from uaccel.util.files import require_writable

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.quantize.onnx import OnnxQuantOptions
    from uaccel.quantize.quantize import Quantised
    from uaccel.quantize.search import Goal


NOISIEST = 3  # How many of the noisiest layers are named.


class QuantStyle(str, Enum):
    """Says how the file expresses that an operator is quantised."""

    qdq = "qdq"
    qoperator = "qoperator"


class Activations(str, Enum):
    """Says which type tensors between layers get."""

    int8 = "int8"
    uint8 = "uint8"
    int16 = "int16"


class WeightsChoice(str, Enum):
    """Says which type weights get."""

    int8 = "int8"


class Trade(str, Enum):
    """Says what the layers that lose most become."""

    float = "float"
    int16 = "int16"


class Method(str, Enum):
    """Says how a tensor's range is found from the values that occur."""

    minmax = "minmax"
    entropy = "entropy"
    percentile = "percentile"


ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="The float model: .onnx or .pt2.", readable=False)]
CalibrationOption = Annotated[
    Path,
    typer.Option(
        "--calibration",
        "-c",
        metavar="DATA",
        help="Samples: .npz, .npy, or a folder of images or .npy.",
        readable=False,
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="OUT", help="The quantised model (MODEL_int8 beside it).")
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        "--labels", metavar="LABELS", help="The class of each sample (.npz, .npy), for top-1.", readable=False
    ),
]
MeanOption = Annotated[str, typer.Option("--mean", metavar="R,G,B", help="Of images: taken off pixels of 0 to 1.")]
StdOption = Annotated[str, typer.Option("--std", metavar="R,G,B", help="Of images: what is left is divided by it.")]
FormatOption = Annotated[QuantStyle, typer.Option("--format", help="QDQ, or operators such as QLinearConv (ONNX).")]
ActivationsOption = Annotated[Activations, typer.Option("--activations", help="What tensors become.")]
WeightsOption = Annotated[WeightsChoice, typer.Option("--weights", help="What weights become.")]
PerChannelFlag = Annotated[bool, typer.Option("--per-channel/--per-tensor", help="Scales of weights.")]
MethodOption = Annotated[Method, typer.Option("--method", help="How ranges are found from the samples.")]
LeaveOutOption = Annotated[
    list[str] | None, typer.Option("--leave-out", metavar="LAYER", help="A layer that stays float; a name or pattern.")
]
SixteenOption = Annotated[
    list[str] | None, typer.Option("--sixteen", metavar="LAYER", help="A layer whose result has 16 bits.")
]
MinSnrOption = Annotated[
    float | None, typer.Option("--min-snr", metavar="DB", help="Trade layers until every output has it.")
]
MaxLossOption = Annotated[
    float | None, typer.Option("--max-loss", metavar="POINTS", help="Trade layers until top-1 loses no more.", min=0)
]
TradeOption = Annotated[Trade, typer.Option("--trade", help="What layers become that lose most.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("quantize", short_help="Quantise a float ONNX or PyTorch model.")(quantize_command)


def quantize_command(
    model: ModelArgument,
    calibration: CalibrationOption,
    output: OutputOption = None,
    labels: LabelsOption = None,
    mean: MeanOption = "0",
    std: StdOption = "1",
    format_: FormatOption = QuantStyle.qdq,
    activations: ActivationsOption = Activations.int8,
    weights: WeightsOption = WeightsChoice.int8,
    per_channel: PerChannelFlag = True,
    method: MethodOption = Method.minmax,
    leave_out: LeaveOutOption = None,
    sixteen: SixteenOption = None,
    min_snr: MinSnrOption = None,
    max_loss: MaxLossOption = None,
    trade: TradeOption = Trade.int16,
    as_json: JsonFlag = False,
) -> None:
    """Quantise a float model with ONNX Runtime's quantiser or PyTorch's, and say what it cost."""
    target = output or model.with_name(f"{model.stem}_{_wide(activations)}{model.suffix}")
    require_writable(target, "-o")
    if target.exists() and model.exists() and target.samefile(model):
        raise UaccelError(f"-o {target} is the float model itself; choose another name")
    with progress() as step, tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        from uaccel.quantize.calibration import Pixels
        from uaccel.quantize.onnx import OnnxQuantOptions
        from uaccel.quantize.quantize import QuantOptions, maker_of, quantise
        from uaccel.quantize.search import Goal

        goal = None if min_snr is None and max_loss is None else Goal(min_snr, max_loss, trade.value)
        options = OnnxQuantOptions(format_.value, activations.value, weights.value, per_channel, method.value)
        pixels = Pixels(_numbers("--mean", mean), _numbers("--std", std))
        step(f"read {model}")
        maker, samples = maker_of(model, calibration, labels, pixels, options, Path(folder), step)
        if max_loss is not None and samples.labels is None:
            raise UaccelError("--max-loss takes labels; give --labels, or data with a folder for each class")
        wishes = QuantOptions(tuple(leave_out or ()), tuple(sixteen or ()), goal)
        done = quantise(maker, wishes, target, step)
    report = _report(model, target, options, len(samples.samples), done) | {"goal": _goal(goal)}
    emit(report, as_json, lambda console: _show(console, report))


def _wide(activations: Activations) -> str:
    return "int16" if activations is Activations.int16 else "int8"


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
        "format": options.format,
        "activations": options.activations,
        "weights": options.weights,
        "per_channel": options.per_channel,
        "method": options.method,
        "samples": samples,
        "file_bytes": {"before": done.size[0], "after": done.size[1]},
        "weight_bytes": {"before": done.weights[0], "after": done.weights[1]},
        "outputs": {
            name: {"snr_db": output.snr, "max_difference": output.largest_difference, "agreement": output.agreement}
            for name, output in quality.outputs.items()
        },
        "layers": [
            {
                "name": layer.name,
                "op": layer.op,
                "tensor": layer.tensor,
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
