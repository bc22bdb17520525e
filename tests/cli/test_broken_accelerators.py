"""Accelerators that are broken on purpose: ``--verify`` finds each on every network, ``--verify layers`` the layer."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from support.hostile.broken import ZOO, Broken
from support.models.networks import OWN
from support.run.command import Call
from uaccel.util.files import data_dir

NETWORKS = ("gesture", "residual", "branches")
each_fault = pytest.mark.parametrize("broken", ZOO, ids=lambda broken: broken.fault)


@pytest.mark.parametrize("broken", ZOO, ids=lambda broken: broken.fault)
def test_every_fault_can_still_be_planted(broken: Broken, tmp_path: Path) -> None:
    assert broken.make(tmp_path).is_dir()


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@each_fault
def test_it_is_found(broken: Broken, network: str, tmp_path: Path, call: Call) -> None:
    done = call("run", OWN / f"{network}.tflite", "-a", broken.make(tmp_path), "--verify", "--json")
    assert done.status == 3, f"{broken.fault} passes"
    assert done.complaint.startswith("verification failed: ")


QUICK = "only the second inference wrong"


@pytest.mark.parametrize(
    "broken",
    [pytest.param(each, id=each.fault, marks=() if each.fault == QUICK else pytest.mark.slow) for each in ZOO],
)
def test_the_layer_is_named(broken: Broken, tmp_path: Path, call: Call) -> None:
    folder = broken.make(tmp_path)
    done = call("run", OWN / "gesture.tflite", "-a", folder, "--verify", "layers", "--json")
    assert done.status == 3
    if "expand" in broken.fault:
        assert (
            f"{folder}/accelerator.py: expand of operation 'conv2d' changes what the model means: sample 0, "
            in done.complaint
        )
        return
    told = done.report["verify"]["first_wrong_layer"]
    assert (told["engine"], told["op"]) in [(broken.accelerator, kind) for kind in broken.kinds]
    assert told["part_of"] == ("conv_2d_0_to_fully_connected_7" if broken.accelerator == "npu" else None)
    assert f'"{told["layer"]}" ({told["op"]} on {broken.accelerator})' in done.complaint


def own_arithmetic(folder: Path, *, golden: str, tolerance: str = "None") -> Path:
    """nuc_fpga with a matrix engine whose sums are 40,000 too large, and what its designers say of that."""
    late = next(broken for broken in ZOO if broken.fault == "results a frame late")
    adding = late.wrong.replace("out[i] = late[i];", "out[i] += 40000;").replace("late[i] = now;", "(void)now;")
    made = replace(late, wrong=adding.replace("    static int late[64];\n", "")).make(folder)
    path = made / "accelerator.py"
    text = path.read_text()
    right = '"dense", "fully_connected", multiply, sums.int8_only, cycles, sums.fully_connected, roundings=ROUNDINGS'
    assert right in text
    path.write_text(text.replace(right, f"{right}, golden={golden}, tolerance={tolerance}"))
    return made


GOLDEN = "lambda region, x: x[0].astype('int32') @ region.operands[1].value.astype('int32').T + {}"


@pytest.mark.slow
def test_a_golden_is_what_a_layer_is_held_to(tmp_path: Path, call: Call) -> None:
    folder = own_arithmetic(tmp_path, golden=GOLDEN.format(40000))
    done = call("run", OWN / "gesture.tflite", "-a", folder, "--verify", "--json")
    assert done.status == 0, done.err
    verify = done.report["verify"]
    assert (verify["bit_exact"], verify["within_tolerance"], verify["first_wrong_layer"]) == (False, True, None)
    assert verify["largest_difference"] > 0
    assert verify["snr_db"] is not None
    assert 0 <= verify["top_class_agrees"] <= 1
    told = call("run", OWN / "gesture.tflite", "-a", folder, "--verify").out
    assert "as near to its meaning as its accelerator states of 8 samples; the outputs differ " in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("golden", "words"),
    [
        (GOLDEN.format(39999), '"fully_connected_7" (fully_connected on nuc_fpga), element [0,0] is '),
        (
            "lambda region, x: x[0]",
            "given fully_connected_7, returned int8 [1, 24]; wanted ",
        ),
        ("lambda region, x: 1 / 0", "golden of operation 'dense', given fully_connected_7"),
    ],
)
def test_a_golden_that_is_not_what_the_device_does(golden: str, words: str, tmp_path: Path, call: Call) -> None:
    done = call("run", OWN / "gesture.tflite", "-a", own_arithmetic(tmp_path, golden=golden), "--verify", "--json")
    assert done.status in (1, 3)
    assert words in done.complaint


@pytest.mark.slow
def test_the_tolerance_of_an_operation_is_judged_on_what_its_layer_got(tmp_path: Path, call: Call) -> None:
    """No layer behind it is blamed, although all of them differ from the model by far more."""
    folder = own_arithmetic(tmp_path, golden="None", tolerance="40000")
    done = call("run", OWN / "gesture.tflite", "-a", folder, "--verify", "layers", "--json")
    assert done.status == 0, done.err
    assert (done.report["verify"]["first_wrong_layer"], done.report["verify"]["bit_exact"]) == (None, False)
    folder = own_arithmetic(tmp_path / "less", golden="None", tolerance="39999")
    done = call("run", OWN / "gesture.tflite", "-a", folder, "--verify", "--json")
    assert done.status == 3
    assert done.report["verify"]["first_wrong_layer"]["layer"] == "fully_connected_7"


@pytest.mark.slow
def test_so_many_samples_as_are_asked_for(call: Call) -> None:
    gesture = OWN / "gesture.tflite"
    verify = call("run", gesture, "--verify", "--samples", 3, "--seed", 5, "--json").report["verify"]
    assert (verify["samples"], verify["seed"], verify["tensors"]) == (3, 5, ["fully_connected_7"])
    for words in (("--samples", 3), ("--verify", "--samples", 3, "--inputs", OWN / "gesture_samples.npz")):
        done = call("run", gesture, *words)
        assert done.status == 1
        assert done.complaint == "--samples is for --verify without --inputs and without --sequence; leave it away"


# What the model of a device does besides, in a process that talks to the host.
BESIDES = {
    "it prints": 'printf("hello\\n"); fflush(stdout);',
    "a child prints": 'if (fork() == 0) { printf("hello\\n"); exit(0); }',
    "a child stays": "if (fork() == 0) { sleep(600); exit(0); }",
    "it closes its output": "close(1);",
}


@pytest.mark.slow
@pytest.mark.parametrize("besides", BESIDES.values(), ids=BESIDES)
def test_what_a_device_does_besides_is_no_part_of_the_result(besides: str, tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "matrix8"
    shutil.copytree(data_dir("accelerators") / "matrix8", folder, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    device, clear = folder / "device" / "matrix8_device.c", "static void clear(void)\n{\n"
    text = device.read_text()
    assert clear in text
    headers = "#define _POSIX_C_SOURCE 200809L\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
    device.write_text(headers + text.replace(clear, f"{clear}    {besides}\n"))
    done = call("run", OWN / "gesture.tflite", "-a", folder, "--verify", "--json")
    assert (done.status, done.report["verify"]["bit_exact"]) == (0, True), done.err
