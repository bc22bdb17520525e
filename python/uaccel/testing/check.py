"""Checks a model on a board against what it should compute, and finds the first wrong layer if it is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from uaccel.errors import DeviceError, InputError, ToolError, VerificationError, need
from uaccel.runner.compare import compare
from uaccel.runner.execute import Looks, OnLog, RunResult
from uaccel.runner.request import Quiet
from uaccel.runner.samples import named_arrays, samples_from
from uaccel.runner.verdict import FAILED, LOOK, CompiledSubject, bisect_region, judge, runtime_opinion
from uaccel.runner.verify import find_inside
from uaccel.session.batch import layers_of
from uaccel.session.tensors import TensorType, read_arrays, samples_of
from uaccel.testing.firmware_cache import CachedFirmware
from uaccel.testing.outcome import Check, Outcome, Values

Array = NDArray[Any]
Sample = list[Array]

LATER_FRAME = "in which layer cannot be told: frames before it made the state; only a first frame is looked into"


def check_product(
    product: CachedFirmware, check: Check, on_log: OnLog, *, look_inside: bool = True, **where: Any
) -> Outcome:
    """Runs a model and raises :class:`VerificationError`, which names it and its board, if an output differs.

    For a sequence the samples are frames: the model's state goes on from each to the next. With ``look_inside`` what
    outputs hide is compared as well. ``where``: port and timeouts of the board.
    """
    expected, sequence, compiled = check.expected, check.sequence, product.compiled
    bench, subject = product.bench(**where), CompiledSubject(product.compiled, product.reference)
    firmware, count = bench.firmware, 1 if sequence or expected is not None else check.samples
    own, more = samples_from(check.inputs, firmware.inputs, count, check.seed)
    wanted = None if expected is None else _outputs(expected, firmware.outputs, len(own))
    inside = look_inside and wanted is None and not sequence
    read = subject.stated.to_read(every_layer=False) if inside else ()
    measured = bench.measure(own, Looks(more, read=read, sequence=sequence, counts=False), on_log=on_log)
    what, fault = f"{check.model.name} on board {product.job.board.name}", _fault(subject, measured, wanted)
    if fault is not None:
        number, words = fault
        means = "the exact meaning" if wanted is None else "what was expected"
        told = LATER_FRAME
        if not (sequence and number):
            told = _tell(product, subject, measured, number, where, own=wanted is not None)
        raise VerificationError(f"{what} is not {means}: {words}; {told}")
    disagreement = _disagreement(product, subject, measured) if wanted is None else ""
    need(not disagreement, f"{what} is not what its format's runtime computes: {disagreement}", VerificationError)
    run = measured.run
    calls = {compiled.program.layers[index].name: account.calls for index, account in run.accounts.items()}
    return Outcome(measured.named(firmware.outputs), run.seconds, run.instructions, run.stack, calls)


def _fault(subject: CompiledSubject, measured: RunResult, wanted: Sequence[Sample] | None) -> tuple[int, str] | None:
    """Returns the number of the first wrong sample and what is wrong there; None if all is right.

    Outputs are compared with ``wanted``, else with the model's meaning by the same rules as ``uaccel run --verify``."""
    if wanted is not None:
        for number, (values, expected) in enumerate(zip(measured.outputs, wanted, strict=True)):
            for spec, got, should_be in zip(subject.compiled.model.signature.outputs, values, expected, strict=True):
                mismatch = compare(got, should_be, subject.stated.tolerance)
                if mismatch is not None:
                    return number, f'sample {number}, output "{spec.name}", element {mismatch}'
        return None
    verdict = judge(subject, measured)
    complaint = verdict.complaint.removeprefix(f"{FAILED}: ").removesuffix(LOOK)
    return (verdict.sample, complaint) if complaint else None


def _disagreement(product: CachedFirmware, subject: CompiledSubject, measured: RunResult) -> str:
    """Says where the runtime of the model's format computes something else, where it is installed."""
    asked = product.reference.model, product.job.model, measured.samples, measured.outputs
    return runtime_opinion(*asked, exact=subject.stated.exact, sequence=measured.run.sequence)[1]


def _outputs(values: Values, tensors: Sequence[TensorType], count: int) -> list[list[Array]]:
    if isinstance(values, str | Path):
        samples = samples_of(read_arrays(Path(values)), tensors, str(values), "output")
    else:
        samples = samples_of(named_arrays(values, tensors, "output"), tensors, "expected", "output")
    if len(samples) != count:
        raise InputError(f"expected holds {len(samples)} samples, inputs {count}; give as many of each")
    return samples


def _tell(
    product: CachedFirmware,
    subject: CompiledSubject,
    measured: RunResult,
    number: int,
    where: Mapping[str, Any],
    *,
    own: bool,
) -> str:
    """Says where a sample went wrong.

    If the outputs are the model's meaning, what the test expects of its ``own`` is at fault. Otherwise firmware that
    shows its layers runs the samples up to it again, and a wrong region is searched by bisection."""
    samples, outputs, tolerance = measured.samples[: number + 1], measured.outputs[number], subject.stated.tolerance
    meaning = product.reference.run(samples[-1])[0]
    if own and all(compare(got, right, tolerance) is None for got, right in zip(outputs, meaning, strict=True)):
        return "every output is the exact meaning of the model: what was expected is not"
    try:
        with product.bench(**where).session(observe=True) as session:
            every = range(len(product.compiled.program.layers))
            wrong = subject.first_wrong(samples, [layers_of(session, each, every) for each in samples])
        again = partial(bisect_region, product.job, samples=samples, progress=Quiet(), **where)
        wrong = wrong and find_inside(wrong, again)
    except (DeviceError, ToolError) as error:
        return f"the first wrong layer cannot be told: {error}"
    if wrong is None:
        return "watched layer by layer, every layer is right: does something else write to its memory?"
    return f"first wrong: {wrong}"
