"""Whatever depends on one quantised tensor, element by element, is a table of 256 entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.islands.emitter import Emitter
from uaccel.islands.graph import Graph, attributes, operator_name, shape_of
from uaccel.islands.held import Grid, Integers
from uaccel.islands.moves import grid_of, integers_of, reshaped
from uaccel.islands.rules import Emit, number
from uaccel.ops.base import constant, get
from uaccel.ops.lookup import Lookup, LookupAttrs, by_bits
from uaccel.ops.requantize import Requantize, RequantizeAttrs
from uaccel.ops.rounding import FLOAT32, float32_scale
from uaccel.tvm_api import is_call, is_constant, is_var

Reals = NDArray[np.float32]
Function = Callable[..., Any]

DEEPEST = 40  # operators of one chain

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Reals) -> Any:
    return 1.0 / (1.0 + np.exp(-x.astype(np.float64)))


def _gelu(x: Reals) -> Any:
    return 0.5 * x * (1.0 + _erf(x.astype(np.float64) / math.sqrt(2.0)))


def _gelu_tanh(x: Reals) -> Any:
    wide = x.astype(np.float64)
    return 0.5 * wide * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (wide + 0.044715 * wide**3)))


def _softplus(x: Reals) -> Any:
    return np.logaddexp(0.0, x.astype(np.float64))


UNARY: dict[str, Function] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": _erf,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "negative": np.negative,
    "nn.gelu": _gelu,
    "nn.gelu_tanh": _gelu_tanh,
    "nn.relu": lambda x: np.maximum(x, np.float32(0)),
    "nn.relu6": lambda x: np.clip(x, np.float32(0), np.float32(6)),
    "nn.silu": lambda x: x * _sigmoid(x),
    "nn.softplus": _softplus,
    "round": np.rint,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "sign": np.sign,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
}
BINARY: dict[str, Function] = {
    "add": np.add,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "power": np.power,
    "subtract": np.subtract,
}


def table_island(graph: Graph, value: Any, output: Grid) -> Emit | None:
    """What turns the one tensor that a value depends on into the quantised value; None where there is no such."""
    source = _source(graph, value)
    grid = grid_of(graph, source) if source is not None else None
    if source is None or grid is None:
        return None
    if source.same_as(value):
        return lambda emitter: _moved(emitter, source, grid, output)
    if grid.dtype != "int8" or output.dtype != "int8":
        return None
    stored = np.arange(-128, 128)
    with np.errstate(all="ignore"):
        reals = _evaluated(graph, value, source, grid.reals(stored))
    if not isinstance(reals, np.ndarray) or not np.isfinite(reals).all():
        return None
    names = "_".join(dict.fromkeys(_functions(graph, value, source)))
    table = _table(reals.astype(np.float32), output)
    return lambda emitter: _looked_up(emitter, source, grid, output, table, names)


def _moved(emitter: Emitter, source: Any, grid: Grid, output: Grid) -> Integers:
    """The same values on another grid."""
    held = integers_of(emitter, source, grid)
    if grid == output:
        return held
    if held.stored is None and held.flat_of is not None:
        held, shape = held.flat_of, held.shape
        stored = regridded(emitter, held.stored, grid, output, output.limits)
        return reshaped(emitter, Integers(held.shape, output, held.layout, stored), shape)
    stored = regridded(emitter, held.stored, grid, output, output.limits)
    return Integers(held.shape, output, held.layout, stored)


def regridded(emitter: Emitter, stored: Any, grid: Grid, output: Grid, bounds: tuple[int, int]) -> Any:
    """Integers of one grid as those of another, between two bounds; nothing to do where that changes nothing."""
    if grid == output and bounds == output.limits:
        return stored
    if grid.dtype == output.dtype == "int8":
        table = np.clip(_table(grid.reals(np.arange(-128, 128)), output), *bounds)
        expr = get(Lookup)(stored, constant(table), attrs=LookupAttrs("requantize"))
    else:
        multiplier, shift = float32_scale(float(np.float32(grid.scale) / np.float32(output.scale)))
        attrs = RequantizeAttrs(
            grid.zero_point, output.zero_point, multiplier, shift, *bounds, output.dtype, rounding=FLOAT32
        )
        expr = get(Requantize)(stored, attrs=attrs)
    return emitter.bind(expr, quantisation=output.quantisation, suffix="_requantized")


def _table(reals: Reals, output: Grid) -> NDArray[np.int8]:
    """As QuantizeLinear computes it, for -128..127 by their bits."""
    low, high = output.limits
    steps = np.rint(reals.astype(np.float32) / np.float32(output.scale)) + output.zero_point
    return by_bits(np.clip(steps, low, high).astype(np.int8))


def _looked_up(emitter: Emitter, source: Any, grid: Grid, output: Grid, table: Any, names: str) -> Integers:
    held = integers_of(emitter, source, grid)
    stored = held.stored if held.stored is not None else emitter.plain(held)
    layout = held.layout
    expr = get(Lookup)(stored, constant(table), attrs=LookupAttrs(names))
    return emitter.held(expr, held.shape, output, layout)


def _source(graph: Graph, value: Any, depth: int = 0) -> Any | None:
    """The one quantised variable that a value depends on through elementwise functions alone."""
    if not is_var(value) or depth > DEEPEST:
        return None
    if value not in graph.sources:
        graph.sources[value] = value if grid_of(graph, value) is not None else _source_of_call(graph, value, depth)
    return graph.sources[value]


def _source_of_call(graph: Graph, value: Any, depth: int) -> Any | None:
    call = graph.definitions.get(value)
    operands = _operands(graph, call) if call is not None and is_call(call) else None
    if operands is None:
        return None
    computed = [arg for arg in operands if graph.value(arg) is None]
    found = {_source(graph, arg, depth + 1) for arg in computed}
    alike = len(found) == 1 and all(shape_of(arg) == shape_of(call) for arg in computed)
    return found.pop() if alike else None


def _operands(graph: Graph, call: Any) -> list[Any] | None:
    """The tensors that an elementwise operator reads, constants among them of one element; None for any other."""
    name = operator_name(call).removeprefix("relax.")
    if name in UNARY or name in ("clip", "nn.leakyrelu"):
        return [call.args[0]]
    if name not in BINARY:
        return None
    known = [graph.value(arg) for arg in call.args]
    single = all(value is None or value.size == 1 for value in known)
    return list(call.args) if single and any(value is None for value in known) else None


def _evaluated(graph: Graph, value: Any, source: Any, reals: Reals) -> Any:
    if value.same_as(source):
        return reals
    known = graph.value(value)
    if known is not None:
        return known.reshape(-1)
    call = graph.definitions[value] if not is_constant(value) else None
    if call is None:
        return None
    name = operator_name(call).removeprefix("relax.")
    operands = [_evaluated(graph, arg, source, reals) for arg in _operands(graph, call) or ()]
    return np.asarray(_applied(name, call, operands), np.float32)


def _applied(name: str, call: Any, operands: list[Any]) -> Any:
    if name == "clip":
        low, high = (number(arg) for arg in call.args[1:3])
        return np.clip(operands[0], low, high)
    if name == "nn.leakyrelu":
        alpha = np.float32(attributes(call).alpha)
        return np.where(operands[0] < 0, operands[0] * alpha, operands[0])
    return UNARY[name](operands[0]) if name in UNARY else BINARY[name](*operands)


def _functions(graph: Graph, value: Any, source: Any) -> list[str]:
    """The names of the functions from the source to the value, for reports."""
    if value.same_as(source) or not is_var(value) or graph.value(value) is not None:
        return []
    call = graph.definitions[value]
    inner = [name for arg in _operands(graph, call) or () for name in _functions(graph, arg, source)]
    return [*inner, operator_name(call).removeprefix("relax.").removeprefix("nn.")]
