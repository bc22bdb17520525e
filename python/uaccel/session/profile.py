"""What each layer takes, of firmware that cannot be exchanged for another one just to see that."""

from __future__ import annotations

from collections.abc import Sequence

from uaccel.errors import UaccelError
from uaccel.model import Array
from uaccel.session.records import LayerTime
from uaccel.session.session import Session


def layer_times(session: Session, sample: Sequence[Array]) -> list[LayerTime]:
    """For one sample, an array for each input; an error where the firmware does not show its layers."""
    require_layers(session)
    return session.layer_times(dict(zip((tensor.name for tensor in session.model.inputs), sample, strict=True)))


def require_layers(session: Session) -> None:
    """Before anything is run."""
    if not session.model.observable:
        raise UaccelError(
            "--profile: the firmware that runs there does not show its layers: it was built without UACCEL_OBSERVE; "
            "make it anew with 'uaccel build DIR --observe' and 'uaccel flash DIR --option observe=yes'"
        )
