"""docs/terminal.svg: a command and what it prints, as a terminal shows it. ``python scripts/terminal.py`` writes it."""

from __future__ import annotations

import fcntl
import io
import os
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "terminal.svg"
COMMAND = ("uaccel", "run", "tests/models/gesture.tflite", "--board", "mps2_an386", "-a", "matrix8", "--verify")
WIDTH = 124


def picture() -> str:
    """The SVG, with the fonts of whoever looks at it."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {' '.join(COMMAND)}", style="bold"))
    console.print(Text.from_ansi(printed()))
    made = console.export_svg(title="uaccel", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", made, flags=re.DOTALL)


def printed() -> str:
    """What the command prints to a terminal of this width; progress, which goes to stderr, left out."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"TERM": "xterm-256color", "PATH": path, "COLUMNS": str(WIDTH)}
    with subprocess.Popen(COMMAND, cwd=ROOT, env=environment, stdout=theirs, stderr=subprocess.DEVNULL) as command:
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            text = b"".join(iter(lambda: _next(terminal), b"")).decode()
    if command.returncode:
        raise SystemExit(f"{' '.join(COMMAND)}: exit status {command.returncode}")
    return text.replace("\r\n", "\n")


def _next(terminal: io.FileIO) -> bytes:
    """What comes next; nothing once the other side is closed, which Linux tells by an error."""
    try:
        return terminal.read(4096) or b""
    except OSError:
        return b""


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
