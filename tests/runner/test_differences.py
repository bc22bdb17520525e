"""Differences from runtimes that are allowed: a page shows every row, and models show that the differences exist."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import uaccel
from support.models.onnx_rows import Given, model_of, row
from uaccel.frontend import import_model
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


SHOWN: dict[str, tuple[Callable[[Path], Path], str]] = {
    "float outputs": (_sums, "onnxruntime"),
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
    samples = default_samples(tensor_types(model.signature.inputs), 12)
    reference = Reference(model)
    opinion, complaint, told = runtime_opinion(model, path, samples, [reference.run(sample)[0] for sample in samples])
    assert (told["against"], complaint) == (["exact meaning", runtime], "")
    assert opinion is not None
    assert opinion.off > 0 or (opinion.largest or 0) > 0
    assert allowance(model, runtime).off < 1
