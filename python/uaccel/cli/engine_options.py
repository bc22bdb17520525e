"""Options about who computes what, which the commands on models share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from uaccel.errors import AcceleratorError

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.partition import Decision, Wishes


class Choose(str, Enum):
    """How to decide between engines that could all compute a layer."""

    preference = "preference"
    cost = "cost"


class Fallback(str, Enum):
    """What happens at run time when an accelerator fails."""

    none = "none"
    cpu = "cpu"


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

    def arguments(self) -> dict[str, Any]:
        """For ``compile_model``."""
        return {
            "accelerators": self.accelerators,
            "wishes": self.wishes,
            "cpu_fallback": self.cpu_fallback,
            "engine_words": self.words,
        }

    def require_offload(self, decisions: list[Decision] | tuple[Decision, ...] | Any) -> None:
        """Offloading nothing is never silent."""
        if self.accelerators and not self.allow_none and all(decision.engine == "cpu" for decision in decisions):
            raise AcceleratorError(nothing_offloaded(self.accelerators, decisions))


def engine_options(
    accelerators: list[str] | None,
    choose: Choose | None = None,
    pins: list[str] | None = None,
    forbidden: list[str] | None = None,
    engines: Path | None = None,
    fallback: Fallback = Fallback.none,
    allow_none: bool = False,
) -> EngineOptions:
    """Load the accelerators and read the wishes; whatever is wrong with them is said now."""
    given = {"--choose": choose, "--pin": pins, "--forbid": forbidden, "--engines": engines, "--fallback": None}
    given["--fallback"] = [fallback.value] if fallback is Fallback.cpu else None
    useless = [option for option, value in given.items() if value]
    if useless and not accelerators:
        raise AcceleratorError(f"{useless[0]} is about accelerators, and none is given; add --accelerator NAME|PATH")
    if not accelerators:
        from uaccel.partition.wishes import Wishes

        return EngineOptions([], Wishes(), False, allow_none, ())
    from uaccel.accelerator import load_accelerators
    from uaccel.partition.wishes import Wishes, read_wishes

    base = read_wishes(engines) if engines is not None else Wishes()
    wishes = base.and_also(choose.value if choose else "", pins or (), forbidden or ())
    words = [word for name in accelerators for word in ("--accelerator", Path(name).name if "/" in name else name)]
    words += ["--engines", engines.name] if engines is not None else []
    words += ["--choose", choose.value] if choose is not None else []
    words += [
        word
        for option, values in (("--pin", pins), ("--forbid", forbidden))
        for v in values or ()
        for word in (option, v)
    ]
    words += ["--fallback", fallback.value] if fallback is Fallback.cpu else []
    return EngineOptions(load_accelerators(accelerators), wishes, fallback is Fallback.cpu, allow_none, tuple(words))


def nothing_offloaded(accelerators: list[Accelerator], decisions: Any) -> str:
    """With each reason once, the most frequent first, as many as fit a line."""
    counts: dict[str, int] = {}
    for decision in decisions:
        for rejection in decision.rejections:
            counts[rejection.reason] = counts.get(rejection.reason, 0) + 1
    ranked = sorted(counts.items(), key=lambda entry: -entry[1])
    shown = [f"{reason} ({count} layer{'s' if count > 1 else ''})" for reason, count in ranked[:3]]
    more = f"; and {len(ranked) - 3} further reasons" if len(ranked) > 3 else ""
    names = ", ".join(accelerator.name for accelerator in accelerators)
    return (
        f"nothing is offloaded to {names}: {'; '.join(shown) or 'the model has no operators'}{more}; "
        "'uaccel explain' tells layer by layer, --allow-none goes on without"
    )
