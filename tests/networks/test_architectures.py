"""Architectures of torchvision, timm and Keras, quantised by ONNX Runtime and by PT2E: held to their real meaning."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("torchao")

from support.architectures import ARCHITECTURES, IMAGE
from support.exported import exported, random, save, settled, torch
from support.torch_networks import xnnpack
from uaccel.basics.quiet import quiet
from uaccel.frontend import import_model
from uaccel.model import ImportedModel
from uaccel.ops.base import type_info
from uaccel.ops.traits import FLOATS, macs_of
from uaccel.running.real_meaning import real_opinion
from uaccel.tvm_api import is_operator_call, is_tuple_type, main_bindings
from uaccel.tvm_api.executor import Executor

CALIBRATED: Final = 4
"""Samples."""


def by_onnx_runtime(module: Any, folder: Path) -> Path:
    import onnx
    import onnxruntime.quantization as quantization

    plain, path = folder / "float.onnx", folder / "model.onnx"
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (random(*IMAGE),), str(plain), dynamo=False, opset_version=17)
    name = onnx.load(str(plain)).graph.input[0].name
    samples = iter([{name: random(*IMAGE, seed=seed).numpy()} for seed in range(CALIBRATED)])
    reader = type("Reader", (), {"get_next": lambda self: next(samples, None)})()
    int8 = quantization.QuantType.QInt8
    logging.disable(logging.WARNING)  # advice on preparing models, which these need not
    try:
        quantization.quantize_static(plain, path, reader, activation_type=int8, weight_type=int8, per_channel=True)
    finally:
        logging.disable(logging.NOTSET)
    return path


def by_pt2e(module: Any, folder: Path) -> Path:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    with quiet():
        prepared = prepare_pt2e(exported(module, [random(*IMAGE)]).module(), xnnpack())
        for seed in range(CALIBRATED):
            prepared(random(*IMAGE, seed=seed))
        return save(exported(convert_pt2e(prepared), [random(*IMAGE)]), folder / "model.pt2")


FORMS: Final[dict[str, Any]] = {"onnx": by_onnx_runtime, "pt2e": by_pt2e}
ROWS: Final = [*((name, "onnx") for name in ARCHITECTURES), ("densenet", "pt2e"), ("resnet_v2", "pt2e")]


def share_in_float(model: ImportedModel) -> float:
    """Of multiply-accumulates."""
    calls = [expr for _, expr in main_bindings(model.module)[1] if is_operator_call(expr) and not is_tuple_type(expr)]
    macs = [(macs_of(call), type_info(call.ty).dtype in FLOATS) for call in calls]
    return sum(count for count, is_float in macs if is_float) / max(1, sum(count for count, _ in macs))


@pytest.mark.long
@pytest.mark.parametrize(("name", "form"), ROWS)
def test_no_element_is_more_than_a_step_from_float64(name: str, form: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = import_model(FORMS[form](settled(ARCHITECTURES[name]()), tmp_path))
    assert share_in_float(model) < 0.01
    executor, generator = Executor(model.module), np.random.default_rng(0)
    samples = [[generator.standard_normal(IMAGE).astype(np.float32)] for _ in range(2)]
    found = real_opinion(model, samples, [executor.run(sample) for sample in samples])
    assert found is not None
    assert (found.elements > 0, found.more) == (True, 0)
    assert found.largest is None or found.largest < 0.01
