"""TOPK_V2 and what detectors end with: the generated C gives LiteRT's bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ops.detector import Detector
from support.device.boards import board_with_tools
from support.device.hostlib import HostModel, compile_bytes
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import Array, LiteRt
from support.oracle.refusal import refused
from uaccel.runner.compiled import run_compiled
from uaccel.tvm_api.executor import Executor

REGULAR = {"use_regular_nms": True}
DETECTORS = {
    "as exported": Detector(),
    "fewer than there is room for": Detector(options={"nms_score_threshold": 0.95}, most=12),
    "no background": Detector(background=0, classes=2),
    "room for more than there are boxes": Detector(boxes=5, most=9, options={"nms_iou_threshold": 0.9}),
    "none overlap": Detector(options={"nms_iou_threshold": 0.01}),
    "class by class": Detector(options=REGULAR),
    "few of each class": Detector(most=5, classes=4, options={**REGULAR, "detections_per_class": 2}),
    "class by class, room for more": Detector(boxes=6, classes=2, background=0, most=30, options=REGULAR),
    "unsigned": Detector(dtype="uint8"),
    "unsigned, class by class": Detector(dtype="uint8", options=REGULAR),
}


def _assert_same(found: list[Array], wanted: list[Array], what: str) -> int:
    """The detections that there are; gives how many."""
    count = int(wanted[3].reshape(-1)[0])
    assert int(found[3][0]) == count, what
    for number in range(3):
        shape = found[number].shape
        np.testing.assert_array_equal(found[number][:, :count], wanted[number].reshape(shape)[:, :count], what)
        assert not found[number][:, count:].any(), what
    return count


@pytest.mark.parametrize("name", DETECTORS)
def test_detections_are_litert_s(name: str) -> None:
    detector = DETECTORS[name]
    data = detector.build()
    compiled, reference = compile_bytes(data), LiteRt(data)
    host, meaning = HostModel(compiled), Executor(compiled.model.module)
    counts = set()
    for seed in range(5):
        inputs = detector.inputs(seed)
        wanted = reference.run(inputs)
        counts.add(_assert_same(host(*inputs), wanted, "the C"))
        np.testing.assert_allclose(meaning.run(inputs)[0], host(*inputs)[0], rtol=1e-6, atol=1e-6)
    assert max(counts) > 0


def test_signed_integers_mean_the_same() -> None:
    """LiteRT has unsigned ones alone."""
    signed, unsigned = Detector(dtype="int8"), Detector(dtype="uint8")
    host, reference = HostModel(compile_bytes(signed.build())), LiteRt(unsigned.build())
    assert _assert_same(host(*signed.inputs(0)), reference.run(unsigned.inputs(0)), "the C") > 0


def test_detections_on_a_board(tmp_path: Path) -> None:
    board, detector = board_with_tools("mps2_an386"), Detector()
    data, samples = detector.build(), [detector.inputs(seed) for seed in range(3)]
    reference = LiteRt(data)
    run = run_compiled(compile_bytes(data), board, samples, tmp_path / "p", lambda step: None).run
    for sample, outputs in zip(samples, run.outputs, strict=True):
        _assert_same(outputs, reference.run(sample), board.name)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int32"])
def test_the_largest_are_litert_s(dtype: str) -> None:
    model = ModelBuilder()
    quantised: dict[str, Any] = {"scale": 0.5} if dtype == "int8" else {}
    x = model.input("x", (3, 25), dtype, **quantised)
    outputs = [model.tensor("values", (3, 7), dtype, **quantised), model.tensor("positions", (3, 7), "int32")]
    model.op("TOPK_V2", [x, model.constant("k", np.asarray(7, np.int32))], outputs)
    for output in outputs:
        model.output(output)
    host, reference = HostModel(compile_bytes(model.build())), LiteRt(model.build())
    for seed in range(3):
        value = np.random.RandomState(seed).randint(-6, 6, (3, 25)).astype(dtype)
        for got, wanted in zip(host(value), reference.run([value]), strict=True):
            np.testing.assert_array_equal(got, wanted)


DETECTIONS = 'operator 0 CUSTOM:TFLite_Detection_PostProcess ("corners"): '
REFUSALS = {
    "none of each class": (
        Detector(options={**REGULAR, "detections_per_class": 0}),
        "detections_per_class is 0, wanted a positive number",
    ),
    "several classes": (
        Detector(options={"max_classes_per_detection": 2}),
        "max_classes_per_detection is 2; only 1 can be compiled",
    ),
    "wide integers": (Detector(dtype="int16"), 'input "boxes" is int16, supported is float32 or int8 or uint8'),
    "scales": (
        Detector(options={"h_scale": 0.0}),
        "its y_scale, x_scale, h_scale, w_scale must be above 0",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals(name: str) -> None:
    detector, words = REFUSALS[name]
    assert refused(detector.build()) == DETECTIONS + words
