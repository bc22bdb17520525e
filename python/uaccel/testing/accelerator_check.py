"""Checks that an accelerator's model and RTL compute what its layers mean, byte for byte, on random layers.

Compiling and building takes far longer than running. So many independent layers become one model, each with its own
inputs and output, and one firmware runs on each device. A layer that is wrong is then made as small as possible: a few
smaller layers, again as one firmware, are tried at once, and the smallest wrong one is taken on.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.accelerator import Accelerator, Operation, load_accelerator
from uaccel.accelerator.region import Region
from uaccel.accelerator.vendor import vendors
from uaccel.board import load_board
from uaccel.build.children import environment
from uaccel.codegen.generate import generate
from uaccel.codegen.options import EmitOptions
from uaccel.errors import AcceleratorError, DeviceError, VerificationError
from uaccel.lower.from_relax import lower
from uaccel.lower.placement import place
from uaccel.model import Array, ImportedModel, Signature, TensorSpec
from uaccel.ops.operator import NAMESPACE, type_info
from uaccel.partition import Wishes, partition
from uaccel.pipeline import Compiled
from uaccel.runner.compiled import pack_compiled
from uaccel.runner.execute import BoardBench, FirmwareMaker
from uaccel.runner.request import MODEL, RTL, Devices, devices_in_place
from uaccel.session.batch import run_batch
from uaccel.session.description import Account
from uaccel.session.monitor import EngineJob, Recorder
from uaccel.session.session import LogLine
from uaccel.testing.instruction_check import STEPS, Asked, WrongInstruction, check_instructions, devices_of
from uaccel.testing.layers import Example, example
from uaccel.testing.random_case import FAMILIES, Case, call_of, drawn
from uaccel.tvm_api import main_bindings, main_result
from uaccel.tvm_api.executor import Executor
from uaccel.util.text import named

# A batch: many layers as one model, compiled and built once, run on each device.


@dataclass(frozen=True)
class LayerOutcome:
    """Holds what one layer gave on one device. ``failed``: why the driver gave up; the output then is the CPU's.

    ``begin``, ``end``: the device's cycles of its first and last command."""

    output: Array
    cycles: int
    calls: int
    failed: str = ""
    begin: int = 0
    end: int = 0


def region_for(case: Case) -> Region | None:
    """Makes the region of one layer, which an operation's check is asked about; None if the numbers are no layer."""
    return _example([case]).region if case.is_layer else None


class Batch:
    """Compiles and builds layers as one firmware, in a folder of its own that exists until it is closed.

    ``meaning``: what each layer should give, executed on this computer."""

    def __init__(self, accelerator: Accelerator, cases: Sequence[Case], board: str, progress: Progress) -> None:
        self.cases = list(cases)
        self._accelerator = accelerator
        self._progress, target = progress, load_board(board)
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-check-")
        progress(f"compile {len(cases)} layers")
        module = _example(cases).module
        self._compiled = _compiled(module, accelerator, target.name)
        self._inputs = [array for case in cases for array in case.inputs()]
        self.meaning: list[Array] = Executor(module).run(self._inputs)
        firmware, project = pack_compiled(self._compiled), Path(self._folder.name) / "project"
        self._bench = BoardBench(FirmwareMaker(firmware, target, project, progress, None))
        self._bench.built()
        self._of = {layer.name: index for index, layer in enumerate(self._compiled.program.layers)}

    def close(self) -> None:
        self._folder.cleanup()

    @property
    def predicted(self) -> list[float]:
        """The cycles of each layer that the accelerator's description predicts."""
        return [self._compiled.program.layers[self._of[_name(i)]].cycles for i in range(len(self.cases))]

    def run(self, devices: Devices) -> list[LayerOutcome]:
        """Runs all layers; raises :class:`DeviceError` if nothing came back at all.

        Jobs of the device come in the order in which layers run, as many for each as its driver counted calls.
        Warnings come in that order too, one for each layer whose driver gave up."""
        self._progress(f"run {len(self.cases)} layers on the {devices.kind}")
        lines: list[LogLine] = []
        layers = {_name(i): self._of[_name(i)] for i in range(len(self.cases))}
        place = devices_in_place(devices, [self._accelerator], self._progress, layers)
        with place, Recorder() as recorder, self._bench.session(on_log=lines.append) as session:
            run = run_batch(session, [self._inputs])
        words = [line.text for line in lines if line.level.name == "WARNING"]
        jobs, found = iter(recorder.jobs), dict[int, LayerOutcome]()
        for number in sorted(range(len(self.cases)), key=lambda i: self._of[_name(i)]):
            account = run.accounts.get(self._of[_name(number)], Account(0, 0))
            why = (words.pop(0) if words else "the driver returned an error") if account.fallbacks else ""
            ended = _jobs(jobs, 0 if account.fallbacks else account.calls)
            found[number] = LayerOutcome(run.outputs[0][number], account.cycles, account.calls, why, *ended)
        return [found[number] for number in range(len(self.cases))]


