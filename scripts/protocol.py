"""Write everything that repeats firmware/protocol.toml: the C header, the Python module, the tables of the document.

python scripts/protocol.py            write
python scripts/protocol.py --check    say which file would change, and fail if one would
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "firmware" / "protocol.toml"
HEADER = ROOT / "firmware" / "include" / "uaccel_protocol.h"
MODULE = ROOT / "python" / "uaccel" / "session" / "protocol_ids.py"
DOCUMENT = ROOT / "docs" / "protocol.md"

BEGIN, END = "<!-- {}: from firmware/protocol.toml -->\n", "<!-- end -->\n"

# Bytes, and how Python's struct calls it.
TYPES = {
    "u8": (1, "B"),
    "u16": (2, "H"),
    "u32": (4, "I"),
    "u64": (8, "Q"),
    "i32": (4, "i"),
    "bytes8": (8, "8s"),
    "bytes32": (32, "32s"),
}


@dataclass(frozen=True)
class Field:
    name: str
    type: str
    about: str

    @property
    def size(self) -> int:
        return TYPES[self.type][0]

    @property
    def python(self) -> str:
        return "bytes" if self.type.startswith("bytes") else "int"


@dataclass(frozen=True)
class Named:
    """A value of a table."""

    name: str
    id: int
    about: str


@dataclass(frozen=True)
class Message:
    name: str
    id: int
    about: str
    fields: tuple[Field, ...]
    tail: Named | None

    @property
    def size(self) -> int:
        """Of the body, without what follows at the end."""
        return sum(field.size for field in self.fields)

    @property
    def holds(self) -> bool:
        """Whether its body holds anything."""
        return bool(self.fields or self.tail)

    @property
    def class_name(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))

    def offsets(self) -> Iterator[tuple[int, Field]]:
        offset = 0
        for field in self.fields:
            yield offset, field
            offset += field.size


@dataclass(frozen=True)
class Table:
    name: str
    about: str
    values: tuple[Named, ...]


@dataclass(frozen=True)
class Protocol:
    version: int
    from_device: int
    most_runs: int
    packet: Message
    messages: tuple[Message, ...]
    tables: tuple[Table, ...]


def load(text: str) -> Protocol:
    """The source, as data; a number that stands twice is refused."""
    document = tomllib.loads(text)
    packet = Message("packet", 0, "", _fields(document["packet"]), None)
    messages = tuple(_message(row) for row in document["message"])
    tables = tuple(_table(row) for row in document["table"])
    for what, ids in [("message", [m.id for m in messages]), *((t.name, [v.id for v in t.values]) for t in tables)]:
        if len(set(ids)) != len(ids):
            raise SystemExit(f"{SOURCE}: two entries of {what} have the same id")
    version, from_device, most_runs = (document[name] for name in ("version", "from_device", "most_runs"))
    return Protocol(version, from_device, most_runs, packet, messages, tables)


def _fields(rows: list[dict[str, Any]]) -> tuple[Field, ...]:
    return tuple(Field(**row) for row in rows)


def _message(row: dict[str, Any]) -> Message:
    tail = Named(row["tail"]["name"], 0, row["tail"]["about"]) if "tail" in row else None
    return Message(row["name"], row["id"], row["about"], _fields(row["fields"]), tail)


def _table(row: dict[str, Any]) -> Table:
    return Table(row["name"], row["about"], tuple(Named(**value) for value in row["values"]))


def c_header(protocol: Protocol) -> str:
    """Macros alone: C has no packed structures that every compiler agrees on."""
    lines = [
        "/* The numbers of the session protocol (docs/protocol.md).",
        " *",
        " * Written by scripts/protocol.py from firmware/protocol.toml; do not edit. */",
        "#ifndef UACCEL_PROTOCOL_H",
        "#define UACCEL_PROTOCOL_H",
        "",
        f"#define UACCEL_PROTOCOL_VERSION {protocol.version}u",
        f"#define UACCEL_FROM_DEVICE 0x{protocol.from_device:02X}u",
        f"#define UACCEL_MOST_RUNS {protocol.most_runs}u",
        "",
        "/* A packet: header, body, CRC-32. */",
        *_c_layout(protocol.packet, "PACKET"),
        "",
    ]
    for message in protocol.messages:
        name = message.name.upper()
        lines += [f"/* {message.about} */", f"#define UACCEL_TYPE_{name} 0x{message.id:02X}u"]
        lines += [*_c_layout(message, name), ""]
    for table in protocol.tables:
        lines.append(f"/* {table.about}. */")
        lines += [f"#define UACCEL_{table.name.upper()}_{value.name.upper()} {value.id}u" for value in table.values]
        lines.append("")
    return "\n".join([*lines, "#endif", ""])


def _c_layout(message: Message, name: str) -> list[str]:
    lines = [f"#define UACCEL_{name}_{field.name.upper()}_AT {offset}u" for offset, field in message.offsets()]
    return [*lines, f"#define UACCEL_{name}_BYTES {message.size}u"] if message.size else []


def python_module(protocol: Protocol) -> str:
    parts = [
        '"""The numbers and layouts of the session protocol (docs/protocol.md).\n\n'
        "Written by scripts/protocol.py from firmware/protocol.toml; do not edit.\n"
        '"""\n\n'
        "from __future__ import annotations\n\n"
        "from enum import IntEnum\n"
        "from struct import Struct\n"
        "from typing import Final\n\n"
        "from uaccel.session.message import Message\n\n"
        f"VERSION: Final = {protocol.version}\n"
        f"FROM_DEVICE: Final = 0x{protocol.from_device:02X}\n"
        f"MOST_RUNS: Final = {protocol.most_runs}\n"
        f'HEADER: Final = Struct("{_format(protocol.packet)}")  # '
        + ", ".join(field.name for field in protocol.packet.fields)
        + "\n",
        _enum("Type", "What a packet is.", [Named(m.name, m.id, m.about) for m in protocol.messages], hexadecimal=True),
        *(_enum(_class(t.name), f"{t.about}.", t.values) for t in protocol.tables),
        *(_dataclass(message) for message in protocol.messages if message.id < protocol.from_device or message.holds),
    ]
    return "\n\n".join(parts)


