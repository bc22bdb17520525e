"""The C session server in this process, and a line to it in a time of its own.

Nothing here waits: the line is simulated byte for byte, with its speed, its latency and whatever faults a test wants,
and the clock that the session measures its timeouts by is the simulation's. A thousand sessions take a second.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.session.session import Session
from uaccel.session.transport import WRITE_SECONDS, Transport
from uaccel.util.files import data_dir

Array = NDArray[Any]
HERE = Path(__file__).resolve().parent
NEVER = math.inf
QUEUE_BYTES = 1 << 20

Mangle = Callable[[int, bytes], bytes]
"""What a line makes of bytes, whose first one is the n-th of the session in that direction."""


def runtime_sources() -> list[Path]:
    """All of the runtime but its main function."""
    return [path for path in sorted((data_dir("firmware") / "runtime").glob("*.c")) if path.name != "uaccel_main.c"]


def include_flags() -> list[str]:
    firmware = data_dir("firmware")
    return [f"-I{firmware / 'include'}", f"-I{firmware / 'runtime'}", f"-I{HERE}"]


def build_device(folder: Path, *definitions: str, observe: bool = True) -> Path:
    """The test's firmware as a shared library; ``definitions`` such as ``WAVE=1000``."""
    library = folder / "device.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-O1"]
    undefined = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    flags = [f"-D{name}" for name in (*definitions, *(["UACCEL_OBSERVE"] if observe else []))]
    sources = [str(path) for path in (*runtime_sources(), HERE / "device.c")]
    command = ["gcc", *strict, *undefined, "-shared", "-fPIC", *flags, *include_flags(), *sources, "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


class Device:
    """One device, off until ``power_on``."""

    def __init__(self, *definitions: str, observe: bool = True) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-device-")
        self.library = ctypes.CDLL(str(build_device(Path(self._folder.name), *definitions, observe=observe)))
        self._sent = ctypes.create_string_buffer(QUEUE_BYTES)

    def power_on(self) -> bytes:
        """What it says first."""
        self.take()
        self.library.device_power_on()
        return self.take()

    def step(self, data: bytes) -> bytes:
        """What it says to these bytes."""
        self.library.device_step(data, len(data))
        return self.take()

    def overrun(self) -> None:
        self.library.device_overrun()

    def log(self, level: int, text: str) -> bytes:
        self.library.device_log(level, text.encode())
        return self.take()

    def fault(self, text: str) -> bytes:
        self.library.uaccel_port_fault(text.encode())
        return self.take()

    def computed_at(self) -> int | None:
        """After a step: how much it had said when the model began, if it did."""
        at = self.library.device_computed_at() & 0xFFFFFFFF
        return None if at == 0xFFFFFFFF else at

    @property
    def resets(self) -> int:
        return int(self.library.device_resets())

    @property
    def runs(self) -> int:
        return int(self.library.device_runs())

    def take(self) -> bytes:
        bytes_sent = self.library.device_take(self._sent)
        return ctypes.string_at(self._sent, bytes_sent)


def known_outputs(inputs: dict[str, Array]) -> dict[str, Array]:
    """What device_model.h computes."""
    wave, weights = inputs["wave"], inputs["weights"]
    sums = [wave[0, k::3].astype(np.int32).sum() * np.int32(weights[k]) for k in range(3)]
    return {"mask": wave ^ np.int8(0x5A), "sums": np.array(sums, np.int32)}


def known_inputs(seed: int, wave: int = 40) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        "wave": rng.integers(-128, 128, (1, wave), dtype=np.int8),
        "weights": rng.integers(-3000, 3000, 3, dtype=np.int16),
    }


def tokens() -> Iterator[int]:
    """The same for every run of a test."""
    return itertools.count(0x1D872B41)


def session_on(line: Transport, **options: Any) -> Session:
    """A session whose tokens are the same in every run."""
    fresh = tokens()
    return Session(line, new_token=lambda: next(fresh), **options)


