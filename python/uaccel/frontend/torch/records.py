"""The records of a ``.pt2`` file: a zip archive in the one form in which PyTorch writes it.

Everything that two readers of zip archives could understand differently is refused.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import Final

LARGEST_FILE: Final = 1 << 30
"""Bytes. What firmware can hold is a thousandth of it."""
MOST_RECORDS: Final = 65_536

_LOCAL: Final = struct.Struct("<4s5H3I2H")
_LONGEST_NAME: Final = 500
_SIZES_FOLLOW, _UTF8 = 0x8, 0x800
_ELSEWHERE: Final = (0, 0xFFFFFFFF)
"""What a local header says of sizes that stand behind the record, or in its extra field."""

_BETWEEN: Final = (0, 12, 16, 20, 24)
"""Bytes from a record to the next header: none, or checksum and sizes once more."""


class RecordsError(Exception):
    """What is wrong with the archive, in words."""


@dataclass(frozen=True)
class _Span:
    """Where a record lies in the file: its header begins, its bytes begin, its bytes end."""

    name: str
    header: int
    begin: int
    end: int


def names(data: bytes) -> list[str]:
    """Of the records, below the folder that holds them all; of any zip archive."""
    found = [entry.filename for entry in _directory(data)[0]]
    return [name[_root(found) :] for name in found]


def records(data: bytes) -> dict[str, memoryview]:
    """The bytes of each record by its name below the folder; RecordsError says what PyTorch does not write."""
    entries, directory = _directory(data)
    if len(entries) > MOST_RECORDS:
        raise RecordsError(f"it has {len(entries)} records, more than {MOST_RECORDS}")
    spans = sorted((_span(data, entry) for entry in entries), key=lambda span: span.header)
    _check_order(spans, directory)
    whole, root = memoryview(data), _root([span.name for span in spans])
    found = {span.name[root:]: whole[span.begin : span.end] for span in spans}
    if len(found) != len(spans):
        raise RecordsError("it has two records of one name")
    return found


def _directory(data: bytes) -> tuple[list[zipfile.ZipInfo], int]:
    """What the archive says of its records, and where it says it."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.comment:
                raise RecordsError("something follows the archive")
            return archive.infolist(), archive.start_dir
    except zipfile.BadZipFile as error:
        raise RecordsError(str(error).rstrip(".")) from error
    except (ValueError, NotImplementedError, OverflowError, struct.error) as error:  # as zipfile says it
        raise RecordsError("its directory makes no sense") from error


def _root(found: list[str]) -> int:
    """How many characters of all names are the folder."""
    roots = {name.partition("/")[0] for name in found if "/" in name}
    return len(roots.pop()) + 1 if len(roots) == 1 and all("/" in name for name in found) else 0


def _span(data: bytes, entry: zipfile.ZipInfo) -> _Span:
    """Of a record whose two headers say the same, and whose bytes are what they say."""
    name = entry.orig_filename
    plain = name.isprintable() and "\\" not in name and ".." not in name.split("/") and not name.startswith("/")
    if not plain or name != entry.filename or len(name) > _LONGEST_NAME:
        raise RecordsError(f"a record has the name {name[:80]!r}")
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise RecordsError(f"{name} is compressed, which PyTorch does not do")
    if entry.flag_bits & ~(_SIZES_FOLLOW | _UTF8) or entry.volume:
        raise RecordsError(f"{name} is encrypted or in several parts, which PyTorch does not do")
    header = data[entry.header_offset : entry.header_offset + _LOCAL.size]
    if len(header) != _LOCAL.size or entry.header_offset < 0:
        raise RecordsError(f"{name} lies outside the file")
    mark, _, flags, method, _, _, checksum, stored, size, name_size, extra_size = _LOCAL.unpack(header)
    begin = entry.header_offset + _LOCAL.size + name_size + extra_size
    end = begin + entry.file_size
    if mark != b"PK\x03\x04" or end > len(data):
        raise RecordsError(f"{name} lies outside the file")
    local = data[entry.header_offset + _LOCAL.size : begin - extra_size]
    behind = _ELSEWHERE if flags & _SIZES_FOLLOW or extra_size else ()
    same = local == name.encode("utf-8" if entry.flag_bits & _UTF8 else "cp437")
    same = same and (flags, method) == (entry.flag_bits, entry.compress_type)
    same = same and all(said == entry.file_size or said in behind for said in (stored, size))
    if not same or (checksum != entry.CRC and not (flags & _SIZES_FOLLOW and checksum == 0)):
        raise RecordsError(f"the archive says two things of {name}")
    if zlib.crc32(memoryview(data)[begin:end]) != entry.CRC:
        raise RecordsError(f"the checksum of {name} is wrong")
    return _Span(name, entry.header_offset, begin, end)


def _check_order(spans: list[_Span], directory: int) -> None:
    """From the first byte on, one behind the other, the directory last."""
    if not spans or spans[0].header != 0:
        raise RecordsError("something precedes the archive")
    ends = [*(span.header for span in spans[1:]), directory]
    for span, end in zip(spans, ends, strict=True):
        if end - span.end not in _BETWEEN:
            raise RecordsError(f"{span.name} overlaps what follows it, or leaves a gap")
