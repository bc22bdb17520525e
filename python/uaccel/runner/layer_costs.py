"""Measures what the layers of one firmware take; figures of emulated boards are exact, and kept in the cache."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.bench import hold_if_known
from uaccel.board import Board, QemuRun, RtlRun
from uaccel.build.archive_reader import FOLDER as DEVICES
from uaccel.build.archive_reader import project_unit
from uaccel.build.programs import find_command
from uaccel.build.rtl.build import simulator
from uaccel.cycles.estimate import Timing
from uaccel.errors import ToolError
from uaccel.model import Array
from uaccel.runner.compare import arrays_digest
from uaccel.runner.cycles import count_blocks, layer_cycles, readings_of_feeding, readings_of_layers, with_core_cycles
from uaccel.runner.execute import BoardBench, FirmwareMaker
from uaccel.runner.firmware import Firmware
from uaccel.session.batch import layer_times, run_batch
from uaccel.session.description import LayerTime
from uaccel.session.qemu import plugin_for, qemu_run
from uaccel.session.simulated import rtl_run
from uaccel.session.tensors import ramp
from uaccel.util.cache import Cache, Key, file_digest, folder_digest, own_sources, programs_digest

KIND: Final = "measured"
TAKEN: Final = "taken.json"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Spent:
    """Holds what a layer took on the CPU, each figure None where the board does not tell it.

    ``device``: cycles of accelerators. ``own``: ``cycles`` are the core's own count, which includes the cycles that it
    waits for accelerators.
    """

    layer: int
    name: str
    instructions: int | None
    cycles: int | None
    nanoseconds: int | None
    device: int = 0
    own: bool = False


@dataclass(frozen=True)
class LayerCosts:
    """Holds the costs of the ``layers`` that the firmware tells of; ``outputs`` is a digest of what the model gave."""

    layers: tuple[Spent, ...]
    outputs: str

    @property
    def exact(self) -> bool:
        """Whether the same firmware takes the same each time: instructions were counted for every layer."""
        return all(spent.instructions is not None for spent in self.layers)

    def to_json(self) -> dict[str, Any]:
        return {"layers": [asdict(spent) for spent in self.layers], "outputs": self.outputs}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LayerCosts:
        return cls(tuple(Spent(**row) for row in data["layers"]), data["outputs"])


def emulated(board: Board, port: str) -> bool:
    """Says whether figures do not depend on what else this computer does."""
    return not port and isinstance(board.runs[0], QemuRun | RtlRun)


def measure(
    firmware: Firmware, board: Board, progress: Progress, port: str = "", cache: Cache | None = None
) -> LayerCosts:
    """Measures one sample, with a hook after every layer; a board at a line is flashed.

    Only figures of emulated boards are taken from the cache or put into it."""
    with tempfile.TemporaryDirectory(prefix="uaccel-tune-") as folder:
        maker = FirmwareMaker(firmware, board, Path(folder) / "project", progress, cache)
        bench = BoardBench(maker, port)
        with hold_if_known(bench.line), closing(maker):
            built = bench.built(observe=True)
            key = _key(firmware, board, built) if cache is not None and emulated(board, port) else None
            taken = _found(cache, key)
            if taken is not None:
                return taken
            taken = _measured(bench)
            if cache is not None and key is not None and taken.exact:
                text = json.dumps(taken.to_json())
                cache.add(key, {TAKEN: text.encode()}, f"{firmware.name} on {board.name}")
            return taken


def measured_before(firmware: Firmware, board: Board, cache: Cache | None) -> LayerCosts | None:
    """Returns figures from the cache; None unless the firmware is in the cache too, whose bytes are part of the key."""
    if cache is None:
        return None
    with closing(FirmwareMaker(firmware, board, Path(), lambda _step: None, cache)) as maker:
        built = maker.kept(observe=True)
        return None if built is None else _found(cache, _key(firmware, board, built))


def _found(cache: Cache | None, key: Key | None) -> LayerCosts | None:
    entry = cache.find(key) if cache is not None and key is not None else None
    if entry is None:
        return None
    assert cache is not None  # where there is an entry
    assert key is not None
    with closing(entry):
        try:
            return LayerCosts.from_json(entry.json(TAKEN))
        except (OSError, ValueError, KeyError, TypeError):
            pass
    cache.drop(key)
    return None


def _measured(bench: BoardBench) -> LayerCosts:
    """Measures what layers take. Times at a line include all that the CPU waits for, so that no device cycles are added
    to them."""
    firmware, sample, timing = bench.firmware, _sample(bench.firmware), bench.timing
    marks = readings_of_feeding(firmware.fed) + readings_of_layers(firmware.layers)
    with count_blocks(marks, timing) as blocks, bench.session(observe=True, blocks=blocks) as session:
        bench.progress("measure")
        times, run = layer_times(session, sample), run_batch(session, [sample])
        if timing is not None and all(time.instructions is not None for time in times):
            times = layer_cycles(timing, bench.built(observe=True), blocks, times, firmware.layers, firmware.fed)
            times = with_core_cycles(bench.board, blocks, times, firmware.layers, firmware.fed)
    device = {} if bench.at_line else {index: account.cycles for index, account in run.accounts.items()}
    return LayerCosts(tuple(_spent(time, device.get(time.layer, 0)) for time in times), arrays_digest(run.outputs))


def _sample(firmware: Firmware) -> list[Array]:
    return [ramp(tensor) for tensor in firmware.inputs]


def _spent(time: LayerTime, device: int) -> Spent:
    nanoseconds = None if time.instructions is not None or time.seconds is None else round(time.seconds * 1e9)
    own = time.core_cycles is not None
    cycles = time.core_cycles if own else time.cycles_estimated
    return Spent(time.layer, time.name, time.instructions, cycles, nanoseconds, device, own)


def _key(firmware: Firmware, board: Board, built: Path) -> Key:
    """Returns the key of figures: what was executed, by what, on which inputs, and what counts its cycles."""
    devices = built.parent.parent / DEVICES
    programs, counting = _counters(board, project_unit(built.parent.parent))
    return (
        Key(KIND)
        .add("uaccel", own_sources())
        .add("firmware", file_digest(built))
        .add("devices", folder_digest(devices) if devices.is_dir() else "")
        .add("board", [board.name, file_digest(board.file)])
        .add("sample", arrays_digest([_sample(firmware)]))
        .add("programs", programs_digest([*programs, Timing.of(board).objdump]))
        .add("counting", counting)
    )


def _counters(board: Board, unit: Path | None) -> tuple[Sequence[str], str]:
    """Returns the programs that run the firmware, and a digest of what counts its cycles.

    ``unit``: the RTL of custom instructions."""
    simulated = rtl_run(board)
    if simulated is not None:
        return [], file_digest(simulator(simulated, unit=unit))
    qemu = find_command(f"qemu-system-{qemu_run(board).system}", "running emulated boards")
    try:
        return qemu.command, file_digest(plugin_for(qemu))
    except ToolError:
        return qemu.command, ""
