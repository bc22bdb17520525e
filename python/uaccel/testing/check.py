"""A model on a board against what it should compute, and where it went wrong if it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import DeviceError, InputError, ToolError, VerificationError
from uaccel.model import Signature
from uaccel.running.diagnosis import compare, exact_layers, first_wrong_layer, tolerance_of
from uaccel.running.execute import tensor_types
from uaccel.session.batch import run_batch
from uaccel.session.inputs import load_inputs, ramp, read_arrays, samples_of
from uaccel.session.session import Session
from uaccel.session.tensors import TensorType
from uaccel.telling.report import batched
from uaccel.testing.under_test import Outcome
from uaccel.testing.workshop import Product

if TYPE_CHECKING:
    from uaccel.testing.under_test import Values

Array = NDArray[Any]
Open = Callable[[bool], AbstractContextManager[Session]]
"""Opens a session with a board that runs the model; with True one whose layers can be read."""

LATER_FRAME = "in which layer cannot be told: frames before it made the state; only a first frame is looked into"


def check_product(
    product: Product,
    model: str,
    board: str,
    inputs: Values | None,
    expected: Values | None,
    open_session: Open,
    *,
    sequence: bool = False,
) -> Outcome:
    """Raises :class:`VerificationError` where an output differs; ``model`` and ``board`` are what it calls them.

    With ``sequence`` the samples are frames: the model's state goes on from each to the next.
    """
    signature, tolerance = product.compiled.model.signature, tolerance_of(product.compiled.program)
    samples = _inputs(inputs, tensor_types(signature.inputs))
    wanted = None if expected is None else _outputs(expected, tensor_types(signature.outputs), len(samples))
    with open_session(False) as session:
        run = run_batch(session, samples, sequence=sequence)
    for number, (values, outputs) in enumerate(zip(samples, run.outputs, strict=True)):
        should_be = (
            product.meaning.outputs(values, continues=sequence and number > 0) if wanted is None else wanted[number]
        )
        fault = _fault(signature, outputs, should_be, tolerance)
        if fault is not None:
            means = "the exact meaning" if wanted is None else "what was expected"
            told = LATER_FRAME if sequence and number else _tell(product, values, outputs, open_session)
            raise VerificationError(f"{model} on board {board} is not {means}: sample {number}, {fault}\n{told}")
    names = [spec.name for spec in signature.outputs]
    outcome = {name: batched([values[i] for values in run.outputs]) for i, name in enumerate(names)}
    layers = product.compiled.program.layers
    calls = {layers[index].name: account.calls for index, account in run.accounts.items()}
    return Outcome(outcome, run.seconds, run.instructions, run.stack, calls)


def _fault(signature: Signature, outputs: Sequence[Array], wanted: Sequence[Array], tolerance: float) -> str | None:
    for spec, got, should_be in zip(signature.outputs, outputs, wanted, strict=True):
        mismatch = compare(got, should_be, tolerance)
        if mismatch is not None:
            return f'output "{spec.name}", element {mismatch}'
    return None


def _inputs(values: Values | None, tensors: Sequence[TensorType]) -> list[list[Array]]:
    if values is None:
        return [[ramp(tensor) for tensor in tensors]]
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


def _tell(product: Product, values: Sequence[Array], outputs: Sequence[Array], open_session: Open) -> str:
    """Where it went wrong: firmware that shows its layers runs the same sample again."""
    signature, tolerance = product.compiled.model.signature, tolerance_of(product.compiled.program)
    if _fault(signature, outputs, product.meaning.outputs(values), tolerance) is None:
        return "every output is the exact meaning of the model: what was expected is not"
    names = [spec.name for spec in signature.inputs]
    try:
        with open_session(True) as session:
            layers = session.layers(dict(zip(names, values, strict=True)))
    except (DeviceError, ToolError) as error:
        return f"the first wrong layer cannot be told: {error}"
    wrong = first_wrong_layer(product.compiled.program, exact_layers(product.compiled, values), layers)
    if wrong is None:
        return "watched layer by layer, every layer is right: does something else write to its memory?"
    return f"first wrong: {wrong}"
