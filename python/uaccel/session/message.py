"""Packs and unpacks messages of the session protocol, and explains the error codes of accelerator drivers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from struct import Struct
from typing import ClassVar, Final, TypeVar

from uaccel.errors import DeviceError
from uaccel.util.option import dataclass_transform

# A message of the protocol: fields of fixed size, and in some of them bytes that follow.

M = TypeVar("M", bound="Message")
LONGEST_WORDS: Final = 300


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Message:
    """Packs a message into a packet's body and back.

    The classes of :mod:`uaccel.session.protocol_ids` derive from it, and so are dataclasses of the same kind. Their
    fields have the order of ``LAYOUT``. With ``TAIL`` there is one field more, with the rest of the body's bytes.
    """

    TYPE: ClassVar[int]
    LAYOUT: ClassVar[Struct]
    TAIL: ClassVar[bool]

    def __init_subclass__(cls, type_: int, layout: str, tail: bool = False) -> None:
        dataclass(frozen=True)(cls)
        cls.TYPE, cls.LAYOUT, cls.TAIL = type_, Struct(layout), tail

    def pack(self) -> bytes:
        """The body of the message's packet."""
        values = [getattr(self, field.name) for field in fields(self)]
        known = len(values) - self.TAIL
        return self.LAYOUT.pack(*values[:known]) + b"".join(values[known:])

    @classmethod
    def unpack(cls: type[M], body: bytes) -> M:
        """The message of a body. A body may be longer than the layout: later devices may append fields."""
        if len(body) < cls.LAYOUT.size:
            raise DeviceError(
                f"the device sent {cls.__name__} with {len(body)} bytes, {cls.LAYOUT.size} were wanted: "
                "build and flash its firmware with this uaccel"
            )
        values = cls.LAYOUT.unpack_from(body)
        tail = (body[cls.LAYOUT.size :],) if cls.TAIL else ()
        return cls(*values, *tail)


def describe_bytes(words: bytes | str) -> str:
    """A device's text for a person: one line without control characters, cut at a readable length."""
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * LONGEST_WORDS]).split())
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]} ..."


# Error codes of accelerator drivers in words: those of firmware/include/uaccel_accelerator.h.

# For failures that the driver does not describe itself. Codes that are missing here are a vendor's own.
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
