"""Options about who computes what, which the commands on models share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from uaccel.cli.completion import accelerator_names, layer_and_engine
from uaccel.running.engines import Engines


class Choose(str, Enum):
    """How to decide between engines that could all compute a layer."""

    preference = "preference"
    cost = "cost"


class Fallback(str, Enum):
    """What happens at run time when an accelerator fails."""

    none = "none"
    cpu = "cpu"


class Objective(str, Enum):
    """What accelerators that plan their work shall save."""

    latency = "latency"
    energy = "energy"


AcceleratorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accelerator",
        "-a",
        metavar="NAME|PATH",
        help="May be given several times, the preferred one first.",
        autocompletion=accelerator_names,
    ),
]
ChooseOption = Annotated[
    Choose | None,
    typer.Option("--choose", help="Between engines: as they are named, or by estimated cost."),
]
PinOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="LAYER=ENGINE",
        help="Compute a layer there, or say why not.",
        autocompletion=layer_and_engine,
    ),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid", metavar="LAYER=ENGINE", help="Do not compute a layer there.", autocompletion=layer_and_engine
    ),
]
EnginesOption = Annotated[
    Path | None,
    typer.Option("--engines", metavar="FILE.toml", help="Pins, prohibitions and subgraphs.", readable=False),
]
FallbackOption = Annotated[
    Fallback, typer.Option("--fallback", help="Let the CPU compute what an accelerator fails at.")
]
ObjectiveOption = Annotated[
    Objective, typer.Option("--objective", help="What accelerators that plan save: cycles, or bytes moved.")
]
AllowNoneFlag = Annotated[
    bool, typer.Option("--allow-none", help="Go on where the accelerators compute nothing at all.")
]


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Who computes what; the commands that compile a model take them."""

    accelerator: AcceleratorOption = None
    choose: ChooseOption = None
    pin: PinOption = None
    forbid: ForbidOption = None
    engines: EnginesOption = None
    fallback: FallbackOption = Fallback.none
    objective: ObjectiveOption = Objective.latency
    allow_none: AllowNoneFlag = False

    def who(self) -> Engines:
        """What these options say; those that mean nothing without an accelerator are refused."""
        found = Engines(
            tuple(self.accelerator or ()),
            self.choose.value if self.choose is not None else "",
            tuple(self.pin or ()),
            tuple(self.forbid or ()),
            self.engines,
            self.fallback is Fallback.cpu,
            self.objective.value,
            self.allow_none,
        )
        found.require_accelerators()
        return found
