"""Writes the new module, and moves integers the way the float model moves the numbers that they stand for.

``Emitter`` knows what each variable has become. ``MOVES`` lists the operators that copy elements without computing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from uaccel.frontend.qdq import graph as graphs
from uaccel.frontend.qdq.graph import Integers, QdqGraph, QuantGrid, Trail, shape_of
from uaccel.model import Origin, Quantisation, Shape, TensorSpec, UniqueNames, layer_name
from uaccel.ops import exact
from uaccel.ops import operator as operators
from uaccel.ops.exact import FLOAT32, float32_scale
from uaccel.ops.operator import constant, get, info_of, name_of
from uaccel.ops.pool import MaxPool2d, PoolAttrs, WindowAttrs, WindowMax
from uaccel.ops.quantize import UNITY, Dequantize, DequantizeAttrs, Quantize, QuantizeAttrs, Requantize, RequantizeAttrs
from uaccel.ops.reduce import ReduceAttrs, ReduceMax, ReduceMin
from uaccel.ops.storage import Layout, bytes_order, compose, identity, layout_name, reshape_groups
from uaccel.ops.windows import SlidingWindow
from uaccel.tvm_api import is_call, is_constant, is_tuple, is_tuple_get_item, is_var, relax

# The emitter: what each variable of the float model has become, as integers or as floats.


@dataclass
class Emitter:
    """Emits bindings of the new module, each layout and each plan once however many readers there are.

    ``layer``: the float model's variable that new bindings are named and reported after; ``makers`` has it for each new
    variable. ``integers`` and ``reals``: what a variable has become. ``laid``: tensors in other layouts, splits and
    flattened tensors. ``planned``: results of ``apply_rule``. ``wide``: 16-bit copies. ``trails``: see ``Trail``.
    """

    graph: QdqGraph
    block: Any
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    layer: Any = None
    names: UniqueNames = field(default_factory=UniqueNames)
    integers: dict[Any, Integers] = field(default_factory=dict)
    reals: dict[Any, Any] = field(default_factory=dict)
    laid: dict[tuple[Any, Layout], Any] = field(default_factory=dict)
    makers: dict[Any, Any] = field(default_factory=dict)
    planned: dict[Any, Integers] = field(default_factory=dict)
    wide: dict[Integers, Integers] = field(default_factory=dict)
    trails: dict[Any, Trail] = field(default_factory=dict)

    def bind(self, expr: Any, *, quantisation: Quantisation | None = None, suffix: str = "", tensor: str = "") -> Any:
        """Binds an expression to a new variable and notes its origin and quantisation for reports."""
        origin = self.graph.origins.get(self.layer.name)
        name = self.names.take((layer_name(origin.op, origin.index) if origin else self.layer.name) + suffix)
        var = self.block.emit(expr, name)
        self.makers[var] = self.layer
        if origin is not None:
            self.origins[var.name] = origin
        if not hasattr(var.ty, "fields"):
            known = tensor or (origin.tensor if origin else name)
            self.tensors[var.name] = TensorSpec(known, info_of(var), quantisation)
        return var

    def held(self, expr: Any, shape: Shape, grid: QuantGrid, layout: Layout) -> Integers:
        """Binds newly computed integers; ``shape`` is in the model's order of axes."""
        return Integers(shape, grid, layout, self.bind(expr, quantisation=grid.quantisation))

    def stored(self, held: Integers, layout: Layout) -> Any:
        """The integers with their axes in this order; a transposition is emitted for the first reader alone."""
        if held.stored is None:
            return self._flat(held)
        if layout == held.layout:
            return held.stored
        key = (held.stored, tuple(held.layout.index(axis) for axis in layout))
        if key not in self.laid:
            self.laid[key] = self._permuted(held, layout, key[1])
        return self.laid[key]

    def _permuted(self, held: Integers, layout: Layout, axes: Layout) -> Any:
        """Emits the cheapest expression that brings ``held`` into ``layout``.

        A constant is transposed now; where only axes of one element change place, a reshape does. Where the tensor
        itself was moved, all moves since the base are composed into one transposition: the earlier ones die unless
        somebody else reads them. The binding belongs to the layer that made the tensor, not to the reader.
        """
        if is_constant(held.stored):
            return constant(np.asarray(held.stored.value.numpy()).transpose(axes))
        shape = compose(held.shape, layout)
        same = bytes_order(held.shape, held.layout) == bytes_order(held.shape, layout)
        before, self.layer = self.layer, self.makers.get(held.stored, held.stored)
        trail = self.trail(held.stored)
        then = trail.permuted(shape_of(held.stored), axes)
        if then is not None and trail.moves and not same and len(then.joined.extents) <= graphs.MOST_PARTS:
            expr = relax.op.reshape(self._at_once(held, then.joined), shape)
        else:
            expr = relax.op.reshape(held.stored, shape) if same else relax.op.permute_dims(held.stored, axes)
        moved = self.bind(expr, quantisation=held.grid.quantisation, suffix=f"_{layout_name(layout)}")
        if then is not None:
            self.trails[moved] = then
        self.layer = before
        return moved

    def trail(self, stored: Any) -> Trail:
        """Gives the moves that made a variable from an earlier one."""
        return self.trails[stored] if stored in self.trails else graphs.beginning(stored, shape_of(stored))

    def _at_once(self, held: Integers, trail: Trail) -> Any:
        """The base seen as the trail's parts, in one transposition; the base itself if nothing moves."""
        if not trail.moves:
            return trail.base
        parts = relax.op.reshape(trail.base, trail.extents)
        parts = self.bind(parts, quantisation=held.grid.quantisation, suffix="_parts")
        moved = relax.op.permute_dims(parts, trail.order)
        return self.bind(moved, quantisation=held.grid.quantisation, suffix="_moved")

    def _flat(self, held: Integers) -> Any:
        """Emits the reshape that ``reshaped`` put off."""
        source = held.flat_of
        assert source is not None
        key = (source, held.shape)
        if key not in self.laid:
            plain = self.stored(source, identity(source.rank))
            self.laid[key] = self.bind(
                relax.op.reshape(plain, held.shape), quantisation=held.grid.quantisation, suffix="_flat"
            )
        return self.laid[key]

    def plain(self, held: Integers) -> Any:
        """The integers in the model's own order of axes."""
        return self.stored(held, identity(held.rank))

    def channels_last(self, held: Integers) -> Any:
        return self.stored(held, (0, *range(2, held.rank), 1))

    def quantized(self, real: Any, grid: QuantGrid) -> Integers:
        """Quantises floats to a grid."""
        attrs = QuantizeAttrs(grid.scale, grid.zero_point, grid.dtype, rounding=FLOAT32)
        shape = shape_of(real)
        if info_of(real).dtype != "float32":
            real = self.bind(relax.op.astype(real, "float32"), suffix="_float")
        return self.held(get(Quantize)(real, attrs=attrs), shape, grid, identity(len(shape)))

    def dequantized(self, held: Integers) -> Any:
        plain = self.plain(held)
        attrs = DequantizeAttrs(held.grid.scale, held.grid.zero_point)
        return self.bind(get(Dequantize)(plain, attrs=attrs), suffix="_float")

    def as_declared(self, held: Integers, declared: str) -> Any:
        """The integers in the model's own type and order of axes."""
        plain = self.plain(held)
        if declared == held.grid.dtype:
            return plain
        return self.bind(shifted(plain, graphs.OFFSETS[declared], declared), suffix=f"_{declared}")

    def from_declared(self, expr: Any, grid: QuantGrid, declared: str) -> Integers:
        """Holds integers of the model itself: an input, or the result of an integer operator."""
        shape = shape_of(expr)
        if declared == grid.dtype:
            return Integers(shape, grid, identity(len(shape)), expr)
        return self.held(shifted(expr, -graphs.OFFSETS[declared], grid.dtype), shape, grid, identity(len(shape)))

    def widened(self, held: Integers, grid: QuantGrid) -> Integers:
        """The same real numbers in 16 bits: zero point 0, ``WIDER`` steps for each of 8 bits."""
        if held not in self.wide:
            multiplier, shift = float32_scale(graphs.WIDER)
            attrs = RequantizeAttrs(held.grid.zero_point, 0, multiplier, shift, *grid.limits, grid.dtype, FLOAT32)
            layout = identity(held.rank) if held.stored is None else held.layout
            expr = get(Requantize)(self.stored(held, layout), attrs=attrs)
            stored = self.bind(expr, quantisation=grid.quantisation, suffix="_wide")
            self.wide[held] = Integers(held.shape, grid, layout, stored)
        return self.wide[held]

    def narrowed(self, held: Integers, grid: QuantGrid) -> Integers:
        """Narrows 16-bit integers that lie within 8 bits, as a rule's clamp ensures."""
        stored = self.bind(shifted(held.stored, 0, grid.dtype), quantisation=grid.quantisation, suffix="_narrow")
        return Integers(held.shape, grid, held.layout, stored)

    def real(self, expr: Any) -> Any:
        """A variable or tuple of the float model, with its variables replaced by the new ones."""
        if is_var(expr):
            return self.reals[expr]
        if is_tuple(expr):
            return relax.Tuple([self.real(entry) for entry in expr.fields])
        return expr

    def again(self, expr: Any) -> Any:
        """Repeats a call of the float model on the new variables."""
        if is_tuple_get_item(expr):
            return relax.TupleGetItem(self.real(expr.tuple_value), expr.index)
        if not is_call(expr):
            return self.real(expr)
        return relax.Call(expr.op, [self.real(arg) for arg in expr.args], expr.attrs, expr.ty_args)


