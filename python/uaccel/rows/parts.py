"""The functions that compute some rows of a layer: kernels for the layer as if these rows were all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from uaccel.cpu_kernels import Choice, Work, candidates, kernel_options, pick, site_words
from uaccel.cpu_kernels.selection import Selection
from uaccel.lower.from_relax import describe
from uaccel.lower.program import Layer, Value
from uaccel.lower.structures import check_parameters
from uaccel.model import TensorInfo
from uaccel.ops.base import Site
from uaccel.ops.kernel import Kernel
from uaccel.rows.costs import Costs
from uaccel.rows.geometry import Reach, Span, part_of

Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """A layer's function for some rows, and what a call of it is expected to take."""

    site: Site[Any]
    kernel: Kernel
    macs: int
    cost: float
    choice: Choice


class Parts:
    """Those of a program's layers, each made once."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.costs = Costs.on(selection.target)
        self._known: dict[Key, Part | None] = {}

    def of(
        self, layer: Layer, windows: tuple[Reach | None, ...], spans: tuple[Span, ...], rows: int
    ) -> tuple[Key, Part | None]:
        """With its key: parts of a layer with the same key are the same."""
        key = (layer.index, rows, *((span.count, span.top, span.bottom, span.places) for span in spans))
        if key not in self._known:
            self._known[key] = self._made(layer, windows, spans, rows)
        return key, self._known[key]

    def _made(self, layer: Layer, windows: tuple[Reach | None, ...], spans: tuple[Span, ...], rows: int) -> Part | None:
        assert layer.applied is not None
        operator = layer.applied.operator
        site = part_of(layer.applied.site, windows, spans, rows)
        kernels = candidates(operator, site, self.selection.target)
        if not kernels:
            return None
        macs = operator.macs(site)
        work = Work(macs, site.output.elements)
        choice = pick(self.selection.selector, site_words(operator, site), kernel_options(kernels), work)
        kernel = kernels[choice.picked]
        return Part(site, kernel, macs, self.costs.of(kernel, work), choice)


def function_of(layer: Layer, part: Part, name: str, what: str) -> Layer:
    """The part as a layer of its own, which the whole one calls."""
    runtime = [operand.info for operand in part.site.operands if operand.constant is None]
    inputs = [_of(value, info) for value, info in zip(layer.inputs, runtime, strict=True)]
    why = f"; {part.choice.why}" if part.choice.why else ""
    kernel = check_parameters(part.kernel)
    return replace(
        layer,
        name=name,
        inputs=tuple(inputs),
        outputs=(_of(layer.outputs[0], part.site.output),),
        kernel=kernel,
        macs=part.macs,
        reason=f"{what}; {describe(kernel)}{why}",
        choice=part.choice,
        refused="",
    )


def _of(value: Value, info: TensorInfo) -> Value:
    return replace(value, spec=replace(value.spec, info=info))
