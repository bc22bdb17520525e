"""Code of an accelerator's designers: what goes wrong in it becomes one line that names their file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uaccel.errors import AcceleratorError

FAILURES = (Exception, SystemExit)
"""Whatever a vendor's function raises; that somebody interrupts is not its fault."""


@contextmanager
def vendors(folder: Path, what: str) -> Iterator[None]:
    """Around a call of a vendor's function: ``what`` says which."""
    try:
        yield
    except AcceleratorError:
        raise  # said already, and better
    except FAILURES as error:
        raise AcceleratorError(f"{folder}: {what} failed: {described(error, folder)}") from error


def described(error: BaseException, folder: Path) -> str:
    """The error in one line, with the last line of the vendor's files that it came through."""
    trace, line = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if folder in file.parents:
            line = f" ({file.relative_to(folder)}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return f"{type(error).__name__}: {_message(error)}{line}"


def _message(error: BaseException) -> str:
    """TVM's messages may begin with a traceback: what counts comes last there, and first everywhere else."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return "no message"
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]
