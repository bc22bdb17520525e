"""The description in a CMSIS-Pack (``.pdsc``): which devices it names, and what it says of their processors, memories
and flash algorithms. Packs come from anywhere: no entity is expanded, and what is kept is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

Attributes = dict[str, str]

LEVELS: Final = ("family", "subFamily", "device", "variant")
"""What is said of one holds for those inside it, unless they say it anew."""
FACTS: Final = ("processor", "memory", "algorithm")
MOST_ELEMENTS: Final = 200_000
DEEPEST: Final = 32


class PdscError(Exception):
    """What is wrong with the description, in words."""


@dataclass
class Device:
    """A device, a variant of one, or a family of them."""

    name: str
    parent: Device | None = None
    facts: list[tuple[str, Attributes]] = field(default_factory=list)

    def all_of(self, kind: str) -> Iterator[Attributes]:
        """Those of the families that it is of come first."""
        if self.parent is not None:
            yield from self.parent.all_of(kind)
        yield from (attributes for fact, attributes in self.facts if fact == kind)


def devices_of(description: bytes) -> dict[str, Device]:
    """Devices and variants by name; :class:`PdscError` where it cannot be read."""
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(description, True)
    except expat.ExpatError as error:
        raise PdscError(f"it is no XML ({error})") from error
    except (ValueError, LookupError) as error:  # of an encoding that there is none of
        raise PdscError(f"its encoding cannot be read ({error})") from error
    return reader.devices


class _Reader:
    def __init__(self) -> None:
        self.devices: dict[str, Device] = {}
        self._path: list[str] = []
        self._open: list[Device] = []
        self._kept = 0

    def doctype(self, *_: object) -> None:
        raise PdscError("it declares a document type, which no pack needs")

    def start(self, tag: str, attributes: Attributes) -> None:
        above = self._path[-1] if self._path else ""
        self._path.append(tag)
        if len(self._path) > DEEPEST:
            raise PdscError(f"its elements lie more than {DEEPEST} deep")
        if tag in LEVELS and above in ("devices", *LEVELS):
            self._keep()
            self._open.append(Device(_name(tag, attributes), self._open[-1] if self._open else None))
            if tag in ("device", "variant"):
                self.devices.setdefault(self._open[-1].name, self._open[-1])
        elif tag in FACTS and above in LEVELS and self._open:
            self._keep()
            self._open[-1].facts.append((tag, attributes))

    def end(self, tag: str) -> None:
        self._path.pop()
        if self._open and tag in LEVELS and (self._path[-1] if self._path else "") in ("devices", *LEVELS):
            self._open.pop()

    def _keep(self) -> None:
        self._kept += 1
        if self._kept > MOST_ELEMENTS:
            raise PdscError(f"it has more than {MOST_ELEMENTS:,} elements about devices")


def _name(tag: str, attributes: Attributes) -> str:
    """As debuggers call it. It goes into files and onto terminals."""
    name = attributes.get("Dname") or attributes.get("Dvariant", "")
    plain = name.isascii() and name.isprintable() and len(name) <= 100 and not set(name) & set("\"'\\")
    if tag in ("device", "variant") and not (name and plain):
        raise PdscError(f"it has a device of the name {name[:80]!r}")
    return name
