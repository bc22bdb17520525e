"""Differences from runtimes that are allowed: a page shows every row, and models show that the differences exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import uaccel
from support.models.onnx_rows import Given, model_of, row
from support.models.tflite_writer import ModelBuilder
from uaccel.frontend import import_model
from uaccel.model import Array, ImportedModel
from uaccel.runner import runtimes
from uaccel.runner.differences import ROWS, allowance
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.runner.verdict import runtime_opinion
from uaccel.runner.verify import Reference
from uaccel.util.files import page

KNOWN = {runtime.name: runtime for known in runtimes.RUNTIMES.values() for runtime in known}


def test_a_page_shows_all_rows_and_no_others() -> None:
    lines = page("models.md").read_text(encoding="utf-8").splitlines()
    first = lines.index("| runtimes | where | at most | why |") + 2
    shown = lines[first : lines.index("", first)]
    assert shown == [
        f"| {', '.join(KNOWN[name].title for name in row.runtimes)} | {row.option} | {row.allowed} | {row.reason} |"
        for row in ROWS
    ]


def _sums(path: Path) -> Path:
    weights = np.random.default_rng(0).uniform(-1, 1, (64, 32)).astype(np.float32)
    path.write_bytes(model_of({"row": row("MatMul", Given((8, 64)), weights)}, 17).SerializeToString())
    return path


def _halves(path: Path) -> Path:
    weights = np.random.default_rng(0).uniform(-1, 1, (64, 32)).astype(np.float16)
    path.write_bytes(model_of({"row": row("MatMul", Given((8, 64), "float16"), weights)}, 17).SerializeToString())
    return path


def _means(path: Path) -> Path:
    """A third of a sum, and so often a half of a step, in scales that float32 does not hold."""
    from support.models.onnx_models import Graph, Grid  # it needs the onnx package

    graph = Graph()
    value = graph.quantized_input((1, 16, 16, 3), Grid(0.1))
    graph.quantized_output(graph.apply("ReduceMean", value, axes=[3], keepdims=1), Grid(0.1 / 3 * 2))
    return graph.save(path)


def _blocks(path: Path) -> Path:
    rng = np.random.default_rng(0)
    inputs = (Given((2, 256)), rng.integers(0, 256, (16, 8, 16)).astype(np.uint8), np.full(128, 0.1, np.float32))
    sizes = {"K": 256, "N": 16, "block_size": 32, "bits": 4, "accuracy_level": 4}
    rows = {"row": row("MatMulNBits", *inputs, domain="com.microsoft", **sizes)}
    path.write_bytes(model_of(rows, 21).SerializeToString())
    return path


TEXT = '<ir_version: 8, opset_import: ["" : 17]> agraph (float[64, 256] x) => '
# A sum of which rounding takes the last digits, and what makes much of them: a function, and a choice.
STEEP = """(float[64, 1] y) <int64[1] axis = {1}, float factor = {1e5}> {
    sum = ReduceSum(x, axis)
    large = Mul(sum, factor)
    y = Sin(large)
}"""
CHOICE = """(int64[64] y) <int64[1] axis = {1}> {
    sum = ReduceSum(x, axis)
    shape = Constant <value = int64[3] {64, 16, 16}> ()
    parts = Reshape(x, shape)
    first = ReduceSum <keepdims = 0> (parts, axis)
    other = ReduceSum(first, axis)
    both = Concat <axis = 1> (sum, other)
    y = ArgMax <axis = 1, keepdims = 0> (both)
}"""


def _text(words: str) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        import onnx

        path.write_bytes(onnx.parser.parse_model(TEXT + words).SerializeToString())
        return path

    return make


def _logistic(path: Path) -> Path:
    """Its least input is -9.05."""
    model = ModelBuilder()
    large, y = (model.tensor(name, (1, 8), "float32") for name in ("large", "y"))
    factor = model.constant("factor", np.full((1, 8), 9.05, np.float32))
    model.op("MUL", [model.input("x", (1, 8), "float32"), factor], [large])
    model.op("LOGISTIC", [large], [y])
    made = path.with_suffix(".tflite")
    made.write_bytes(model.build(y))
    return made


SHOWN: dict[str, tuple[Callable[[Path], Path], str]] = {
    "float outputs": (_sums, "onnxruntime"),
    "a steep function": (_text(STEEP), "onnxruntime"),
    "a choice": (_text(CHOICE), "onnxruntime"),
    "`LOGISTIC` below -9": (_logistic, "tflite-micro"),
    "half precision": (_halves, "onnxruntime"),
    "`MatMulNBits` of `accuracy_level` 4": (_blocks, "onnxruntime"),
    "integers between quantisation steps": (_means, "onnxruntime"),
    "requantisation": (lambda _: uaccel.models()["residual"], "litert"),
}


@pytest.mark.parametrize(("make", "runtime"), SHOWN.values(), ids=SHOWN)
def test_the_difference_exists_and_stays_within_its_row(
    make: Callable[[Path], Path], runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if KNOWN[runtime].version is None:
        pytest.skip(f"the reference, {runtime}, is not installed")
    if runtime == "litert":
        monkeypatch.setitem(runtimes.RUNTIMES, "tflite", (runtimes.LITERT,))
    path = make(tmp_path / "m.onnx")
    model = import_model(path)
    samples, outputs = _computed(model)
    opinion, complaint, told = runtime_opinion(model, path, samples, outputs)
    assert (told["against"], complaint) == (["exact meaning", runtime], "")
    assert opinion is not None
    assert opinion.equal < opinion.elements or (opinion.largest or 0) > 0
    assert allowance(model, runtime).off < 1


def _computed(model: ImportedModel) -> tuple[list[list[Array]], list[list[Array]]]:
    samples, reference = default_samples(tensor_types(model.signature.inputs), 12), Reference(model)
    return samples, [reference.run(sample)[0] for sample in samples]


# Decisions that no rounding of the inputs turns: of the last sample's first output, one element is wrong.
FIRM = {
    "a cast": "(float[64, 256] y) { wide = Cast <to = 11> (x) y = Cast <to = 1> (wide) }",
    "a comparison": "(bool[64, 256] y) <float limit = {0.3}> { y = Less(x, limit) }",
    "a choice": "(int64[64] y) { y = ArgMax <axis = 1, keepdims = 0> (x) }",
    "beside indices": "(float[1, 256] y) <int64[1] place = {3}> { y = Gather(x, place) }",
}


@pytest.mark.parametrize("words", FIRM.values(), ids=FIRM)
def test_a_wrong_element_behind_a_firm_decision_is_a_failure(words: str, tmp_path: Path) -> None:
    path = _text(words)(tmp_path / "m.onnx")
    model = import_model(path)
    samples, outputs = _computed(model)
    assert runtime_opinion(model, path, samples, outputs)[1] == ""
    wrong = np.array(outputs[-1][0])
    wrong.flat[5] = wrong.flat[5] + 0.001 if wrong.dtype.kind == "f" else 1 - wrong.flat[5]
    outputs[-1][0] = wrong
    assert "sample 11" in runtime_opinion(model, path, samples, outputs)[1]
