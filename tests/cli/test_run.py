"""`uaccel run --board host`: outputs, inputs, verification, and what it reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.networks import OWN
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import Array, Tflm, random_inputs
from support.run.command import Call, is_exact, process
from uaccel.model import write_npz

GESTURE, BRANCHES, MIXED, INT16 = (OWN / f"{name}.tflite" for name in ("gesture", "branches", "mixed", "int16"))


def ramp(shape: tuple[int, ...]) -> Array:
    """The default input as the design states it."""
    return np.array([(7 * i + 3) % 256 - 128 for i in range(int(np.prod(shape)))], np.int8).reshape(shape)


def save(path: Path, arrays: Mapping[str, Any]) -> None:
    np.savez(path, **arrays)


def tensor(report: dict[str, Any], name: str) -> Array:
    entry = report["outputs"][name]
    return np.array(entry["data"], entry["dtype"]).reshape(entry["shape"])


def test_the_report_holds_what_the_design_promises(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call("run", BRANCHES, "--board", "host", "--verify", "--repeat", "3", "--json")
    assert done.status == 0
    assert list(tmp_path.iterdir()) == []
    report = done.report
    assert (report["model"], report["board"], report["accelerators"]) == ("branches", "host", [])
    assert (report["instructions"], report["accelerator_cycles"]) == (None, 0)
    assert (report["offloaded"], report["fallback"]) == ([], [])
    assert is_exact(report)
    assert report["runs"] == 3
    for layer in report["layers"]:
        assert {type(layer[key]) for key in ("name", "op", "engine", "reason")} == {str}
        assert layer["calls"] in (0, 3)
        assert (layer["instructions"], layer["cycles"], layer["code"]) == (None, 0, None)
    assert sum(layer["calls"] for layer in report["layers"]) > 3 * 20
    check_sizes(report)

    values = [ramp((1, 12, 12, 4)), ramp((1, 6, 6, 8))]
    for name, wanted in zip(report["outputs"], Tflm(BRANCHES.read_bytes()).run(values), strict=True):
        assert set(report["outputs"][name]) == {"shape", "dtype", "data"}
        np.testing.assert_array_equal(tensor(report, name), wanted)
        assert all(type(number) is int for number in report["outputs"][name]["data"])


def check_sizes(report: dict[str, Any]) -> None:
    ram, flash = report["ram"], report["flash"]
    bounds = {"arena_lower_bound", "arena_bounds"}
    assert set(ram) == bounds | {"arena", "io", "static", "stack", "stack_static", "session", "total"}
    assert set(flash) == {"weights", "code", "startup", "session", "total"}
    assert (ram.pop("stack_static"), flash.pop("startup")) == (None, None), (
        "a process has no call graph and no start-up"
    )
    assert type(ram.pop("arena_bounds")) is str
    assert all(type(size) is int for size in (*ram.values(), *flash.values()))
    assert ram["total"] == ram["arena"] + ram["io"] + ram["static"] + ram["stack"]
    assert flash["total"] == flash["weights"] + flash["code"]
    assert 0 <= ram["static"] < 64
    assert 100 < ram["stack"] < 16384
    assert 1000 < flash["code"] < 200_000
    assert flash["session"] > 0


@pytest.mark.slow
def test_without_verify_nothing_is_said_of_it(small: Path, call: Call) -> None:
    assert "verify" not in call("run", small, "--json").report


@pytest.mark.slow
def test_samples_in_are_samples_out(tmp_path: Path, call: Call) -> None:
    """A batch through files: as many outputs as inputs, each the reference's, repeated or not."""
    samples = np.concatenate([values[0] for values in random_inputs(GESTURE.read_bytes(), 7, 9)])
    np.savez(tmp_path / "in.npz", motion=samples)
    options = ("--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "out.npz", "--repeat", "2", "--verify")
    report = call("run", GESTURE, *options, "--json").report
    assert report["runs"] == 18
    reference = Tflm(GESTURE.read_bytes())
    wanted = np.concatenate([reference.run([sample[np.newaxis]])[0] for sample in samples])
    with np.load(tmp_path / "out.npz") as stored:
        assert stored.files == ["softmax_1"]
        assert stored["softmax_1"].dtype == np.int8
        np.testing.assert_array_equal(stored["softmax_1"], wanted)
    np.testing.assert_array_equal(tensor(report, "softmax_1"), wanted)


@pytest.mark.slow
def test_what_was_written_can_be_read_again(tmp_path: Path, call: Call) -> None:
    """One sample keeps the tensor's shape; a stack along a new axis is a batch as well."""
    first, second = random_inputs(BRANCHES.read_bytes(), 8, 2)
    names = ("image", "context")
    save(tmp_path / "one.npz", dict(zip(names, first, strict=True)))
    stacks = (np.stack(pair) for pair in zip(first, second, strict=True))
    save(tmp_path / "two.npz", dict(zip(names, stacks, strict=True)))
    for file in ("one", "two"):
        done = call("run", BRANCHES, "--inputs", tmp_path / f"{file}.npz", "--outputs", tmp_path / f"{file}_out.npz")
        assert done.status == 0
    with np.load(tmp_path / "one_out.npz") as one, np.load(tmp_path / "two_out.npz") as two:
        assert one.files == two.files == ["mul_2", "fully_connected_1", "arg_max_1"]
        for name in one.files:
            assert one[name].shape[0] == 1
            assert two[name].shape == (2, *one[name].shape[1:])
            np.testing.assert_array_equal(two[name][:1], one[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "name", "wanted"),
    [
        (INT16, "sound", np.array([-125, -118, -111], np.int16)),
        (MIXED, "samples", np.array([-125 / 128, -118 / 128, -111 / 128], np.float32)),
    ],
    ids=["int16", "float32"],
)
def test_the_ramp_of_other_types(model: Path, name: str, wanted: Array, tmp_path: Path, call: Call) -> None:
    """The same numbers; floats from -1 to 1."""
    by_default = call("run", model, "--json").report
    (shape,) = (entry["shape"] for entry in by_default["inputs"].values())
    whole = ramp(tuple(shape)).astype(wanted.dtype) / (128 if wanted.dtype == np.float32 else 1)
    np.testing.assert_array_equal(whole.ravel()[:3], wanted)
    save(tmp_path / "in.npz", {name: whole.astype(wanted.dtype)})
    given = call("run", model, "--inputs", tmp_path / "in.npz", "--json").report
    assert given["outputs"] == by_default["outputs"]


@pytest.mark.slow
def test_floats_are_numbers_in_json(call: Call) -> None:
    report = call("run", MIXED, "--verify", "--json").report
    assert report["verify"]["bit_exact"] is True
    assert {entry["dtype"] for entry in report["outputs"].values()} == {"float32"}
    assert all(type(number) is float for number in report["outputs"]["exp_1"]["data"])
    assert [entry["op"] for entry in report["fallback"]] != []
    assert all({type(text) for text in entry.values()} == {str} for entry in report["fallback"])
    assert all(set(entry) == {"layer", "op", "reason"} for entry in report["fallback"])


@pytest.mark.slow
def test_a_project_can_be_kept_and_built_by_hand(small: Path, tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "kept"
    assert call("run", small, "--project", folder).status == 0
    assert (folder / "CMakeLists.txt").is_file()
    assert (folder / "model/codegen/host/include/tvmgen_small.h").is_file()
    again = call("run", small, "--project", folder)
    assert again.status == 1
    assert again.complaint == f"--project {folder} exists already; name a folder that does not"


NAMES = ["same", "same", "file", "allow_pickle", "a/b", "../up", "é", "", "x.npy", 'quo"te', "new\nline"]


@pytest.mark.slow
def test_any_tensor_name_survives_json_and_files(tmp_path: Path, call: Call) -> None:
    """Names are the model's own, made to differ where they do not; an output file serves as an input file."""
    builder = ModelBuilder()
    for name in NAMES:
        x = builder.input(name, (1, 2), "int8", scale=0.5)
        y = builder.tensor(name, (1, 2), "int8", scale=0.5)
        builder.op("RELU", [x], [y])
        builder.output(y)
    model = tmp_path / "model.tflite"
    model.write_bytes(builder.build())
    report = call("run", model, "--outputs", tmp_path / "out.npz", "--verify", "--json").report
    assert len(report["inputs"]) == len(report["outputs"]) == len(NAMES)
    assert {name for name in NAMES if name} <= {*report["inputs"], *report["outputs"]}
    with np.load(tmp_path / "out.npz") as stored:
        assert stored.files == list(report["outputs"])
        arrays = dict(zip(report["inputs"], (stored[name] for name in stored.files), strict=True))
    with (tmp_path / "in.npz").open("wb") as stream:
        write_npz(stream, arrays)
    again = call("run", model, "--inputs", tmp_path / "in.npz", "--json").report
    assert again["outputs"] == report["outputs"], "RELU twice is RELU once"


BROKEN_KERNEL = """
import shutil
from pathlib import Path
from uaccel.util import files
from uaccel.runner import execute
from uaccel.codegen import header as headers
from uaccel.session.link import Timeouts
copy = Path({folder!r}) / "firmware"
shutil.copytree(files.data_dir("firmware"), copy)
header = copy / "kernels/common/uaccel_fixedpoint.h"
text = header.read_text()
start = text.index("{{\\n", text.index("int32_t uaccel_clamp(int32_t value")) + 2
header.write_text("#include <stdlib.h>\\n" + text[:start] + {statement!r} + text[start:])
headers.data_dir = lambda name: copy
execute.HOST_TIMEOUTS = Timeouts(run=2)
"""


def with_clamp(folder: Path, statement: str) -> str:
    """A prelude after which kernels are built that do something more before they clamp ``value``."""
    return BROKEN_KERNEL.format(folder=str(folder), statement=statement)


WRONG = "static int calls; if (calls++ == {number}) {{ return value > low ? low : high; }}"


def test_a_wrong_bit_is_found_and_is_status_3(small: Path, tmp_path: Path) -> None:
    """The JSON is there all the same: it says where."""
    prelude = with_clamp(tmp_path, WRONG.format(number=2))
    done = process("run", small, "--verify", "--json", "--outputs", tmp_path / "out.npz", prelude=prelude)
    assert done.status == 3
    verify = done.report["verify"]
    assert verify["bit_exact"] is False
    difference = verify["first_difference"]
    assert (difference["sample"], difference["output"], difference["index"]) == (0, "output_0", [0, 0, 0, 2])
    assert difference["got"] != difference["expected"]
    assert done.complaint == (
        f'verification failed: sample 0, output "output_0", element [0,0,0,2] is {difference["got"]}, '
        f"expected {difference['expected']}; {difference['differing']} of {difference['size']} elements differ; "
        "--verify layers looks for the layer"
    )
    assert tensor(done.report, "output_0").ravel()[2] == difference["got"]
    with np.load(tmp_path / "out.npz") as stored:
        assert stored["output_0"].ravel()[2] == difference["got"]


@pytest.mark.slow
def test_the_first_difference_names_its_sample(small: Path, tmp_path: Path) -> None:
    samples = np.concatenate([values[0] for values in random_inputs(small.read_bytes(), 9, 4)])
    np.savez(tmp_path / "in.npz", input_0=samples)
    prelude = with_clamp(tmp_path, WRONG.format(number=2 * 36 + 3 * 3 + 1))
    done = process("run", small, "--verify", "--inputs", tmp_path / "in.npz", prelude=prelude)
    assert done.status == 3
    assert done.complaint.startswith('verification failed: sample 2, output "output_0", element [0,1,0,1] is ')
    assert "Verified" not in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("*(volatile int *)0 = 1;", "signal 11"),
        ("_Exit(0);", "exit status 0"),
        ("static volatile int on = 1; while (on) { }", "2"),
    ],
    ids=["crashes", "stops early", "hangs"],
)
def test_a_device_that_fails_is_status_4(small: Path, tmp_path: Path, statement: str, words: str) -> None:
    prelude = with_clamp(tmp_path, statement)
    done = process("run", small, "--outputs", tmp_path / "out.npz", "--json", prelude=prelude)
    assert done.status == 4
    assert done.report == {"error": {"message": done.complaint, "kind": "DeviceError", "status": 4}}
    assert words in done.complaint
    assert [path.name for path in tmp_path.iterdir()] == ["firmware"]


@pytest.mark.slow
def test_what_the_device_logs_is_shown(small: Path, tmp_path: Path) -> None:
    """Once: the profile's second build runs the model again, and is no news."""
    logs = 'static int said; void uaccel_log(unsigned char, const char *); if (said++ == 0) { uaccel_log(2, "warm"); }'
    done = process("run", small, "--json", "--profile", prelude=with_clamp(tmp_path, logs))
    assert done.status == 0
    assert [line for line in done.err.splitlines() if "warm" in line] == ["uaccel: the firmware: warning: warm"]


def test_people_see_outputs_and_the_proof(small: Path, call: Call) -> None:
    done = call("run", small, "--verify")
    assert done.status == 0
    assert "output_0 (int8 1x4x3x3): " in done.out
    assert "Verified  every output of 8 samples equals the exact meaning" in done.out
