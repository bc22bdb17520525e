"""The devices of a project's accelerators: their models, and the C that names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uaccel.basics.device_build import CXX, FILE, DeviceBuild
from uaccel.board import Board, QemuRun, RtlRun
from uaccel.board.device_tables import board_devices_source, rack_source
from uaccel.resources import data_dir

FOLDER: Final = "accelerators"
"""Of a project: below it one folder for each accelerator, with ``driver`` and ``device``."""


@dataclass(frozen=True)
class DeviceModel:
    """``folder`` holds its sources, itself or below."""

    name: str
    folder: Path

    @property
    def sources(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.suffix in (".c", *CXX))

    @property
    def includes(self) -> list[Path]:
        return [self.folder, *(self.folder / name for name in self.build.includes)]

    @property
    def build(self) -> DeviceBuild:
        """What else it takes."""
        file = self.folder / FILE
        return DeviceBuild.of(file.read_text(encoding="utf-8")) if file.is_file() else DeviceBuild()


def project_devices(project: Path) -> list[DeviceModel]:
    """Of the accelerators that the project's model uses."""
    folders = sorted((project / FOLDER).glob("*/device"))
    return [DeviceModel(folder.parent.name, folder) for folder in folders if folder.is_dir()]


def project_unit(project: Path) -> Path | None:
    """Of the accelerator whose custom instructions its model uses, the folder; None without one that has RTL."""
    found = sorted(path.parent for path in (project / FOLDER).glob("*/unit") if (path.parent / "rtl").is_dir())
    return found[0] if found else None


def hal_folders(board: Board) -> list[Path]:
    """The sources that bring drivers to their devices on this board: folders of ``firmware/ports``."""
    if board.cpu.arch == "native":
        names = ["hal_common", "hal_plain", "hal_host", "device_rack", "device_library"]
    else:
        place = "hal_qemu" if any(isinstance(run, QemuRun) for run in board.runs) and runs_models(board) else "hal_mmio"
        cpu = "hal_plain" if board.cpu.arch == "rv32" else "hal_cortex_m"
        names = ["hal_common", cpu, "hal_board", place]
    return [data_dir("firmware") / "ports" / name for name in names]


def runs_models(board: Board) -> bool:
    """Whether models of devices can run behind the board: an emulator shares its RAM with them, a simulator its bus."""
    return any(isinstance(run, RtlRun) or (isinstance(run, QemuRun) and run.ram_origin) for run in board.runs)


def devices_source(board: Board, names: Sequence[str]) -> str:
    """The text of a project's ``board/devices.c``."""
    return rack_source(names) if board.cpu.arch == "native" else board_devices_source(board, names)
