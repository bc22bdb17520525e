"""What each layer takes and gives, of firmware that shows its layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uaccel.errors import UaccelError
from uaccel.model import Array
from uaccel.session.records import LayerTime
from uaccel.session.session import Session

FEW: Final = 2
"""Layers that are read in a run each; more of them in one run."""
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
