"""Picks one of several kernels for a layer: by shipped cost estimates, or by records of measurements.

Wherever a layer can be computed in several ways, the compiler asks a `Selector`. `Estimated` decides by ``costs.json``,
`RecordsSelector` by what ``uaccel tune`` measured, and `RankedSelector` enumerates what is worth measuring.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

from uaccel.board import Board, Memory
from uaccel.errors import UaccelError
from uaccel.kernels.registry import PORTABLE, Target
from uaccel.kernels.terms import Sizes, Terms, cost_of, sizes_of, stated_outputs
from uaccel.kernels.waits import Part, copied, waits_for_code, waits_for_constants
from uaccel.ops.kernel import Constant, Kernel, KernelCall
from uaccel.ops.operator import Computable, Site
from uaccel.util import incoming
from uaccel.util.favour import Favour
from uaccel.util.files import parse_json, write_atomically
from uaccel.util.form import TEXT, Named, Value, complaint

# A choice: the options at a site (one call of an operator), who picks among them, and what was picked.


@dataclass(frozen=True)
class Option:
    """Describes one way: its name among those of the site, the C functions that it calls, bytes of its constants.

    ``effort``: how many products it computes for each of the operator's. ``calls``: those of its functions, whose
    sizes decide what it costs. ``planned`` gives the cost by the option's own planner.
    """

    label: str
    functions: tuple[str, ...] = ()
    flash: int = 0
    effort: float = 1.0
    planned: Callable[[], float | None] | None = field(default=None, compare=False)
    calls: tuple[KernelCall, ...] = field(default=(), compare=False)

    def sizes(self, function: str, work: Work) -> list[Sizes]:
        """The sizes of the calls of a function. These and the calls of its other forms divide the work: by the outputs
        that they state, else equally."""
        form = _usual_form(function)
        fields = [call.parameters for call in self.calls if _usual_form(call.function) == form] or [{}]
        parts = [stated_outputs(parameters) / work.outputs if len(self.calls) > 1 else 0.0 for parameters in fields]
        if not all(parts):
            count = sum(_usual_form(call.function, PAIR) == form.removesuffix(PAIR) for call in self.calls) or 1
            parts = [1 / count] * len(fields)
        macs = work.macs * self.effort
        return [sizes_of(given, macs * part, work.outputs * part) for given, part in zip(fields, parts, strict=True)]


@dataclass(frozen=True)
class Work:
    """States how much there is to do at a site."""

    macs: int
    outputs: int


@dataclass(frozen=True)
class Choice:
    """Records what was picked at a site. Sites with the same words cost the same on the same CPU."""

    site: str
    options: tuple[str, ...]
    picked: int
    why: str


class Selector(Protocol):
    """Gives the number of the option to take, and why in a few words."""

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]: ...


@dataclass(frozen=True)
class Turn:
    """Picks the option of this number everywhere, or the last one where there are fewer: for measuring them all."""

    number: int

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        return min(self.number, len(options) - 1), "its turn to be measured"


def pick(selector: Selector, site: str, options: Sequence[Option], work: Work) -> Choice:
    """Ask only where there is a choice."""
    number, why = selector(site, options, work) if len(options) > 1 else (0, "")
    return Choice(site, tuple(option.label for option in options), number, why)


def kernel_options(kernels: Sequence[Kernel]) -> list[Option]:
    """Makes an option of each kernel, named by its functions; kernels that call the same functions are numbered."""
    options: list[Option] = []
    for kernel in kernels:
        functions = tuple(dict.fromkeys(call.function for call in kernel.calls))
        label = " + ".join(functions) or kernel.family
        same = sum(option.functions == functions for option in options)
        constants = (part for call in kernel.calls for part in call.arguments if isinstance(part, Constant))
        flash = sum(part.data.nbytes for part in constants)
        label = f"{label} ({same + 1})" if same else label
        options.append(Option(label, functions, flash, kernel.effort, calls=kernel.calls))
    return options


def site_words(operator: Computable, site: Site[Any]) -> str:
    """Describes a call by all that its cost depends on: attributes, types, and which operands are constants. Attributes
    of their default value are left out, so that records stay valid when operators get more attributes."""
    values = asdict(site.attrs)
    usual = {attribute.name: attribute.default for attribute in fields(site.attrs)}
    attributes = ", ".join(f"{name}={_word(value)}" for name, value in values.items() if value != usual[name])
    operands = ", ".join(f"{'const ' * (o.constant is not None)}{o.info}" for o in site.operands)
    return f"{operator.name}({attributes}): {operands}"


def _word(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


# Estimates: the choice without records. A kernel's cost is a sum of terms (``kernels/terms.py``), with coefficients
# fitted to measurements of its C function. ``costs.json`` beside this module holds them for each CPU that was measured:
# in estimated cycles where the core's timings are known, else in instructions. ``paces`` has the cycles of a function's
# instructions on average, ``code`` the bytes of each function and of those that it calls. ``scripts/fit_costs.py``
# makes the file.

# The measured CPU that stands for others with a feature, the first that fits; ``PLAIN`` for CPUs with none of them.
MEASURED: Final = (("helium", "cortex-m55"), ("dsp", "cortex-m4"), ("rvv", "rv32imacv"), ("rv32", "rv32imac"))
PLAIN: Final = "cortex-m3"
COSTS: Final = Path(__file__).with_name("costs.json")
INSTRUCTIONS: Final = "instructions"
CYCLES: Final = "estimated cycles"
TIMED: Final = "cortex-m"  # Begins the names of cores for which estimates are in cycles.
SLOWER: Final = 2  # A kernel that is chosen for its size takes at most so many times the fastest kernel's estimate.
# Ends the names of kernels that round in single precision, and of those that take deep sums apart as they grow. Only a
# few steps differ: estimates ignore them.
FORMS: Final = ("_float32", "_deep")
PAIR: Final = "_pair"  # Ends those of kernels that compute one or two channels behind fours by themselves.


@lru_cache(maxsize=1)
def shipped_costs() -> Mapping[str, Mapping[str, Mapping[str, Terms]]]:
    """Reads the terms of ``costs.json``, by unit, CPU and function."""
    stored = json.loads(incoming.read_text(COSTS))
    counted: dict[str, dict[str, Terms]] = {}
    for cpu, functions in stored["costs"].items():
        paces = stored["paces"].get(cpu, {})
        counted[cpu] = {
            function: {term: value / paces.get(function, 1.0) for term, value in terms.items()}
            for function, terms in functions.items()
        }
    return {INSTRUCTIONS: counted, CYCLES: {cpu: stored["costs"][cpu] for cpu in stored["paces"]}}


@lru_cache(maxsize=1)
def shipped_code() -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Reads the bytes of code, by CPU, function and symbol."""
    stored: dict[str, Any] = json.loads(incoming.read_text(COSTS))
    code: Mapping[str, Mapping[str, Mapping[str, int]]] = stored["code"]
    return code


