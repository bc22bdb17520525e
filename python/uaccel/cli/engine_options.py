"""Options about who computes what, which the commands on models share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uaccel.errors import AcceleratorError

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.partition import Decision, Wishes
    from uaccel.pipeline import Compiled


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
        "--accelerator", "-a", metavar="NAME|PATH", help="May be given several times, the preferred one first."
    ),
]
ChooseOption = Annotated[
    Choose | None,
    typer.Option("--choose", help="Between engines: as they are named, or by estimated cost."),
]
PinOption = Annotated[
    list[str] | None, typer.Option("--pin", metavar="LAYER=ENGINE", help="Compute a layer there, or say why not.")
]
ForbidOption = Annotated[
    list[str] | None, typer.Option("--forbid", metavar="LAYER=ENGINE", help="Do not compute a layer there.")
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


@dataclass(frozen=True)
class EngineOptions:
    """``words`` are what to type for the same."""

    accelerators: list[Accelerator]
    wishes: Wishes
    cpu_fallback: bool
    allow_none: bool
    words: tuple[str, ...]

    def arguments(self) -> tuple[list[Accelerator], Wishes, bool, tuple[str, ...]]:
        """What a :class:`~uaccel.running.job.Job` has of it, in its order."""
        return self.accelerators, self.wishes, self.cpu_fallback, self.words

    def require_offload(self, compiled: Compiled) -> None:
        """Offloading nothing is never silent: an error, or a warning where that is the cheapest."""
        if self.accelerators and not (self.allow_none or compiled.offloads or compiled.kept_on_cpu):
            raise AcceleratorError(nothing_offloaded(self.accelerators, compiled.partitioned.decisions))


def engine_options(
    accelerators: list[str] | None,
    choose: Choose | None = None,
    pins: list[str] | None = None,
    forbidden: list[str] | None = None,
    engines: Path | None = None,
    fallback: Fallback = Fallback.none,
    objective: Objective = Objective.latency,
    allow_none: bool = False,
) -> EngineOptions:
    """Load the accelerators and read the wishes; whatever is wrong with them is said now."""
    words = _words(accelerators, choose, pins, forbidden, engines, fallback, objective)
    from uaccel.partition.wishes import Wishes, read_wishes

    if not accelerators:
        if words:
            raise AcceleratorError(f"{words[0]} is about accelerators, and none is given; add --accelerator NAME|PATH")
        return EngineOptions([], Wishes(), False, allow_none, ())
    from uaccel.accelerator import load_accelerators, planning_for

    base = read_wishes(engines) if engines is not None else Wishes()
    wishes = base.and_also(choose.value if choose else "", pins or (), forbidden or ())
    found = planning_for(objective.value, load_accelerators(accelerators))
    return EngineOptions(found, wishes, fallback is Fallback.cpu, allow_none, tuple(words))


def _words(
    accelerators: list[str] | None,
    choose: Choose | None,
    pins: list[str] | None,
    forbidden: list[str] | None,
    engines: Path | None,
    fallback: Fallback,
    objective: Objective,
) -> list[str]:
    """What to type for the same, with files and folders by their names: where they lie is this computer's affair."""
    given = {
        "--accelerator": [_shown(name) for name in accelerators or ()],
        "--engines": [engines.name] if engines is not None else [],
        "--choose": [choose.value] if choose is not None else [],
        "--pin": pins or [],
        "--forbid": forbidden or [],
        "--fallback": [fallback.value] if fallback is not Fallback.none else [],
        "--objective": [objective.value] if objective is not Objective.latency else [],
    }
    return [word for option, values in given.items() for value in values for word in (option, value)]


def _shown(name: str) -> str:
    """A name as it is; of a path the folder's name, as a path."""
    path = Path(name)
    if "/" not in name and path.suffix != ".py":
        return name
    folder = path.parent if path.suffix == ".py" else path
    return f"{folder.resolve().name}/"


def nothing_offloaded(accelerators: Sequence[Accelerator], decisions: Sequence[Decision]) -> str:
    """With each reason once, the most frequent first, as many as fit a line."""
    counts = Counter(
        reason for decision in decisions for reason in {rejection.reason for rejection in decision.rejections}
    )
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    shown = [f"{reason} ({count} layer{'s' if count > 1 else ''})" for reason, count in ranked[:3]]
    others = len(ranked) - 3
    more = f"; and {others} further reason{'s' if others > 1 else ''}" if others > 0 else ""
    names = ", ".join(accelerator.name for accelerator in accelerators)
    return (
        f"nothing is offloaded to {names}: {'; '.join(shown) or 'the model has no operators'}{more}; "
        "'uaccel explain' tells layer by layer, --allow-none goes on without"
    )
