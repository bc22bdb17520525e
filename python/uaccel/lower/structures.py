"""What kernels are given as parameters, held against their structures in C, where a field that is left out is 0."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping

from uaccel.errors import InternalError
from uaccel.ops.kernel import Kernel, KernelCall
from uaccel.resources import data_dir

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCTURE = re.compile(r"^struct (\w+) \{(.*?)^\};", re.DOTALL | re.MULTILINE)
_DECLARATION = re.compile(r"(struct )?(\w+) (.+)", re.DOTALL)
_MEMBER = re.compile(r"(\w+)(?:\[(\w+)\])?")
_NUMBER = re.compile(r"^#define (\w+) (\d+)\s*$", re.MULTILINE)

Fields = Mapping[str, int]
"""How many numbers each takes, by its name; of a structure in a structure ``finish.sign``."""


def check_parameters(kernel: Kernel) -> Kernel:
    """The kernel; InternalError where a call of it does not give each field of its structure, and no other."""
    for call in kernel.calls:
        if call.struct:
            _check(call, fields_of(call.struct))
    return kernel


def _check(call: KernelCall, wanted: Fields) -> None:
    where = f"{call.function} is called with struct {call.struct}"
    given = {name: len(value) if isinstance(value, tuple) else 1 for name, value in call.parameters.items()}
    for name in wanted:
        if name not in given:
            raise InternalError(f"{where} without its field {name}; give it where the kernel is offered")
    for name, count in given.items():
        if wanted.get(name) != count:
            raise InternalError(f"{where} and {count} numbers for {name}, which takes {wanted.get(name, 0)}")


@functools.cache
def fields_of(structure: str) -> Fields:
    """In the order in which the header of a kernel declares them."""
    if structure not in _bodies():
        raise InternalError(f"no header of firmware/kernels declares struct {structure}")
    return dict(_members(structure))


@functools.cache
def _headers() -> str:
    headers = sorted((data_dir("firmware") / "kernels").glob("*.h"))
    return _COMMENT.sub("", "\n".join(header.read_text() for header in headers))


@functools.cache
def _bodies() -> Mapping[str, str]:
    """What stands between the braces, by the structure's name."""
    return dict(_STRUCTURE.findall(_headers()))


@functools.cache
def _numbers() -> Mapping[str, str]:
    """Macros that stand for one."""
    return dict(_NUMBER.findall(_headers()))


def _members(structure: str) -> Iterator[tuple[str, int]]:
    for declaration in _bodies()[structure].split(";")[:-1]:
        match = _DECLARATION.fullmatch(declaration.strip())
        members = [_MEMBER.fullmatch(part.strip()) for part in match[3].split(",")] if match else [None]
        for member in members:
            if match is None or member is None:
                raise InternalError(f"struct {structure}: {declaration.strip()!r} declares no numbers")
            count = int(_numbers().get(member[2], member[2] or 1))
            inner = fields_of(match[2]).items() if match[1] else [("", count)]
            yield from ((f"{member[1]}.{field}".rstrip("."), numbers) for field, numbers in inner)