Shares = Mapping[str, float]  # By the name of a memory the part of a layer's constants that lies in it.


@dataclass(frozen=True)
class Estimated:
    """Picks the cheapest by estimate, or the first option (of the lowest rank) where any has no estimate."""

    costs: Mapping[str, Terms] = field(default_factory=dict)
    unit: str = INSTRUCTIONS
    favour: Favour = Favour.balanced
    # By function the bytes of each symbol that it needs.
    code: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    memories: Sequence[Memory] = ()  # Those of the board.

    @classmethod
    def on(cls, target: Target, unit: str = "", favour: Favour = Favour.balanced) -> Estimated:
        """Makes the selector for a CPU: in ``unit``, else in cycles where the core's are known, else instructions."""
        kin = next((cpu for feature, cpu in MEASURED if feature in target.features), PLAIN)
        for wanted in (unit,) if unit else (CYCLES, INSTRUCTIONS) if target.cpu.startswith(TIMED) else (INSTRUCTIONS,):
            costs = shipped_costs()[wanted]
            found = costs.get(target.cpu) or costs.get(kin)
            if found:
                code = shipped_code()
                return cls(found, wanted, favour, code.get(target.cpu) or code.get(kin) or {}, target.memories)
        return cls(favour=favour)

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        estimates = [self.of(option, work) for option in options]
        if self.favour is Favour.size:
            return smallest(options, estimates)
        if any(estimate is None for estimate in estimates):
            return 0, "the first that fits"
        best = min(range(len(options)), key=lambda number: estimates[number] or 0)
        return best, f"about {estimates[best]:,.0f} {self.unit}"

    def of(self, option: Option, work: Work, lie: Shares | None = None) -> float | None:
        """Estimates an option's cost in the unit; None where a function was never measured. ``lie``: which part of the
        constants lies in which memory; None where that is not known yet, and they are taken to lie where it pays."""
        known = {form: self.costs.get(form) for form in map(_usual_form, option.functions)}
        if not known or None in known.values():
            return None
        cycles = sum(cost_of(terms or {}, sizes) for form, terms in known.items() for sizes in option.sizes(form, work))
        return cycles + self.waits(option, work, cycles, lie)

    def waits(self, option: Option, work: Work, cycles: float, lie: Shares | None = None) -> float:
        """Estimates the cycles that the CPU waits for slow memory in a layer that takes so many cycles without."""
        slow = [memory for memory in self.memories if memory.wait_states]
        if not slow or self.unit != CYCLES:
            return 0.0
        terms = self.costs if work.macs else {}  # Tables of values are read as the values come.
        sized = [(form, sizes) for form in map(_usual_form, option.functions) for sizes in option.sizes(form, work)]
        parts = [Part(form, terms.get(form, {}), sizes, option.flash / len(sized)) for form, sizes in sized]
        reads = max(work.macs, work.outputs) / max(1, option.flash)
        home = next((memory for memory in self.memories if memory.kind == "flash"), slow[0])
        lie = ({} if copied(slow, reads) else {home.name: 1.0}) if lie is None else lie
        symbols = {name: size for form, _ in sized for name, size in self.code.get(form, {}).items()}
        waited = waits_for_code(home, symbols, parts, work.outputs, cycles)
        return waited + sum(lie.get(one.name, 0.0) * waits_for_constants(one, parts, reads) for one in slow)


