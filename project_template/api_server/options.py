"""What a client can set, and what it says about itself."""

from __future__ import annotations

from typing import Any, NamedTuple

from .errors import InvalidParamsError
from .files import is_text

TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class ProjectOption(NamedTuple):
    """``required`` and ``optional``: the methods that want it, and those that take it."""

    name: str
    choices: list[str] | None
    default: Any
    type: str
    required: list[str] | None
    optional: list[str] | None
    help: str


def option(name: str, kind: str, methods: list[str], words: str, **more: Any) -> ProjectOption:
    """None of ours is required: a project knows its board."""
    return ProjectOption(name, more.get("choices"), more.get("default"), kind, None, methods, words)


OPTIONS = (
    option(
        "board",
        "str",
        ["generate_project"],
        "The board's name; the archive's own board when left out, and no other without board_files.",
    ),
    option(
        "board_files",
        "str",
        ["generate_project"],
        "A folder with what a project needs for its board, instead of what the archive holds for its own.",
    ),
    option(
        "observe", "bool", ["build", "flash", "open_transport"], "Firmware that can show every layer.", default=False
    ),
    option("verbose", "bool", ["build", "flash"], "Show what the tools print, on stderr.", default=False),
    option("port", "str", ["flash", "open_transport"], "The serial port: a device path, socket://HOST:NUMBER or auto."),
    option(
        "run",
        "str",
        ["open_transport"],
        "How the firmware runs; the board's first way when left out, serial where a port is given.",
        choices=["host", "qemu", "rtl", "serial"],
    ),
    option("run_arguments", "str", ["open_transport"], "Words for the program that runs the firmware, such as QEMU."),
)


def read_options(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """Every option by name: as given, else its default. Clients send those of other methods too, and null for unset.

    Of options that other templates have, null and false ask for nothing, and are no mistake."""
    known = {entry.name: entry for entry in OPTIONS}
    for name, value in given.items():
        if name not in known and value is not None and value is not False:
            raise InvalidParamsError(f"{method}: no option is called {name!r}; there are {', '.join(known)}")
    values = {}
    for name, entry in known.items():
        value = given.get(name)
        values[name] = entry.default if value is None else checked(method, entry, value)
    return values


def checked(method: str, entry: ProjectOption, value: Any) -> Any:
    """Flags may come as words, as from a command line."""
    if entry.type == "bool" and isinstance(value, str) and value.lower() in TRUE + FALSE:
        return value.lower() in TRUE
    if not isinstance(value, {"bool": bool, "str": str}[entry.type]):
        raise InvalidParamsError(f"{method}: option {entry.name}: want {entry.type}, got {value!r}")
    if isinstance(value, str) and not is_text(value):
        raise InvalidParamsError(f"{method}: option {entry.name}: want text without NUL and surrogates, got {value!r}")
    if entry.choices is not None and value not in entry.choices:
        raise InvalidParamsError(
            f"{method}: option {entry.name}: want one of {', '.join(entry.choices)}; got {value!r}"
        )
    return value