def shifted(expr: Any, by: int, dtype: str) -> Any:
    """Converts to another type of as many bits without changing the numbers: uint8's 128 is int8's 0."""
    low, high = exact.limits(dtype)
    attrs = RequantizeAttrs(0, by, *UNITY, low, high, dtype)
    return get(Requantize)(expr, attrs=attrs)


# Operators that only move elements: they do to integers what they do to the real numbers.
#
# Maxima are among them, for a larger integer is a larger number. A move keeps the grid; the layout may change.

Move = Callable[[Emitter, Any, Integers], Integers]
Fits = Callable[[Any], bool]

MOVES: dict[str, tuple[Move, Fits]] = {}


def moves(*names: str, when: Fits = lambda call: True) -> Callable[[Move], Move]:
    """Registers how operators move integers, for those calls where ``when`` holds."""

    def add(function: Move) -> Move:
        for name in names:
            MOVES[name] = (function, when)
        return function

    return add


def movement_source(graph: QdqGraph, expr: Any) -> tuple[Any, Any] | None:
    """The call that moves a variable's elements, and where it takes them from; None for operators that compute."""
    bound = graph.definitions.get(expr) if is_var(expr) else None
    if bound is None:
        return None
    if is_tuple_get_item(bound):
        split = graph.call(bound.tuple_value, "relax.split")
        return (split, split.args[0]) if split is not None else None
    if not is_call(bound) or name_of(bound) not in MOVES or not MOVES[name_of(bound)][1](bound):
        return None
    return bound, bound.args[0]


