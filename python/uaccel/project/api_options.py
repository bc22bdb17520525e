"""The options that a server declares, and values for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uaccel.basics.suggest import did_you_mean
from uaccel.errors import UaccelError

OptionValue = str | int | bool | None

TRUE: Final = ("true", "1", "yes", "on")
FALSE: Final = ("false", "0", "no", "off")
MOST_CHOICES: Final = 8


def port_from_here(port: str) -> str:
    """A port as a server understands it: it runs in another folder than the user who names a path."""
    return str(Path(port).absolute()) if "/" in port and "://" not in port else port


@dataclass(frozen=True)
class ProjectOption:
    """``required`` and ``optional``: the methods that want it, and those that take it. Old servers say less."""

    name: str
    choices: tuple[Any, ...]
    default: Any
    type: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    help: str


def read_project_options(rows: Sequence[Mapping[str, Any]]) -> tuple[ProjectOption, ...]:
    return tuple(
        ProjectOption(
            name=str(row["name"]),
            choices=tuple(row.get("choices") or ()),
            default=row.get("default"),
            type=str(row.get("type") or "str"),
            required=tuple(row.get("required") or ()),
            optional=tuple(row.get("optional") or ()),
            help=str(row.get("help") or ""),
        )
        for row in rows
    )


def option_values(
    where: str, method: str, options: Iterable[ProjectOption], given: Mapping[str, OptionValue]
) -> dict[str, Any]:
    """A value for every option that the server declares: as given, else its default."""
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UaccelError(f"{where} has no option {name!r}{did_you_mean(name, known)} (known: {there})")
    values = {name: _value(where, option, given.get(name)) for name, option in known.items()}
    missing = [option for option in known.values() if values[option.name] is None and method in option.required]
    if missing:
        give = " ".join(f"--option {option.name}=VALUE" for option in missing)
        raise UaccelError(f"{where} wants {_wanted(method, missing)}; give {give}")
    return values


def _wanted(method: str, missing: Sequence[ProjectOption]) -> str:
    """All of them at once, for a message of one line."""
    if len(missing) == 1:
        (option,) = missing
        return f"option {option.name!r} for {method}{_choices(option)}: {option.help}"
    return f"options {', '.join(f'{option.name!r}{_choices(option)}' for option in missing)} for {method}"


def _choices(option: ProjectOption) -> str:
    """Some templates know a hundred boards."""
    shown = [str(choice) for choice in option.choices[:MOST_CHOICES]]
    rest = ["..."] if len(option.choices) > MOST_CHOICES else []
    return f" (one of {', '.join(shown + rest)})" if shown else ""


def _value(where: str, option: ProjectOption, given: OptionValue) -> Any:
    if given is None:
        return option.default
    value = _converted(option.type, given) if isinstance(given, str) else given
    if value is None:
        raise UaccelError(f"{where}: option {option.name!r} is {given!r}; wanted a value of type {option.type}")
    if option.choices and value not in option.choices:
        choices = ", ".join(map(str, option.choices))
        raise UaccelError(f"{where}: option {option.name!r} is {given!r}; wanted one of {choices}")
    return value


def _converted(kind: str, text: str) -> OptionValue:
    """A word of a command line as a value of that type; None where it cannot be one."""
    if kind == "bool":
        return text.lower() in TRUE if text.lower() in TRUE + FALSE else None
    if kind == "int":
        try:
            value = int(text, 0)
        except ValueError:
            return None
        return value if -(1 << 63) <= value < 1 << 63 else None
    return text
