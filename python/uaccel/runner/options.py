"""Declares the options of a run: who computes what, what is compiled, and what is wanted of the run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from uaccel.build.project_api import OptionValue
from uaccel.codegen.options import EmitOptions
from uaccel.errors import AcceleratorError, UaccelError, need
from uaccel.util.favour import Favour
from uaccel.util.option import name_alone, option, words_of

if TYPE_CHECKING:
    from uaccel.accelerator import Accelerator
    from uaccel.build.project import Footprint
    from uaccel.model import Array
    from uaccel.partition import Decision, Wishes
    from uaccel.pipeline import Compiled
    from uaccel.session.tensors import TensorType

    Samples = list[list[Array]]

# Headings of a command's help, and options that neither rows of sweeps take nor a repeating command names.

WHERE: Final = "Where it runs"
TOLD: Final = "What is told"
APART: Final[Mapping[str, Any]] = {"row": False, "repeats": False}

# The choice of accelerators, as the user types it; they are loaded when a model is compiled.

Choose = Literal["preference", "cost"]
Fallback = Literal["none", "cpu"]
Objective = Literal["latency", "energy"]


@dataclass(frozen=True)
class EngineRequest:
    """Says which accelerators may compute layers, and how to choose between them and between kernels.

    ``accelerators``: names, or paths of folders, the preferred one first. ``file``: pins, prohibitions and subgraphs.
    Without ``choose`` it is by preference, or as the file says."""

    PANEL = "Who computes what"
    accelerators: tuple[str, ...] = option(
        (),
        "May be given several times, the preferred one first.",
        "--accelerator",
        "-a",
        metavar="NAME|PATH",
        write=lambda names: map(_shown, names),
        row=False,
    )
    file: Path | None = option(
        None, "Pins, prohibitions and subgraphs.", "--engines", metavar="FILE.toml", write=name_alone, rare=True
    )
    choose: Choose | None = option(None, "Between engines: as they are named, or by estimated cost.", rare=True)
    pins: tuple[str, ...] = option((), "Compute a layer there, or say why not.", "--pin", metavar="LAYER=ENGINE")
    forbidden: tuple[str, ...] = option(
        (), "Do not compute a layer there.", "--forbid", metavar="LAYER=ENGINE", rare=True
    )
    fallback: Fallback = option("none", "Let the CPU compute what an accelerator fails at.", rare=True)
    objective: Objective = option("latency", "What accelerators that plan save: cycles, or bytes moved.", rare=True)
    allow_none: bool = option(False, "Go on where the accelerators compute nothing at all.", rare=True, repeats=False)
    records: Path | None = option(
        None, "Choose kernels by what 'uaccel tune' measured.", metavar="RECORDS.json", write=name_alone, rare=True
    )

    def require_accelerators(self) -> None:
        """Raises an error if there are options about accelerators, but no accelerator."""
        words = words_of(replace(self, records=None))
        if words and not self.accelerators:
            raise AcceleratorError(f"{words[0]} is about accelerators, and none is given; add --accelerator NAME|PATH")

    def load(self) -> tuple[list[Accelerator], Wishes]:
        """Loads the accelerators as they are now, and reads the constraints; raises an error for a faulty one."""
        from uaccel.partition.claims import Wishes, read_wishes

        if not self.accelerators:
            return [], Wishes()
        from uaccel.accelerator import load_accelerators, planning_for

        base = read_wishes(self.file) if self.file is not None else Wishes()
        wishes = base.and_also(self.choose or "", self.pins, self.forbidden)
        return planning_for(self.objective, load_accelerators(list(self.accelerators))), wishes

    def missing_offload(self, compiled: Compiled) -> str:
        """Says why nothing is offloaded; empty if something is, or if the CPU alone was found to be the cheapest.

        Offloading nothing is never silent: without this, a run would seem to prove the accelerator."""
        if not self.accelerators or compiled.offloads or compiled.kept_on_cpu:
            return ""
        return nothing_offloaded(self.load()[0], compiled.partitioned.decisions)

    def require_offload(self, compiled: Compiled) -> None:
        """Raises an error if nothing is offloaded, unless that is allowed."""
        missing = "" if self.allow_none else self.missing_offload(compiled)
        need(not missing, missing, AcceleratorError)


def _shown(name: str) -> str:
    """Returns a name as it is, and for a path the folder's name with a slash, so that it stays a path."""
    path = Path(name)
    if "/" not in name and path.suffix != ".py":
        return name
    folder = path.parent if path.suffix == ".py" else path
    return f"{folder.resolve().name}/"