def _usual_form(function: str, *others: str) -> str:
    for form in (*FORMS, *others):
        function = function.removesuffix(form)
    return function


def smallest(options: Sequence[Option], estimates: Sequence[float | None]) -> tuple[int, str]:
    """Picks the fewest bytes of constants among options of at most ``SLOWER`` times the fastest estimate. Where some
    have no estimate, the fastest is not known: then only options smaller than the first are considered."""
    known = {number: estimate for number, estimate in enumerate(estimates) if estimate is not None}
    bound = SLOWER * min(known.values(), default=0)
    small = [number for number, estimate in known.items() if estimate <= bound]
    if None in estimates:
        small = [number for number in small if options[number].flash < options[0].flash]
    if not small:
        return 0, "the first that fits"
    best = min(small, key=lambda number: (options[number].flash, known[number]))
    return best, f"{options[best].flash:,} bytes of constants"


# Tuning records: costs that ``uaccel tune`` measured, by site, in a JSON file; and the choice of the cheapest by them.

FORMAT: Final = 1
# A site's costs by the label of the option: in the unit of the records for the CPU, in cycles for an accelerator.
Costs = Mapping[str, int]


@dataclass(frozen=True)
class Records:
    """Holds measured costs by site; ``cpu`` is the one that they were measured on."""

    cpu: str
    sites: Mapping[str, Costs] = field(default_factory=dict)
    unit: str = ""  # What the costs count; empty where nothing was measured yet.
    # Instructions of the same sites, where the costs count something else.
    instructions: Mapping[str, Costs] = field(default_factory=dict)

    def counted(self) -> Records:
        """Returns the records in instructions, as far as these are known."""
        return self if self.unit in (INSTRUCTIONS, "") else Records(self.cpu, self.instructions, INSTRUCTIONS)

    def with_site(self, site: str, costs: Costs, instructions: Costs | None = None) -> Records:
        known = replace(self, sites={**self.sites, site: {**self.sites.get(site, {}), **costs}})
        if not instructions:
            return known
        counted = {**self.instructions, site: {**self.instructions.get(site, {}), **instructions}}
        return replace(known, instructions=counted)

    def merged(self, newer: Records) -> Records:
        """Joins both records; the newer cost counts where both have one."""
        if self.unit and newer.unit and self.unit != newer.unit:
            raise UaccelError(f"the records count {self.unit}, and this board {newer.unit}: say another file with -o")
        merged = replace(self, unit=newer.unit or self.unit)
        for site, costs in newer.sites.items():
            merged = merged.with_site(site, costs, newer.instructions.get(site))
        return merged


@dataclass(frozen=True)
class RecordsSelector:
    """Picks the cheapest by the records.

    Options that promise little are never measured, so a missing one is taken to be dearer. But where the option that
    ``otherwise`` would pick is missing, the records say nothing of the best candidate, and ``otherwise`` decides.
    """

    records: Records
    otherwise: Selector = field(default_factory=Estimated)
    favour: Favour = Favour.balanced

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        costs = self.records.sites.get(site, {})
        known = [costs.get(option.label) for option in options]
        if None in known:
            number, why = self.otherwise(site, options, work)
            if known[number] is None or self.favour is Favour.size:
                return number, why
        if self.favour is Favour.size:
            return smallest(options, known)
        cost, best = min((cost, number) for number, cost in enumerate(known) if cost is not None)
        unit = self.records.unit
        return best, "the cheapest measured" + (f", {cost:,} {unit}" if unit else "")


def write_records(path: Path, records: Records) -> None:
    """Writes the file with sorted keys, so that equal records give equal bytes."""
    content = {"format": FORMAT, "cpu": records.cpu, "unit": records.unit, "sites": records.sites}
    content |= {"instructions": records.instructions} if records.instructions else {}
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    write_atomically(path, lambda stream: stream.write(text.encode()), "records")