def _class(table: str) -> str:
    return {"object": "ObjectKind", "flag": "Flag", "error": "ErrorCode", "log": "LogLevel"}[table]


def _format(message: Message) -> str:
    return "<" + "".join(TYPES[field.type][1] for field in message.fields)


def _enum(name: str, about: str, values: Any, *, hexadecimal: bool = False) -> str:
    lines = [f"class {name}(IntEnum):", f'    """{about}"""', ""]
    for value in values:
        number = f"0x{value.id:02X}" if hexadecimal else str(value.id)
        lines.append(f"    {value.name.upper()} = {number}")
    return "\n".join([*lines, ""])


def _dataclass(message: Message) -> str:
    tail = ", tail=True" if message.tail else ""
    known = f'type_=Type.{message.name.upper()}, layout="{_format(message)}"{tail}'
    lines = [f"class {message.class_name}(Message, {known}):", f'    """{message.about}"""']
    fields = [f"    {field.name}: {field.python}" for field in message.fields]
    fields += [f'    {message.tail.name}: bytes = b""'] if message.tail else []
    return "\n".join([*lines, *([""] if fields else []), *fields, ""])


def document_sections(protocol: Protocol) -> dict[str, str]:
    """The generated parts of the document, by the name in their markers."""
    packet = _rows(("offset", "field", "type", "meaning"), _layout_rows(protocol.packet))
    from_host = [m for m in protocol.messages if m.id < protocol.from_device]
    from_device = [m for m in protocol.messages if m.id >= protocol.from_device]
    return {
        "packet": packet,
        "requests": "\n".join(_section(message) for message in from_host),
        "answers": "\n".join(_section(message) for message in from_device),
        "tables": "\n".join(_table_section(table) for table in protocol.tables),
    }


def _section(message: Message) -> str:
    head = f"**0x{message.id:02X} `{message.name}`.** {message.about}\n"
    rows = _layout_rows(message)
    if message.tail is not None:
        rows.append((str(message.size), f"`{message.tail.name}`", "the rest", message.tail.about))
    return f"{head}\n{_rows(('offset', 'field', 'type', 'meaning'), rows)}" if rows else head


def _layout_rows(message: Message) -> list[tuple[str, ...]]:
    return [(str(offset), f"`{field.name}`", field.type, field.about) for offset, field in message.offsets()]


def _table_section(table: Table) -> str:
    rows = [(str(value.id), f"`{value.name}`", value.about) for value in table.values]
    return f"{table.about}:\n\n{_rows(('number', 'name', 'meaning'), rows)}"


def _rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def filled(document: str, sections: dict[str, str]) -> str:
    """The document with each generated part in its place."""
    for name, text in sections.items():
        before, begin, rest = document.partition(BEGIN.format(name))
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise SystemExit(f"{DOCUMENT}: the markers of section {name} are missing")
        document = f"{before}{begin}\n{text}\n{end}{after}"
    return document


def outputs() -> dict[Path, str]:
    """Every file, and what it has to hold."""
    protocol = load(SOURCE.read_text(encoding="utf-8"))
    return {
        HEADER: c_header(protocol),
        MODULE: python_module(protocol),
        DOCUMENT: filled(DOCUMENT.read_text(encoding="utf-8"), document_sections(protocol)),
    }


def main(arguments: list[str]) -> int:
    """Exit status 1 where ``--check`` finds a file that would change."""
    changed = {path: text for path, text in outputs().items() if _read(path) != text}
    for path, text in changed.items():
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is not what firmware/protocol.toml says: python scripts/protocol.py")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if changed and "--check" in arguments else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
