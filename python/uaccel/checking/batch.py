"""Many layers as one model: compiled and built once, run on the accelerator's model and on its RTL."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from uaccel.accelerator import Accelerator
from uaccel.accelerator.region import Region, region_of
from uaccel.board import load_board
from uaccel.checking.case import Case, call_of
from uaccel.emit.generate import generate
from uaccel.emit.options import EmitOptions
from uaccel.lower.from_relax import lower
from uaccel.lower.placement import place
from uaccel.model import Array, ImportedModel, Signature, TensorSpec
from uaccel.ops.base import type_info
from uaccel.partition import Wishes, partition
from uaccel.pipeline import Compiled
from uaccel.project.build import build_project, firmware_of
from uaccel.project.create import create_project
from uaccel.running.devices import Devices, devices_in_place
from uaccel.running.execute import connect
from uaccel.running.packed import archive_of, identity
from uaccel.session.batch import run_batch
from uaccel.session.timeline import Job, Recorder
from uaccel.tvm_api import ModuleBuilder, main_bindings, main_result, relax
from uaccel.tvm_api.executor import Executor

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Ran:
    """One layer on one device. ``failed``: why the driver gave up; the output is the CPU's then."""

    output: Array
    cycles: int
    calls: int
    failed: str = ""
    begin: int = 0
    end: int = 0


def region_for(case: Case) -> Region | None:
    """What an accelerator's check is asked about; None where the numbers are no layer."""
    if not case.is_layer:
        return None
    module = _module([case])
    variables, bindings = main_bindings(module)
    (result,) = [var for var, _ in bindings if var.name == _name(0)]
    return region_of(bindings, variables, [result])


class Batch:
    """In a folder of its own, until it is closed."""

    def __init__(self, accelerator: Accelerator, cases: Sequence[Case], board: str, progress: Progress) -> None:
        self.cases = list(cases)
        self._accelerator = accelerator
        self._board = load_board(board)
        self._progress = progress
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-check-")
        progress(f"compile {len(cases)} layers")
        module = _module(cases)
        self._compiled = _compiled(module, accelerator, self._board.name)
        self._inputs = [array for case in cases for array in case.inputs()]
        self.meaning: list[Array] = Executor(module).run(self._inputs)
        project = Path(self._folder.name) / "project"
        create_project(archive_of(self._compiled), self._board, project)
        progress("build the firmware")
        self._firmware = firmware_of(build_project(project))
        self._of = {layer.name: index for index, layer in enumerate(self._compiled.program.layers)}

    def close(self) -> None:
        self._folder.cleanup()

    @property
    def predicted(self) -> list[float]:
        """Cycles of each layer, by the accelerator's description."""
        return [self._compiled.program.layers[self._of[_name(i)]].cycles for i in range(len(self.cases))]

    def run(self, devices: Devices) -> list[Ran]:
        """Each layer; raises :class:`DeviceError` where nothing came back at all."""
        self._progress(f"run {len(self.cases)} layers on the {devices.kind}")
        words: list[str] = []
        layers = {_name(i): self._of[_name(i)] for i in range(len(self.cases))}
        with devices_in_place(devices, [self._accelerator], self._progress, layers), Recorder() as recorder:
            session = connect(
                self._board,
                self._firmware,
                identity(self._compiled),
                "",
                on_log=lambda line: words.append(line.text) if line.level.name == "WARNING" else None,
            )
            with session:
                run = run_batch(session, [self._inputs])
        accounts, jobs, found = run.accounts, iter(recorder.jobs), []
        for number in sorted(range(len(self.cases)), key=lambda i: self._of[_name(i)]):
            account = accounts.get(self._of[_name(number)])
            failed = account is not None and account.fallbacks > 0
            ended = _jobs(jobs, account.calls if account is not None and not failed else 0)
            found.append(
                (
                    number,
                    Ran(
                        run.outputs[0][number],
                        account.cycles if account is not None else 0,
                        account.calls if account is not None else 0,
                        (words.pop(0) if words else "the driver returned an error") if failed else "",
                        *ended,
                    ),
                )
            )
        return [ran for _, ran in sorted(found, key=lambda entry: entry[0])]


def _jobs(jobs: Any, count: int) -> tuple[int, int]:
    taken: list[Job] = list(islice(jobs, count))
    return (taken[0].begin, taken[-1].end) if taken else (0, 0)


def _name(number: int) -> str:
    return f"layer{number}"


def _module(cases: Sequence[Case]) -> Any:
    builder = ModuleBuilder()
    parameters = []
    for number, case in enumerate(cases):
        for which, array in enumerate(case.inputs()):
            parameters.append(relax.Var(f"x{number}_{which}", relax.TensorType(array.shape, str(array.dtype))))
    rest = iter(parameters)
    with builder.function(parameters) as block:
        results = []
        for number, case in enumerate(cases):
            mine = [next(rest) for _ in case.inputs()]
            results.append(block.emit(call_of(case, *mine), _name(number)))
        block.finish(relax.Tuple(results))
    return builder.module


def _compiled(module: Any, accelerator: Accelerator, board: str) -> Compiled:
    """With the CPU in reserve: a layer that the device fails at does not end the run."""
    fields = main_result(module).ty.fields
    inputs = tuple(TensorSpec(var.name, type_info(var.ty)) for var in main_bindings(module)[0])
    outputs = tuple(TensorSpec(f"y{i}", type_info(entry)) for i, entry in enumerate(fields))
    digest = hashlib.sha256(module.script(show_meta=False).encode()).hexdigest()
    model = ImportedModel("check", "relax", digest, module, Signature(inputs, outputs), {}, {})
    partitioned = partition(model, [accelerator], Wishes())
    program = lower(partitioned, "check", cpu_fallback=True)
    return Compiled(generate(program, place(program), EmitOptions(), board), {"import": module}, partitioned)
