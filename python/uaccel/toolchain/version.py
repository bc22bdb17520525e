"""Versions as tuples of integers."""

from __future__ import annotations

import re

Version = tuple[int, ...]


def parse_version(text: str) -> Version | None:
    """The first version in a text: ``gcc (Debian 12.2.0-14) 12.2.0`` and ``0.27.0.post1`` alike.

    The digits of a name, as in ``riscv64-unknown-elf-gcc``, are none. What stands in parentheses is taken where
    there is nothing else: ``nextpnr-ice40 (Version 0.4-1)``.
    """
    number = r"(?<![A-Za-z0-9.])\d+(?:\.\d+)*"
    match = re.search(number, re.sub(r"\([^)]*\)", "", text)) or re.search(number, text)
    return tuple(int(part) for part in match[0].split(".")) if match else None


def show_version(version: Version) -> str:
    """``3.16`` for ``(3, 16)``."""
    return ".".join(str(part) for part in version)


def is_before(version: Version, other: Version) -> bool:
    """Whether a version is older; ``3.16`` and ``3.16.0`` are the same."""
    length = max(len(version), len(other))
    return _padded(version, length) < _padded(other, length)


def _padded(version: Version, length: int) -> Version:
    return version + (0,) * (length - len(version))
