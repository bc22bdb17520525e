"""C that names the devices of accelerators: models in a process, or registers at the addresses of a board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uaccel.board.types import Board, RtlRun

FIRST_DEVICE: Final = 0xF100_0000
WINDOW: Final = 0x1_0000
"""Where the machine around a simulated core has its devices, in the order of their names, and how far apart."""


def rack_source(names: Sequence[str]) -> str:
    """C that puts the models of these accelerators into a rack (firmware/ports/device_rack/rack.h)."""
    # Hidden: a model that is not there is an error of the linker's, for a plugin too.
    model = 'extern const struct uaccel_device_model {}_device __attribute__((visibility("hidden")));\n'
    models = "".join(model.format(name) for name in names)
    entries = "".join(f"    {{.model = &{name}_device}},\n" for name in names)
    return (
        '/* The devices of this project; make a new project instead of editing it. */\n#include "rack.h"\n\n'
        f"{models}\n"
        f"struct uaccel_rack_device uaccel_rack[] = {{\n{entries}}};\n"
        f"const uint32_t uaccel_rack_count = {len(names)};\n"
    )


def board_devices_source(board: Board, names: Sequence[str]) -> str:
    """C that tells where these devices lie on the board (firmware/ports/hal_mmio/board_devices.h)."""
    there = {device.name: device for device in board.devices}
    entries = ""
    for name in names:
        device = there.get(name)
        base = _base(board, names, name) if device is None else f"{device.base:#x}u"
        irq = "UACCEL_NO_INTERRUPT" if device is None or device.irq is None else str(device.irq)
        entries += f'    {{"{name}", {base}, {irq}}},\n'
    return (
        "/* The devices of this project; make a new project instead of editing it. */\n"
        '#include "board_devices.h"\n\n'
        f"const struct uaccel_board_device uaccel_board_devices[] = {{\n{entries}}};\n"
        f"const uint32_t uaccel_board_device_count = {len(names)};\n"
    )


def _base(board: Board, names: Sequence[str], name: str) -> str:
    """Of a device that the board file does not tell: 0 is none."""
    simulated = any(isinstance(run, RtlRun) for run in board.runs)
    return f"{FIRST_DEVICE + WINDOW * sorted(names).index(name):#x}u" if simulated else "0"
