"""Messages of the protocol, and what an accelerator driver's codes mean."""

from __future__ import annotations

from dataclasses import dataclass, fields
from struct import Struct
from typing import ClassVar, Final, TypeVar

from uaccel.errors import DeviceError

# What a message of the protocol is: fields of fixed size, and bytes that follow them in some.

M = TypeVar("M", bound="Message")
LONGEST_WORDS: Final = 300


@dataclass(frozen=True)
class Message:
    """The classes of :mod:`uaccel.session.ids` are dataclasses whose fields come in the order of ``LAYOUT``.

    With ``TAIL`` there is one field more: whatever bytes the body still holds.
    """

    TYPE: ClassVar[int]
    LAYOUT: ClassVar[Struct]
    TAIL: ClassVar[bool]

    def __init_subclass__(cls, type_: int, layout: str, tail: bool = False) -> None:
        cls.TYPE, cls.LAYOUT, cls.TAIL = type_, Struct(layout), tail

    def pack(self) -> bytes:
        """The body of a packet."""
        values = [getattr(self, field.name) for field in fields(self)]
        known = len(values) - self.TAIL
        return self.LAYOUT.pack(*values[:known]) + b"".join(values[known:])

    @classmethod
    def unpack(cls: type[M], body: bytes) -> M:
        """The other way; of a body longer than the layout, what a later device may have appended is left out."""
        if len(body) < cls.LAYOUT.size:
            raise DeviceError(
                f"the device sent {cls.__name__} with {len(body)} bytes, {cls.LAYOUT.size} were wanted: "
                "build and flash its firmware with this uaccel"
            )
        values = cls.LAYOUT.unpack_from(body)
        tail = (body[cls.LAYOUT.size :],) if cls.TAIL else ()
        return cls(*values, *tail)


def describe_bytes(words: bytes | str) -> str:
    """What a device says of itself, for a person: one line, and no more of it than one reads."""
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * LONGEST_WORDS]).split())
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]} ..."


# What an accelerator's driver returns, in words: the codes of firmware/include/uaccel_accelerator.h.

# Where the driver says nothing more of it. Those that are missing here are a vendor's own.
CODES: Final = {
    1: "the device did not finish",
    2: "the device reports an error",
    3: "the device does not answer: its registers read all ones",
    4: "another device is there",
    5: "the device is of a version that the driver does not know",
    6: "the device was refused access to memory",
    7: "the command stream is damaged or truncated",
    8: "the driver was asked for something that the device cannot do",
}
