"""Modules of PyTorch, quantised by ONNX Runtime and by PT2E, and how much of them is computed in float."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from support.models.exported import exported, random, save, torch
from support.models.torch_networks import xnnpack
from uaccel.model import ImportedModel
from uaccel.ops.operator import FLOATS, macs_of, type_info
from uaccel.quantize.search import QuantChoice
from uaccel.quantize.torch import quantiser
from uaccel.tvm_api import is_operator_call, is_tuple_type, main_bindings, variables
from uaccel.util.files import quiet

CALIBRATED: Final = 4
"""Samples."""


Shapes = Sequence[tuple[int, ...]]
Samples = Iterable[tuple[Any, ...]]
"""Of what a module is given; without them, seeded noise."""


def inputs(shapes: Shapes, seed: int = 0) -> tuple[Any, ...]:
    return tuple(random(*shape, seed=seed + 100 * number) for number, shape in enumerate(shapes))


def by_onnx_runtime(
    module: Any, shapes: Shapes, folder: Path, activations: str = "QInt8", samples: Samples | None = None
) -> Path:
    import onnx
    import onnx.version_converter
    import onnxruntime.quantization as quantization

    plain, path = folder / "float.onnx", folder / "model.onnx"
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs(shapes), str(plain), dynamo=False, opset_version=17)
    if "16" in activations:  # later opsets have steps of 16 bits
        onnx.save(onnx.version_converter.convert_version(onnx.load(str(plain)), 21), plain)
    names = [entry.name for entry in onnx.load(str(plain)).graph.input]
    rows = samples or (inputs(shapes, seed) for seed in range(CALIBRATED))
    fed = iter([{name: value.numpy() for name, value in zip(names, row, strict=True)} for row in rows])
    reader = type("Reader", (), {"get_next": lambda self: next(fed, None)})()
    int8, wanted = quantization.QuantType.QInt8, getattr(quantization.QuantType, activations)
    logging.disable(logging.WARNING)  # advice on preparing models, which these need not
    try:
        quantization.quantize_static(plain, path, reader, activation_type=wanted, weight_type=int8, per_channel=True)
    finally:
        logging.disable(logging.NOTSET)
    return path


def usual() -> Any:
    """What ``uaccel quantize`` tells PT2E."""
    return quantiser(QuantChoice(), "int8", per_channel=True, outliers=True)


def by_pt2e(
    module: Any, shapes: Shapes, folder: Path, told: Callable[[], Any] = usual, samples: Samples | None = None
) -> Path:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    with quiet():
        prepared = prepare_pt2e(exported(module, inputs(shapes)).module(), told())
        for row in samples or (inputs(shapes, seed) for seed in range(CALIBRATED)):
            prepared(*row)
        return save(exported(convert_pt2e(prepared), inputs(shapes)), folder / "model.pt2")


FORMS: Final[dict[str, Any]] = {
    "onnx": by_onnx_runtime,
    "pt2e": by_pt2e,
    "xnnpack": partial(by_pt2e, told=xnnpack),
}


def share_in_float(model: ImportedModel) -> float:
    """Of multiply-accumulates that depend on an input."""
    parameters, bindings = main_bindings(model.module)
    alive, calls = set(parameters), []
    for var, expr in bindings:
        if alive & set(variables(expr)):
            alive.add(var)
            calls += [expr] if is_operator_call(expr) and not is_tuple_type(expr) else []
    macs = [(macs_of(call), type_info(call.ty).dtype in FLOATS) for call in calls]
    return sum(count for count, is_float in macs if is_float) / max(1, sum(count for count, _ in macs))