def moved_grid(graph: QdqGraph, expr: Any) -> QuantGrid | None:
    """The grid of a variable that is a quantise or dequantise followed by moves alone; None for any other."""
    while (call := graph.call(expr, operators.DEQUANTIZE, operators.QUANTIZE)) is None:
        step = movement_source(graph, expr)
        if step is None:
            return None
        expr = step[1]
    return graph.grid(call) if graph.value(call.args[0]) is None else None


def integers_of(emitter: Emitter, expr: Any, grid: QuantGrid) -> Integers:
    """The integers of a variable that ``moved_grid`` has a grid for, on this grid.

    The walk goes back to the nearest variable that is integers already, or else to the model's own integers, and then
    repeats the moves forwards; every variable on the way keeps its integers for later readers.
    """
    chain = []
    while expr not in emitter.integers:
        chain.append(expr)
        call = emitter.graph.call(expr, operators.DEQUANTIZE)
        step = (call, call.args[0]) if call is not None else movement_source(emitter.graph, expr)
        if step is None:
            break
        expr = step[1]
    if expr in emitter.integers:
        held = emitter.integers[expr]
    else:
        chain.pop()
        held = emitter.from_declared(emitter.real(expr), grid, info_of(expr).dtype)
    for var in reversed(chain):
        held = _step(emitter, var, held)
        emitter.integers[var] = held
    return emitter.widened(held, grid) if held.grid.dtype != grid.dtype else held.on(grid)


