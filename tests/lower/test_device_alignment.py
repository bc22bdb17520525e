"""What a device reads and writes lies at multiples of the alignment that its accelerator states, and firmware that is
watched refuses addresses that do not."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from support.models.networks import OWN
from uaccel.errors import DeviceError
from uaccel.runner.compiled import archive_of
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.perform import perform
from uaccel.runner.request import RunRequest
from util.test_cached_runs import Told, request, vendor

ALIGNED = 256


def aligned(tmp_path: Path, *edits: tuple[str, str, str], workspace_io: bool | None = None) -> RunRequest:
    """A run on a vendor's device that wants multiples of 256 bytes; ``edits``: file, what is there, what it becomes."""
    folder = vendor(tmp_path)
    for file, old, new in (("accelerator.py", 'name="matrix8",', f'name="matrix8", alignment={ALIGNED},'), *edits):
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
    wanted = request(OWN / "gesture.tflite", accelerators=(str(folder),))
    return replace(wanted, wishes=ProjectRunOptions(verify="outputs", verified_samples=1), workspace_io=workspace_io)


@pytest.mark.parametrize("workspace_io", [False, True])
def test_all_that_a_device_gets_is_aligned(workspace_io: bool, tmp_path: Path) -> None:
    compiled = aligned(tmp_path, workspace_io=workspace_io).what().compiled(Told())
    program, placement = compiled.program, compiled.placement
    layers = [layer for layer in program.layers if layer.on_accelerator]
    assert len(layers) > 3
    for layer in layers:
        values = [value.name for value in (*layer.inputs, *layer.outputs)]
        places = [*(placement.places[name] for name in values), placement.scratch.get(layer.index)]
        assert all(place.offset % ALIGNED == 0 for place in places if place is not None and place.kind == "arena")
    files = archive_of(compiled)
    c = "".join(content.decode() for name, content in files.items() if name.endswith(".c") and "tvmgen_" in name)
    arrays = re.findall(r"UACCEL_(?:WORKSPACE|IO) UACCEL_ALIGNED\((\d+)\)", c)
    constants = re.findall(r"UACCEL_ALIGNED\((\d+)\) const .*UACCEL_DEVICE_CONSTANT", c)
    assert len(constants) >= len(layers)
    assert arrays
    assert {int(bytes_) for bytes_ in (*arrays, *constants)} == {ALIGNED}


def test_a_device_that_wants_aligned_addresses_is_right(tmp_path: Path) -> None:
    told = Told()
    done = perform(aligned(tmp_path), told)
    assert done.report["verify"]["bit_exact"]
    assert "build the firmware with a hook after every layer" in told.steps  # which checks the addresses


# A driver that works out an address of its own, which is aligned to words only; the device would take it.
WRONG = {
    "asked for": ("uaccel_hal_address(memory)", "(uaccel_hal_address((const char *)memory + 4) - 4u)"),
    "given": (
        "write_from(MATRIX8_ARGUMENT,",
        "uaccel_hal_write32(matrix8, MATRIX8_ARGUMENT, probe + 4u);\n    write_from(MATRIX8_ARGUMENT,",
    ),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", WRONG)
def test_an_address_that_a_driver_works_out_is_checked(how: str, tmp_path: Path) -> None:
    old, new = WRONG[how]
    edits = [("driver/matrix8.c", old, new)]
    if how == "given":
        edits += [
            ("driver/matrix8.c", "static void command(", "static uint32_t probe;\nstatic void command("),
            ("driver/matrix8.c", "    if (found == 0 &&", "    probe = found;\n    if (found == 0 &&"),
        ]
    with pytest.raises(DeviceError) as refused:
        perform(aligned(tmp_path, *edits), Told())
    assert "the device was given an address that is no multiple of its alignment" in str(refused.value)


def test_a_machine_without_a_wish_is_not_watched(tmp_path: Path) -> None:
    wanted = request(OWN / "gesture.tflite", accelerators=(str(vendor(tmp_path)),))
    files = archive_of(wanted.what().compiled(Told()))
    assert not [name for name, content in files.items() if "tvmgen_" in name and b"UACCEL_ACCOUNT_ADDRESS(" in content]
