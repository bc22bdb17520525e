"""Networks that were trained, not drawn: on boards they give their runtime's results, and know what they learnt.

Their weights are as no generator of the tests draws them: channels that died or nearly did, with multipliers close to
nought beside large ones, biases of one sign, sums of hundreds of products, activations at their ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from models.trained import signals
from support.models.networks import OWN
from support.models.tflite_view import view
from support.oracle.exactness import assert_exact
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.testing import BoardUnderTest
from uaccel.util.files import quiet

COUNT = 12
SEED = 1000
"""Of recordings that training did not see."""


@dataclass(frozen=True)
class Trained:
    """``made``: what it is given, and what the result is judged by; ``wrong``: the judgement, of which 1 is no better
    than a guess; ``board``: where it runs in every run of the tests."""

    file: str
    made: Callable[[], tuple[Array, Array]]
    wrong: Callable[[Array, Array], float]
    board: str
    sequence: bool = False

    @property
    def path(self) -> Any:
        return OWN / "trained" / self.file


def pictures(*, clean: bool) -> tuple[Array, Array]:
    noisy, without, labels = signals.pictures(SEED, COUNT)
    return (noisy.transpose(0, 3, 1, 2), without.transpose(0, 3, 1, 2)) if clean else (noisy, labels)


def spectra() -> tuple[Array, Array]:
    levels = signals.spectra(SEED, COUNT)
    return levels, levels


def frames() -> tuple[Array, Array]:
    """One word after the other; what counts is the answer after the last frame of each."""
    recordings, labels = signals.words(SEED, COUNT)
    return recordings.reshape(-1, signals.FEATURES), labels


def recordings() -> tuple[Array, Array]:
    given, labels = signals.words(SEED, COUNT)
    return np.swapaxes(given, 1, 2), labels


def misses(results: Array, labels: Array) -> float:
    """The share of wrong answers, by the last result for each label."""
    last = results.reshape(len(labels), -1, results.shape[-1])[:, -1]
    return float((last.argmax(axis=1) != labels).mean())


def deviation(results: Array, wanted: Array) -> float:
    return float(((results.reshape(wanted.shape) - wanted) ** 2).mean() / wanted.var())


TRAINED = (
    Trained("shapes.tflite", lambda: pictures(clean=False), misses, "mps2_an386"),
    Trained("spectrum.tflite", spectra, deviation, "qemu_riscv32"),
    Trained("word.tflite", frames, misses, "mps2_an385", sequence=True),
    Trained("denoise.onnx", lambda: pictures(clean=True), deviation, "mps3_an547"),
    Trained("listen.pt2", recordings, misses, "mps2_an500"),
)
TFLITE = [row for row in TRAINED if row.file.endswith(".tflite")]
each_tflite = pytest.mark.parametrize("row", TFLITE, ids=lambda row: row.file)
CASES = [
    *((row, row.board) for row in TRAINED),
    *(pytest.param(row, "host", marks=pytest.mark.slow if row in TFLITE else ()) for row in TRAINED),
]
"""TFLite models run on the host below, where every tensor is compared."""


def reference(row: Trained, given: Array) -> Array:
    """What the model's own runtime computes of each sample."""
    if row.file.endswith(".tflite"):
        tflm = Tflm(row.path.read_bytes())
        return np.stack([tflm.run([sample[None]])[0][0] for sample in given])
    if row.file.endswith(".onnx"):
        onnxruntime = pytest.importorskip("onnxruntime", reason="the reference, onnxruntime, is not installed")
        options = onnxruntime.SessionOptions()
        # on processors without VNNI its fast products of uint8 and int8 saturate
        options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(row.path, options)
        (name,) = (entry.name for entry in session.get_inputs())
        return np.concatenate([session.run(None, {name: sample[None]})[0] for sample in given])
    from support.models.exported import computed, torch

    pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")  # which knows the operators
    with quiet():
        program = torch.export.load(row.path)
    return np.concatenate([computed(program, [torch.tensor(sample[None])])[0] for sample in given])


def integers(row: Trained, given: Array) -> Array:
    """In the steps of the input of a TFLite model."""
    (info,) = view(row.path.read_bytes()).inputs
    return np.asarray(np.clip(np.rint(given / info.scales[0]) + info.zero_points[0], -128, 127), np.int8)


@pytest.mark.parametrize(
    ("row", "uaccel_board"), CASES, ids=lambda value: getattr(value, "file", value), indirect=["uaccel_board"]
)
def test_it_gives_what_its_runtime_does_and_knows_what_it_learnt(row: Trained, uaccel_board: BoardUnderTest) -> None:
    """To the bit where the runtime computes in integers; where it takes the scales as floats, to a step."""
    given, truth = row.made()
    exact = row in TFLITE
    given = integers(row, given) if exact else np.ascontiguousarray(given)
    wanted = reference(row, given)
    outcome = uaccel_board.check(row.path, given, wanted if exact else None, sequence=row.sequence)
    (results,) = (np.asarray(value).reshape(wanted.shape) for value in outcome.outputs.values())
    if not exact:
        assert np.abs(results - wanted).max() <= 1.01 * np.diff(np.unique(wanted)).min()
    if exact and row.wrong is deviation:
        (info,) = view(row.path.read_bytes()).outputs
        results = (results.astype(np.float64) - info.zero_points[0]) * info.scales[0]
    assert row.wrong(results, truth) < 0.2


@each_tflite
def test_every_tensor_is_the_references(row: Trained) -> None:
    data = row.path.read_bytes()
    unseen = integers(row, row.made()[0][:4])
    assert_exact(data, [*([sample[None]] for sample in unseen), *random_inputs(data, 5, 8)])


def test_they_are_as_training_makes_them() -> None:
    """What a new training must keep, so that these networks go on to be what drawn ones are not."""
    tensors = view((OWN / "trained" / "shapes.tflite").read_bytes()).tensors
    depthwise = [tensor for tensor in tensors if tensor.data is not None and tensor.shape[:3] == (1, 3, 3)]
    channels = [
        (scale, part) for tensor in depthwise for scale, part in zip(tensor.scales, _parts(tensor), strict=True)
    ]
    alive = [scale for scale, part in channels if part.any()]
    assert len(alive) < len(channels), "some channels are dead"
    assert min(alive) * 1e4 < np.median(alive), "some have all but died"
    biases = [tensor.data for tensor in tensors if tensor.data is not None and tensor.data.dtype == np.int32]
    assert max(np.abs(bias).max() for bias in biases if bias.size > 2) > 1 << 24, "their biases are all that is left"


def _parts(tensor: Any) -> Array:
    return np.moveaxis(np.asarray(tensor.data), -1, 0)