def _step(emitter: Emitter, var: Any, held: Integers) -> Integers:
    call = emitter.graph.call(var, operators.DEQUANTIZE)
    if call is not None:
        grid = emitter.graph.grid(call)
        return held.on(grid) if grid is not None else held
    return move_integers(emitter, var, held)


def move_integers(emitter: Emitter, var: Any, held: Integers) -> Integers:
    """Applies to integers the move that a variable is bound to."""
    before, emitter.layer = emitter.layer, var
    bound = emitter.graph.definitions[var]
    move = _part if is_tuple_get_item(bound) else MOVES[name_of(bound)][0]
    result = move(emitter, bound, held)
    emitter.layer = before
    return result


@moves(operators.PERMUTE)
def _permute(emitter: Emitter, call: Any, held: Integers) -> Integers:
    axes = operators.permuted_axes(call)
    return in_place(emitter, held).permuted(axes)


@moves(*operators.RESHAPING)
def _reshape(emitter: Emitter, call: Any, held: Integers) -> Integers:
    return reshaped(emitter, held, shape_of(call))


def reshaped(emitter: Emitter, held: Integers, shape: Shape) -> Integers:
    """Reshapes integers in the order in which they lie, as far as possible.

    Axes that the reshape splits or joins as a group must lie side by side, in the model's order; the groups themselves
    may lie in any order, and the new axes then lie in that order too. If a transposition is needed just to flatten an
    image to rows, it is put off: a fully connected layer permutes its constant weights instead (``rows_of``).
    """
    if shape == held.shape:
        return held
    held = in_place(emitter, held)
    groups = _as_stored(held, shape)
    beside = tuple(axis for old, _ in groups for axis in old)
    moves = bytes_order(held.shape, held.layout) != bytes_order(held.shape, beside)
    if moves and len(shape) == 2 and shape[0] == held.shape[0] and held.layout[0] == 0:
        return Integers(shape, held.grid, identity(2), None, held)
    source = emitter.stored(held, beside) if moves else held.stored
    layout = tuple(axis for _, new in groups for axis in new)
    result = emitter.held(relax.op.reshape(source, compose(shape, layout)), shape, held.grid, layout)
    emitter.trails[result.stored] = emitter.trail(source)
    return result


def _as_stored(held: Integers, shape: Shape) -> list[tuple[Layout, Layout]]:
    """The groups of axes that a reshape keeps, splits or joins, sorted by where the first axis of each lies."""
    if 0 in shape or () in (shape, held.shape):
        return [(identity(held.rank), identity(len(shape)))]
    order = bytes_order(held.shape, held.layout)

    def place(group: tuple[Layout, Layout]) -> int:
        return min((order.index(axis) for axis in group[0] if axis in order), default=-1)

    return sorted(reshape_groups(held.shape, shape), key=place)


def in_place(emitter: Emitter, held: Integers) -> Integers:
    """Computes a flattening that was put off; any other tensor keeps its layout."""
    if held.stored is not None:
        return held
    return Integers(held.shape, held.grid, identity(held.rank), emitter.plain(held))


@moves("relax.strided_slice", when=lambda call: _numbers(call) is not None)
def _slice(emitter: Emitter, call: Any, held: Integers) -> Integers:
    held = in_place(emitter, held)
    numbers = _numbers(call)
    assert numbers is not None
    axes, begin, end, strides = numbers
    places = [held.layout.index(axis % held.rank) for axis in axes]
    expr = relax.op.strided_slice(held.stored, places, begin, end, strides)
    return emitter.held(expr, shape_of(call), held.grid, held.layout)


def _numbers(call: Any) -> list[list[int]] | None:
    """Axes, begins, ends and strides of a slice; None where they are not all known."""
    lists = []
    for arg in call.args[1:5]:
        if not is_tuple(arg):
            return None
        try:
            lists.append([int(entry) for entry in arg.fields])
        except (TypeError, ValueError):
            return None
    if len(lists) == 3:
        lists.append([1] * len(lists[0]))
    return lists if len(lists) == 4 else None