def _jobs(jobs: Any, count: int) -> tuple[int, int]:
    taken: list[EngineJob] = list(islice(jobs, count))
    return (taken[0].begin, taken[-1].end) if taken else (0, 0)


def _name(number: int) -> str:
    return f"layer{number}"


def _example(cases: Sequence[Case]) -> Example:
    """Makes one module of all layers, each with its own inputs and output."""
    inputs = [case.inputs() for case in cases]

    def build(block: Any, *variables: Any) -> list[Any]:
        rest = iter(variables)
        calls = [call_of(case, *islice(rest, len(own))) for case, own in zip(cases, inputs, strict=True)]
        return [block.emit(call, _name(number)) for number, call in enumerate(calls)]

    return example([array.shape for own in inputs for array in own], build)


def _compiled(module: Any, accelerator: Accelerator, board: str) -> Compiled:
    """Compiles the layers with the CPU as fallback, so that a failure of the device does not end the run."""
    fields = main_result(module).ty.fields
    inputs = tuple(TensorSpec(var.name, type_info(var.ty)) for var in main_bindings(module)[0])
    outputs = tuple(TensorSpec(f"y{i}", type_info(entry)) for i, entry in enumerate(fields))
    digest = hashlib.sha256(module.script(show_meta=False).encode()).hexdigest()
    model = ImportedModel("check", "relax", digest, module, Signature(inputs, outputs), {}, {})
    partitioned = partition(model, [accelerator], Wishes())
    program = lower(partitioned, "check", cpu_fallback=True)
    return Compiled(generate(program, place(program), EmitOptions(), board), {"import": module}, partitioned)


# The check: random layers of each operation, and the first wrong one made as small as possible.

AT_ONCE: Final = 25  # Layers in one firmware.
TRIES: Final = 400  # How many layers are drawn at most for one that the description takes.
ROUNDS: Final = 5  # How often a wrong layer is made smaller, with a build each.
CANDIDATES: Final = 8  # Smaller layers that are tried at once.
WAITS: Final = "rtl that waits"  # Further runs of the same layers.
REFUSES: Final = "rtl that is refused memory"
SEEDS: Final = 10**9  # For a memory that lets the RTL wait.
BEAT: Final = 8  # Bytes of the widest bus.
NOT_ALONE: Final = "it was wrong among other layers, and is right alone"
MOST_FAILED: Final = BEAT + 1  # Layers, where so many accesses are refused.

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Wrong:
    """Describes the first wrong layer: as it was drawn, and the smallest ``case`` of it that was found.

    ``element`` is None if the driver gave up, which ``failed`` tells. ``begin`` and ``end`` are cycles of the device in
    the run that ``waves`` shows, if it is RTL. ``command``: the number of its last command."""

    operation: str
    case: Case
    drawn: Case
    device: str
    element: tuple[int, ...] | None
    got: int
    wanted: int
    count: int
    failed: str
    begin: int
    end: int
    command: int
    waves: Path | None = None

    def __str__(self) -> str:
        what = (
            self.failed
            if self.element is None
            else f"element {list(self.element)} is {self.got}, wanted {self.wanted} ({self.count} differ)"
        )
        where = f"; command {self.command}, cycles {self.begin:,} to {self.end:,}" if self.end else ""
        waves = f"; its waveform is in {self.waves}" if self.waves is not None else ""
        again = f"; 'uaccel check' with --layer '{self.case}' repeats it" if self.failed != NOT_ALONE else ""
        return f"operation {self.operation}, {self.case} on the {self.device}: {what}{where}{waves}{again}"

    def to_json(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "operator": self.case.op,
            "device": self.device,
            "layer": {**self.case.numbers, "seed": self.case.seed, "rounding": self.case.rounding},
            "drawn": dict(self.drawn.numbers),
            "element": None if self.element is None else list(self.element),
            "got": self.got,
            "wanted": self.wanted,
            "different": self.count,
            "failed": self.failed or None,
            "command": self.command,
            "cycles": [self.begin, self.end],
            "waves": None if self.waves is None else str(self.waves),
        }


