"""What to compile, as one object, and the command that does the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.models.networks import OWN
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError
from uaccel.partition import Wishes
from uaccel.runner.job import Job

GESTURE = OWN / "gesture.tflite"


def test_a_job_says_which_command_repeats_it(tmp_path: Path) -> None:
    assert Job.of(GESTURE).command() == f"uaccel compile {GESTURE} --board host"
    job = Job.of(
        tmp_path / "a model.onnx",
        "mps2_an386",
        ["npu", "matrix8"],
        name="x",
        options=EmitOptions(workspace_io=True),
        objective="energy",
        wishes=Wishes("cost", pins=(("conv_2d_*", "npu"),)),
        cpu_fallback=True,
        records=tmp_path / "m.json",
        input_shapes={"in": (1, 3)},
    )
    assert job.command("run") == (
        f"uaccel run '{tmp_path}/a model.onnx' --board mps2_an386 --name x --workspace-io --input-shape in:1,3 "
        "--accelerator npu --accelerator matrix8 --choose cost --pin 'conv_2d_*=npu' --fallback cpu --objective energy "
        "--records m.json"
    )
    with pytest.raises(UaccelError, match=r"^favour 'sped' is unknown; wanted balanced, speed, size or ram$"):
        Job.of(GESTURE, favour="sped")


def test_what_it_compiles_says_the_same() -> None:
    compiled = Job.of(GESTURE, accelerators=["matrix8"]).compiled()
    header = next(iter(compiled.generated.public_headers.values()))
    assert "uaccel compile gesture.tflite --board host" in header
    assert "--accelerator matrix8" in header


def test_a_step_that_lowers_tells_how_far_it_is() -> None:
    class Steps:
        """As the command line shows them."""

        def __init__(self) -> None:
            self.told: list[tuple[str, int, int]] = []
            self.at = ""

        def __call__(self, step: str) -> None:
            self.at = step

        def count(self, done: int, total: int) -> None:
            self.told.append((self.at, done, total))

    steps = Steps()
    compiled = Job.of(OWN / "gesture.tflite").compiled(steps)
    bindings = steps.told[0][2]
    assert bindings >= len(compiled.program.layers)
    assert steps.told == [("lower", done, bindings) for done in range(bindings)]
