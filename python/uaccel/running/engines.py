"""Which accelerators are asked, and how they are chosen among: as one types it, loaded when a model is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uaccel.errors import AcceleratorError

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.partition import Decision, Wishes
    from uaccel.pipeline import Compiled

LATENCY: Final = "latency"


@dataclass(frozen=True)
class Engines:
    """``accelerators``: names, or paths of folders, the preferred one first. ``file``: pins, prohibitions and
    subgraphs. An empty ``choose`` is by preference, or as the file says."""

    accelerators: tuple[str, ...] = ()
    choose: str = ""
    pins: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    file: Path | None = None
    cpu_fallback: bool = False
    objective: str = LATENCY
    allow_none: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What to type for the same; files and folders by their names: where they lie is this computer's affair."""
        given = {
            "--accelerator": [_shown(name) for name in self.accelerators],
            "--engines": [self.file.name] if self.file is not None else [],
            "--choose": [self.choose] if self.choose else [],
            "--pin": list(self.pins),
            "--forbid": list(self.forbidden),
            "--fallback": ["cpu"] if self.cpu_fallback else [],
            "--objective": [self.objective] if self.objective != LATENCY else [],
        }
        return tuple(word for option, values in given.items() for value in values for word in (option, value))

    def require_accelerators(self) -> None:
        """For options that mean nothing without one."""
        if self.words and not self.accelerators:
            words = self.words
            raise AcceleratorError(f"{words[0]} is about accelerators, and none is given; add --accelerator NAME|PATH")

    def load(self) -> tuple[list[Accelerator], Wishes]:
        """As they are now; what is wrong with any of them is said."""
        from uaccel.partition.wishes import Wishes, read_wishes

        if not self.accelerators:
            return [], Wishes()
        from uaccel.accelerator import load_accelerators, planning_for

        base = read_wishes(self.file) if self.file is not None else Wishes()
        wishes = base.and_also(self.choose, self.pins, self.forbidden)
        return planning_for(self.objective, load_accelerators(list(self.accelerators))), wishes

    def arguments(self) -> tuple[list[Accelerator], Wishes, bool, tuple[str, ...]]:
        """What a :class:`~uaccel.running.job.Job` has of it, in its order."""
        accelerators, wishes = self.load()
        return accelerators, wishes, self.cpu_fallback, self.words

    def missing_offload(self, compiled: Compiled) -> str:
        """Offloading nothing is never silent: what is wrong with that; empty where something is offloaded, or where
        nothing is and that is the cheapest."""
        if not self.accelerators or compiled.offloads or compiled.kept_on_cpu:
            return ""
        return nothing_offloaded(self.load()[0], compiled.partitioned.decisions)

    def require_offload(self, compiled: Compiled) -> None:
        """Unless it may compute nothing."""
        missing = "" if self.allow_none else self.missing_offload(compiled)
        if missing:
            raise AcceleratorError(missing)


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
