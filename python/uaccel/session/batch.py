"""Runs many inferences over one session, and reads times and outputs of single layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from uaccel.errors import UaccelError
from uaccel.model import Array
from uaccel.session.description import Account, LayerTime
from uaccel.session.session import Session

# Batches: many inferences, and what they measured together.


@dataclass(frozen=True)
class BatchRun:
    """Holds the ``outputs`` of every run, in the model's order, and what the runs took."""

    outputs: list[list[Array]]
    stack: int  # The most bytes that a run took.
    instructions: int | None = None  # The first run's; None if the device cannot count.
    seconds: float | None = None  # The fastest run's.
    first_seconds: float | None = None  # The first run's.
    cycles: int = 0  # Accelerators' own count for the first run.
    # What accelerators did in one run, by layer; layers that called none are missing.
    accounts: dict[int, Account] = field(default_factory=dict)
    sequence: bool = False  # The samples were the frames of one sequence.


def run_batch(
    session: Session,
    samples: Sequence[Sequence[Array]],
    *,
    sequence: bool = False,
    count: Callable[[int, int], None] = lambda done, total: None,
) -> BatchRun:
    """Runs one inference for each sample (an array for each input); ``count`` gets how many are done, of how many.

    With ``sequence`` the samples are frames: the model's state goes on from each to the next.
    """
    inputs = [tensor.name for tensor in session.model.inputs]
    outputs = [tensor.name for tensor in session.model.outputs]
    results = []
    count(0, len(samples))
    run = session.sequence if sequence else session.stream
    for result in run(dict(zip(inputs, values, strict=True)) for values in samples):
        results.append(result)
        count(len(results), len(samples))
    return BatchRun(
        outputs=[[result.outputs[name] for name in outputs] for result in results],
        stack=max((result.stack for result in results), default=0),
        instructions=results[0].instructions if results else None,
        seconds=min((result.seconds for result in results if result.seconds is not None), default=None),
        first_seconds=results[0].seconds if results else None,
        cycles=results[0].cycles if results else 0,
        accounts=session.accounts(),
        sequence=sequence,
    )


# Layers: their times and outputs, from firmware that was built to show them.

FEW: Final = 2  # Up to so many layers are read in a run each; more of them all in one run.
SHOWING: Final = "'uaccel build DIR --observe' and 'uaccel flash DIR --option observe=yes'"
NOT_SHOWN: Final = (
    "the firmware that runs there does not show its layers, so that outputs alone were compared: make it anew with "
    + SHOWING
)


def layer_times(session: Session, sample: Sequence[Array]) -> list[LayerTime]:
    """Times each layer for one sample, an array for each input; an error if the firmware does not show its layers."""
    require_layers(session)
    return session.layer_times(dict(zip((tensor.name for tensor in session.model.inputs), sample, strict=True)))


def require_layers(session: Session) -> None:
    """Refuses firmware that does not show its layers, before anything is run."""
    if not session.model.observable:
        raise UaccelError(
            "--profile: the firmware that runs there does not show its layers: it was built without UACCEL_OBSERVE; "
            f"make it anew with {SHOWING}"
        )


def layers_of(session: Session, sample: list[Array], wanted: Sequence[int]) -> dict[tuple[int, int], Array]:
    """The outputs of these layers for a sample, by (layer, output)."""
    inputs = dict(zip([tensor.name for tensor in session.model.inputs], sample, strict=True))
    if len(wanted) > FEW:
        return {key: value for key, value in session.layers(inputs).items() if key[0] in set(wanted)}
    return {(layer, i): value for layer in wanted for i, value in enumerate(session.layer(layer, inputs))}