@dataclass
class Checked:
    """Sums up the layers of one operation and operator. Cycles are sums over its layers.

    ``refusal``: why the operation refused the last layer that it refused.
    ``unlike``: the most that model and RTL differ on one layer, as a share. ``missed``: the most that the prediction
    is off from the last device that ran: the RTL if it ran, else the model."""

    operation: str
    operator: str
    layers: int = 0
    refused: int = 0
    refusal: str = ""
    predicted: float = 0
    cycles: dict[str, int] = field(default_factory=dict)
    unlike: float = 0
    missed: float = 0

    def add(self, predicted: float, ran: dict[str, LayerOutcome]) -> None:
        self.layers += 1
        self.predicted += predicted
        for device, one in ran.items():
            self.cycles[device] = self.cycles.get(device, 0) + one.cycles
        last = [*ran.values()][-1].cycles
        if last:
            self.unlike = max(self.unlike, abs(ran[MODEL].cycles / last - 1))
            self.missed = max(self.missed, abs(predicted / last - 1)) if predicted else self.missed

    def to_json(self) -> dict[str, Any]:
        return {
            **named(self, "operation", "operator", "layers", "refused"),
            "predicted": round(self.predicted),
            "cycles": self.cycles,
            "model_error": round(self._error(MODEL), 4) if RTL in self.cycles else None,
            "largest_model_error": round(self.unlike, 4) if RTL in self.cycles else None,
            "largest_prediction_error": round(self.missed, 4),
        }

    def _error(self, device: str) -> float:
        return self.cycles[device] / self.cycles[RTL] - 1 if self.cycles.get(RTL) else 0.0


@dataclass(frozen=True)
class Report:
    """Holds what a check found. ``left``: operations of which no layers can be drawn; ``instructions``: how many were
    compared."""

    accelerator: str
    device: str
    board: str
    seed: int
    operations: Sequence[Checked]
    left: Sequence[str]
    wrong: Wrong | WrongInstruction | None
    instructions: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            **named(self, "accelerator", "device", "board", "seed"),
            "layers": sum(one.layers for one in self.operations),
            "operations": [one.to_json() for one in self.operations],
            "not_drawn": list(self.left),
            "instructions": self.instructions,
            "wrong": None if self.wrong is None else self.wrong.to_json(),
        }

    def require_right(self) -> None:
        if self.wrong is not None:
            raise VerificationError(f"{self.accelerator} is wrong: {self.wrong}")
        for one in self.operations:
            if not one.layers:
                why = f'it refused all {one.refused} that were drawn, the last because "{one.refusal}"'
                why = why if one.refused else "none that was drawn is a layer"
                raise VerificationError(
                    f"{self.accelerator}: no layer of operation {one.operation} ({one.operator}) was compared: {why}; "
                    "its check must take some layer, or the operation must go"
                )


