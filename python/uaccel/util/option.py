"""Declares an option once, as a field of a dataclass. Command lines, sweeps, pytest and repeating commands follow it.

``option()`` is such a field. ``options_of`` lists those of a class, ``made`` makes an object of values by their keys,
and ``words_of`` gives the words that ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

from uaccel.errors import UaccelError
from uaccel.util.text import bytes_of

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform as dataclass_transform
else:

    def dataclass_transform(**_options: Any) -> Callable[[type], type]:
        """Does nothing when a program runs: type checkers alone ask which classes become dataclasses."""
        return lambda cls: cls


OPTION: Final = "uaccel.option"
WANTED: Final = {str: "text", int: "a number", float: "a number", bool: "true or false", list: "a list"}
Made = TypeVar("Made")


@dataclass(frozen=True)
class Option:
    """Says how people give a value, and where.

    ``flags``: those of a command line; where none is long, the field's name is. ``least``: the smallest number.
    ``rare``: only ``--help-all`` shows it. ``read`` makes the value of what was typed, given that and the flag.
    ``write`` makes the words after the flag. Options of a run (uaccel/runner/request.py) are also taken by rows of
    sweeps and named by a command that does the same, unless ``row`` or ``repeats`` is False."""

    text: str
    flags: tuple[str, ...] = ()
    positional: bool = False
    metavar: str | None = None
    least: float | None = None
    panel: str = ""
    rare: bool = False
    choices: tuple[str, ...] = ()
    read: Callable[[Any, str], Any] | None = None
    write: Callable[[Any], Iterable[str]] | None = None
    row: bool = True
    repeats: bool = True


@dataclass(frozen=True)
class OptionField:
    """Is a field with an option, and the type that its annotation states.

    ``kind`` is the type of one value as files write it: text, a number, a flag or a list of texts."""

    name: str
    option: Option
    type: Any
    default: Any

    @property
    def flag(self) -> str:
        return self.option.flags[0].partition("/")[0] if self.option.flags else self.name

    @property
    def key(self) -> str:
        """The name in files, and with underscores in Python."""
        return self.flag.lstrip("-")

    @property
    def many(self) -> bool:
        origin = get_origin(self.type) or self.type
        return isinstance(origin, type) and issubclass(origin, (tuple, list, Mapping))

    @property
    def choices(self) -> tuple[str, ...]:
        if get_origin(self.type) is Literal:
            return get_args(self.type)
        is_enum = isinstance(self.type, type) and issubclass(self.type, Enum)
        return tuple(one.value for one in self.type) if is_enum else self.option.choices

    @property
    def kind(self) -> type:
        if self.many:
            return list
        return self.type if self.type in (bool, int, float) else str

    def problem(self, given: Any) -> str:
        """Says in words what a file should give instead; empty if the value can be made of it."""
        fits = isinstance(given, self.kind) and (self.kind is bool or not isinstance(given, bool))
        if not fits or (self.choices and given not in self.choices):
            return f"is {given!r}; wanted {' or '.join(self.choices) or WANTED[self.kind]}"
        try:
            self.value(given)
        except ValueError as error:
            return f"is wrong: {error}"
        return ""

    def value(self, given: Any) -> Any:
        """Makes the field's value of what a file or a program gives."""
        if self.option.read is not None and (self.many or isinstance(given, str)):
            return self.option.read(given, self.flag)
        if self.many:
            return tuple(given)
        return self.type(given) if isinstance(self.type, type) and issubclass(self.type, (Path, Enum)) else given

    def words(self, value: Any) -> list[str]:
        """Returns the words of a command line that give this value; none for the default."""
        if value is None or value == self.default:
            return []
        if self.type is bool:
            on, _, off = self.option.flags[0].partition("/")
            return [on if value else off]
        if self.option.write is not None:
            texts = list(self.option.write(value))
        else:
            texts = list(map(str, value)) if self.many else [str(value.value if isinstance(value, Enum) else value)]
        return [word for text in texts for word in ((self.flag, text) if text else (self.flag,))]


def option(default: Any, text: str, *flags: str, **how: Any) -> Any:
    """Declares an option; ``how`` are fields of :class:`Option`."""
    ways: dict[str, Any] = {"default_factory": default} if default is dict else {"default": default}
    return field(**ways, metadata={OPTION: Option(text, flags, **how)})


def argument(text: str, metavar: str, default: Any = MISSING) -> Any:
    """Declares a positional argument, which must be given unless there is a default."""
    return field(default=default, metadata={OPTION: Option(text, positional=True, metavar=metavar)})


def like(owner: type, name: str, default: Any) -> Any:
    """Declares the option of another class's field once more, with another default."""
    found = next(one for one in fields(owner) if one.name == name)
    return field(default=default, metadata=found.metadata)


_LISTED: Final[dict[type, tuple[OptionField, ...]]] = {}


def options_of(owner: type) -> tuple[OptionField, ...]:
    """Lists the options of a class in their order."""
    if owner not in _LISTED:
        hints = get_type_hints(owner)
        _LISTED[owner] = tuple(_described(one, hints[one.name]) for one in fields(owner) if OPTION in one.metadata)
    return _LISTED[owner]


def _described(declared: Field[Any], hint: Any) -> OptionField:
    told: Option = declared.metadata[OPTION]
    if not told.positional and not any(flag.startswith("--") for flag in told.flags):
        told = replace(told, flags=(f"--{declared.name.replace('_', '-')}", *told.flags))
    inner = [one for one in get_args(hint) if one is not NoneType]
    kind = inner[0] if NoneType in get_args(hint) and len(inner) == 1 else hint
    default = declared.default_factory() if declared.default_factory is not MISSING else declared.default
    return OptionField(declared.name, told, kind, default)


def taken(options: Iterable[OptionField], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of fields by their names, of what is given by keys, among which may be those of others."""
    return {one.name: one.value(given[one.key]) for one in options if given.get(one.key) is not None}


def made(owner: type[Made], given: Mapping[str, Any], **more: Any) -> Made:
    """Makes an object of what is given by keys; ``more``: fields as they are."""
    return owner(**taken(options_of(owner), given), **more)


def words_of(*holders: Any) -> list[str]:
    """Returns the words of a command line for the options of these objects that a repeating command names."""
    return [
        word
        for holder in holders
        for one in options_of(type(holder))
        if one.option.repeats
        for word in one.words(getattr(holder, one.name))
    ]


def shared(holder: Any, owner: type) -> dict[str, Any]:
    """Returns the fields that an object has from ``owner``, by their names."""
    return {one.name: getattr(holder, one.name) for one in fields(owner)}


def name_alone(path: Path) -> list[str]:
    """Writes a file by its name alone, as a command is for any computer."""
    return [path.name]


def read_size(text: str, flag: str) -> int:
    """Reads a size such as ``500M``, ``2G`` or ``0`` as bytes."""
    size = bytes_of(text.upper(), digits=15)
    if size is None:
        raise UaccelError(f"{flag} {text!r} is no size; wanted bytes, or a number with K, M or G, as in 500M")
    return size