def _part(emitter: Emitter, item: Any, held: Integers) -> Integers:
    """One result of a split; the split is emitted once for each layout."""
    held = in_place(emitter, held)
    call = emitter.graph.definitions[item.tuple_value]
    axis = int(call.attrs.axis) % held.rank
    shapes = [tuple(int(extent) for extent in entry.shape.values) for entry in call.ty.fields]
    key = (item.tuple_value, held.layout)
    if key not in emitter.laid:
        sections = list(np.cumsum([shape[axis] for shape in shapes])[:-1].tolist())
        expr = relax.op.split(held.stored, sections, held.layout.index(axis))
        emitter.laid[key] = emitter.bind(expr, suffix="_parts")
    index = int(item.index)
    expr = relax.TupleGetItem(emitter.laid[key], index)
    return emitter.held(expr, shapes[index], held.grid, held.layout)


# Pads that repeat the tensor's own elements, by numpy's names.
MIRRORS: Final[Mapping[str, Literal["reflect", "edge"]]] = {"reflect": "reflect", "replicate": "edge"}


def _pads(call: Any) -> bool:
    return operators.pads_with_number(call) or str(call.attrs.pad_mode) in MIRRORS


@moves(operators.PAD, when=_pads)
def _pad(emitter: Emitter, call: Any, held: Integers) -> Integers:
    held = in_place(emitter, held)
    shape, mode = shape_of(call), str(call.attrs.pad_mode)
    if mode not in MIRRORS:
        value = held.grid.held(float(call.attrs.pad_value))
        expr = relax.op.nn.pad(held.stored, operators.moved_widths(call, held.layout), "constant", float(value))
        return emitter.held(expr, shape, held.grid, held.layout)
    for axis in range(held.rank):
        before, behind = (int(width) for width in call.attrs.pad_width[2 * axis : 2 * axis + 2])
        if before or behind:
            wide = (*held.shape[:axis], shape[axis], *held.shape[axis + 1 :])
            places = np.pad(np.arange(held.shape[axis]), (before, behind), MIRRORS[mode])
            expr = relax.op.take(held.stored, constant(places.astype(np.int32)), axis=held.layout.index(axis))
            held = emitter.held(expr, wide, held.grid, held.layout)
    return held


@moves("relax.take", when=lambda call: is_constant(call.args[1]))
def _take(emitter: Emitter, call: Any, held: Integers) -> Integers:
    axis = int(call.attrs.axis) % held.rank if call.attrs.axis is not None else 0
    indices, shape = np.asarray(call.args[1].value.numpy()), shape_of(call)
    wrapped = constant(np.where(indices < 0, indices + held.shape[axis], indices).astype(indices.dtype))
    if indices.ndim > 1:
        return emitter.held(relax.op.take(emitter.plain(held), wrapped, axis), shape, held.grid, identity(len(shape)))
    held = in_place(emitter, held)
    layout = held.layout if indices.ndim else without(held.layout, [axis])
    return emitter.held(relax.op.take(held.stored, wrapped, held.layout.index(axis)), shape, held.grid, layout)


@moves("relax.tile", "relax.repeat", "relax.broadcast_to")
def _repeat(emitter: Emitter, call: Any, held: Integers) -> Integers:
    args = [emitter.plain(held), *call.args[1:]]
    expr = relax.Call(call.op, args, call.attrs, call.ty_args)
    shape = shape_of(call)
    return emitter.held(expr, shape, held.grid, identity(len(shape)))


@moves("relax.flip")
def _flip(emitter: Emitter, call: Any, held: Integers) -> Integers:
    held = in_place(emitter, held)
    axis = held.layout.index(int(call.attrs.axis) % held.rank)
    return emitter.held(relax.op.flip(held.stored, axis), held.shape, held.grid, held.layout)


def _is_nearest(call: Any) -> bool:
    given = graphs.attributes(call)
    return given.method == "nearest_neighbor" and given.layout == "NCHW" and not any(map(float, given.roi or ()))


