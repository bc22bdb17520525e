"""``uaccel check`` as a line of a test."""

from __future__ import annotations

from pathlib import Path

from uaccel.accelerator import load_accelerator
from uaccel.checking.check import Question, Report, check


def check_accelerator(
    accelerator: str | Path,
    *,
    device: str = "rtl",
    layers: int = 50,
    seed: int = 0,
    board: str = "host",
    stalls: int | None = None,
    waves: Path | None = None,
) -> Report:
    """Random layers of each operation, on the model and with ``device="rtl"`` on the RTL, too; raises
    :class:`~uaccel.errors.VerificationError` where a byte is not what the layer means. With ``stalls``, a seed, the
    memory lets the RTL wait."""
    found = load_accelerator(str(accelerator.resolve()) if isinstance(accelerator, Path) else accelerator)
    report = check(Question(found, device, layers, seed, board, waves, stalls))
    report.require_right()
    return report