def nothing_offloaded(accelerators: Sequence[Accelerator], decisions: Sequence[Decision]) -> str:
    """Says that nothing is offloaded, with the three most frequent reasons."""
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


# What is compiled.


def read_shapes(words: Sequence[str], _flag: str) -> dict[str, tuple[int, ...]]:
    """Reads ``NAME:D0,D1,...`` words as shapes by name; a name may hold colons itself."""
    shapes: dict[str, tuple[int, ...]] = {}
    for word in words:
        name, _, extents = word.rpartition(":")
        if not name or not re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18})*", extents):
            raise ValueError(f"{word!r}: wanted NAME:D0,D1,... as in x:1,3,224,224")
        need(name not in shapes, f"{word!r}: input {name!r} has a shape already", ValueError)
        shapes[name] = tuple(int(extent) for extent in extents.split(","))
        need(0 not in shapes[name], f"{word!r}: extents must be positive", ValueError)
    return shapes


def _shape_words(shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    return [f"{name}:{','.join(map(str, shape))}" for name, shape in shapes.items()]


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Holds the options of a compilation besides those about engines and about generated C."""

    PANEL = EmitOptions.PANEL
    name: str = option(
        "", "The model's name in C (from the file's name otherwise).", metavar="NAME", rare=True, repeats=False
    )
    favour: Favour = option(
        Favour.balanced, "What to save where one costs another: time ('speed'), flash ('size') or 'ram'."
    )
    input_shapes: Mapping[str, tuple[int, ...]] = option(
        dict,
        "The shape of an input that the file leaves open; may be repeated.",
        "--input-shape",
        metavar="NAME:D0,D1,...",
        read=read_shapes,
        write=_shape_words,
        rare=True,
    )
    state: tuple[str, ...] = option(
        (),
        "Keep an output as an input of the next inference, '*' for any part; 'auto' pairs usual names.",
        metavar="OUT=IN",
        rare=True,
    )
    state_from: Path | None = option(
        None,
        "What --state holds at first, by inputs; zeros otherwise.",
        metavar="FILE.npz",
        write=name_alone,
        rare=True,
    )


# What is wanted of a run, of a model or of a project.

Verify = Literal["no", "outputs", "layers"]


def read_options(words: Sequence[str], flag: str) -> dict[str, OptionValue]:
    """Reads ``NAME=VALUE`` words; the project's server refuses names that it does not know."""
    options: dict[str, OptionValue] = {}
    for word in words:
        name, equals, value = word.partition("=")
        need(equals and name, f"{flag} {word!r}: wanted NAME=VALUE", UaccelError)
        need(name not in options, f"{flag} {name} is given twice; leave one away", UaccelError)
        options[name] = value
    return options


@dataclass(frozen=True)
class ProjectRunOptions:
    """Holds the options of ``run`` that make sense for a project as well as for a model."""

    PANEL = "What goes in, and what must come out"
    inputs: Path | None = option(None, "One array per input, or a batch of samples each.", metavar="IN.npz")
    outputs: Path | None = option(None, "Write the outputs here.", metavar="OUT.npz", **APART)
    repeat: int = option(1, "Run each sample so many times.", metavar="N", least=1)
    sequence: bool = option(
        False, "The samples are frames of one sequence: the model's state goes on between them.", rare=True
    )
    verify: Verify = option(
        "no",
        "Compare every output with the model's exact meaning; '--verify layers': find the first wrong layer.",
        metavar="[layers]",
        write=lambda what: ("" if what == "outputs" else what,),
    )
    verified_samples: int | None = option(
        None, "With --verify and without --inputs: so many samples (8).", "--samples", metavar="N", least=1
    )
    seed: int = option(0, "Of the random samples of --verify.", metavar="N", least=0, rare=True)
    profile: bool = option(False, "Tell what each layer takes.", panel=TOLD)
    symbols: bool = option(
        False, "List every symbol of flash and RAM in the JSON, the largest first.", panel=TOLD, rare=True, **APART
    )
    trace: Path | None = option(
        None,
        "Write when the CPU and the accelerators' engines worked, for Perfetto.",
        metavar="FILE.json",
        panel=TOLD,
        **APART,
    )
    details: bool = option(
        False,
        "All that a report page shows in the JSON: symbols, C of layers, the trace.",
        panel=TOLD,
        rare=True,
        **APART,
    )
    report: Path | None = option(
        None, "Write a page that shows the run, for any browser.", metavar="FILE.html", panel=TOLD, **APART
    )
    port: str = option("", "The serial port or URL of a board.", "-p", metavar="PORT", panel=WHERE, repeats=False)
    no_flash: bool = option(
        False, "Talk to the firmware that is on the board already; write none to it.", panel=WHERE, rare=True, **APART
    )
    options: Mapping[str, OptionValue] = option(
        dict,
        "An option of the project's server; may be repeated.",
        "--option",
        metavar="NAME=VALUE",
        read=read_options,
        write=lambda given: [f"{name}={value}" for name, value in given.items()],
        panel=WHERE,
        rare=True,
        **APART,
    )

    @property
    def verifies(self) -> bool:
        return self.verify != "no"

    @property
    def every_layer(self) -> bool:
        """Whether each layer is compared, not only outputs."""
        return self.verify == "layers"

    @property
    def detailed(self) -> bool:
        """Whether all is told that a page shows."""
        return self.details or self.report is not None

    @property
    def profiles(self) -> bool:
        """Whether what layers take is measured: it is shown, or a page or a trace shows it."""
        return self.profile or self.detailed or self.trace is not None

    @property
    def flashes(self) -> bool:
        """Whether a model's firmware is written to a board at a line, where its board file says how."""
        return not self.no_flash

    def add_symbols(self, report: dict[str, Any], taken: Footprint | None) -> None:
        """Adds symbols to the report's memory if they were asked for."""
        from uaccel.report.run_json import symbols_report

        for memory, rows in symbols_report(taken).items() if self.symbols or self.detailed else ():
            report[memory]["symbols"] = rows

    def samples(
        self,
        tensors: Sequence[TensorType],
        known: Samples | None = None,
        rows: Mapping[str, Any] | None = None,
        tell: Callable[[str], None] = lambda note: None,
    ) -> Samples:
        """Returns the user's samples, else the first of the ``known`` ones, else a ramp.

        ``rows``: what reports say of the inputs; ``tell`` is told what became of the user's arrays."""
        from uaccel.runner.samples import given_samples
        from uaccel.session.tensors import ramp

        if self.inputs is None:
            samples = (known or [])[:1] or [[ramp(tensor) for tensor in tensors]]
        else:
            samples, notes = given_samples(self.inputs, tensors, rows or {})
            for note in notes:
                tell(note)
        return [sample for sample in samples for _ in range(self.repeat)]

    @property
    def more_samples(self) -> bool:
        """Whether verification adds samples: it does if the user gives none."""
        return self.verifies and self.inputs is None and not self.sequence

    @property
    def told_seed(self) -> int | None:
        """The seed of the samples that verification adds; None if it adds none."""
        return self.seed if self.more_samples else None

    def more(self, tensors: Sequence[TensorType], known: Samples | None = None) -> Samples:
        """Returns the samples that only verification wants: the other ``known`` ones come first."""
        from uaccel.runner.samples import SAMPLES, default_samples

        if not self.more_samples:
            return []
        first = known or []
        count = max(SAMPLES, len(first)) if self.verified_samples is None else self.verified_samples
        return [*first, *default_samples(tensors, count, self.seed)][1:count]