class VirtualLine(Transport):
    """A line to a device, with ``baud`` (None: instant), ``latency`` one way and a ``grain`` of arrival in seconds.

    ``receive_bytes`` is the device's buffer: what does not fit while it is busy is lost, as on a board.
    """

    name = "the test device"

    def __init__(
        self,
        device: Device,
        *,
        baud: float | None = None,
        latency: float = 0.0,
        grain: float = 0.0,
        compute_seconds: float = 0.0,
        receive_bytes: int = 4096,
    ) -> None:
        self.device = device
        self.now = 0.0
        self.to_device: Mangle = lambda position, data: data
        self.to_host: Mangle = lambda position, data: data
        self.bytes_per_second = baud / 10 if baud else None
        self.sent = self.received = 0
        self.busy_to_device = 0.0
        self._byte = 10 / baud if baud else 0.0
        self._latency = latency
        self._grain = grain
        self._compute = compute_seconds
        self._receive_bytes = receive_bytes
        self._under_way: deque[tuple[float, bytes]] = deque()
        self._buffer = b""
        self._free_to_device = self._device_free = 0.0
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._say(0.0, device.power_on())

    def clock(self) -> float:
        return self.now

    def power_cycle(self) -> None:
        """The device starts anew, and what was on its way to it is gone."""
        self._under_way.clear()
        self._buffer = b""
        self._say(max(self.now, self._device_free), self.device.power_on())

    def close(self) -> None:
        """Nothing to let go of."""

    def write(self, data: bytes, timeout: float = WRITE_SECONDS) -> None:
        begun = max(self.now, self._free_to_device)
        data, position = self.to_device(self.sent, data), self.sent + len(data)
        self.sent = position
        self._free_to_device = begun + len(data) * self._byte
        self.busy_to_device += len(data) * self._byte
        # By frames, so that the device takes each when it is complete.
        end = begun
        for piece in _frames(data):
            end += len(piece) * self._byte
            self._under_way.append((end + self._latency, piece))

    def read(self, timeout: float) -> bytes:
        deadline = self.now + max(0.0, timeout)
        while True:
            arrival = self._arriving[0][0] if self._arriving else NEVER
            device = self._device_at()
            if min(arrival, device) > deadline:
                self.now = deadline
                return b""
            if device < arrival:
                self._run_device(device)
                continue
            self.now = max(self.now, self._rounded(arrival))
            data = b""
            while self._arriving and self._arriving[0][0] <= self.now:
                data += self._arriving.popleft()[1]
            data, position = self.to_host(self.received, data), self.received + len(data)
            self.received = position
            if data:
                return data

    def _rounded(self, arrival: float) -> float:
        return math.ceil(arrival / self._grain) * self._grain if self._grain else arrival

    def _device_at(self) -> float:
        """When the device takes its next frame."""
        if self._buffer:
            return self._device_free
        return max(self._device_free, self._under_way[0][0]) if self._under_way else NEVER

    def _run_device(self, at: float) -> None:
        while self._under_way and self._under_way[0][0] <= at:
            piece = self._under_way.popleft()[1]
            if len(self._buffer) + len(piece) > self._receive_bytes:
                piece = piece[: self._receive_bytes - len(self._buffer)]
                self.device.overrun()
            self._buffer += piece
        frame = next(iter(_frames(self._buffer)))
        self._buffer = self._buffer[len(frame) :]
        said = self.device.step(frame)
        computed = self.device.computed_at()
        self._device_free = at
        if computed is not None:
            self._say(at, said[:computed])
            self._device_free += self._compute
            said = said[computed:]
        self._say(self._device_free, said)

    def _say(self, at: float, data: bytes) -> None:
        """The device sends and does nothing else meanwhile."""
        for piece in _frames(data):
            at += len(piece) * self._byte
            self._arriving.append((at + self._latency, piece))
        self._device_free = at


def _frames(data: bytes) -> Iterator[bytes]:
    """Cut behind each zero."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\0", begin) + 1 or len(data)
        yield data[begin:end]
        begin = end
