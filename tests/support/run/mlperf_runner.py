"""MLPerf Tiny's runner, as far as a device sees it: commands that end with '%', lines until one has "m-ready".

Written after the behaviour of mlcommons/tiny, benchmark/runner (version 1.4): its serial device, its device under test,
and what it reads out of an inference.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

DELIMITER, END = "%", "m-ready"
BYTES_A_COMMAND = 31
SILENCE = 30.0


@dataclass(frozen=True)
class Inference:
    """``results`` as the device gave them; the time of all the inferences that were not for warming up."""

    results: list[float]
    microseconds: int


class Runner:
    """``read`` gives what has arrived, b"" where nothing has within a while."""

    def __init__(self, read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
        self._read, self._write = read, write
        self._arrived = ""

    def line(self) -> str:
        end = time.monotonic() + SILENCE
        while "\n" not in self._arrived:
            assert time.monotonic() < end, f"no line, but {self._arrived!r}"
            self._arrived += self._read().decode()
        line, _, self._arrived = self._arrived.partition("\n")
        return re.sub("[\r\0]", "", line)

    def boot(self) -> list[str]:
        """What firmware says when it starts."""
        return self._until_ready()

    def command(self, text: str) -> list[str]:
        self._write((text + DELIMITER).encode())
        return self._until_ready()

    def _until_ready(self) -> list[str]:
        lines = [self.line()]
        while END not in lines[-1]:
            lines.append(self.line())
        return lines

    def name(self) -> str:
        (name,) = [m[1] for line in self.command("name") if (m := re.match(r"^m-name-dut-\[([^]]+)]$", line))]
        return name

    def model(self) -> str:
        found = [re.match(r"^m-(model|profile)-\[([^]]+)]$", line) for line in self.command("profile")]
        named = {m[1]: m[2] for m in found if m}
        assert set(named) == {"model", "profile"}
        return named["model"]

    def load(self, data: bytes) -> list[str]:
        self.command(f"db load {len(data)}")
        said: list[str] = []
        for at in range(0, len(data), BYTES_A_COMMAND):
            said = self.command(f"db {data[at : at + BYTES_A_COMMAND].hex()}")
        return said

    def infer(self, count: int, warmups: int) -> Inference:
        lines = self.command(f"infer {count} {warmups}")
        (results,) = [m[1] for line in lines if (m := re.match(r"^m-results-\[([^]]+)\]$", line))]
        start, end = [int(m[1]) for line in lines if (m := re.match(r"^m-lap-us-([0-9]+)$", line))]
        return Inference([float(x) for x in results.split(",") if x.strip()], end - start)


def printed(values: Sequence[float]) -> list[float]:
    """As three digits behind the point show them."""
    return [float(f"{value:.3f}") for value in values]
