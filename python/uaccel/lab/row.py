"""One row of a matrix: a model on a board with accelerators and options, as data that any process can be sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from uaccel.basics.favour import favour_of
from uaccel.basics.suggest import did_you_mean
from uaccel.board import load_board
from uaccel.rtl.parts import PARTS
from uaccel.running.engines import LATENCY, Engines
from uaccel.running.prepare import key_of
from uaccel.running.request import RunRequest, Wishes

CPU_ONLY: Final = "cpu"


@dataclass(frozen=True)
class Option:
    """A key of a row's options: its type, and what it may be."""

    type: type
    values: tuple[str, ...] = ()


OPTIONS: Final[Mapping[str, Option]] = {
    "name": Option(str),
    "favour": Option(str, ("balanced", "speed", "size", "ram")),
    "ram": Option(int),
    "feed": Option(bool),
    "workspace-io": Option(bool),
    "choose": Option(str, ("preference", "cost")),
    "pin": Option(list),
    "forbid": Option(list),
    "engines": Option(str),
    "fallback": Option(str, ("none", "cpu")),
    "objective": Option(str, ("latency", "energy")),
    "allow-none": Option(bool),
    "records": Option(str),
    "input-shape": Option(list),
    "inputs": Option(str),
    "repeat": Option(int),
    "sequence": Option(bool),
    "verify": Option(str, ("no", "outputs", "layers")),
    "samples": Option(int),
    "seed": Option(int),
    "profile": Option(bool),
    "port": Option(str),
    "area": Option(str, tuple(PARTS)),
}
"""Those of ``uaccel run``, by their names on the command line, and ``area``: the part that RTL is synthesised for."""
_WANTED: Final = {str: "text", int: "a number", bool: "true or false", list: "a list"}
FILES: Final = ("engines", "records", "inputs")
"""Those that name one, from the matrix file's folder."""


def problem_of(key: str, value: Any) -> tuple[str, str] | None:
    """What is wrong with an option, in words: before and after where it was seen. None where nothing is."""
    option = OPTIONS.get(key)
    if option is None:
        return f"unknown key '{key}'", f"{did_you_mean(key, list(OPTIONS))}; known: {', '.join(OPTIONS)}"
    fits = isinstance(value, option.type) and (option.type is bool or not isinstance(value, bool))
    if fits and (not option.values or value in option.values):
        return None
    return key, f" is {value!r}; wanted {' or '.join(option.values) or _WANTED[option.type]}"


@dataclass(frozen=True)
class Row:
    """``model`` and ``accelerators`` as one types them; ``options`` by the names of :data:`OPTIONS`. ``tags``: what a
    design space varies, by name. ``repetition`` tells apart rows that are alike otherwise."""

    model: str
    board: str
    accelerators: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, Any] = field(default_factory=dict)
    repetition: int = 0

    @property
    def title(self) -> str:
        """For people: what sets it apart."""
        engines = "+".join(Path(name).name for name in self.accelerators) or CPU_ONLY
        said = [f"{key}={_word(value)}" for key, value in (*self.options.items(), *self.tags.items())]
        again = [f"#{self.repetition + 1}"] if self.repetition else []
        return " ".join([Path(self.model).stem, f"on {self.board}", f"with {engines}", *said, *again])

    def request(self) -> RunRequest:
        """The run that it stands for; UaccelError where the board, a file or a value is none."""
        said = dict(self.options)
        verify = said.get("verify", "outputs")
        wishes = Wishes(
            inputs=_path(said.get("inputs")),
            repeat=said.get("repeat", 1),
            profile=said.get("profile", False),
            verify=verify != "no",
            every_layer=verify == "layers",
            port=said.get("port", ""),
            sequence=said.get("sequence", False),
            verified_samples=said.get("samples"),
            seed=said.get("seed", 0),
        )
        return RunRequest(
            Path(self.model),
            load_board(self.board),
            Path(self.board).name,
            said.get("name", ""),
            wishes=wishes,
            engines=self._engines(said),
            workspace_io=said.get("workspace-io"),
            records=_path(said.get("records")),
            input_shapes=dict(_shape(word) for word in said.get("input-shape", ())),
            favour=favour_of(said.get("favour", "balanced")),
            ram=said.get("ram"),
            feed=said.get("feed", False),
        )

    def _engines(self, said: Mapping[str, Any]) -> Engines:
        if not self.accelerators:
            return Engines()
        return Engines(
            self.accelerators,
            said.get("choose", ""),
            tuple(said.get("pin", ())),
            tuple(said.get("forbid", ())),
            _path(said.get("engines")),
            said.get("fallback", "none") == "cpu",
            said.get("objective", LATENCY),
            said.get("allow-none", False),
        )

    def digest(self) -> str:
        """Of all that its result depends on, what the board does aside: a result with the same digest is this row's."""
        key = key_of(self.request())
        said = [self.model, self.board, list(self.accelerators), dict(self.options), dict(self.tags), self.repetition]
        inputs = self.options.get("inputs")
        given = Path(inputs).read_bytes() if inputs is not None and Path(inputs).is_file() else b""
        whole = [key.digest if key is not None else "", said, hashlib.sha256(given).hexdigest()]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:24]

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "board": self.board,
            "accelerators": list(self.accelerators),
            "options": dict(self.options),
            "tags": dict(self.tags),
            "repetition": self.repetition,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        return replace(cls(**data), accelerators=tuple(data["accelerators"]))


def _path(value: str | None) -> Path | None:
    return None if value is None else Path(value)


def _shape(word: str) -> tuple[str, tuple[int, ...]]:
    name, _, extents = word.rpartition(":")
    return name, tuple(int(extent) for extent in extents.split(","))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