@dataclass(frozen=True)
class CheckRequest:
    """Says what is checked. ``waves``: where the waveform of a wrong layer goes. ``layer``: this one, and no random
    ones."""

    accelerator: Accelerator
    device: str = MODEL
    layers: int = 50
    seed: int = 0
    board: str = "host"
    waves: Path | None = None
    stalls: int | None = None  # A seed: the memory lets the RTL wait.
    layer: Case | None = None

    @property
    def devices(self) -> list[Devices]:
        """The devices that run layers. The RTL of custom instructions is part of a core, so it runs no layers here."""
        both = self.device == RTL and not self.accelerator.instructions
        return [Devices(), Devices(RTL, stalls=self.stalls)] if both else [Devices()]

    @property
    def instructions(self) -> Asked:
        devices = devices_of(self.accelerator, self.device)
        return Asked(self.accelerator, devices, self.layers, self.seed, self.waves)

    def only(self, device: str, waves: Path | None = None) -> Devices:
        return Devices(device, waves, stalls=self.stalls if device == RTL else None)


def check(question: CheckRequest, progress: Progress = lambda _step: None) -> Report:
    """Checks ``question.layers`` layers, taken in turn from each operation, after the custom instructions.

    It ends at the first batch with a fault, as further faults may have the same cause."""
    accelerator = question.accelerator
    left = [operation.name for operation in accelerator.operations if not _families(operation)]
    report: dict[tuple[str, str], Checked] = {}
    if question.layer is None:
        rows = draw_layers(accelerator, question.layers, question.seed, report)
    else:
        rows = [_of_layer(accelerator, question.layer)]
        report[rows[0][0].name, question.layer.op] = Checked(rows[0][0].name, question.layer.op)
    wrong: Wrong | WrongInstruction | None = None
    count = question.layers * STEPS if accelerator.instructions and question.layer is None else 0
    if count:
        wrong = check_instructions(question.instructions, progress)
    for first in range(0, len(rows), AT_ONCE):
        wrong = wrong or _batch(question, rows[first : first + AT_ONCE], report, progress)
    operations = list(report.values())
    return Report(accelerator.name, question.device, question.board, question.seed, operations, left, wrong, count)


def draw_layers(
    accelerator: Accelerator, count: int, seed: int, report: dict[tuple[str, str], Checked]
) -> list[tuple[Operation, Case]]:
    """Draws ``count`` layers, in turn of each operation and operator, each of which gets an entry in ``report``.

    All are drawn before any runs, so that one seed always gives the same layers."""
    known = [(operation, op) for operation in accelerator.operations for op in _families(operation)]
    if not known:
        raise AcceleratorError(
            f"no layers can be drawn for {accelerator.name}: its operations match none of {', '.join(FAMILIES)} alone"
        )
    report |= {(operation.name, op): Checked(operation.name, op) for operation, op in known}
    random = np.random.default_rng(seed)
    rows: list[tuple[Operation, Case]] = []
    for number in range(max(count, len(known))):  # an operation without a layer would pass unseen
        operation, op = known[number % len(known)]
        case = _drawn(operation, op, random, report[operation.name, op], accelerator)
        if case is not None:
            rows.append((operation, case))
    return rows


def _of_layer(accelerator: Accelerator, case: Case) -> tuple[Operation, Case]:
    """The layer with the first operation that takes it."""
    region, why = region_for(case), "no operation is about such a layer"
    for operation in accelerator.operations:
        if region is not None and case.op in _families(operation) and case.rounding in operation.roundings:
            with vendors(accelerator.folder, f"check of operation '{operation.name}'"):
                refused = operation.check(region)
            if refused is None:
                return operation, case
            why = str(refused)
    raise AcceleratorError(f"{accelerator.name} does not compute {case}: {why}; name a layer that it takes")


