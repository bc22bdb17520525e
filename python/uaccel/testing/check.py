"""Checks a model on a board against what it should compute, and finds the first wrong layer if it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import DeviceError, InputError, ToolError, VerificationError
from uaccel.report.run_json import batched
from uaccel.runner.compare import compare
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.runner.verdict import (
    FAILED,
    CompiledSubject,
    as_imported,
    judge_values,
    largest_tolerance,
    layers_to_read,
    runtime_opinion,
)
from uaccel.runner.verify import Computed, WrongLayer, find_inside, first_wrong_layer, is_exact
from uaccel.session.batch import layers_of, run_batch
from uaccel.session.session import Session
from uaccel.session.tensors import TensorType, load_inputs, read_arrays, samples_of
from uaccel.testing.firmware_cache import CachedFirmware
from uaccel.testing.outcome import Check, Outcome, Values

Array = NDArray[Any]
Sample = list[Array]
# Opens a session with a board that runs the product; with True one whose layers can be read.
Open = Callable[[CachedFirmware, bool], AbstractContextManager[Session]]
Cut = Callable[
    [CachedFirmware, tuple[str, ...]], CachedFirmware
]  # The same model with regions that end after the named layers.

LATER_FRAME = "in which layer cannot be told: frames before it made the state; only a first frame is looked into"


def check_product(
    product: CachedFirmware, check: Check, board: str, open_session: Open, cut: Cut, *, look_inside: bool = True
) -> Outcome:
    """Runs a model and raises :class:`VerificationError`, which names it and ``board``, if an output differs.

    For a sequence the samples are frames: the model's state goes on from each to the next. With ``look_inside`` what
    outputs hide is compared as well.
    """
    expected, sequence = check.expected, check.sequence
    compiled = product.compiled
    signature = compiled.model.signature
    count = 1 if sequence or expected is not None else check.samples
    own, more = _samples(check.inputs, tensor_types(signature.inputs), count, check.seed)
    wanted = None if expected is None else _outputs(expected, tensor_types(signature.outputs), len(own))
    with open_session(product, False) as session:
        run = run_batch(session, own, sequence=sequence)
        further = run_batch(session, more).outputs if more else []
    every, outputs = [*own, *more], [*run.outputs, *further]
    read = layers_to_read(compiled, every_layer=False) if look_inside and wanted is None and not sequence else ()
    computed = _computed(product, every, read, open_session)
    fault = _fault(product, every, outputs, wanted, computed, sequence)
    if fault is not None:
        number, words = fault
        means = "the exact meaning" if wanted is None else "what was expected"
        told = LATER_FRAME
        if not (sequence and number):
            told = _tell(product, every[: number + 1], outputs[number], open_session, cut)
        raise VerificationError(f"{check.model.name} on board {board} is not {means}: {words}; {told}")
    disagreement = _disagreement(product, every, outputs, sequence) if wanted is None else ""
    if disagreement:
        raise VerificationError(
            f"{check.model.name} on board {board} is not what its format's runtime computes: {disagreement}"
        )
    names = [spec.name for spec in signature.outputs]
    outcome = {name: batched([values[i] for values in run.outputs]) for i, name in enumerate(names)}
    calls = {compiled.program.layers[index].name: account.calls for index, account in run.accounts.items()}
    return Outcome(outcome, run.seconds, run.instructions, run.stack, calls)


def _computed(
    product: CachedFirmware, samples: Sequence[Sample], read: Sequence[int], open_session: Open
) -> list[dict[tuple[int, int], Array]]:
    """Reads what layers give, from firmware that shows them."""
    if not read:
        return []
    with open_session(product, True) as session:
        return [layers_of(session, sample, read) for sample in samples]


def _fault(
    product: CachedFirmware,
    samples: Sequence[Sample],
    outputs: Sequence[Sample],
    wanted: Sequence[Sample] | None,
    computed: Computed,
    sequence: bool,
) -> tuple[int, str] | None:
    """Returns the number of the first wrong sample and what is wrong there; None if all is right.

    Outputs are compared with ``wanted``, else with the model's meaning by the same rules as ``uaccel run --verify``."""
    compiled = product.compiled
    if wanted is not None:
        for number, (values, expected) in enumerate(zip(outputs, wanted, strict=True)):
            for spec, got, should_be in zip(compiled.model.signature.outputs, values, expected, strict=True):
                mismatch = compare(got, should_be, largest_tolerance(compiled))
                if mismatch is not None:
                    return number, f'sample {number}, output "{spec.name}", element {mismatch}'
        return None
    subject = CompiledSubject(compiled, product.reference)
    verdict = judge_values(subject, samples, outputs, computed, sequence=sequence)
    return (verdict.sample, verdict.complaint.removeprefix(f"{FAILED}: ")) if verdict.complaint else None


def _disagreement(product: CachedFirmware, samples: Sequence[Sample], outputs: Sequence[Sample], sequence: bool) -> str:
    """Says where the runtime of the model's format computes something else, where it is installed."""
    model, exact = as_imported(product.compiled), is_exact(product.compiled)
    return runtime_opinion(model, product.job.model, samples, outputs, exact=exact, sequence=sequence)[1]


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


def _tell(product: CachedFirmware, samples: Sequence[Sample], outputs: Sample, open_session: Open, cut: Cut) -> str:
    """Says where it went wrong.

    If the outputs are the model's meaning, what the test expects is at fault. Otherwise firmware that shows its layers
    runs the same samples again, and a wrong region is searched by bisection."""
    compiled = product.compiled
    meaning = product.reference.run(samples[-1])[0]
    tolerance = largest_tolerance(compiled)
    if all(compare(got, right, tolerance) is None for got, right in zip(outputs, meaning, strict=True)):
        return "every output is the exact meaning of the model: what was expected is not"

    def first_wrong(product: CachedFirmware) -> WrongLayer | None:
        every = range(len(product.compiled.program.layers))
        return first_wrong_layer(product.compiled, samples, _computed(product, samples, every, open_session))

    try:
        wrong = first_wrong(product)
        wrong = wrong and find_inside(wrong, lambda cuts: first_wrong(cut(product, cuts)))
    except (DeviceError, ToolError) as error:
        return f"the first wrong layer cannot be told: {error}"
    if wrong is None:
        return "watched layer by layer, every layer is right: does something else write to its memory?"
    return f"first wrong: {wrong}"
