"""``uaccel quantize``: a float ONNX model to a quantised one."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.basics.files import require_writable
from uaccel.basics.sinks import shown
from uaccel.cli.output import JsonFlag, emit, progress
from uaccel.errors import UaccelError

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.calibration import Options, Quantised


NOISIEST = 3
"""Layers that are named."""


class Format(str, Enum):
    """How the model says that an operator is quantised."""

    qdq = "qdq"
    qoperator = "qoperator"


class Activations(str, Enum):
    """What tensors between layers become."""

    int8 = "int8"
    uint8 = "uint8"


class Weights(str, Enum):
    """What constants become."""

    int8 = "int8"


class Method(str, Enum):
    """How a range is found from the values that occur."""

    minmax = "minmax"
    entropy = "entropy"
    percentile = "percentile"


ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The float model.", readable=False)]
CalibrationOption = Annotated[
    Path, typer.Option("--calibration", "-c", metavar="DATA.npz", help="Samples of each input.", readable=False)
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="OUT.onnx", help="The quantised model (MODEL_int8.onnx).")
]
LabelsOption = Annotated[
    Path | None,
    typer.Option("--labels", metavar="LABELS.npz", help="The class of each sample, for top-1.", readable=False),
]
FormatOption = Annotated[Format, typer.Option("--format", help="QDQ, or operators such as QLinearConv.")]
ActivationsOption = Annotated[Activations, typer.Option("--activations", help="What tensors become.")]
WeightsOption = Annotated[Weights, typer.Option("--weights", help="What weights become.")]
PerChannelFlag = Annotated[bool, typer.Option("--per-channel/--per-tensor", help="Scales of weights.")]
MethodOption = Annotated[Method, typer.Option("--method", help="How ranges are found from the samples.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("quantize", short_help="Quantise a float ONNX model.")(quantize_command)


def quantize_command(
    model: ModelArgument,
    calibration: CalibrationOption,
    output: OutputOption = None,
    labels: LabelsOption = None,
    format_: FormatOption = Format.qdq,
    activations: ActivationsOption = Activations.int8,
    weights: WeightsOption = Weights.int8,
    per_channel: PerChannelFlag = True,
    method: MethodOption = Method.minmax,
    as_json: JsonFlag = False,
) -> None:
    """Quantise a float ONNX model with ONNX Runtime's quantiser, and say what it cost."""
    target = output or model.with_name(f"{model.stem}_int8.onnx")
    require_writable(target, "-o")
    if target.exists() and model.exists() and target.samefile(model):
        raise UaccelError(f"-o {target} is the float model itself; choose another name")
    with progress() as step:
        from uaccel.calibration import Options, quantise
        from uaccel.calibration.calibration import read_calibration
        from uaccel.calibration.float_model import read

        step(f"read {model}")
        source = read(model)
        samples = read_calibration(calibration, source.inputs, labels)
        options = Options(format_.value, activations.value, weights.value, per_channel, method.value)
        done = quantise(source, samples, target, options, step)
    report = _report(model, target, options, len(samples.samples), done)
    emit(report, as_json, lambda console: _show(console, report))


def _report(model: Path, target: Path, options: Options, samples: int, done: Quantised) -> dict[str, Any]:
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
    lines.append(f"  Model     {report['output']}")
    for line in lines:
        console.print(shown(line), soft_wrap=True)


def _quality(output: dict[str, Any], samples: int) -> str:
    noise = "no difference" if output["snr_db"] is None else f"signal to noise {output['snr_db']:.1f} dB"
    words = f"{noise}, largest difference {output['max_difference']:.3g}"
    if output["agreement"] is None:
        return words
    same = round(output["agreement"] * samples)
    return f"the same class as the float model in {same} of {samples} samples, {words}"
