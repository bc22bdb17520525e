"""What the user wants of the partition: layers pinned to an engine or kept from one, and how to choose between claims.

A file of wishes::

    choose = "cost"                # or "preference": the accelerators in the order in which they are named
    [pin]
    conv_2d_3 = "nuc_fpga"         # a layer, or a pattern of names such as "conv_2d_*"
    softmax_9 = "cpu"
    [forbid]
    "depthwise_*" = ["nuc_fpga"]
    [[subgraph]]                   # all layers on the ways between two, both included
    from = "conv_2d_4"
    to = "add_7"
    engine = "conveyor"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from uaccel.basics.documents import parse_toml
from uaccel.basics.suggest import did_you_mean
from uaccel.errors import AcceleratorError

CHOICES: Final = ("preference", "cost")


@dataclass(frozen=True)
class Subgraph:
    """All layers on the ways from one layer to another."""

    first: str
    last: str
    engine: str


@dataclass(frozen=True)
class Wishes:
    """``pins`` and ``forbidden``: (layer or pattern of names, engine).

    ``cuts``: layers after which a region ends, so that a wrong region is searched by halves.
    """

    choose: str = "preference"
    pins: tuple[tuple[str, str], ...] = ()
    forbidden: tuple[tuple[str, str], ...] = ()
    subgraphs: tuple[Subgraph, ...] = ()
    cuts: tuple[str, ...] = ()

    def and_also(self, choose: str, pins: Iterable[str], forbidden: Iterable[str]) -> Wishes:
        """With those of the command line, ``LAYER=ENGINE`` each, which come last and so win."""
        return replace(
            self,
            choose=choose or self.choose,
            pins=(*self.pins, *(_pair(text, "--pin") for text in pins)),
            forbidden=(*self.forbidden, *(_pair(text, "--forbid") for text in forbidden)),
        )


def _pair(text: str, option: str) -> tuple[str, str]:
    layer, separator, engine = text.partition("=")
    if not separator or not layer or not engine:
        raise AcceleratorError(f"{option} {text}: wanted LAYER=ENGINE, for example {option} conv_2d_3=cpu")
    return layer, engine


def read_wishes(path: Path) -> Wishes:
    """From a file, checked key by key."""
    try:
        table = parse_toml(path.read_bytes().decode())
    except OSError as error:
        raise AcceleratorError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise AcceleratorError(f"{path} is no TOML file: {error}") from error
    known = ("choose", "pin", "forbid", "subgraph")
    for key in table:
        if key not in known:
            raise AcceleratorError(f"{path}: unknown key '{key}'{did_you_mean(key, known)}; known: {', '.join(known)}")
    choose = table.get("choose", "preference")
    if choose not in CHOICES:
        raise AcceleratorError(f"{path}: choose is {choose!r}; wanted {' or '.join(CHOICES)}")
    return Wishes(
        choose,
        tuple(_engines(path, "pin", table.get("pin", {}))),
        tuple(_engines(path, "forbid", table.get("forbid", {}))),
        tuple(_subgraph(path, entry) for entry in _list(path, table.get("subgraph", []))),
    )


def _engines(path: Path, section: str, table: Any) -> Iterable[tuple[str, str]]:
    if not isinstance(table, Mapping):
        raise AcceleratorError(f'{path}: [{section}] is no table; wanted lines such as conv_2d_3 = "cpu"')
    for layer, value in table.items():
        if isinstance(value, Mapping):
            raise AcceleratorError(f"{path}: [{section}.{layer}] is a table; write a name with dots in quotation marks")
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise AcceleratorError(f"{path}: [{section}] {layer} is {value!r}; wanted an engine's name")
        if section == "pin" and len(names) != 1:
            raise AcceleratorError(f"{path}: [pin] {layer} names {len(names)} engines; wanted one")
        yield from ((layer, name) for name in names)


def _list(path: Path, value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise AcceleratorError(f"{path}: subgraph is no list of tables; write [[subgraph]]")
    return value


def _subgraph(path: Path, entry: Any) -> Subgraph:
    wanted = {"from", "to", "engine"}
    if not isinstance(entry, Mapping) or set(entry) != wanted or not all(isinstance(v, str) for v in entry.values()):
        raise AcceleratorError(f'{path}: a [[subgraph]] takes from = "LAYER", to = "LAYER" and engine = "NAME"')
    return Subgraph(entry["from"], entry["to"], entry["engine"])


def matching(name_or_pattern: str, names: Sequence[str], what: str) -> list[str]:
    """The layers that a wish is about; it must be about one at least. A name in full is that layer's alone."""
    if name_or_pattern in names:
        return [name_or_pattern]
    found = [name for name in names if fnmatchcase(name, name_or_pattern)]
    if not found:
        raise AcceleratorError(
            f"{what} '{name_or_pattern}': no layer of the model is called so{did_you_mean(name_or_pattern, names)}; "
            "'uaccel explain' lists them"
        )
    return found