def _families(operation: Operation) -> list[str]:
    """Returns the operators that an operation's pattern matches by one call with any operands."""
    names = [name.removeprefix(NAMESPACE) for name in operation.operators]
    plain = not any(_is_stated(argument) for argument in getattr(operation.pattern, "args", ()) or ())
    return [name for name in names if name in FAMILIES and plain]


def _is_stated(argument: Any) -> bool:
    return type(argument).__name__ != "WildcardPattern"


def _drawn(
    operation: Operation, op: str, random: np.random.Generator, told: Checked, accelerator: Accelerator
) -> Case | None:
    """Draws until the description takes a layer; None after ``TRIES`` draws."""
    for _ in range(TRIES):
        case = drawn(op, random, str(random.choice(list(operation.roundings))))
        region = region_for(case)
        if region is None:
            continue
        with vendors(accelerator.folder, f"check of operation '{operation.name}'"):
            refused = operation.check(region)
        if refused is None:
            return case
        told.refused, told.refusal = told.refused + 1, str(refused)
    return None


def _batch(
    question: CheckRequest,
    rows: Sequence[tuple[Operation, Case]],
    report: dict[tuple[str, str], Checked],
    progress: Progress,
) -> Wrong | None:
    ran, meaning, predicted = _run(question, [case for _, case in rows], progress)
    for number, (operation, case) in enumerate(rows):
        of_layer = {device: found[number] for device, found in ran.items() if device in (MODEL, RTL)}
        for device, one in of_layer.items():
            if not _is_right(one, meaning[number]):
                return _told(question, operation, case, device, progress)
        report[operation.name, case.op].add(predicted[number], of_layer)
    for number, (operation, case) in enumerate(rows if WAITS in ran else []):
        if not _is_right(ran[WAITS][number], meaning[number]):
            return _told(replace(question, stalls=question.seed % SEEDS), operation, case, RTL, progress)
    forgot = _not_forgotten(ran[REFUSES], meaning) if REFUSES in ran else None
    if forgot is None:
        return None
    number, what = forgot
    return Wrong(rows[number][0].name, rows[number][1], rows[number][1], RTL, None, 0, 0, 0, what, 0, 0, 0)


def _not_forgotten(ran: Sequence[LayerOutcome], meaning: Sequence[Array]) -> tuple[int, str] | None:
    """A layer to which memory was refused may fail, and the CPU then computes it: at most one for each access. All
    others are right, and the device computes them. If not, the first layer that is to blame, and why."""
    failed = [number for number, one in enumerate(ran) if one.failed]
    wrong = [number for number, one in enumerate(ran) if not np.array_equal(one.output, meaning[number])]
    if wrong:
        return wrong[0], "memory refused a few accesses of the device, which took what it got for good"
    if len(failed) > MOST_FAILED:
        return failed[
            MOST_FAILED
        ], f"memory refused a few accesses before, and it failed: {ran[failed[MOST_FAILED]].failed}"
    return None


def _run(
    question: CheckRequest, cases: Sequence[Case], progress: Progress, devices: Sequence[Devices] | None = None
) -> tuple[dict[str, list[LayerOutcome]], list[Array], list[float]]:
    batch = Batch(question.accelerator, cases, question.board, progress)
    try:
        ran = {one.kind: _ran(batch, one) for one in devices or question.devices}
        if devices is None and RTL in ran and question.stalls is None and question.board == "host":
            ran |= _harder(question, batch)
        return ran, batch.meaning, batch.predicted
    finally:
        batch.close()


def _ran(batch: Batch, devices: Devices) -> list[LayerOutcome]:
    """Runs a batch. If the firmware breaks off, all its layers count as failed, so that the first one is blamed."""
    try:
        return batch.run(devices)
    except DeviceError as error:
        return [LayerOutcome(meaning, 0, 0, str(error)) for meaning in batch.meaning]


