"""The command line, in this process where many cases are tried, in one of its own where that is the point."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.run.schema import require_described
from uaccel.cli import app

__all__ = ["Call", "Done", "call_in", "process"]


@dataclass(frozen=True)
class Done:
    """How a command ended. ``command`` is its name, by which its JSON is judged."""

    status: int
    out: str
    err: str
    command: str = ""

    @property
    def report(self) -> dict[str, Any]:
        """Stdout, which must hold one JSON object on one line and nothing else."""
        assert self.out.endswith("\n")
        (line,) = self.out.splitlines()
        report = json.loads(line)
        assert isinstance(report, dict)
        require_described(self.command, report)
        return report

    @property
    def complaint(self) -> str:
        """The one line of stderr that is no progress."""
        lines = [line for line in self.err.splitlines() if line.startswith(("uaccel: error: ", "uaccel: internal"))]
        assert len(lines) == 1, self.err
        assert self.err.splitlines()[-1] == lines[0], "something came after the error"
        return lines[0].removeprefix("uaccel: error: ")


Call = Callable[..., Done]


def call_in(capfd: pytest.CaptureFixture[str]) -> Call:
    """``call("run", model, "--json")`` runs a command in this process."""

    def call(*arguments: str | Path) -> Done:
        capfd.readouterr()
        status = app.main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Done(status, out, err, str(arguments[0]) if arguments else "")

    return call


def process(*arguments: str | Path, prelude: str = "", **options: Any) -> Done:
    """The command in a process of its own; ``prelude`` is Python that runs in it before the command does."""
    program = f"import sys\n{prelude}\nfrom uaccel.cli import app\nsys.exit(app.main())"
    start = ["-c", program] if prelude else ["-m", "uaccel"]
    command = [sys.executable, *start, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)
    return Done(done.returncode, done.stdout, done.stderr, str(arguments[0]) if arguments else "")


def is_exact(report: dict[str, Any], samples: int = 8) -> bool:
    """Whether verification compared so many samples at least, and found no bit that differs."""
    verify = report["verify"]
    return (verify["bit_exact"], verify["first_difference"]) == (True, None) and verify["samples"] >= samples
