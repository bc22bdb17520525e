"""Runs firmware on boards whose core is simulated RTL: the simulator's command line, and a transport to it."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from uaccel.board import Board, RtlRun, UartConsole, load_board
from uaccel.board.accelerator_devices import FIRST_DEVICE
from uaccel.build.archive_reader import project_devices, project_unit
from uaccel.build.elf import symbols
from uaccel.build.rtl.build import simulator
from uaccel.errors import BoardError
from uaccel.session.connect import ProcessTransport
from uaccel.session.device_models import machine_devices
from uaccel.session.link import Timeouts
from uaccel.session.qemu import Blocks
from uaccel.session.transport import WRITE_SECONDS
from uaccel.util import incoming

# A simulated core is a thousand times slower than a real one.
SIMULATED_TIMEOUTS: Final = Timeouts(answer=20, silence=600, run=36000, operation=3600, write=600)
TOLD_EVERY: Final = 5.0  # Seconds between two reports of progress.


def rtl_run(board: Board) -> RtlRun | None:
    """How the board's core is simulated; None for a board that runs in another way."""
    run = board.runs[0]
    return run if isinstance(run, RtlRun) else None


def machine_words(board: Board, run: RtlRun, firmware: Path) -> list[str]:
    """The simulator's words for the firmware and the machine around the core."""
    console, at = board.console, symbols(firmware)
    bases = [board.settings.get(name) for name in ("reset_base", "counter_base")]
    if not isinstance(console, UartConsole) or not all(bases):
        raise BoardError(f"{board.file}: a simulated core wants port = 'vexriscv' with its settings")
    words = [str(firmware)]
    for memory in board.memories:
        flash = memory.kind == "flash"
        waits = (run.flash_first, run.flash_next) if flash else (run.ram_first, run.ram_next)
        words.append("memory=" + ",".join(map(str, (memory.origin, memory.length, int(not flash), *waits))))
    words += [f"console={console.base},{console.irq}", f"reset={bases[0]}", f"counter={bases[1]}"]
    if "uaccel_uncounted_start" in at:
        words.append(f"uncounted={at['uaccel_uncounted_start']},{at['uaccel_uncounted_end']}")
    return words


class SimulatedTransport(ProcessTransport):
    """Simulates a core for one session; its UART is a pipe."""

    def __init__(
        self,
        board: Board,
        run: RtlRun,
        firmware: Path,
        *,
        blocks: Blocks | None = None,
        progress: Callable[[str], None] = lambda _step: None,
    ) -> None:
        project = firmware.parent.parent
        program = simulator(run, progress, project_unit(project))
        number, name = tempfile.mkstemp(prefix="uaccel-", suffix=".status")
        os.close(number)
        self._status, self._progress = Path(name), progress
        self._begun = self._told = time.monotonic()
        watched = [] if blocks is None else [f"marks={blocks.file},{blocks.marks}"]
        behind = machine_devices(project_devices(project), firmware, FIRST_DEVICE)
        words = [*machine_words(board, run, firmware), *behind, f"status={name}", *watched]
        super().__init__([str(program), *words], f"board {board.name} under Verilator")
        self._hz = board.timer.hz

    def read(self, timeout: float) -> bytes:
        end = time.monotonic() + timeout
        while True:
            self._tell()
            left = max(0.0, end - time.monotonic())
            data = super().read(min(left, TOLD_EVERY))
            if data or left <= TOLD_EVERY:
                return data

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        self._tell()
        super().write(data, timeout)

    def _tell(self) -> None:
        """Reports how far the core is, at most once in ``TOLD_EVERY`` seconds."""
        now = time.monotonic()
        if now - self._told < TOLD_EVERY:
            return
        self._told = now
        cycles, seconds = int(incoming.read_text(self._status) or 0), now - self._begun
        simulated = f"{cycles / self._hz * 1000:,.1f} ms at {self._hz / 1e6:g} MHz"
        self._progress(f"simulated {cycles:,} cycles ({simulated}), {cycles / seconds / 1e6:.2f} million a second")

    def _end(self) -> None:
        super()._end()
        self._status.unlink(missing_ok=True)


def main(words: Sequence[str]) -> None:
    """Becomes the simulator; Project API servers run ``python3 -m uaccel.session.simulated BOARD FIRMWARE.elf``."""
    name, firmware = words
    board = load_board(name)
    run = rtl_run(board)
    if run is None:
        raise BoardError(f"{board.file}: board {board.name} is not simulated: there is no [run.rtl]")
    program = str(simulator(run, unit=project_unit(Path(firmware).parent.parent)))
    os.execv(program, [program, *machine_words(board, run, Path(firmware))])


if __name__ == "__main__":
    main(sys.argv[1:])
