"""Applications in C around generated models: written for microTVM's interface, with two models, with mistakes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from support.device.generated import Unpacked, archive, cc, run
from support.models.networks import OWN
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.util.files import accelerator_folders, data_dir

HERE = Path(__file__).parent
BRANCHES, GESTURE, RESIDUAL = (OWN / f"{name}.tflite" for name in ("branches", "gesture", "residual"))


def joined(arrays: list[Array]) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


@pytest.mark.parametrize("pool", ["", "sram"])
def test_an_application_for_microtvms_interface_links_and_runs(pool: str, tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(BRANCHES, workspace_pool=pool))
    program = tree.program(HERE / "app_microtvm_style.c", "-O1", *(["-DPOOL"] if pool else []))
    data = BRANCHES.read_bytes()
    reference = Tflm(data)
    for values in random_inputs(data, 4, 8):
        assert run(program, joined(values)) == joined(reference.run(values))


def test_an_application_for_the_packed_interface_does_not_link(tmp_path: Path) -> None:
    """It would compute with what lies where the structures should."""
    tree = Unpacked(tmp_path, archive(BRANCHES))
    sources = [str(path) for path in (HERE / "app_packed.c", *tree.sources)]
    command = ["gcc", *sources, f"-I{tree.include}", "-lm", "-o", str(tmp_path / "app")]
    for flags in ([], ["-fno-pie", "-no-pie"], ["-O2", "-flto"]):
        done = subprocess.run([*command, *flags], capture_output=True, text=True)
        assert done.returncode != 0
        assert "undefined reference to `tvmgen_branches_run'" in done.stderr


def test_a_null_pointer_is_refused_and_nothing_written(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(BRANCHES, workspace_pool="sram"))
    assert run(tree.program(HERE / "app_null_pointers.c", "-O1")) == b""


def test_two_models_and_a_twin_in_one_image(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(GESTURE), archive(RESIDUAL), archive(GESTURE, name="twin"))
    program = tree.program(HERE / "app_two_models.c", "-O1")
    motions = random_inputs(GESTURE.read_bytes(), 5, 4)
    images = random_inputs(RESIDUAL.read_bytes(), 5, 4)
    gesture, residual = Tflm(GESTURE.read_bytes()), Tflm(RESIDUAL.read_bytes())
    for motion, image in zip(motions, images, strict=True):
        once = joined([*gesture.run(motion), *gesture.run(motion), *residual.run(image)])
        assert run(program, joined([*motion, *image])) == once + once


def test_an_application_includes_every_bundled_accelerator(tmp_path: Path) -> None:
    """Two headers with one guard would hide the second one's functions."""
    headers = [folder / "driver" / f"{name}.h" for name, folder in accelerator_folders().items()]
    opened = re.findall(r"TVMDevice\w+Activate", "".join(header.read_text() for header in headers))
    assert len(opened) == len(headers) - 1  # dot4 is called as instructions
    lines = [f'#include "{header.name}"' for header in headers]
    lines += ["int32_t (*all[])(void *) = {", *(f"    {hook}," for hook in opened), "};"]
    (tmp_path / "app.c").write_text("\n".join(lines) + "\n")
    folders = [data_dir("firmware") / "include", *(header.parent for header in headers)]
    cc(tmp_path / "app.c", "-c", include=folders, output=tmp_path / "app.o")


def test_models_share_kernel_headers_byte_for_byte() -> None:
    """Unpacking two archives into one folder replaces a header by itself."""
    first, second = archive(GESTURE), archive(RESIDUAL)
    common = set(first) & set(second) - {"metadata.json", "report.json"}
    assert "codegen/host/include/uaccel_kernel.h" in common
    assert {name for name in common if first[name] != second[name]} == set()
