"""The runtimes of the models' formats as judges: one that lies is told from one that agrees, and silence says why."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import uaccel
from support.models.hybrid_rows import ROWS as HYBRID_ROWS
from support.models.many import many
from support.models.onnx_rows import Given, model_of, row
from support.models.single_op import Activation, single_op
from support.models.stateful_float import FloatSvdf
from support.run.command import call_in
from uaccel.frontend import import_model
from uaccel.runner import runtimes
from uaccel.runner.compare import Verdict
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.runner.verdict import runtime_opinion, with_opinions
from uaccel.runner.verify import Reference

GESTURE = uaccel.models()["gesture"]
# A package that stands in front of the real one on Python's path, and does to its results what a file says.
WRAPPER = """
import importlib, os, sys, time
import numpy as np
folder = os.path.dirname(__file__)
sys.path.remove(folder)
wrapper = sys.modules.pop(__name__)
real = importlib.import_module(__name__)

class Session(real.InferenceSession):
    runs = 0

    def run(self, names, feeds):
        self.runs += 1
        return [self.changed(value) for value in super().run(names, feeds)]

    def changed(self, value):
        known = {"value": value, "runs": self.runs, **globals()}
        exec(open(os.path.join(folder, "lie")).read(), known)
        return known["value"]

wrapper.__dict__.update({name: getattr(real, name) for name in dir(real) if not name.startswith("__")})
wrapper.InferenceSession = Session
sys.modules[__name__] = wrapper
"""
NOTHING = ""
LIES = {
    "agrees": ("pass", NOTHING, NOTHING),
    "twice as large": ("value = value * 2", "ONNX Runtime", NOTHING),
    "a step off": ("value = value + np.float32(0.02)", "ONNX Runtime", NOTHING),
    "one wrong element of the last sample": (
        "value = value.copy(); value.flat[5] += 0.5 * (runs == 8)",
        "sample 7",
        NOTHING,
    ),
    "no number": ("value = value * np.nan", "computes nan", NOTHING),
    "infinity": ("value = np.abs(value) + np.inf", "computes inf", NOTHING),
    "another shape": ("value = value.reshape(-1)", "a tensor [24]", NOTHING),
    "raises": ("raise ValueError('such is life')", NOTHING, "such is life"),
    "raises once": ("assert runs != 3, 'not this one'", NOTHING, "not this one"),
    "prints": ("print('x' * 100000); sys.stdout.flush()", NOTHING, NOTHING),
    "never ends": ("time.sleep(60)", NOTHING, "it took more than 2 seconds"),
    "crashes": ("os.abort()", NOTHING, "it crashed with exit status -6"),
}


@pytest.fixture(scope="module")
def _lying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file that says what the runtime does to its results. Other tests get a process with the honest one."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("lying")
    (folder / "onnxruntime.py").write_text(WRAPPER)
    runtimes._worker.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder), *sys.path])
        yield folder / "lie"
    runtimes._worker.close()


@pytest.fixture
def lie(_lying: Path) -> Iterator[Path]:
    """The same, honest again after the test."""
    yield _lying
    _lying.write_text("pass")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quantised product of ONNX, whose outputs are in steps of 0.02."""
    weights = np.random.default_rng(0).uniform(-1, 1, (6, 4)).astype(np.float32)
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    path.write_bytes(model_of({"row": row("MatMul", Given((6, 6)), weights)}, 17).SerializeToString())
    return path


def _judged(path: Path) -> Verdict:
    """The verdict on outputs that are right by the exact meaning."""
    model = import_model(path)
    samples = default_samples(tensor_types(model.signature.inputs), 8)
    reference = Reference(model)
    outputs = [reference.run(sample)[0] for sample in samples]
    return with_opinions(Verdict({"bit_exact": True}), model, path, samples, outputs)


