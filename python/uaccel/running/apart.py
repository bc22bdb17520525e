"""A run in three parts: built where compilers are, run where the board is, judged where TVM is.

What goes from one part to the next is plain data.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from uaccel.cache import Cache
from uaccel.errors import InternalError, ToolError
from uaccel.project.footprint import Footprint
from uaccel.running.execute import Measured
from uaccel.running.firmware import Firmware
from uaccel.running.making import Maker
from uaccel.running.perform import Performed, finish, measure, prepared_to_run
from uaccel.running.prepare import Prepared
from uaccel.running.request import RunRequest
from uaccel.running.steps import Quiet


@dataclass(frozen=True)
class Built:
    """Firmware as bytes: ``plain``, and ``observed`` with a hook after every layer, where the board can be given other
    firmware just to look into it. ``told``: what running needs to know of the compilation."""

    firmware: Mapping[str, Any]
    told: Mapping[str, Any]
    plain: bytes
    observed: bytes | None
    footprint: Footprint


@dataclass(frozen=True)
class Ran:
    """What the board did with the firmware of an ``archive``."""

    archive: str
    measured: Measured


def build_apart(request: RunRequest, cache: Cache | None) -> Built:
    """Compile the model and build its firmware. The board need not be here."""
    step = Quiet()
    prepared = prepared_to_run(request, step, cache)
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        maker = Maker(prepared.firmware, request.board, Path(temporary) / "project", step, cache)
        try:
            plain = maker.firmware().read_bytes()
            flashes = request.wishes.flashes and request.board.flash is not None
            observed = maker.firmware(observe=True).read_bytes() if flashes else None
        finally:
            maker.close()
    assert maker.footprint is not None  # it made the plain one
    told = {"reads": prepared.told["reads"], "state": prepared.told["state"]}
    return Built(prepared.firmware.to_json(), told, plain, observed, maker.footprint)


def run_apart(built: Built, request: RunRequest) -> Ran:
    """Flash and run it. Neither a compiler nor TVM is needed."""
    firmware = Firmware.from_json(built.firmware, _no_compiler)
    prepared = Prepared(firmware, built.told, None, _no_compiler)
    with tempfile.TemporaryDirectory(prefix="uaccel-") as temporary:
        brought = _Brought(built, Path(temporary))
        return Ran(firmware.archive, measure(prepared, request, brought, Quiet()))


def judge_apart(ran: Ran, request: RunRequest, cache: Cache | None) -> Performed:
    """The verdict and the report."""
    prepared = prepared_to_run(request, Quiet(), cache)
    if prepared.firmware.archive != ran.archive:
        raise ToolError(
            f"{request.model.name} was compiled twice, to different C: {ran.archive[:12]} and "
            f"{prepared.firmware.archive[:12]}; install the same uaccel and the same packages on all workers"
        )
    return finish(request, prepared, ran.measured, Quiet(), cache, cuts=False)


class _Brought:
    """Firmware that was built elsewhere."""

    def __init__(self, built: Built, folder: Path) -> None:
        self._built = built
        self._folder = folder
        self.footprint: Footprint | None = built.footprint

    def firmware(self, *, observe: bool = False) -> Path:
        content = self._built.observed if observe else self._built.plain
        assert content is not None  # it is asked for where the board is flashed
        path = self._folder / ("observed" if observe else "plain") / "firmware.elf"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return path

    def close(self) -> None:
        """The folder's owner removes it."""


def _no_compiler() -> NoReturn:
    raise InternalError("firmware that was brought here was to be compiled here")
