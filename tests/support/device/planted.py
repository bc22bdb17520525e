"""Accelerators with RTL: networks on it, and bugs planted in it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import uaccel
from uaccel.build.rtl import build
from uaccel.testing import check_accelerator

NETWORKS = [
    *((name, "host") for name in ("ad", "ic", "kws", "sww", "vww")),
    *((name, board) for name in ("ad", "kws") for board in ("mps2_an386", "qemu_riscv32")),
]


def build_quickly(patch: pytest.MonkeyPatch) -> None:
    """Compile the C++ of RTL without optimisation: for a few layers that takes longer than they run."""
    patch.setattr(build, "_COMPILER_OPTIONS", [*build._COMPILER_OPTIONS, "-O0"])


def verified(accelerator: Path, model: Path, board: str, *words: str) -> bool:
    command = [sys.executable, "-m", "uaccel", "run", str(model), "-a", str(accelerator), "--board", board, *words]
    done = subprocess.run(
        [*command, "--device", "rtl", "--verify", "--json"], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)["verify"]["bit_exact"] is True


def reference_network(name: str) -> Path:
    path = Path(os.environ.get("UACCEL_MODELS") or os.devnull) / f"{name}.tflite"
    if not path.is_file():
        pytest.skip("MLPerf Tiny's models are in no folder that UACCEL_MODELS names")
    return path


@dataclass(frozen=True)
class Bug:
    """What is changed in which file of ``rtl/``, and the operation that the report names (a pattern)."""

    file: str
    right: str
    wrong: str
    operation: str
    stalls: int | None = None

    def plant(self, accelerator: Path, above: Path) -> Path:
        """The accelerator with it."""
        folder = above / accelerator.name
        shutil.copytree(accelerator, folder, ignore=shutil.ignore_patterns("__pycache__"))
        file = folder / "rtl" / self.file
        text = file.read_text()
        assert text.count(self.right) == 1
        file.write_text(text.replace(self.right, self.wrong))
        return folder

    def is_found(self, accelerator: Path, above: Path) -> None:
        """The report names operation and shape, and leaves a waveform."""
        waves = above / "wrong.vcd"
        with pytest.raises(uaccel.UaccelError) as raised:
            check_accelerator(self.plant(accelerator, above), layers=50, stalls=self.stalls, waves=waves)
        said = str(raised.value)
        assert re.search(rf"operation {self.operation}, \w+ \(.*(kernel_height|depth) \d", said), said
        assert "on the rtl: " in said
        assert waves.stat().st_size > 0
