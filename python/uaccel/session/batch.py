"""Many inferences on a device, and the time of each layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from uaccel.errors import UaccelError
from uaccel.model import Array
from uaccel.session.description import Account, LayerTime
from uaccel.session.session import Session

# Many inferences over one session, and what they measured together.


@dataclass(frozen=True)
class BatchRun:
    """``outputs`` of every run, in the model's order; the rest is the most, or the first run's, as each says."""

    outputs: list[list[Array]]
    stack: int  # The most bytes that a run took.
    instructions: int | None = None  # Of the first run; None where the device cannot count.
    seconds: float | None = None  # Of the fastest run.
    first_seconds: float | None = None  # Of the first one.
    cycles: int = 0  # That accelerators took in the first run, as they count.
    # What accelerators did in one run, by layer; layers that called none are missing.
    accounts: dict[int, Account] = field(default_factory=dict)
    # Of the last run, by (layer, output), where they were asked for.
    layers: dict[tuple[int, int], Array] = field(default_factory=dict)
    sequence: bool = False  # The samples were the frames of one sequence.


def run_batch(
    session: Session,
    samples: Sequence[Sequence[Array]],
    *,
    observe: bool = False,
    sequence: bool = False,
    count: Callable[[int, int], None] = lambda done, total: None,
) -> BatchRun:
    """One inference for each sample (an array for each input); ``count`` is told how many are done, of how many.

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
        layers=session.layers() if observe else {},
        sequence=sequence,
    )


# What each layer takes and gives, of firmware that shows its layers.

FEW: Final = 2  # Layers that are read in a run each; more of them in one run.
SHOWING: Final = "'uaccel build DIR --observe' and 'uaccel flash DIR --option observe=yes'"
NOT_SHOWN: Final = (
    "the firmware that runs there does not show its layers, so that outputs alone were compared: make it anew with "
    + SHOWING
)


def layer_times(session: Session, sample: Sequence[Array]) -> list[LayerTime]:
    """For one sample, an array for each input; an error where the firmware does not show its layers."""
    require_layers(session)
    return session.layer_times(dict(zip((tensor.name for tensor in session.model.inputs), sample, strict=True)))


def require_layers(session: Session) -> None:
    """Before anything is run."""
    if not session.model.observable:
        raise UaccelError(
            "--profile: the firmware that runs there does not show its layers: it was built without UACCEL_OBSERVE; "
            f"make it anew with {SHOWING}"
        )


def layers_of(session: Session, sample: list[Array], wanted: Sequence[int]) -> dict[tuple[int, int], Array]:
    """What these layers give for a sample, by (layer, output)."""
    inputs = dict(zip([tensor.name for tensor in session.model.inputs], sample, strict=True))
    if len(wanted) > FEW:
        return {key: value for key, value in session.layers(inputs).items() if key[0] in set(wanted)}
    return {(layer, i): value for layer in wanted for i, value in enumerate(session.layer(layer, inputs))}
