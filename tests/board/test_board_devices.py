"""The accelerators that a board itself has, as its file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.device.board_files import EMULATED, HOST, REAL, changed, complaint, load
from uaccel.board import Device, load_board

DEVICE = '[[device]]\nname = "nuc_fpga"\nbase = 0x6000_0000\nirq = 70\n\n'
POLLED = '[[device]]\nname = "other"\nbase = 0x6000_1000\n\n'


def with_devices(text: str, devices: str) -> str:
    return changed(text, "[console]", devices + "[console]")


def test_devices_and_their_interrupts(tmp_path: Path) -> None:
    board = load(tmp_path, with_devices(REAL, DEVICE + POLLED))
    assert board.devices == (Device("nuc_fpga", 0x60000000, 70), Device("other", 0x60001000))
    assert board.interrupts == 96, "the vector table has room for all of them, in steps of 32"
    assert load_board("nucleo_f746zg").devices == ()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("irq = 70", "irq = 39", "'irq' in [[device]] number 1 is 39, the console's; wanted the device's own"),
        ("irq = 70", "irq = 1024", "'irq' in [[device]] number 1 is 1024; wanted 0 to 479"),
        ("0x6000_0000", "0x6000_0002", "'base' in [[device]] number 1 is 0x60000002; wanted a multiple of 4 above 0"),
        ("0x6000_0000", "0", "'base' in [[device]] number 1 is 0x0; wanted a multiple of 4 above 0"),
        (
            "0x6000_0000",
            "0x2002_0000",
            "'base' in [[device]] number 1 is 0x20020000, in memory 'sram' (0x20010000 to 0x2004ffff); "
            "wanted the device's registers",
        ),
        (
            '"nuc_fpga"',
            '"Nuc"',
            "'name' in [[device]] number 1 is 'Nuc'; wanted lower-case letters, digits and underscores",
        ),
        ("irq = 70", "interrupt = 70", "unknown key 'interrupt' in [[device]] number 1 (known: name, base, irq)"),
        ('"nuc_fpga"', '"other"', "a second device is called 'other'; wanted another name"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, old: str, new: str, message: str) -> None:
    said = complaint(tmp_path, with_devices(REAL, changed(DEVICE, old, new) + POLLED))
    assert said.split(": ", 1)[1] == message


def test_waiting_asleep_is_for_cortex_m(tmp_path: Path) -> None:
    text = load_board("qemu_riscv32").file.read_text()
    said = complaint(tmp_path, with_devices(text, DEVICE))
    assert "'irq' in [[device]] number 1: waiting for a device is by polling on rv32; leave it out" in said


def test_a_process_has_no_hardware(tmp_path: Path) -> None:
    said = complaint(tmp_path, with_devices(HOST, POLLED))
    assert said == (
        "bench.toml:9: [[device]] number 1 is not for native: a process has models of devices alone; leave it out"
    )


def test_an_emulated_board_may_have_them_too(tmp_path: Path) -> None:
    assert load(tmp_path, with_devices(EMULATED, DEVICE)).devices[0].base == 0x60000000
