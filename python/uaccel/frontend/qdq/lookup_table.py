"""Plans lookup tables for chains of elementwise functions that depend on one quantised tensor alone.

Such a chain is a function of one integer, whatever float operators it has. For 8 bits the compiler evaluates it for all
256 inputs, in float32 like the model. For 16 bits it evaluates all 65,536 in double precision and cuts the results into
polynomial segments (``ops.lookup.segments_of``). Float32 tables serve functions whose results stay real.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.frontend.qdq.emitter import Emitter, in_place, integers_of, moved_grid, reshaped
from uaccel.frontend.qdq.graph import Integers, QdqGraph, QuantGrid, attributes, shape_of
from uaccel.frontend.qdq.rules import Emit, number
from uaccel.model import Array
from uaccel.ops import lookup
from uaccel.ops.exact import FLOAT32, float32_scale
from uaccel.ops.operator import constant, get, info_of, name_of
from uaccel.ops.pointwise import BY_RELAX
from uaccel.ops.quantize import Requantize, RequantizeAttrs
from uaccel.tvm_api import is_call, is_var

Reals = NDArray[np.floating[Any]]

DEEPEST = 40  # Operators of one chain: it bounds the recursion of ``source_of``.

# Functions by the names that Relax has for them.
TABLES = {name: row for name, row in BY_RELAX.items() if row.compute is not None}
JUMPING = {row.relax for row in TABLES.values() if row.jumps}
WITH_PARAMETERS = ("relax.clip", "relax.nn.leakyrelu", "relax.nn.relu6")
PRELU = "relax.nn.prelu"


def table_island(graph: QdqGraph, value: Any, output: QuantGrid, bounds: tuple[int, int]) -> Emit | None:
    """Plans a table from the one tensor that a value depends on to the quantised value; None if there is none."""
    source = source_of(graph, value)
    grid = moved_grid(graph, source) if source is not None else None
    if source is None or grid is None:
        return None
    if source.same_as(value):
        return lambda emitter: requantize_by_table(emitter, source, grid, output, bounds)
    names = "_".join(dict.fromkeys(functions(graph, value, source)))
    if grid.dtype != "int8" or output.dtype != "int8":
        steps = _wide_steps(graph, value, source, output)
        attrs, *tables = lookup.segments_of(steps, *bounds, names)
        return lambda emitter: _looked_up16(emitter, source, output, attrs, tables)
    reals = lookup.table_float32(lambda x: evaluated(graph, value, source, x), grid.quantisation, output.quantisation)
    table = np.clip(reals, *bounds).astype(reals.dtype)
    return lambda emitter: _looked_up(emitter, source, grid, output, table, names)


def _wide_steps(graph: QdqGraph, value: Any, source: Any, output: QuantGrid) -> NDArray[np.float64]:
    """The real results for all 65,536 inputs, counted in steps of the output, in double precision."""
    reals = _wide_reals(graph, value, source)
    return np.asarray(reals / np.float64(output.scale) + output.zero_point)


def _wide_reals(graph: QdqGraph, value: Any, source: Any) -> NDArray[np.float64]:
    grid = moved_grid(graph, source)
    assert grid is not None
    given, (low, high) = grid.wide, grid.wide.limits
    with np.errstate(all="ignore"):
        reals = _dequantised(graph, value, source, np.arange(low, high + 1), given)
        return np.asarray(evaluated(graph, value, source, reals))


def _dequantised(graph: QdqGraph, value: Any, source: Any, stored: Array, grid: QuantGrid) -> NDArray[np.float64]:
    """The numbers that integers stand for: in double precision, but where a chain jumps to the bit as the model has
    them, in single precision."""
    reals = np.asarray((stored - grid.zero_point) * np.float64(grid.scale))
    return reals.astype(np.float32).astype(np.float64) if JUMPING & set(functions(graph, value, source)) else reals


def reals_of(graph: QdqGraph, value: Any) -> NDArray[np.float64] | None:
    """All results of a function of one quantised tensor on its 16-bit grid; None for any other value."""
    source = source_of(graph, value)
    return None if source is None or moved_grid(graph, source) is None else _wide_reals(graph, value, source)


def real_table(graph: QdqGraph, value: Any) -> Callable[[Emitter], Any] | None:
    """Plans a table of float32 results of one 8-bit tensor; None where it is not worth its flash."""
    source = source_of(graph, value)
    grid = moved_grid(graph, source) if source is not None else None
    if source is None or grid is None or grid.dtype != "int8" or source.same_as(value):
        return None
    if info_of(value).dtype != "float32" or not lookup.worth_a_table(info_of(value).elements):
        return None
    with np.errstate(all="ignore"):
        reals = _dequantised(graph, value, source, lookup.stored_values("int8"), grid)
        table = np.asarray(evaluated(graph, value, source, reals), np.float32)
    names = "_".join(dict.fromkeys(functions(graph, value, source)))

    def emit(emitter: Emitter) -> Any:
        plain = emitter.plain(integers_of(emitter, source, grid))
        return emitter.bind(get(lookup.FloatLookup)(plain, constant(table), attrs=lookup.LookupAttrs(names)))

    return emit


def _looked_up16(
    emitter: Emitter, source: Any, output: QuantGrid, attrs: lookup.Lookup16Attrs, tables: list[Array]
) -> Integers:
    grid = moved_grid(emitter.graph, source)
    assert grid is not None
    held = in_place(emitter, integers_of(emitter, source, grid.wide))
    expr = get(lookup.Lookup16)(held.stored, *map(constant, tables), attrs=attrs)
    result = emitter.held(expr, held.shape, replace(output, dtype="int16"), held.layout)
    return result if output.dtype == "int16" else emitter.narrowed(result, output)


def requantize_by_table(
    emitter: Emitter, source: Any, grid: QuantGrid, output: QuantGrid, bounds: tuple[int, int]
) -> Integers:
    """The same numbers on another grid; a flattening that is put off stays so."""
    held = integers_of(emitter, source, grid)
    if grid == output and bounds == output.limits:
        return held
    shape, flat = held.shape, held.flat_of if held.stored is None else None
    held = flat or held
    moved = Integers(held.shape, output, held.layout, regridded(emitter, held.stored, grid, output, bounds))
    return moved if flat is None else reshaped(emitter, moved, shape)


def regridded(emitter: Emitter, stored: Any, grid: QuantGrid, output: QuantGrid, bounds: tuple[int, int]) -> Any:
    """Moves integers to another grid, within bounds: a table from int8 to int8, else a multiplication."""
    if grid == output and bounds == output.limits:
        return stored
    if grid.dtype == output.dtype == "int8":
        table = np.clip(lookup.table_float32(lambda x: x, grid.quantisation, output.quantisation), *bounds)
        expr = get(lookup.Lookup)(stored, constant(table), attrs=lookup.LookupAttrs("requantize"))
    else:
        multiplier, shift = float32_scale(float(np.float32(grid.scale) / np.float32(output.scale)))
        points = (grid.zero_point, output.zero_point)
        attrs = RequantizeAttrs(*points, multiplier, shift, *bounds, output.dtype, rounding=FLOAT32)
        expr = get(Requantize)(stored, attrs=attrs)
    return emitter.bind(expr, quantisation=output.quantisation, suffix="_requantized")


def _looked_up(emitter: Emitter, source: Any, grid: QuantGrid, output: QuantGrid, table: Any, names: str) -> Integers:
    held = in_place(emitter, integers_of(emitter, source, grid))
    expr = get(lookup.Lookup)(held.stored, constant(table), attrs=lookup.LookupAttrs(names))
    return emitter.held(expr, held.shape, output, held.layout)


def source_of(graph: QdqGraph, value: Any, depth: int = 0) -> Any | None:
    """The one quantised variable that a value depends on through elementwise functions alone; None if there is none.

    The nearest quantised variable counts, and results are kept in ``graph.sources``. Several operands must share one
    source and have the result's shape: with broadcasting, one element would depend on several elements of the source.
    """
    if not is_var(value) or depth > DEEPEST:
        return None
    if value not in graph.sources:
        graph.sources[value] = value if moved_grid(graph, value) is not None else _source_of_call(graph, value, depth)
    return graph.sources[value]


def _source_of_call(graph: QdqGraph, value: Any, depth: int) -> Any | None:
    call = graph.definitions.get(value)
    operands = _operands(graph, call) if call is not None and is_call(call) else None
    if operands is None:
        return None
    computed = [arg for arg in operands if graph.value(arg) is None]
    found = {source_of(graph, arg, depth + 1) for arg in computed}
    alike = len(found) == 1 and all(shape_of(arg) == shape_of(call) for arg in computed)
    return found.pop() if alike else None


def _operands(graph: QdqGraph, call: Any) -> list[Any] | None:
    """The operands of an elementwise operator whose constants are each one number; None for any other operator."""
    name, row = name_of(call), TABLES.get(name_of(call))
    if name in WITH_PARAMETERS or (row is not None and row.arity == 1):
        return [call.args[0]]
    if row is None and name != PRELU:
        return None
    known = [graph.value(arg) for arg in call.args]
    single = all(value is None or (value.size and (value == value.flat[0]).all()) for value in known)
    return list(call.args) if single and any(value is None for value in known) else None


def evaluated(graph: QdqGraph, value: Any, source: Any, reals: Reals) -> Reals:
    """Evaluates a chain for these numbers of its source, each operator in the precision of ``reals``."""
    if value.same_as(source):
        return reals
    known = graph.value(value)
    if known is not None:
        return known.reshape(-1)[:1].astype(reals.dtype)
    call = graph.definitions[value]
    operands = [evaluated(graph, arg, source, reals) for arg in _operands(graph, call) or ()]
    return np.asarray(_applied(name_of(call), call, operands), reals.dtype)


def _applied(name: str, call: Any, operands: list[Reals]) -> Any:
    if name == "relax.clip":
        low, high = (number(arg) for arg in call.args[1:3])
        return lookup.clip(-math.inf if low is None else low, math.inf if high is None else high)(operands[0])
    if name == "relax.nn.relu6":
        return lookup.clip(0, 6)(operands[0])
    if name == "relax.nn.leakyrelu":
        return lookup.leaky_relu(float(attributes(call).alpha))(operands[0])
    if name == PRELU:
        return np.where(operands[0] > 0, operands[0], operands[0] * operands[1])
    compute = TABLES[name].compute
    assert compute is not None
    return compute(*operands)


def functions(graph: QdqGraph, value: Any, source: Any) -> list[str]:
    """The names of the functions from the source to the value, for reports."""
    if value.same_as(source) or not is_var(value) or graph.value(value) is not None:
        return []
    call = graph.definitions[value]
    inner = [name for arg in _operands(graph, call) or () for name in functions(graph, arg, source)]
    return [*inner, name_of(call).removeprefix("relax.").removeprefix("nn.")]
