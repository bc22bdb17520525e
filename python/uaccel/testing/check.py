"""Checks a model on a board against what it should compute, and finds the first wrong layer if it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import DeviceError, InputError, ToolError, VerificationError, need
from uaccel.runner.compare import compare
from uaccel.runner.execute import BoardBench, Looks, OnLog, RunResult
from uaccel.runner.samples import default_samples
from uaccel.runner.verdict import (
    FAILED,
    CompiledSubject,
    as_imported,
    judge,
    largest_tolerance,
    layers_to_read,
    runtime_opinion,
)
from uaccel.runner.verify import WrongLayer, find_inside, first_wrong_layer, is_exact
from uaccel.session.batch import layers_of
from uaccel.session.tensors import TensorType, load_inputs, read_arrays, samples_of
from uaccel.testing.firmware_cache import CachedFirmware
from uaccel.testing.outcome import Check, Outcome, Values

Array = NDArray[Any]
Sample = list[Array]
# Puts a product on the board of the test.
Put = Callable[[CachedFirmware], BoardBench]
# Makes the same model with regions that end after the named layers.
Cut = Callable[[CachedFirmware, tuple[str, ...]], CachedFirmware]

LATER_FRAME = "in which layer cannot be told: frames before it made the state; only a first frame is looked into"


def check_product(
    product: CachedFirmware, check: Check, put: Put, cut: Cut, on_log: OnLog, *, look_inside: bool = True
) -> Outcome:
    """Runs a model and raises :class:`VerificationError`, which names it and its board, if an output differs.

    For a sequence the samples are frames: the model's state goes on from each to the next. With ``look_inside`` what
    outputs hide is compared as well.
    """
    expected, sequence, compiled = check.expected, check.sequence, product.compiled
    bench = put(product)
    firmware, count = bench.firmware, 1 if sequence or expected is not None else check.samples
    own, more = _samples(check.inputs, firmware.inputs, count, check.seed)
    wanted = None if expected is None else _outputs(expected, firmware.outputs, len(own))
    read = layers_to_read(compiled, every_layer=False) if look_inside and wanted is None and not sequence else ()
    measured = bench.measure(own, Looks(more, read=read, sequence=sequence, counts=False), on_log=on_log)
    what, fault = f"{check.model.name} on board {product.job.board.name}", _fault(product, measured, wanted)
    if fault is not None:
        number, words = fault
        means = "the exact meaning" if wanted is None else "what was expected"
        told = LATER_FRAME
        if not (sequence and number):
            told = _tell(product, measured, number, put, cut, own=wanted is not None)
        raise VerificationError(f"{what} is not {means}: {words}; {told}")
    disagreement = _disagreement(product, measured) if wanted is None else ""
    need(not disagreement, f"{what} is not what its format's runtime computes: {disagreement}", VerificationError)
    run = measured.run
    calls = {compiled.program.layers[index].name: account.calls for index, account in run.accounts.items()}
    return Outcome(measured.named(firmware.outputs), run.seconds, run.instructions, run.stack, calls)


def _fault(product: CachedFirmware, measured: RunResult, wanted: Sequence[Sample] | None) -> tuple[int, str] | None:
    """Returns the number of the first wrong sample and what is wrong there; None if all is right.

    Outputs are compared with ``wanted``, else with the model's meaning by the same rules as ``uaccel run --verify``."""
    compiled = product.compiled
    if wanted is not None:
        for number, (values, expected) in enumerate(zip(measured.outputs, wanted, strict=True)):
            for spec, got, should_be in zip(compiled.model.signature.outputs, values, expected, strict=True):
                mismatch = compare(got, should_be, largest_tolerance(compiled))
                if mismatch is not None:
                    return number, f'sample {number}, output "{spec.name}", element {mismatch}'
        return None
    verdict = judge(CompiledSubject(compiled, product.reference), measured)
    return (verdict.sample, verdict.complaint.removeprefix(f"{FAILED}: ")) if verdict.complaint else None


def _disagreement(product: CachedFirmware, measured: RunResult) -> str:
    """Says where the runtime of the model's format computes something else, where it is installed."""
    model, exact, sequence = as_imported(product.compiled), is_exact(product.compiled), measured.run.sequence
    asked = model, product.job.model, measured.samples, measured.outputs
    return runtime_opinion(*asked, exact=exact, sequence=sequence)[1]


def _samples(
    values: Values | None, tensors: Sequence[TensorType], count: int, seed: int
) -> tuple[list[Sample], list[Sample]]:
    """Returns the samples that the outcome tells of, and those that are only compared."""
    if values is None:
        first, *others = default_samples(tensors, count, seed)
        return [first], others
    return _inputs(values, tensors), []


def _inputs(values: Values, tensors: Sequence[TensorType]) -> list[list[Array]]:
    if isinstance(values, str | Path):
        return load_inputs(Path(values), tensors)
    return samples_of(_named(values, tensors, "input"), tensors, "inputs")


def _outputs(values: Values, tensors: Sequence[TensorType], count: int) -> list[list[Array]]:
    if isinstance(values, str | Path):
        samples = samples_of(read_arrays(Path(values)), tensors, str(values), "output")
    else:
        samples = samples_of(_named(values, tensors, "output"), tensors, "expected", "output")
    if len(samples) != count:
        raise InputError(f"expected holds {len(samples)} samples, inputs {count}; give as many of each")
    return samples


def _named(values: Any, tensors: Sequence[TensorType], kind: str) -> dict[str, Array]:
    if isinstance(values, Mapping):
        return {name: np.asarray(value) for name, value in values.items()}
    if len(tensors) != 1:
        names = ", ".join(f'"{tensor.name}"' for tensor in tensors)
        raise InputError(f"one array was given for {len(tensors)} {kind}s; give a dictionary with {names}")
    return {tensors[0].name: np.asarray(values)}


def _tell(product: CachedFirmware, measured: RunResult, number: int, put: Put, cut: Cut, *, own: bool) -> str:
    """Says where a sample went wrong.

    If the outputs are the model's meaning, what the test expects of its ``own`` is at fault. Otherwise firmware that
    shows its layers runs the samples up to it again, and a wrong region is searched by bisection."""
    samples, outputs, tolerance = (
        measured.samples[: number + 1],
        measured.outputs[number],
        largest_tolerance(product.compiled),
    )
    meaning = product.reference.run(samples[-1])[0]
    if own and all(compare(got, right, tolerance) is None for got, right in zip(outputs, meaning, strict=True)):
        return "every output is the exact meaning of the model: what was expected is not"

    def first_wrong(product: CachedFirmware) -> WrongLayer | None:
        with put(product).session(observe=True) as session:
            every = range(len(product.compiled.program.layers))
            return first_wrong_layer(product.compiled, samples, [layers_of(session, each, every) for each in samples])

    try:
        wrong = first_wrong(product)
        wrong = wrong and find_inside(wrong, lambda cuts: first_wrong(cut(product, cuts)))
    except (DeviceError, ToolError) as error:
        return f"the first wrong layer cannot be told: {error}"
    if wrong is None:
        return "watched layer by layer, every layer is right: does something else write to its memory?"
    return f"first wrong: {wrong}"
