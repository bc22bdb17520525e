"""Metadata of TFLite files: labels and normalisation are read, reach C and JSON, and damage is a warning."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from support.models.tflite_metadata import AXIS, VALUES, About, damaged_root, finished, metadata, with_files
from support.models.tflite_writer import ModelBuilder
from support.run.command import Call, call_in
from uaccel.frontend import import_model
from uaccel.model import ImportedModel, Normalisation

PIXELS = About((127.5,), (64.0,))
NAMES = About(files=[("labels.txt", AXIS, "")])
ANIMALS = 'cat\ndog \nguinea "pig"\n\n'
LABELS = ("cat", "dog", 'guinea "pig"')
TOLD = metadata([PIXELS], [NAMES])


def model(
    note: bytes | None = TOLD,
    files: Mapping[str, str | bytes] | None = None,
    name: str = "TFLITE_METADATA",
    channels: int = 2,
) -> bytes:
    """A layer from four pixels of some channels to three classes, with this buffer of metadata."""
    builder, size = ModelBuilder(), 4 * channels
    x = builder.input("x", (1, 2, 2, channels), "int8", scale=0.0078125, zero_point=-1)
    flat = builder.tensor("flat", (1, size), "int8", scale=0.0078125, zero_point=-1)
    weights = np.random.default_rng(0).integers(-90, 90, (3, size)).astype(np.int8)
    y = builder.tensor("y", (1, 3), "int8", scale=0.05, zero_point=0)
    builder.op("RESHAPE", [x, builder.constant("shape", np.array([1, size], np.int32))], [flat])
    builder.op("FULLY_CONNECTED", [flat, builder.constant("w", weights, scale=0.01), None], [y], {})
    builder.output(y)
    if note is not None:
        builder.note("min_runtime_version", b"1.5.0")
        builder.note(name, note)
    return with_files(builder.build(), {"labels.txt": ANIMALS} if files is None else files)


def imported(folder: Path, data: bytes) -> ImportedModel:
    (folder / "m.tflite").write_bytes(data)
    return import_model(folder / "m.tflite")


def test_labels_and_normalisation_are_read(tmp_path: Path) -> None:
    found = imported(tmp_path, model())
    (given,), (made,) = found.signature.inputs, found.signature.outputs
    assert (given.normalisation, given.labels) == (Normalisation((127.5,), (64.0,)), ())
    assert (made.normalisation, made.labels, found.warnings) == (None, LABELS, ())


def test_a_number_for_each_channel_and_values_that_are_labels(tmp_path: Path) -> None:
    about = About((1.5, 2.0), (3.0,))
    files = [("german.txt", VALUES, "de"), ("any.txt", VALUES, ""), ("more.txt", 1, "")]
    note = metadata([about], [About(files=files)])
    found = imported(tmp_path, model(note, {"german.txt": "eins", "any.txt": "one\ntwo\nthree\nfour\n"}))
    assert found.signature.inputs[0].normalisation == Normalisation((1.5, 2.0), (3.0,))
    assert found.signature.outputs[0].labels == ("one", "two", "three", "four")


def test_files_without_metadata_say_nothing(tmp_path: Path) -> None:
    for data in (model(None), model(b"anything", name="min_runtime_version"), model(metadata([], []))):
        found = imported(tmp_path, data)
        assert (found.signature.inputs[0].normalisation, found.warnings) == (None, ())


LEFT_OUT = "labels and normalisation are left out"
DAMAGE: dict[str, tuple[bytes, Mapping[str, str | bytes] | None, str]] = {
    "no flatbuffer": (b"anything", None, r"the metadata of the file cannot be read \(bytes 4 to 8 are b'hing', wanted"),
    "cut off": (TOLD[: len(TOLD) // 2], None, r"the metadata of the file cannot be read \(.*\)"),
    "a root outside": (damaged_root(TOLD), None, r"cannot be read \(a table lies at 1073741824\)"),
    "no archive": (TOLD, {}, r'the metadata of output "y" cannot be used \(File is not a zip file\)'),
    "no such file": (TOLD, {"other.txt": ""}, r'the metadata of output "y" cannot be used \(There is no item named'),
    "no text": (TOLD, {"labels.txt": b"\xff\xfe\xfd"}, r"cannot be used \('utf-8' codec can't decode"),
    "other labels": (TOLD, {"labels.txt": "a\nb"}, r"labels.txt has 2 labels, and the tensor is int8 \[1,3\]"),
    "too large": (TOLD, {"labels.txt": "a\n" * (1 << 20)}, r"labels.txt has 2097152 bytes, and at most 1048576"),
    "channels": (
        metadata([About((1, 2, 3), (1,))], [NAMES]),
        None,
        r'input "x" .*3 means and 1 deviations .* 2 channels',
    ),
    "zero": (metadata([About((1.0,), (0.0,))], [NAMES]), None, r"a mean or deviation is no number to calculate with"),
    "no number": (metadata([About((float("nan"),), (1.0,))], [NAMES]), None, r"a mean or deviation is no number"),
}


@pytest.mark.parametrize(("note", "files", "told"), DAMAGE.values(), ids=DAMAGE)
def test_damage_is_a_warning(note: bytes, files: Mapping[str, str | bytes] | None, told: str, tmp_path: Path) -> None:
    found = imported(tmp_path, model(note, files))
    (warning,) = found.warnings
    assert re.search(told, warning), warning
    assert warning.endswith(LEFT_OUT)
    assert "\n" not in warning


def test_one_damaged_tensor_leaves_out_no_other(tmp_path: Path) -> None:
    found = imported(tmp_path, model(metadata([About((1,), (0,))], [NAMES])))
    assert (found.signature.inputs[0].normalisation, found.signature.outputs[0].labels) == (None, LABELS)


def test_metadata_of_another_model_are_left_out(tmp_path: Path) -> None:
    found = imported(tmp_path, model(metadata([PIXELS, PIXELS], [NAMES])))
    assert found.warnings == ("the metadata of the file describe 2 inputs, and it has 1; these are left out",)
    assert found.signature.outputs[0].labels == LABELS


@pytest.mark.parametrize("seed", range(3))
def test_no_damage_stops_a_model(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        note = bytearray(TOLD)
        for place in rng.integers(0, len(note), rng.integers(1, 8)):
            note[place] = rng.integers(0, 256)
        found = imported(tmp_path, model(bytes(note[: rng.integers(1, len(note))] if rng.integers(3) == 0 else note)))
        assert len(found.warnings) <= 2
        assert all("\n" not in warning for warning in found.warnings)


def test_a_vector_that_claims_more_than_there_is(tmp_path: Path) -> None:
    note = bytearray(finished({3: [{2: [{}] * 5}]}))
    place = bytes(note).rindex((5).to_bytes(4, "little"))
    note[place : place + 4] = (1 << 29).to_bytes(4, "little")
    (warning,) = imported(tmp_path, model(bytes(note))).warnings
    assert f"a vector claims {1 << 29} entries" in warning


PROGRAM = """
#include <stdio.h>
#include "tvmgen_m.h"
static const char *const labels[] = TVMGEN_M_Y_LABELS;
int main(void)
{
    for (unsigned i = 0; i < sizeof labels / sizeof *labels; i++) {
        puts(labels[i]);
    }
    printf("%.3f\\n", (double)((255.0f - TVMGEN_M_X_MEAN) / TVMGEN_M_X_STD));
    return 0;
}
"""


@pytest.mark.parametrize("compiler", [("cc", "-std=c99", "-pedantic"), ("c++", "-x", "c++", "-std=c++11")])
def test_the_header_has_them_as_macros(
    compiler: Sequence[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.tflite").write_bytes(model())
    done = call_in(capfd)("compile", tmp_path / "m.tflite", "-o", f"{tmp_path}/out/")
    assert done.status == 0, done.err
    (header,) = (tmp_path / "out").rglob("tvmgen_m.h")
    (tmp_path / "main.c").write_text(PROGRAM)
    words = [*compiler, "-Wall", "-Wextra", "-Werror", f"-I{header.parent}", "main.c", "-o", "program"]
    subprocess.run(words, cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [*LABELS, "1.992"]


def test_json_tells_them_and_flash_does_not_hold_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call: Call = call_in(capfd)
    (tmp_path / "m.tflite").write_bytes(model())
    report = call(
        "run", tmp_path / "m.tflite", "--verify", "--project", tmp_path / "project", "--details", "--json"
    ).report
    assert report["inputs"]["x"]["normalisation"] == {"mean": [127.5], "std": [64.0]}
    assert "guinea" not in "".join(path.read_text() for path in (tmp_path / "project").rglob("*.c"))
    (tmp_path / "run.json").write_text(json.dumps(report))
    assert call("report", tmp_path / "run.json", "-o", tmp_path / "page.html").status == 0
    again = call("run", tmp_path / "project", "--json").report
    assert again["inputs"] == report["inputs"]
