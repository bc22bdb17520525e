"""The driver and the device model built for this computer."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from uaccel.testing import host_hal

Array = NDArray[Any]

FOLDER = Path(__file__).resolve().parents[1]
KINDS = ("constants", "input", "output", "scratch")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-O1", "-g")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@dataclass(frozen=True)
class Played:
    """``calls`` and ``cycles``: what the driver told of its work."""

    status: int
    outputs: list[bytes]
    failure: str
    calls: int
    cycles: int


class Machine:
    """Runs packed streams, each in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.compiler = shutil.which("cc") or shutil.which("gcc") or "cc"
        self.flags = (*STRICT, *(SANITIZERS if self._has_sanitizers() else ()))
        ports, hal = host_hal()
        self.device = sorted((FOLDER / "device").glob("*.c"))
        driver = sorted((FOLDER / "driver").glob("*.c"))
        includes = [FOLDER / "driver", FOLDER / "device", *ports]
        self.includes = [f"-I{path}" for path in includes]
        self.harness = self.build("harness", [FOLDER / "tests/harness.c", *driver, *self.device, *hal])

    def build(self, name: str, sources: Sequence[Path]) -> Path:
        program = self.folder / name
        self._run([self.compiler, *self.flags, "-DUACCEL_ACCOUNTING", *self.includes, *sources, "-o", program])
        return program

    def _has_sanitizers(self) -> bool:
        source = self.folder / "empty.c"
        source.write_text("int main(void) { return 0; }\n")
        command = [self.compiler, *SANITIZERS, str(source), "-o", str(self.folder / "empty")]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _run(self, command: Sequence[Any], fault: str = "") -> str:
        environment = {**os.environ, "UACCEL_DEVICE_FAULT": fault}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[:4000]}"
        return done.stdout

    def job(self, places: Any, stream: bytes, constants: bytes, inputs: Sequence[Array], untold: int = -1) -> Path:
        """The file that the programs read; ``untold`` is a place that the driver is not told."""
        given = iter(inputs)
        parts = [struct.pack("<I", len(stream)), stream, struct.pack("<I", len(places))]
        for number, place in enumerate(places):
            data = {"constants": lambda: constants, "input": lambda: next(given).tobytes()}.get(place.kind, bytes)()
            parts += [struct.pack("<3I", KINDS.index(place.kind), place.bytes, number != untold), data]
        path = self.folder / "job"
        path.write_bytes(b"".join(parts))
        return path

    def play(self, places: Any, *job: Any, fault: str = "", **how: Any) -> Played:
        text = self._run([self.harness, "play", self.job(places, *job, **how), self.folder / "outputs"], fault)
        lines = dict(line.split(" ", 1) for line in text.splitlines())
        data, outputs = (self.folder / "outputs").read_bytes(), []
        for place in places:
            size = place.bytes if place.kind == "output" else 0
            outputs += [data[:size]] if place.kind == "output" else []
            data = data[size:]
        calls, cycles = map(int, lines.get("account", "0 0").split())
        return Played(int(lines["status"]), outputs, lines.get("failure", ""), calls, cycles)

    def damage(self, *job: Any) -> None:
        """Has the driver refuse every damaged form of a stream."""
        assert self._run([self.harness, "damage", self.job(*job)]) == "status 0\n"

    def fuzz(self, program: Path, seed: int, runs: int, jobs: Sequence[Path]) -> list[int]:
        """How often the device ended with each error."""
        return [int(count) for count in self._run([program, seed, runs, *jobs]).split()]


__all__ = ["FOLDER", "Machine", "Played"]