@pytest.mark.parametrize(("does", "complaint", "why"), LIES.values(), ids=LIES)
def test_a_runtime_that_lies_is_told_from_one_that_agrees(
    does: str, complaint: str, why: str, model: Path, lie: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lie.write_text(does)
    if "sleep" in does:
        monkeypatch.setattr(runtimes, "_SECONDS", 2)
    found = _judged(model)
    assert (complaint in found.complaint, bool(found.complaint)) == (True, bool(complaint)), found
    assert found.report["bit_exact"] is not bool(complaint)
    silent = [entry["why"] for entry in found.report["no_opinion"]]
    assert (why in "".join(silent), len(silent)) == (True, int(bool(why))), silent
    asked = ["exact meaning"] if "runtime" not in found.report else ["exact meaning", "onnxruntime"]
    assert found.report["against"] == asked
    assert json.dumps(found.report, allow_nan=False)


def test_a_lie_of_tflite_micro_ends_a_run_with_status_3(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tflite_micro")
    (tmp_path / "tflite_micro.py").write_text(TFLM)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    runtimes._worker.close()
    try:
        shown = call_in(capfd)("run", str(GESTURE), "--board", "host", "--verify")
        done = call_in(capfd)("run", str(GESTURE), "--board", "host", "--verify", "--json")
    finally:
        runtimes._worker.close()
    verdict = done.report["verify"]
    assert (done.status, verdict["bit_exact"], verdict["against"]) == (3, False, ["exact meaning", "tflite-micro"])
    assert "TensorFlow Lite Micro" in done.complaint
    assert (shown.status, shown.complaint) == (3, done.complaint)
    assert "Compared" in shown.out
    assert "Verified" not in shown.out
    assert verdict["first_difference"]["expected"] != verdict["first_difference"]["got"]


TFLM = """
import types

class Interpreter:
    def set_input(self, value, index):
        self.rows = len(value)

    def invoke(self):
        pass

    def get_output(self, index):
        import numpy as np
        return np.zeros((self.rows, 6), np.int8)

    @classmethod
    def from_bytes(cls, data, arena_size):
        return cls()

runtime = types.SimpleNamespace(Interpreter=Interpreter)
"""


def test_without_a_runtime_the_verdict_says_how_to_get_one(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes.Runtime, "version", None)
    found = _judged(model).report
    assert (found["against"], "runtime" in found) == (["exact meaning"], False)
    assert "it is not installed; to get it: " in found["no_opinion"][0]["why"]
    assert "onnxruntime" in found["no_opinion"][0]["why"]


FOUR = Given((4, 5))
# An index counted from the end, as TensorFlow's converter writes its embedding: a choice by products.
CHOSEN = """
agraph (float[4, 5] table, int64[3] x) => (float[3, 5] y)
  <int64 zero = {0}, int64 count = {4}> {
    negative = Less(x, zero)
    positive = Not(negative)
    first = Cast<to = 7>(negative)
    second = Cast<to = 7>(positive)
    moved = Add(x, count)
    from_the_end = Mul(first, moved)
    plain = Mul(x, second)
    index = Add(from_the_end, plain)
    y = Gather(table, index)
  }
"""
# Sequences in the order of their lengths, as PyTorch packs them: the positions are in another range.
SORTED = """
agraph (float[3, 2, 4] data, int64[2] x) => (float[3, 1, 2, 3] y)
  <int64[1] count = {2}, int64[3] w_shape = {1, 9, 4}, int64[3] r_shape = {1, 9, 3}> {
    sorted, places = TopK(x, count)
    ordered = Gather <axis = 1> (data, places)
    lengths = Cast <to = 6> (sorted)
    w = ConstantOfShape <value = float[1] {0.3}> (w_shape)
    r = ConstantOfShape <value = float[1] {-0.2}> (r_shape)
    y, last = GRU <hidden_size = 3> (ordered, w, r, , lengths)
  }
"""
SEQUENCES, MATRICES = Given((3, 2, 4)), (np.full((1, 9, 4), 0.3, np.float32), np.full((1, 9, 3), -0.2, np.float32))
INDICES = {
    "Gather": (row("Gather", FOUR, Given((3,), "int64"), axis=1), (0, 4)),
    "GatherElements": (row("GatherElements", FOUR, Given((2, 5), "int64"), axis=0), (0, 3)),
    "GatherND": (row("GatherND", FOUR, Given((3, 2), "int64")), (0, 3)),
    "ScatterElements": (row("ScatterElements", FOUR, Given((2, 2), "int64"), Given((2, 2)), axis=1), (0, 4)),
    "ScatterND": (row("ScatterND", FOUR, Given((3, 1), "int64"), Given((3, 5))), (0, 3)),
    "ReverseSequence": (row("ReverseSequence", FOUR, Given((5,), "int64")), (1, 4)),
    "lengths": (row("GRU", SEQUENCES, *MATRICES, None, Given((2,), "int32"), outputs=2, hidden_size=3), (1, 3)),
    "sorted lengths": (f'<ir_version: 8, opset_import: ["" : 17]>{SORTED}', (1, 3)),
    "a choice": (f'<ir_version: 8, opset_import: ["" : 17]>{CHOSEN}', (0, 3)),
    "data": (row("Add", Given((4,), "int64"), Given((4,), "int64")), None),
}


@pytest.mark.parametrize(("entry", "fits"), INDICES.values(), ids=INDICES)
def test_samples_of_indices_lengths_and_shifts_are_in_range(entry: Any, fits: Any, tmp_path: Path) -> None:
    """ONNX Runtime refuses a run whose indices are not."""
    path = tmp_path / "m.onnx"
    proto = onnx.parser.parse_model(entry) if isinstance(entry, str) else model_of({"row": entry}, 17)
    path.write_bytes(proto.SerializeToString())
    model = import_model(path)
    places = [spec for spec in model.signature.inputs if spec.range is not None]
    assert [spec.range for spec in places] == ([fits] if fits else [])
    samples = default_samples(tensor_types(model.signature.inputs), 8)
    outputs = [Reference(model).run(sample)[0] for sample in samples]
    opinion, complaint, told = runtime_opinion(model, path, samples, outputs)
    assert (complaint, told["no_opinion"]) == ("", [])
    assert opinion is not None or not told["against"][1:]


def test_tflite_micros_reason_is_the_one_that_it_prints(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    path = tmp_path / "m.tflite"
    truths = Activation((2, 4), "bool")
    path.write_bytes(single_op("RELU", [truths], [truths], {}))
    model = import_model(path)
    samples = default_samples(tensor_types(model.signature.inputs), 2)
    outputs = [Reference(model).run(sample)[0] for sample in samples]
    silent = runtime_opinion(model, path, samples, outputs)[2]["no_opinion"]
    assert [entry["runtime"] for entry in silent] == ["tflite-micro", "litert"]
    assert silent[0]["why"] == "Node RELU (number 0) failed to invoke with status 1"


@pytest.mark.parametrize("name", ["dense", "conv", "depthwise", "product", "SVDF"])
def test_weights_of_bytes_beside_floats_are_judged_by_litert(name: str, tmp_path: Path) -> None:
    """TensorFlow Lite Micro has no such kernels, and must not read bytes as floats."""
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "m.tflite"
    path.write_bytes(FloatSvdf(in_bytes=True).build() if name == "SVDF" else many({name: HYBRID_ROWS[name]}))
    model = import_model(path)
    samples = default_samples(tensor_types(model.signature.inputs), 2)
    outputs = [Reference(model).run(sample)[0] for sample in samples]
    opinion, complaint, told = runtime_opinion(model, path, samples, outputs)
    assert opinion is not None
    assert (complaint, told["against"]) == ("", ["exact meaning", "litert"])
    assert (opinion.largest or 0.0) <= 1e-6
