"""``run DIR --verify``: a folder is held to its model as ``run MODEL`` is, layers and hidden tensors among it."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.test_broken_accelerators import GOLDEN, own_arithmetic
from support.hostile.broken import ZOO
from support.models.networks import OWN
from support.run.command import Call, Done
from uaccel.util.files import write_tar

GESTURE = OWN / "gesture.tflite"


def project(folder: Path, call: Call, *options: str | Path) -> Path:
    for words in (
        ("compile", GESTURE, *options, "-o", folder / "m.tar"),
        ("create", folder / "m.tar", folder / "project"),
    ):
        assert call(*words).status == 0
    return folder / "project"


@pytest.mark.slow
def test_it_says_what_the_model_says(tmp_path: Path, call: Call) -> None:
    """Two samples suffice to see that layers, hidden tensors and figures are the same."""
    words = ("--verify", "layers", "--samples", "2", "--json")
    made = call("run", project(tmp_path, call, "-a", "nuc_fpga"), *words).report["verify"]
    ours = call("run", GESTURE, "-a", "nuc_fpga", *words).report["verify"]
    assert made["tensors"] == ["fully_connected_7"]
    assert made["layers_compared"] >= 4
    assert made["not_compared"] is None
    assert made | {"layers_compared": 0} == ours | {"layers_compared": 0}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["a row of padding too little", "ties rounded down", "results a frame late"])
def test_the_layer_is_named(fault: str, tmp_path: Path, call: Call) -> None:
    broken = next(each for each in ZOO if each.fault == fault)
    done = call(
        "run",
        project(tmp_path, call, "-a", broken.make(tmp_path), "--fallback", "none"),
        "--verify",
        "layers",
        "--json",
    )
    assert done.status == 3
    told = done.report["verify"]["first_wrong_layer"]
    assert done.complaint.startswith("verification failed: the first wrong layer is layer ")
    assert f'"{told["layer"]}" ({told["op"]} on {told["engine"]})' in done.complaint
    by_fpga = broken.accelerator == "nuc_fpga"
    assert told["engine"] == broken.accelerator or (by_fpga and told["together_with"])


def changed(folder: Path, call: Call, change: Callable[[Any], object]) -> Done:
    """The verification of a project whose archive says something else."""
    made = project(folder, call)
    archive = made / "model.tar"
    with tarfile.open(archive) as tar:
        members = {member.name: tar.extractfile(member) for member in tar}
        files = {name.removeprefix("./"): stream.read() for name, stream in members.items() if stream is not None}
    metadata = json.loads(files["metadata.json"])
    change(metadata["uaccel"])
    files["metadata.json"] = json.dumps(metadata).encode()
    with archive.open("wb") as stream:
        write_tar(stream, files)
    return call("run", made, "--verify", "--json")


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "a tensor that the model has not": (
        lambda own: own["meanings"][0]["tensors"][0].update(name="nonsense"),
        'layer 0 is said to compute tensor "nonsense", which the model has not',
    ),
    "a tensor of another shape": (
        lambda own: own["meanings"][0]["tensors"][0].update(name="softmax_8"),
        'layer 0 is said to compute tensor "softmax_8", which the model has not',
    ),
    "a layer that is not there": (
        lambda own: own["meanings"][2].update(layer=99),
        "meanings[2] is about layers or outputs that there are not",
    ),
    "an output that is not there": (
        lambda own: own["meanings"][1].update(watched=[1]),
        "meanings[1] is about layers or outputs that there are not",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_archives_that_lie(name: str, tmp_path: Path, call: Call) -> None:
    change, words = WRONG[name]
    done = changed(tmp_path, call, change)
    assert done.status == 1, done.err
    assert done.complaint == f"metadata.json of the archive: {words}; compile the model with this uaccel"


@pytest.mark.slow
def test_archives_that_say_nothing(tmp_path: Path, call: Call) -> None:
    done = changed(tmp_path, call, lambda own: own.pop("meanings"))
    assert done.status == 0, done.err
    verify = done.report["verify"]
    assert verify["not_compared"].startswith("the archive does not tell which tensors of the model layers compute, ")
    assert (verify["bit_exact"], verify["tensors"]) == (True, [])


@pytest.mark.slow
def test_a_golden_is_not_in_the_archive(tmp_path: Path, call: Call) -> None:
    made = project(tmp_path, call, "-a", own_arithmetic(tmp_path, golden=GOLDEN.format(40000)))
    verify = call("run", made, "--verify", "--samples", "2", "--json").report["verify"]
    assert verify["not_compared"].startswith("fully_connected_7 not judged: the vendor's own arithmetic is not in ")
    assert (verify["bit_exact"], verify["within_tolerance"]) == (False, True)
    assert verify["snr_db"] is not None
    told = call("run", made, "--verify", "--samples", "2").out
    assert "every layer that was judged is as near to its meaning as its accelerator states" in " ".join(told.split())
