"""Many sessions in a row on one board, over a line that damages a byte now and then: no wrong tensor, nothing leaks.

    python benchmarks/soak.py --board host --sessions 1000 --write     run them, and store what came out

Each session is a new process (the firmware, or QEMU), greets, runs three samples and ends. Outputs are compared with
the model's exact meaning. Bytes in both directions are flipped, lost and doubled at ``--rate``. A session may end in an
error of the device; a wrong tensor, another exception, a descriptor or a process that stays, or more memory is a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.board import Board, load_board
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.errors import DeviceError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of, identity
from uaccel.session.connect import ProcessTransport, open_port
from uaccel.session.description import Identity
from uaccel.session.emulated_board import Desk
from uaccel.session.qemu import QemuTransport
from uaccel.session.session import Session
from uaccel.session.transport import WRITE_SECONDS, Transport
from uaccel.tvm_api.executor import Executor

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = Path(__file__).with_name("soak.json")
MODEL: Final = ROOT / "tests" / "models" / "gesture.tflite"
SAMPLES, WARM = 3, 5
DESK, ON_THE_DESK = "desk", "netduino_plus_2"
"""The stand-in at a serial port, which is reset before each session; and the board that it is."""
GROWTH: Final = 16 << 20
"""Bytes that Python may take more after so many sessions; a leak of a kilobyte each would show in twenty thousand."""


Samples = Sequence[Sequence[NDArray[Any]]]


class Faulty(Transport):
    """Another line, of whose bytes some are flipped, lost or doubled."""

    def __init__(self, line: Transport, rate: float, seed: int) -> None:
        self.name, self.bytes_per_second = line.name, line.bytes_per_second
        self._line, self._rate, self._random = line, rate, random.Random(seed)
        self.faults = 0

    def clock(self) -> float:
        return self._line.clock()

    def close(self) -> None:
        self._line.close()

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        self._line.write(self._through(data), timeout)

    def read(self, timeout: float) -> bytes:
        return self._through(self._line.read(timeout))

    def _through(self, data: bytes) -> bytes:
        found = bytearray()
        for byte in data:
            if self._random.random() >= self._rate:
                found.append(byte)
                continue
            self.faults += 1
            found += self._random.choice((b"", bytes([byte, byte]), bytes([byte ^ 1 << self._random.randrange(8)])))
        return bytes(found)


@contextmanager
def lines(board: Board, firmware: Path, *, desk: bool) -> Iterator[Callable[[], Transport]]:
    """What gives a line to firmware that has just started."""
    if not desk:
        of_host = board.name == "host"
        yield lambda: ProcessTransport([str(firmware)]) if of_host else QemuTransport(board, firmware)
        return
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder, Desk(Path(folder), board.name) as stand_in:
        stand_in.order("flash", str(firmware))

        def again() -> Transport:
            stand_in.order("reset")
            return open_port(stand_in.port)

        yield again


def soak(board_name: str, sessions: int, rate: float) -> dict[str, Any]:
    desk = board_name == DESK
    board = load_board(ON_THE_DESK if desk else board_name)
    model = compile_model(MODEL, board=board.name)
    specs, draw = model.model.signature, np.random.default_rng(7)
    inputs = [[draw.integers(-128, 128, spec.info.shape, np.int8) for spec in specs.inputs] for _ in range(SAMPLES)]
    executor = Executor(model.stages["import"])
    wanted = [executor.run(values) for values in inputs]
    ends, faults, begun, before = Counter[str](), 0, time.monotonic(), (0, 0)
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        create_project(archive_of(model), board, Path(folder) / "project")
        firmware = firmware_of(build_project(Path(folder) / "project"))
        with lines(board, firmware, desk=desk) as line:
            for number in range(sessions):
                before = _taken() if number == WARM else before
                with closing(Faulty(line(), rate, number)) as faulty:
                    ends.update(_ended(faulty, identity(model), inputs, wanted, number))
                faults += faulty.faults
            after = _taken()
    return {
        "sessions": sessions,
        "rate": rate,
        "faults_injected": faults,
        "right": ends["right"],
        "errors": ends["errors"],
        "wrong": ends["wrong tensors"],
        "descriptors_left": after[0] - before[0],
        "grown": max(0, after[1] - before[1]),
        "seconds": round(time.monotonic() - begun),
    }


def _ended(line: Transport, expect: Identity, inputs: Samples, wanted: Samples, number: int) -> list[str]:
    """How a session ended; ``wrong tensors`` once for each sample that had some."""
    found = []
    try:
        with Session(line, expect=expect) as session:
            names = [[tensor.name for tensor in side] for side in (session.model.inputs, session.model.outputs)]
            for values, outputs in zip(inputs, wanted, strict=True):
                got = session.run(dict(zip(names[0], values, strict=True)))
                same = all(np.array_equal(got[name], one) for name, one in zip(names[1], outputs, strict=True))
                found += [] if same else ["wrong tensors"]
    except DeviceError as error:
        print(f"session {number}: {error}", file=sys.stderr)
        return [*found, "errors"]
    return found or ["right"]


def _taken() -> tuple[int, int]:
    """Open descriptors, and the most memory that was ever taken."""
    return len(list(Path("/proc/self/fd").iterdir())), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> int:
    parser = argparse.ArgumentParser(description="Many sessions in a row.")
    parser.add_argument("--board", default="host", help=f"or '{DESK}': the stand-in at a serial port")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=1e-4, help="of bytes that are damaged")
    parser.add_argument("--write", action="store_true", help="store what comes out")
    given = parser.parse_args()
    row = soak(given.board, given.sessions, given.rate)
    print(json.dumps({"board": given.board} | row))
    if given.write:
        stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(stored | {given.board: row}, indent=1) + "\n")
    return 1 if row["wrong"] or row["descriptors_left"] > 0 or row["grown"] > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
