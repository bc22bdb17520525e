"""Folds borders of zero points into the convolutions that read them, so that no padded copy of an image is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from uaccel.ops.conv import Conv2d, DepthwiseConv2d
from uaccel.ops.operator import info_of, operator_of, pads_with_number
from uaccel.tvm_api import Emit, is_operator_call, main_bindings, main_result, rewrite_main, variables


@dataclass(frozen=True)
class FoldPadding:
    """Folds padding into windows. Afterwards no convolution reads a border that its own padding can stand for.

    A border is folded where all its readers take it: otherwise the padded image is stored for the others anyway.
    """

    name: str = "fold_padding"

    def __call__(self, module: Any) -> Any:
        borders = _borders(module)
        sources: dict[Any, tuple[Any, Any]] = {}  # What each border is laid around, by the variable that has both.

        def write(emit: Emit, var: Any, expr: Any) -> Any:
            if is_operator_call(expr) and expr.args and expr.args[0] in sources:
                pad, image = sources[expr.args[0]]
                operator = operator_of(expr)
                assert operator is not None
                attrs = replace(operator.attrs_of(expr), padding=_whole(expr, pad))
                return emit(operator(image, *expr.args[1:], attrs=attrs), var.name)
            made = emit(expr, var.name)
            if var in borders:
                sources[made] = (borders[var], expr.args[0])
            return made

        return rewrite_main(module, write) if borders else module


def _borders(module: Any) -> Mapping[Any, Any]:
    """Finds the pads that all readers can take, by their variables."""
    bindings = main_bindings(module)[1]
    pads = {var: expr for var, expr in bindings if is_operator_call(expr) and _is_border(expr)}
    results = set(variables(main_result(module)))
    readers: dict[Any, list[Any]] = {var: [] for var in pads if var not in results}
    for _, expr in bindings:
        for used in variables(expr):
            if used in readers:
                readers[used].append(expr)
    fit = {var for var, given in readers.items() if given and all(_takes(expr, var, pads[var]) for expr in given)}
    return {var: pads[var] for var in fit}


def _is_border(call: Any) -> bool:
    """Whether it lays rows and columns of one number around images."""
    if not pads_with_number(call) or len(call.attrs.pad_width) != 8:
        return False
    widths = _widths(call)
    return not any((*widths[:2], *widths[6:])) and min(widths) >= 0


def _widths(pad: Any) -> list[int]:
    return [int(width) for width in pad.attrs.pad_width]


def _whole(reader: Any, pad: Any) -> tuple[int, ...]:
    """The padding of a convolution with that of the border around it."""
    top, bottom, left, right = _widths(pad)[2:6]
    own = operator_of(reader).attrs_of(reader).padding  # type: ignore[union-attr]
    return tuple(map(sum, zip(own, (top, left, bottom, right), strict=True)))


def _takes(reader: Any, var: Any, pad: Any) -> bool:
    """Whether it is a convolution for which the border is of zeros, and whose windows all reach the image."""
    operator = operator_of(reader) if is_operator_call(reader) else None
    if not isinstance(operator, Conv2d | DepthwiseConv2d) or var in reader.args[1:]:
        return False
    if float(pad.attrs.pad_value) != operator.attrs_of(reader).input_zero_point:
        return False
    attrs, weights = operator.attrs_of(reader), info_of(reader.args[1]).shape
    kernel = weights[1:3] if isinstance(operator, Conv2d) else weights[:2]
    reach = [(size - 1) * step for size, step in zip(kernel, attrs.dilation, strict=True)]
    return all(width <= reach[number % 2] for number, width in enumerate(_whole(reader, pad)))