def _harder(question: CheckRequest, batch: Batch) -> dict[str, list[LayerOutcome]]:
    """The same layers on the RTL while memory lets it wait, and while it refuses some accesses: a beat, byte by byte.

    If a beat is partly beyond memory, some bytes may be refused and others not, which no RTL can see. Then others are
    refused."""
    random = np.random.default_rng([question.seed, len(batch.cases)])
    ran = {WAITS: _ran(batch, Devices(RTL, stalls=question.seed % SEEDS))}
    first = int(2 ** random.uniform(3, 14))
    for begin in (first, first + BEAT):
        with environment({"UACCEL_DEVICE_FAULT": f"{question.accelerator.name}:dma@{begin}-{begin + BEAT}"}):
            ran[REFUSES] = _ran(batch, Devices(RTL))
        if _not_forgotten(ran[REFUSES], batch.meaning) is None:
            break
    return ran


def _is_right(ran: LayerOutcome, meaning: Array) -> bool:
    return not ran.failed and bool(np.array_equal(ran.output, meaning))


def _told(question: CheckRequest, operation: Operation, case: Case, device: str, progress: Progress) -> Wrong:
    smallest = _shrunk(question, operation, case, device, progress)
    waves = question.waves if device == RTL else None
    ran, meaning, _ = _run(question, [smallest], progress, [question.only(device, waves)])
    one = ran[device][0]
    differ = np.argwhere(one.output != meaning[0])
    first = tuple(int(index) for index in differ[0]) if len(differ) and not one.failed else None
    got, wanted = (int(one.output[first]), int(meaning[0][first])) if first is not None else (0, 0)
    return Wrong(
        operation.name,
        smallest,
        case,
        device,
        first,
        got,
        wanted,
        len(differ),
        one.failed or ("" if first is not None else NOT_ALONE),
        one.begin,
        one.end,
        max(0, one.calls - 1),
        waves,
    )


def _shrunk(question: CheckRequest, operation: Operation, case: Case, device: str, progress: Progress) -> Case:
    """Makes a wrong layer smaller, greedily: the smallest wrong one of the candidates is taken on, round by round.

    The layer at hand is always one that was seen to be wrong. Each round makes it strictly smaller. It ends when no
    candidate is wrong, or after ``ROUNDS`` builds. If the driver gave up at a candidate, later ones in the same run may
    fail only because of the state that this left in the device; then the first wrong one alone counts."""
    for _ in range(ROUNDS):
        candidates = _candidates(question.accelerator, operation, case)
        if not candidates:
            break
        progress(f"make the layer smaller: {len(candidates)} candidates")
        ran, meaning, _ = _run(question, candidates, progress, [question.only(device)])
        wrong = [number for number, one in enumerate(ran[device]) if not _is_right(one, meaning[number])]
        if not wrong:
            break
        if ran[device][wrong[0]].failed:
            wrong = wrong[:1]  # the others may fail because of it
        case = min((candidates[number] for number in wrong), key=lambda candidate: candidate.size)
    return case


def _candidates(accelerator: Accelerator, operation: Operation, case: Case) -> list[Case]:
    """Returns up to ``CANDIDATES`` smaller layers that the description takes, the smallest first.

    At most four times as many are looked at, each of which costs a call of the vendor's check."""
    found = []
    for candidate in sorted(case.smaller(), key=lambda one: one.size)[: 4 * CANDIDATES]:
        region = region_for(candidate)
        if candidate.size < case.size and region is not None and operation.check(region) is None:
            found.append(candidate)
        if len(found) == CANDIDATES:
            break
    return found


# The same check as ``uaccel check``, as one line of a test.


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
    """Checks random layers of each operation on the model, and with ``device="rtl"`` on the RTL too.

    Raises :class:`~uaccel.errors.VerificationError` if a byte is not what the layer means. With ``stalls``, a seed, the
    memory lets the RTL wait."""
    found = load_accelerator(str(accelerator.resolve()) if isinstance(accelerator, Path) else accelerator)
    report = check(CheckRequest(found, device, layers, seed, board, waves, stalls))
    report.require_right()
    return report
