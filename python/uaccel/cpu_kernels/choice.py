"""Which of several ways to compute a layer is taken, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

from uaccel.ops.base import Computable, Site
from uaccel.ops.kernel import Constant, Kernel


@dataclass(frozen=True)
class Option:
    """One way: its name among those of the site, the C functions that it calls, bytes of its constants, and how many
    products it computes for each of the operator's. ``planned`` works out what its own planner says that it takes."""

    label: str
    functions: tuple[str, ...] = ()
    flash: int = 0
    effort: float = 1.0
    planned: Callable[[], float | None] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Work:
    """How much there is to do at a site."""

    macs: int
    outputs: int


@dataclass(frozen=True)
class Choice:
    """What was picked at a site. Sites with the same words cost the same on the same CPU."""

    site: str
    options: tuple[str, ...]
    picked: int
    why: str


class Selector(Protocol):
    """Gives the number of the option to take, and why in a few words."""

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]: ...


@dataclass(frozen=True)
class Turn:
    """The option of this number everywhere, or the last one where there are fewer: for measuring them all."""

    number: int

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        return min(self.number, len(options) - 1), "its turn to be measured"


def pick(selector: Selector, site: str, options: Sequence[Option], work: Work) -> Choice:
    """Ask only where there is a choice."""
    number, why = selector(site, options, work) if len(options) > 1 else (0, "")
    return Choice(site, tuple(option.label for option in options), number, why)


def kernel_options(kernels: Sequence[Kernel]) -> list[Option]:
    """Kernels by the functions that they call; those that call the same are numbered."""
    options: list[Option] = []
    for kernel in kernels:
        functions = tuple(dict.fromkeys(call.function for call in kernel.calls))
        label = " + ".join(functions) or kernel.family
        same = sum(option.functions == functions for option in options)
        constants = (part for call in kernel.calls for part in call.arguments if isinstance(part, Constant))
        flash = sum(part.data.nbytes for part in constants)
        options.append(Option(f"{label} ({same + 1})" if same else label, functions, flash, kernel.effort))
    return options


def site_words(operator: Computable, site: Site[Any]) -> str:
    """What an operator's call costs depends on: attributes and types, and which operands are constants.

    What an attribute is by default goes without saying: records stay good when operators get more attributes.
    """
    values = asdict(site.attrs)
    usual = {attribute.name: attribute.default for attribute in fields(site.attrs)}
    attributes = ", ".join(f"{name}={_word(value)}" for name, value in values.items() if value != usual[name])
    operands = ", ".join(f"{'const ' * (o.constant is not None)}{o.info}" for o in site.operands)
    return f"{operator.name}({attributes}): {operands}"


def _word(value: Any) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)
