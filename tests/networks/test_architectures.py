"""Architectures of torchvision, timm and Keras, quantised by ONNX Runtime and by PT2E, as firmware: equal to the exact
meaning, and nowhere more than a step from the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("onnxruntime")
pytest.importorskip("torchao")

from support.models.architectures import ARCHITECTURES
from support.models.exported import settled, torch
from support.models.quantised_modules import FORMS, share_in_float
from uaccel.api import measure
from uaccel.frontend import import_model

ROWS: Final = [
    *((name, form) for name in ARCHITECTURES for form in ("onnx", "pt2e")),
    *((name, "xnnpack") for name in ("densenet", "resnet_v2", "mobilenet_v2", "unet", "wavenet")),
]
LEFT_IN_FLOAT: Final = {("unet", "xnnpack"): 0.06}
"""Of multiply-accumulates, by the quantiser itself: XNNPACK's leaves transposed convolutions as they are."""
QUICK: Final = (("tcn", "onnx"), ("dense_autoencoder", "onnx"))


@pytest.mark.parametrize(
    ("name", "form"), [pytest.param(*row, marks=() if row in QUICK else pytest.mark.long) for row in ROWS]
)
def test_no_element_is_more_than_a_step_from_float64(name: str, form: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    row = ARCHITECTURES[name]
    path = FORMS[form](settled(row.make()), row.shapes, tmp_path)
    assert share_in_float(import_model(path)) < LEFT_IN_FLOAT.get((name, form), 0.01)
    verdict = measure(path, samples=2, verify="outputs")["verify"]
    assert verdict["bit_exact"], verdict["first_difference"]
    found = verdict["real_meaning"]
    assert (found["elements"] > 0 or found["largest_relative_difference"] is not None, found["more"]) == (True, 0)
    assert (found["largest_relative_difference"] or 0) < 1e-5
