"""What a compilation saves where one thing costs another."""

from __future__ import annotations

from enum import Enum

from uaccel.errors import UaccelError


class Favour(str, Enum):
    """``balanced``: speed that costs little. The others, only where a user asks: ``speed`` spends flash and RAM,
    ``size`` (of flash) time, ``ram`` time and flash."""

    balanced = "balanced"
    speed = "speed"
    size = "size"
    ram = "ram"

    @property
    def words(self) -> tuple[str, ...]:
        """What to type for it."""
        return () if self is Favour.balanced else ("--favour", self.value)


def favour_of(word: str) -> Favour:
    """By its name; :class:`~uaccel.errors.UaccelError` says which there are."""
    try:
        return Favour(word)
    except ValueError:
        *others, last = (favour.value for favour in Favour)
        raise UaccelError(f"favour '{word}' is unknown; wanted {', '.join(others)} or {last}") from None