def read_records(path: Path, cpu: str) -> Records:
    """Reads a file of records; an error where they were measured on another CPU, for which they would mislead."""
    content = _content(path)
    sites = content["sites"]
    if content["cpu"] != cpu:
        raise UaccelError(
            f"{path}: measured on {content['cpu']}, and this is for {cpu}; measure with 'uaccel tune' and this board"
        )
    return Records(cpu, sites, content["unit"], content.get("instructions", {}))


def _content(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = parse_json(incoming.read_text(path))
    except OSError as error:
        raise UaccelError(f"{path}: {error.strerror or error}; 'uaccel tune' makes such files") from None
    except ValueError as error:
        raise UaccelError(f"{path}: no JSON ({error}); 'uaccel tune' writes such files") from None
    if complaint(content, _RECORDS) or content.get("format") != FORMAT:
        raise UaccelError(
            f"{path}: no records of measurements in format {FORMAT}; make them anew with 'uaccel tune MODEL --board B'"
        )
    return content


_COST: Final = Value("a number from 0", lambda value: type(value) is int and value >= 0)
_SITES: Final = Named(Named(_COST))
_RECORDS: Final = {"cpu": TEXT, "unit": TEXT, "sites": _SITES, "instructions?": _SITES}


# The order in which ``uaccel tune`` measures a site's options: by what each is expected to cost.

# By a site and the labels of its options: the labels that are worth measuring, the most promising first.
Asked = dict[tuple[str, tuple[str, ...]], tuple[str, ...]]


@dataclass(frozen=True)
class RankedSelector:
    """Picks the option of rank ``number`` at each site, or the most promising one where fewer are worth measuring.

    ``most`` limits the options with an estimate that are measured; None for all. Options without an estimate always
    are. A variant of an accelerator's plan is measured only where its planner expects it to be better.
    """

    estimated: Estimated
    number: int = 0
    most: int | None = None
    asked: Asked = field(default_factory=dict, compare=False)

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        first, why = self.estimated(site, options, work)
        estimates = [self._estimate(option, work) for option in options]
        order = self._order(first, estimates)
        if self.most is not None and options[first].planned is not None:
            order = [n for n in order if n == first or (estimates[n] or 0) < (estimates[first] or 0)]
        self.asked[site, tuple(option.label for option in options)] = tuple(options[n].label for n in order)
        if 0 < self.number < len(order):
            return order[self.number], "its turn to be measured"
        return first, why

    def worth(self, choice: Choice) -> tuple[str, ...]:
        """Returns the labels worth measuring at a choice's site, in order; where there was no choice the one option."""
        return self.asked.get((choice.site, choice.options), choice.options)

    def _estimate(self, option: Option, work: Work) -> float | None:
        return self.estimated.of(option, work) if option.planned is None else option.planned()

    def _order(self, first: int, estimates: Sequence[float | None]) -> list[int]:
        """Orders options: the one taken without measurements, then those without an estimate, then by estimate. Where
        size is favoured a slow option may be the one to take, so ``most`` does not apply."""
        others = [number for number in range(len(estimates)) if number != first]
        unknown = [number for number in others if estimates[number] is None]
        known = sorted((n for n in others if estimates[n] is not None), key=lambda n: (estimates[n] or 0.0, n))
        if self.most is not None and self.estimated.favour is not Favour.size:
            known = known[: max(0, self.most - (estimates[first] is not None))]
        return [first, *unknown, *known]


# The policy for a board: the CPU's features, and the selector that picks among its kernels.


@dataclass(frozen=True)
class Selection:
    """Joins the CPU that kernels are for, the selector that picks among them, and what is favoured."""

    target: Target = PORTABLE
    selector: Selector = field(default_factory=Estimated)
    favour: Favour = Favour.balanced

    @classmethod
    def on(cls, target: Target, favour: Favour = Favour.balanced) -> Selection:
        """Makes a selection by the shipped estimates for this CPU or one like it."""
        return cls(target, Estimated.on(target, favour=favour), favour)


ANY_CPU: Final = Selection()  # Kernels for any CPU.


def selection_for(board: Board, records: Path | None = None, favour: Favour = Favour.balanced) -> Selection:
    """Makes the selection for a board: by measurements where ``records`` are given, else by estimates."""
    target = target_of(board)
    if records is None:
        return Selection.on(target, favour)
    estimated = Estimated.on(target, favour=favour)
    return Selection(target, RecordsSelector(read_records(records, target.cpu), estimated, favour), favour)


def target_of(board: Board) -> Target:
    kind = [] if board.cpu.arch == "native" else ["embedded"]
    kind += ["rv32"] if board.cpu.arch == "rv32" else []
    return Target.of(board.cpu.name, {*board.cpu.features, *kind}, board.memories)