@moves("relax.image.resize2d", when=_is_nearest)
def _nearest(emitter: Emitter, call: Any, held: Integers) -> Integers:
    given = graphs.attributes(call)
    layout = graphs.CHANNELS_LAST[4]
    shape = shape_of(call)
    expr = relax.op.image.resize2d(
        emitter.stored(held, layout),
        size=shape[2:],
        layout="NHWC",
        method=given.method,
        coordinate_transformation_mode=given.coordinate_transformation_mode,
        rounding_method=given.rounding_method,
    )
    return emitter.held(expr, shape, held.grid, layout)


EXTREMES: dict[str, type[ReduceMax] | type[ReduceMin]] = {"relax.max": ReduceMax, "relax.min": ReduceMin}


@moves(*EXTREMES)
def _extreme(emitter: Emitter, call: Any, held: Integers) -> Integers:
    held = in_place(emitter, held)
    given = graphs.attributes(call)
    axes = sorted({int(axis) % held.rank for axis in given.axis}) if given.axis is not None else identity(held.rank)
    places = tuple(sorted(held.layout.index(axis) for axis in axes))
    expr = get(EXTREMES[name_of(call)])(held.stored, attrs=ReduceAttrs(places, bool(given.keepdims)))
    layout = held.layout if given.keepdims else without(held.layout, axes)
    return emitter.held(expr, shape_of(call), held.grid, layout)


def without(layout: Layout, axes: Sequence[int]) -> Layout:
    """The layout once ``axes`` are gone, with the axes that are left numbered anew."""
    left = [axis for axis in identity(len(layout)) if axis not in axes]
    return tuple(left.index(axis) for axis in layout if axis not in axes)


def _pools(call: Any) -> bool:
    return graphs.attributes(call).layout in ("NCHW", "NCW")


@moves("relax.nn.max_pool1d", "relax.nn.max_pool2d", when=_pools)
def _max_pool(emitter: Emitter, call: Any, held: Integers) -> Integers:
    window = pool_windows(call)
    data, limits, shape = image_of(emitter, held), held.grid.limits, shape_of(call)
    inside = all(pad < size for pad, size in zip(window.padding, window.kernel * 2, strict=True))
    if inside and window.dilation == (1, 1):
        expr = get(MaxPool2d)(data, attrs=PoolAttrs(window.kernel, window.strides, window.padding, *limits))
    else:
        lies = (window.kernel, window.strides, window.padding, window.dilation)
        expr = get(WindowMax)(data, attrs=WindowAttrs(*lies, *limits))
    return emitter.held(of_image(emitter, expr, shape), shape, held.grid, graphs.CHANNELS_LAST[len(shape)])


def image_of(emitter: Emitter, held: Integers) -> Any:
    """The tensor as NHWC, with a height (and width) of 1 where the model has none."""
    data = emitter.channels_last(held)
    if held.rank == 4:
        return data
    batch, channels, *length = held.shape
    expr = relax.op.reshape(data, (batch, 1, *(length or [1]), channels))
    return emitter.bind(expr, quantisation=held.grid.quantisation, suffix="_rows")


def of_image(emitter: Emitter, expr: Any, shape: Shape) -> Any:
    """Undoes ``image_of`` for a result: channels stay last, the axes are as many as the model's."""
    if len(shape) == 4:
        return expr
    return relax.op.reshape(emitter.bind(expr, suffix="_rows"), (shape[0], *shape[2:], shape[1]))


def pool_windows(call: Any) -> SlidingWindow:
    """The windows of a pool, with the padding on four sides; one of one axis has a height of 1.

    Bottom and right follow from the result's shape, not from the attribute: with ``ceil_mode`` the last window may
    reach beyond the declared padding, and padding that no window reaches is left out.
    """
    attrs = graphs.attributes(call)
    sides = [tuple(map(int, part)) for part in (attrs.pool_size, attrs.strides, attrs.dilation)]
    given, result = shape_of(call.args[0])[2:], shape_of(call)[2:]
    first = [int(pad) for pad in attrs.padding[: len(given)]]
    if len(given) == 1:
        sides, given, result, first = [(1, *side) for side in sides], (1, *given), (1, *result), [0, *first]
    kernel, strides, dilation = sides
    window = SlidingWindow(kernel, strides, dilation, tuple(first))
    behind = (max(0, window.extent(axis, result[axis]) - given[axis] - first[axis]) for axis in (0, 1))
    return replace(window, padding=(*first, *behind))
