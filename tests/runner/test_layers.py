"""Where a wrong bit first appears: every layer's meaning is what the generated C computes, and a change is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.hostlib import HostModel
from support.models.networks import OWN
from support.oracle.oracle import random_inputs
from uaccel.build.archive_reader import read_metadata
from uaccel.frontend import import_model
from uaccel.pipeline import compile_model
from uaccel.runner.compare import Mismatch, compare
from uaccel.runner.compiled import ArchiveSubject, archive_of
from uaccel.runner.verify import LayerMeanings, Reference, before_what_hides, exact_layers, first_wrong_layer
from uaccel.util.files import write_archive


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["branches", "mixed"])  # several outputs a layer, views; float layers
def test_the_first_layer_that_is_wrong_is_told(name: str) -> None:
    path = OWN / f"{name}.tflite"
    model = HostModel(compile_model(path, board="host"))
    (values,) = random_inputs(path.read_bytes(), 7, 1)
    model(*values)
    computed, program = model.layers, model.compiled.program
    exact = exact_layers(model.compiled, values)
    assert computed.keys() <= exact.keys()
    assert {layer for layer, _ in exact} == set(range(len(program.layers)))
    assert first_wrong_layer(model.compiled, [values], [computed]) is None
    later, meanings = max(computed), LayerMeanings(model.compiled, computed)
    for key in sorted(computed):
        wrong = dict(computed)
        for place in {key, later}:
            wrong[place] = computed[place].copy()
            wrong[place].flat[-1] += 1
        told = meanings.first_wrong(0, values, wrong)
        assert told is not None
        layer = program.layers[key[0]]
        assert (told.index, told.output, told.name, told.op) == (*key, layer.name, layer.op)
        last = tuple(length - 1 for length in computed[key].shape)
        assert (told.mismatch.index, told.mismatch.differing, told.mismatch.size) == (last, 1, computed[key].size)


def test_an_archive_tells_the_same_layer(tmp_path: Path) -> None:
    path = OWN / "mixed.tflite"
    model = HostModel(compile_model(path, board="host"))
    (values,) = random_inputs(path.read_bytes(), 7, 1)
    model(*values)
    archive = tmp_path / "model.tar"
    write_archive(archive, archive_of(model.compiled))
    subject = ArchiveSubject(Reference(import_model(path)), read_metadata(archive))
    assert not subject.unjudged()
    assert subject.watched == before_what_hides(model.compiled)
    computed = {key: model.layers[key] for key in subject.tensors}
    assert {layer for layer, _ in model.layers} == {layer for layer, _ in computed}, "each can be judged"
    assert subject.first_wrong([values], [computed]) is None
    key = list(computed)[1]
    computed[key] = computed[key].copy()
    computed[key].flat[-1] += 1
    told = subject.first_wrong([values], [computed])
    assert told is not None
    layer = model.compiled.program.layers[key[0]]
    assert (told.index, told.output, told.name, told.op) == (*key, layer.name, layer.op)


def test_differences_in_words() -> None:
    assert compare(np.array([[1, 2], [3, 4]], np.int8), np.array([1, 2, 3, 4], np.int8)) is None
    mismatch = compare(np.array([[1, 2], [3, 4]], np.int8), np.array([[1, 2], [5, 6]], np.int8))
    assert mismatch == Mismatch(index=(1, 0), expected=5, got=3, differing=2, size=4)
    assert str(mismatch) == "[1,0] is 3, expected 5; 2 of 4 elements differ"
    assert compare(np.array([1.0, np.nan], np.float32), np.array([1.0 + 1e-6, np.nan], np.float32)) is None
    assert compare(np.array([1.0], np.float32), np.array([1.001], np.float32)) is not None
