"""`uaccel run --against DIR`: CMSIS-NN computes the same layers, and takes what others counted of it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from support.models.drawn_layers import drawn
from support.models.many import Row, many
from support.models.networks import OWN, ROOT
from support.models.reducing_ops import batch_matmul, softmax, transpose_conv
from support.models.single_op import Activation
from support.run.command import Call, call_in
from uaccel.peer.against import PARTS, compared

M4, M55 = "mps2_an386", "mps3_an547"
GESTURE = OWN / "gesture.tflite"
COUNTED: dict[str, Any] = json.loads((ROOT / "benchmarks" / "layers.json").read_text())
# Ours is built with -O2 and has the call around it; the stored figure is the better of -O2 and -O3 without that.
FEWER, MORE, AROUND = 0.94, 1.08, 60


@pytest.fixture
def checkout() -> Path:
    """CMSIS-NN; tests that compute with it are skipped where there is none."""
    folder = Path(os.environ.get("UACCEL_CMSIS_NN") or ROOT.parent / "shared" / "peers" / "cmsis_nn")
    if not (folder / PARTS[0]).is_file():
        pytest.skip("CMSIS-NN is in no folder that UACCEL_CMSIS_NN names")
    return folder


@pytest.fixture
def hollow(tmp_path: Path) -> Path:
    """What looks like a checkout, for refusals that need none."""
    for part in PARTS:
        (tmp_path / "nn" / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "nn" / part).touch()
    return tmp_path / "nn"


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


FLOAT = Row("SOFTMAX", [Activation((3, 10), "float32")], [Activation((3, 10), "float32")], {"beta": 1.0})

# Refusals: what is wrong, and what to do.

REFUSED: dict[str, tuple[list[Any], str]] = {
    "no folder": (
        [GESTURE, "-b", M4, "--against", "{tmp}/none"],
        "{tmp}/none: there is no such folder; clone https://",
    ),
    "no checkout": ([GESTURE, "-b", M4, "--against", "{tmp}"], "{tmp}: it has no Include/arm_nnfunctions.h; name a "),
    "no Arm core": ([GESTURE, "-b", "qemu_riscv32", "--against", "{nn}"], "Arm cores, and qemu_riscv32 has none; take"),
    "a computer": ([GESTURE, "-b", "host", "--against", "{nn}"], "is for Arm cores, and host has none; take one, for "),
    "no emulation": ([GESTURE, "-b", "nucleo_f746zg", "--against", "{nn}"], "nucleo_f746zg is none; take for example "),
    "a port": ([GESTURE, "-b", M4, "--port", "x", "--against", "{nn}"], "counts instructions of emulated boards, and "),
    "floats": (
        ["{tmp}/float.tflite", "-b", M4, "--against", "{nn}"],
        "no layer of float.tflite (softmax_0: no operation for nn.softmax); have ",
    ),
    "ONNX": (["m.onnx", "-b", M4, "--against", "{nn}"], "for .tflite files, whose arithmetic CMSIS-NN has; convert m."),
    "an accelerator": (
        [GESTURE, "-b", M4, "-a", "npu", "--against", "{nn}"],
        "what the CPU takes; leave --accelerator",
    ),
    "a template": (
        [GESTURE, "-b", M4, "--template", "{tmp}", "--against", "{nn}"],
        "uaccel's own; leave --template aw",
    ),
    "a project": (
        ["{tmp}", "--against", "{nn}"],
        "--against is for a model file, and MODEL is a folder; leave it away",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_compared_is_refused(call: Call, tmp_path: Path, hollow: Path, name: str) -> None:
    words, said = REFUSED[name]
    (tmp_path / "float.tflite").write_bytes(many([FLOAT]))
    places = {"tmp": str(tmp_path), "nn": str(hollow)}
    done = call("run", *(str(word).format(**places) for word in words))
    assert done.status != 0
    assert said.format(**places) in done.complaint


# What CMSIS-NN computes is right to the bit, and its cost is what others counted.

ROWS = {
    "transposed": transpose_conv((1, 3, 5, 2), (3, 2), (2, 1)),
    "transposed, deep": transpose_conv((1, 3, 4, 24), (2, 3), (1, 2), "VALID", weight_scales=(0.01, 0.02, 0.03)),
    "product": batch_matmul((2, 3, 17), (2, 5, 17), adj_y=True),
    "product, int16": batch_matmul((2, 3, 17), (2, 5, 17), adj_y=True, dtype="int16", given=((0.1, 0), (0.05, 0))),
    "product with a constant": batch_matmul((3, 17), (17, 5), constant="rhs"),
    "softmax": softmax((3, 10)),
    "softmax, wider": softmax((3, 10), output_dtype="int16"),
    "softmax, int16": softmax((3, 10), dtype="int16", output_dtype="int16"),
    "product otherwise": batch_matmul((2, 3, 17), (2, 17, 5)),
}


@pytest.mark.slow
@pytest.mark.parametrize("board", [M4, M55])
def test_functions_give_the_exact_meaning(call: Call, tmp_path: Path, checkout: Path, board: str) -> None:
    (tmp_path / "rows.tflite").write_bytes(many(ROWS))
    found = call("run", tmp_path / "rows.tflite", "-b", board, "--against", checkout, "--json").report["against"]
    assert found["outputs_equal"]
    assert [row["equal"] for row in found["layers"]] == [True] * (len(ROWS) - 1)
    (missing,) = found["missing"]
    assert "the right one transposed" in missing["reason"]
    assert found["total"]["theirs"] == sum(row["theirs"] for row in found["layers"])


@pytest.mark.long
@pytest.mark.parametrize("board", [M4, M55])
@pytest.mark.parametrize("kind", [kind for kind in COUNTED["boards"][M4] if not re.match("network|SVDF|.*LSTM", kind)])
def test_costs_are_those_that_others_counted(call: Call, tmp_path: Path, checkout: Path, kind: str, board: str) -> None:
    (tmp_path / "drawn.tflite").write_bytes(drawn(kind, COUNTED["seed"], COUNTED["layers"]))
    found = call("run", tmp_path / "drawn.tflite", "-b", board, "--against", checkout, "--json").report["against"]
    rows = sorted(found["layers"], key=lambda row: int(row["layer"].rpartition("_")[2]))
    wanted = COUNTED["boards"][board][kind]["cmsis_nn"]
    assert found["outputs_equal"]
    assert [row["equal"] for row in rows] == [True] * COUNTED["layers"]
    for row, stored in zip(rows, wanted, strict=True):
        assert FEWER * stored <= row["theirs"] <= MORE * stored + AROUND, row["layer"]


# Two reports side by side.


def _layer(name: str, instructions: int | None, engine: str, region: str | None = None) -> dict[str, Any]:
    return {"name": name, "instructions": instructions, "engine": engine, "region": region}


def test_layers_are_joined_by_name_and_regions_are_added_up() -> None:
    ours = [_layer("a", 50, "cpu", "a_to_b"), _layer("b", None, "cpu", "a_to_b"), _layer("c", 7, "cpu")]
    ours += [_layer("d", 30, "cpu"), _layer("view", None, "cpu"), _layer("e", 10, "cpu")]
    theirs = [_layer(name, 100, "cmsis_nn") for name in ("a", "b", "d", "e")] + [_layer("c", 70, "cpu")]
    reports = {"layers": ours}, {"layers": theirs, "fallback": [{"layer": "c", "reason": "floats"}]}
    found = compared(reports[0], reports[1] | {"verify": {"first_wrong_layer": {"layer": "d"}}})
    assert found["layers"] == [
        {"layer": "a+b", "ours": 50, "theirs": 200, "ratio": 0.25, "equal": True},
        {"layer": "d", "ours": 30, "theirs": 100, "ratio": 0.3, "equal": False},
        {"layer": "e", "ours": 10, "theirs": 100, "ratio": 0.1, "equal": None},
    ]
    assert found["missing"] == [{"layer": "c", "ours": 7, "reason": "floats"}]
    assert found["total"] == {"ours": 90, "theirs": 400, "ratio": 0.225}
