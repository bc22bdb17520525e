"""Board ports: folders of C, and a ``port.toml`` that says for which processors and what it must know of a board."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from uaccel.basics.suggest import did_you_mean
from uaccel.board.source import TomlSource, read_toml
from uaccel.board.table import Table
from uaccel.resources import data_dir

MANIFEST: Final = "port.toml"
CORE: Final = "core"
"""In ``shared``: the folder of whichever processor the board has."""
NATIVE, STDIO, UART = "native", "stdio", "uart"
SettingType = Literal["integer", "string", "boolean"]
SettingValue = int | str | bool

_KINDS: Final[dict[SettingType, type[SettingValue]]] = {"integer": int, "string": str, "boolean": bool}
_FOLDER: Final = re.compile(r"\w[\w.-]*", re.ASCII)
_SETTING: Final = re.compile(r"[a-z][a-z0-9_]*")
_WANTED: Final[dict[SettingType, str]] = {"integer": "an integer", "string": "a string", "boolean": "true or false"}


@dataclass(frozen=True)
class Setting:
    """Something that a port must know about a board; a board may leave it out where it has a default."""

    name: str
    type: SettingType
    help: str
    default: SettingValue | None = None
    pattern: str = ".*"
    """The whole of a string matches it."""


@dataclass(frozen=True)
class Port:
    """One port: ``name`` is its folder's."""

    name: str
    folder: Path
    description: str
    arch: tuple[str, ...]
    shared: tuple[str, ...]
    """Further folders of ``firmware/ports`` whose sources belong to it."""
    console: tuple[str, ...]
    """The kinds of console that it has."""
    settings: tuple[Setting, ...]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The folders that a project needs, its own one first."""
        return (self.folder, *(ports_folder() / name for name in self.shared))


def ports_folder() -> Path:
    """Where the ports lie that come with uaccel."""
    return data_dir("firmware") / "ports"


def available_ports() -> dict[str, Path]:
    """Their folders, by name."""
    return {manifest.parent.name: manifest.parent for manifest in sorted(ports_folder().glob(f"*/{MANIFEST}"))}


def read_port(folder: Path, arch: str) -> Port:
    """The port in a folder, for such processors; its ``port.toml`` is checked like a board file."""
    source = read_toml(folder / MANIFEST)
    table = Table(source, (), source.data, ("description", "arch", "shared", "console", "settings"))
    if not _FOLDER.fullmatch(folder.name):
        raise table.error(f"the port's folder is called {folder.name!r}; wanted letters, digits, '.', '_' and '-'")
    settings = table.table("settings", _names(source)) if "settings" in table else None
    port = Port(
        name=folder.name,
        folder=folder,
        description=table.string("description"),
        arch=table.strings("arch"),
        shared=tuple(core_folder(arch) if name == CORE else name for name in table.strings("shared")),
        console=table.strings("console") or (STDIO if arch == NATIVE else UART,),
        settings=() if settings is None else tuple(_setting(settings, name) for name in settings.names()),
    )
    for name in port.shared:
        if not _FOLDER.fullmatch(name) or not (ports_folder() / name).is_dir():
            raise table.error(
                f"'shared' in {table} has '{name}'; there is no such folder in {ports_folder()}", "shared"
            )
    return port


def core_folder(arch: str) -> str:
    """The folder of start-up code, vectors and timer for such processors."""
    return "riscv" if arch.startswith("rv") else "cortex_m"


def _names(source: TomlSource) -> tuple[str, ...]:
    """None where they stand in no table, which the reader of it refuses."""
    settings = source.data["settings"]
    return tuple(settings) if isinstance(settings, dict) else ()


def _setting(parent: Table, name: str) -> Setting:
    if not _SETTING.fullmatch(name):
        raise parent.error(f"a setting is called {name!r}; wanted lower-case letters, digits and underscores", name)
    table = parent.table(name, ("type", "help", "default", "pattern"))
    kind: SettingType = table.choice("type", tuple(_KINDS))
    default = table.value("default", _KINDS[kind], _WANTED[kind]) if "default" in table else None
    return Setting(name, kind, table.string("help"), default, _pattern(table, kind) if "pattern" in table else ".*")


def _pattern(table: Table, kind: SettingType) -> str:
    pattern = table.string("pattern")
    try:
        re.compile(pattern)
    except re.error as error:
        raise table.error(f"'pattern' in {table} is no regular expression: {error}", "pattern") from error
    if kind != "string":
        raise table.error(f"'pattern' in {table} is for settings of type string; leave it out", "pattern")
    return pattern


def settings_of(file: Table, port: Port) -> Mapping[str, SettingValue]:
    """What a board file gives for each of the port's settings."""
    table = file.table("settings", [setting.name for setting in port.settings]) if "settings" in file else None
    values: dict[str, SettingValue] = {}
    for setting in port.settings:
        if table is not None and setting.name in table:
            values[setting.name] = _value(table, setting)
        elif setting.default is not None:
            values[setting.name] = setting.default
        else:
            where = table or file
            raise where.error(f"port '{port.name}' wants '{setting.name}' in [settings]: {setting.help}")
    return values


def _value(table: Table, setting: Setting) -> SettingValue:
    value: SettingValue = table.value(setting.name, _KINDS[setting.type], f"{_WANTED[setting.type]}: {setting.help}")
    if isinstance(value, str) and not re.fullmatch(setting.pattern, value):
        raise table.error(f"'{setting.name}' in {table} is {value!r}; wanted {setting.help}", setting.name)
    return value


def unknown_port(name: str) -> str:
    """What to say of a port that is not there."""
    known = available_ports()
    return (
        f"there is no port {name!r}{did_you_mean(name, known)} (known: {', '.join(known)}; "
        "a port of your own is given as a path that begins with './')"
    )
