"""Names what a compilation optimises for, where speed, flash and RAM are at odds."""

from __future__ import annotations

from enum import Enum

from uaccel.errors import UaccelError


class Favour(str, Enum):
    """Names what is favoured. ``balanced``, the default, takes speed that costs little. The others spend more:
    ``speed`` flash and RAM, ``size`` (to save flash) time, ``ram`` time and flash."""

    balanced = "balanced"
    speed = "speed"
    size = "size"
    ram = "ram"


def favour_of(word: str) -> Favour:
    """The favour of that name; :class:`~uaccel.errors.UaccelError` lists them for an unknown one."""
    try:
        return Favour(word)
    except ValueError:
        *others, last = (favour.value for favour in Favour)
        raise UaccelError(f"favour '{word}' is unknown; wanted {', '.join(others)} or {last}") from None
