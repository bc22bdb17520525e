"""Another program that has a board."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

HOLD = """
import sys
from uaccel.bench import hold
with hold(sys.argv[1], user="the other run"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def other_process(port: str) -> Iterator[subprocess.Popen[bytes]]:
    """Has the board until its standard input ends."""
    command = [sys.executable, "-c", HOLD, port]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        if process.poll() is None:
            process.communicate()
