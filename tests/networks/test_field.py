"""The networks that people name: as published, and exact on the CPU and on accelerators, most of them reduced.

Their full sizes are in the slow tests and in benchmarks/networks.py, which pins what they need of memory.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.field import FIELD, field
from support.device.hostlib import HostModel
from support.device.offload import Offloaded, called, offload, run
from support.oracle.exactness import assert_intermediates, assert_same
from support.oracle.oracle import Tflm, random_inputs
from uaccel.pipeline import compile_model

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "networks.py"
RUNS = 2


@dataclass(frozen=True)
class Reduced:
    """A network small enough for every run of the tests, an accelerator that takes part of it, and how many layers.

    ``quick``: with the accelerator in every run too. ``arena``: its bytes, exact, so that a regression shows."""

    name: str
    resolution: int
    width: float
    accelerator: str
    offloaded: int
    arena: int
    quick: bool = False

    def data(self) -> bytes:
        return field(self.name).build(self.resolution, min(20, field(self.name).classes), self.width)


REDUCED = [
    Reduced("mlp", 12, 0.25, "npu", 3, 256, quick=True),
    Reduced("ds_cnn", 49, 0.5, "npu", 12, 5024),
    Reduced("vgg16", 32, 0.25, "nuc_fpga", 16, 17056),
    Reduced("resnet18", 32, 0.25, "nuc_fpga", 21, 9280, quick=True),
    Reduced("resnet50", 32, 0.25, "matrix8", 54, 9344),
    Reduced("squeezenet", 48, 0.5, "conveyor", 29, 16960),
    Reduced("inception_v3", 75, 0.25, "nuc_fpga", 95, 20824),
    Reduced("mobilenet_v1", 32, 0.25, "npu", 29, 4120),
    Reduced("mobilenet_v2", 32, 0.25, "npu_small", 65, 12344),
    Reduced("mobilenet_v3", 32, 0.25, "matrix8", 49, 4120),
    Reduced("mobilenet_v3_small", 32, 0.25, "npu", 98, 2076),
    Reduced("efficientnet_b0", 32, 0.25, "matrix8", 66, 24576),
    Reduced("unet", 32, 0.125, "nuc_fpga", 19, 32768),
    Reduced("ssd_resnet50", 64, 0.125, "nuc_fpga", 65, 18432),
    Reduced("transformer", 16, 0.25, "matrix8", 13, 3072),
]
SLIPPED = 1.2
"""Of the lower bound: where layers are as large as each other, what results lie before their inputs adds up."""
PARAMETERS = {
    "mlp": 669_706,
    "vgg16": 138_357_544,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "squeezenet": 1_235_496,
    "inception_v3": 23_834_568,
    "mobilenet_v1": 4_231_976,
    "mobilenet_v2": 3_504_872,
    "mobilenet_v3": 5_483_032,
    "mobilenet_v3_small": 2_542_856,
    "efficientnet_b0": 5_288_548,
}
"""As torchvision and Keras count them, Inception V3 without its auxiliary head: any layer that differs would show."""
LARGEST = ("vgg16", "inception_v3", "resnet18", "resnet50")
SMALL = {
    ("mlp", "mps2_an386"),
    ("mlp", "qemu_riscv32"),
    ("ds_cnn", "mps2_an386"),
    ("ds_cnn", "qemu_riscv32"),
    ("transformer", "mps2_an386"),
    ("mobilenet_v3_small", "mps2_an386"),
    ("squeezenet", "qemu_riscv32"),
}
QUICK_BOARDS = {("mlp", "mps2_an386"), ("ds_cnn", "qemu_riscv32")}


def rows(slow: bool) -> list[Any]:
    return [pytest.param(row, id=row.name, marks=pytest.mark.long if slow and not row.quick else ()) for row in REDUCED]


def test_the_script_writes_them(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "mlp", "--resolution", "8", "--width", "0.25", "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    data = (tmp_path / "mlp.tflite").read_bytes()
    assert data == field("mlp").build(8, width=0.25)
    assert done.stdout == f"{tmp_path / 'mlp.tflite'}: {len(data)} bytes\n"


def test_the_script_names_those_it_knows() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "lenet"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("networks.py: there is no network lenet; there are mlp, ds_cnn, vgg16, ")


def saved(row: Reduced, folder: Path) -> tuple[Path, bytes]:
    path, data = folder / f"{row.name}.tflite", row.data()
    path.write_bytes(data)
    return path, data


def test_every_network_of_the_field_is_here() -> None:
    assert [row.name for row in REDUCED] == [one.name for one in FIELD]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.long if n in LARGEST else ()) for n in PARAMETERS])
def test_they_have_the_parameters_of_those_published(name: str) -> None:
    resolution = {"mlp": None, "vgg16": None, "inception_v3": 75}.get(name, 32)
    assert field(name).blocks(resolution).parameters == PARAMETERS[name]


@pytest.mark.sample(1)
@pytest.mark.parametrize("row", rows(slow=False))
def test_the_cpu_is_exact(row: Reduced, tmp_path: Path) -> None:
    path, data = saved(row, tmp_path)
    compiled = compile_model(path, board="host")
    reference, host = Tflm(data), HostModel(compiled, optimise="-O0")
    for number, values in enumerate(random_inputs(data, 3, RUNS)):
        expected = reference.run(values)
        for i, (got, wanted) in enumerate(zip(host(*values), expected, strict=True)):
            assert_same(got, wanted.reshape(got.shape), f"run {number}, output {i}")
        assert_intermediates(host, reference, number)
    assert len(np.unique(expected[0])) > 3, "a saturated network would hide errors"
    assert row.arena == compiled.placement.arena <= SLIPPED * compiled.placement.plan.lower_bound


def check(offloaded: Offloaded, data: bytes, runs: int) -> None:
    """The outputs are the reference's."""
    inputs, reference = random_inputs(data, 4, runs), Tflm(data)
    counted = run(offloaded, inputs)
    for number, values in enumerate(inputs):
        outputs = offloaded.compiled.model.signature.outputs
        for spec, wanted in zip(outputs, reference.run(values), strict=True):
            got = counted.results[number].outputs[spec.name]
            assert_same(got, wanted.reshape(got.shape), f'run {number}, output "{spec.name}"')
    assert bool(called(offloaded, counted)) == bool(offloaded.claimed)


@pytest.mark.slow
@pytest.mark.parametrize("row", rows(slow=True))
def test_an_accelerator_takes_a_part_and_it_stays_exact(row: Reduced, tmp_path: Path) -> None:
    path, data = saved(row, tmp_path)
    offloaded = offload(path, [row.accelerator], "host", tmp_path / "project")
    check(offloaded, data, 2)
    assert len(offloaded.claimed) == row.offloaded > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "board"),
    [pytest.param(*pair, marks=() if pair in QUICK_BOARDS else pytest.mark.long) for pair in sorted(SMALL)],
)
def test_small_ones_are_exact_on_emulated_boards(name: str, board: str, tmp_path: Path) -> None:
    (row,) = (row for row in REDUCED if row.name == name)
    path, data = saved(row, tmp_path)
    check(offload(path, [], board, tmp_path / "project"), data, 1)
