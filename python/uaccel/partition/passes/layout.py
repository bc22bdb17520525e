"""Chooses in which order of axes each tensor lies, so that few bytes are permuted when the model runs.

Accelerators that want other layouts than the model's are surrounded by permutes. Between two of them there are often
only operators that do not mind the order of axes. `CancelTransposes` reads the module into nodes without permutes,
`choose_layouts` gives each node a layout, and `_Writer` writes the module again with the permutes that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from uaccel import tvm_api
from uaccel.model import TensorInfo, UniqueNames
from uaccel.ops import operator as operators
from uaccel.ops.operator import constant, info_of, name_of
from uaccel.ops.storage import Layout, bytes_order, compose, identity, inverse, layout_name
from uaccel.tvm_api import is_call, is_constant, is_var, relax

# The choice of layouts. Permutes are no nodes: a tensor that a permute gives is its source, seen in another order. What
# remains are nodes that hold a tensor, and readers that want it in some order; each order that is wanted and not held
# costs a permute. Nodes that are ``free`` may hold their result in any layout, and then want their inputs in the
# corresponding one.
#
# It is a local search. One node alone rarely gains: its permute merely moves from its input to its result. So a change
# grows from one node to its neighbours, always to where it costs least, even if that is dearer for a while. In the end
# it is cut back to the point at which the total was least. A change is kept only where it lowers the total cost, so the
# search ends. It need not find the best layouts of all.

# Nodes by which a change grows without having become better. Without the limit each start would visit a whole graph.
PATIENCE = 64

Cost = tuple[int, int]  # Bytes moved, then the number of permutes, also of those that move no bytes: compared in turn.


@dataclass(frozen=True)
class LayoutUse:
    """Describes a reading of a node's tensor: with the axes of the original module permuted by ``order``."""

    node: LayoutNode
    order: Layout


@dataclass(eq=False)
class LayoutNode:
    """Represents a tensor that is computed or given; ``expr`` is what it is bound to, None for a parameter.

    ``info`` is its type, in the original module's order of axes; None for a tuple. ``layout`` is the order in which it
    is held. ``readers`` are pairs (free node, order); in place of a reader that is not free there is None.
    """

    name: str
    info: TensorInfo | None
    expr: Any = None
    free: bool = False
    inputs: tuple[LayoutUse, ...] = ()
    readers: list[tuple[LayoutNode | None, Layout]] = field(default_factory=list)
    layout: Layout = ()

    def __post_init__(self) -> None:
        self.layout = identity(len(self.info.shape) if self.info else 0)

    def bytes_order(self, layout: Layout) -> Layout:
        """Returns what layouts with the same bytes have in common: axes of one element may lie anywhere."""
        return bytes_order(self.info.shape if self.info else (), layout)

    def wanted(self) -> set[Layout]:
        """Returns the layouts in which the tensor is read. A free reader that sees it in ``order`` and holds its own
        result in layout L reads ``compose(order, L)``."""
        return {compose(order, reader.layout) if reader else order for reader, order in self.readers}

    def cost(self) -> Cost:
        missing = self.wanted() - {self.layout}
        moved = {self.bytes_order(layout) for layout in missing} - {self.bytes_order(self.layout)}
        return len(moved) * (self.info.size if self.info else 0), len(missing)

    def read_by(self, reader: LayoutNode | None, order: Layout) -> None:
        self.readers.append((reader if reader is not None and reader.free else None, order))


def choose_layouts(nodes: Sequence[LayoutNode]) -> None:
    """Changes the nodes' layouts wherever that moves fewer bytes, or as many with fewer permutes."""
    free = [node for node in nodes if node.free]
    gained = True
    while gained:  # Again, as one change may let another one pay.
        gained = sum(_grow(node, layout) for node in free for layout in _candidates(node)) > 0


def total_cost(nodes: Iterable[LayoutNode]) -> Cost:
    costs = [node.cost() for node in nodes]
    return sum(moved for moved, _ in costs), sum(count for _, count in costs)


def _candidates(node: LayoutNode) -> list[Layout]:
    """Lists the layouts in which a permute before or after the node would not be needed."""
    before = [compose(inverse(use.order), use.node.layout) for use in node.inputs]
    return [layout for layout in dict.fromkeys([*before, *sorted(node.wanted())]) if layout != node.layout]


def _neighbours(node: LayoutNode) -> Iterator[tuple[LayoutNode, Layout]]:
    """Yields the free nodes around one, each with the layout that needs no permute between the two."""
    for use in node.inputs:
        if use.node.free:
            yield use.node, compose(use.order, node.layout)
    for reader, order in node.readers:
        if reader is not None:
            yield reader, compose(inverse(order), node.layout)


def _grow(seed: LayoutNode, layout: Layout) -> bool:
    """Changes a node and then its neighbours; returns whether that paid. Where it did not, everything is as it was.
    ``before`` holds the old layouts in order of change, and ``kept`` how many of the changes gave the least total: the
    others are undone."""
    before: dict[LayoutNode, Layout] = {}
    around: dict[LayoutNode, Layout] = {seed: layout}
    best, total, kept = (0, 0), (0, 0), 0
    while around and len(before) - kept < PATIENCE:
        node = _cheapest(around)
        wanted = around.pop(node)
        before[node] = node.layout
        total = _sum(total, _change(node, wanted))
        if total < best:
            best, kept = total, len(before)
        steps = dict(_neighbours(node))
        around |= {other: order for other, order in steps.items() if other not in before and other.layout != order}
    for node, old in list(before.items())[kept:]:
        node.layout = old
    return kept > 0


def _cheapest(around: dict[LayoutNode, Layout]) -> LayoutNode:
    """Returns the node whose change costs least, or the first found that costs nothing."""
    prices = {}
    for node, layout in around.items():
        prices[node] = _price(node, layout)
        if prices[node] <= (0, 0):
            return node
    return min(prices, key=lambda node: prices[node])


def _price(node: LayoutNode, layout: Layout) -> Cost:
    old = node.layout
    price = _change(node, layout)
    node.layout = old
    return price


def _change(node: LayoutNode, layout: Layout) -> Cost:
    """Sets a node's layout and returns what the whole costs more than before: the node's own and its inputs' costs."""
    touched = {node, *(use.node for use in node.inputs)}
    moved, count = total_cost(touched)
    node.layout = layout
    return _sum(total_cost(touched), (-moved, -count))


def _sum(first: Cost, second: Cost) -> Cost:
    return first[0] + second[0], first[1] + second[1]


# Rules: operators that do the same work in any order of axes, and how the call is written for another order.

SLICE: Final = "relax.strided_slice"
MOST_AXES = 6  # The axes that kernels of broadcasting operators have loops for.


@dataclass(frozen=True)
class Rule:
    """States how a call takes another order of axes.

    ``carried`` gives the arguments that have the result's axes, or are tuples of such. ``rebuilt`` writes the call for
    arguments in a layout.
    """

    carried: Callable[[Any], tuple[int, ...]]
    rebuilt: Callable[[Any, list[Any], Layout], Any]


def rule_of(call: Any) -> Rule | None:
    """Returns the rule of a call; None where the order of axes matters to it."""
    elementwise, operator = operators.elementwise_of(call), operators.operator_of(call)
    if elementwise is not None:
        each = elementwise is operators.Elementwise.EACH
        return Rule(
            _tensors if each else _first, lambda call, args, _: relax.Call(call.op, args, call.attrs, call.ty_args)
        )
    if name_of(call) == operators.PAD:
        return Rule(_first, _pad)
    if operator is not None:
        return Rule(_first, _with_axis) if operator.channel_axis else None
    rebuilt = _ALONG_AXES.get(name_of(call))
    return Rule(_first, rebuilt) if rebuilt is not None and _keeps_axes(call) else None


def _keeps_axes(call: Any) -> bool:
    """Says whether a reduction keeps its axes, with one element each, or the places of a slice are known."""
    known = name_of(call) != SLICE or all(map(tvm_api.is_tuple, call.args[1:]))
    return known and bool(getattr(call.attrs, "keepdims", True))


def _tensors(call: Any) -> tuple[int, ...]:
    return tuple(i for i, arg in enumerate(call.args) if is_var(arg) or is_constant(arg))


def _first(_call: Any) -> tuple[int, ...]:
    return (0,)


def _pad(call: Any, args: list[Any], layout: Layout) -> Any:
    return relax.op.nn.pad(
        args[0], operators.moved_widths(call, layout), call.attrs.pad_mode, float(call.attrs.pad_value)
    )


def _with_axis(call: Any, args: list[Any], layout: Layout) -> Any:
    operator = operators.operator_of(call)
    assert operator is not None
    attrs: Any = operator.attrs_of(call)
    axis = layout.index(getattr(attrs, operator.channel_axis))
    return operator(*args, attrs=replace(attrs, **{operator.channel_axis: axis}))


def _slice(call: Any, args: list[Any], layout: Layout) -> Any:
    axes = [_moved(axis, layout) for axis in args[1].fields]
    return relax.op.strided_slice(args[0], axes, *args[2:], assume_inbound=bool(call.attrs.assume_inbound))


def _reduced(call: Any, args: list[Any], layout: Layout) -> Any:
    """Rebuilds a reduction over the same axes, in the order in which the model names them."""
    given = call.attrs.axis
    axes = range(len(layout)) if given is None else given
    make = getattr(relax.op, name_of(call).removeprefix("relax."))
    return make(args[0], [_moved(axis, layout) for axis in axes], keepdims=True)


def _group_norm(call: Any, args: list[Any], layout: Layout) -> Any:
    attrs = call.attrs
    axes = [_moved(axis, layout) for axis in attrs.axes]
    axis = _moved(attrs.channel_axis, layout)
    return relax.op.nn.group_norm(*args, int(attrs.num_groups), axis, axes, float(attrs.epsilon))


def _moved(axis: Any, layout: Layout) -> int:
    return layout.index(int(axis) % len(layout))


# Operators of Relax that name axes, which become their places in the layout.
_ALONG_AXES: Final[Mapping[str, Callable[[Any, list[Any], Layout], Any]]] = {
    "relax.concat": lambda call, args, layout: relax.op.concat(args[0], _moved(call.attrs.axis or 0, layout)),
    SLICE: _slice,
    "relax.nn.softmax": lambda call, args, layout: relax.op.nn.softmax(args[0], _moved(call.attrs.axis, layout)),
    "relax.nn.prelu": lambda call, args, layout: relax.op.nn.prelu(*args, axis=_moved(call.attrs.axis, layout)),
    "relax.nn.group_norm": _group_norm,
    **dict.fromkeys((f"relax.{name}" for name in ("max", "mean", "min", "sum")), _reduced),
}


def constant_in(value: Any, layout: Layout) -> Any:
    """Transposes a constant operand for a result in a layout; it may lack leading axes, as broadcasting allows."""
    array = np.asarray(value.value.numpy())
    if array.size == 1:
        return value
    full = array.reshape((1,) * (len(layout) - array.ndim) + array.shape)
    return constant(full.transpose(layout))


# The pass: the module is read into nodes, and written again with the layouts that were chosen.


@dataclass(frozen=True)
class LayoutsChanged:
    """Holds the new module; ``origins`` has the old binding's name for a binding that holds its tensor permuted.

    A binding with a name of the old module holds what that held. It is among the keys, too, where the old binding was a
    permute, and an operator now computes its value in that layout at once.
    """

    module: Any
    origins: Mapping[str, str]


@dataclass(frozen=True)
class CancelTransposes:
    """Removes permutes. The module afterwards means the same and permutes no more bytes than before."""

    name: str = "cancel_transposes"

    def __call__(self, module: Any) -> Any:
        return self.run(module).module

    def run(self, module: Any) -> LayoutsChanged:
        """Returns the module, and what became of its bindings' names."""
        if not any(is_permute(expr) for _, expr in tvm_api.main_bindings(module)[1]):
            return LayoutsChanged(module, {})
        graph = _read(module)
        choose_layouts(graph.nodes)
        return _Writer(module, graph).run()


def is_permute(expr: Any) -> bool:
    return is_call(expr) and name_of(expr) == operators.PERMUTE


# The value of an expression: a ``Use``, a tuple of such, or the expression itself where it has no variables.
Known = Any


@dataclass
class _Graph:
    """Holds the nodes, the values of variables, and the module's names of a node's tensor in an order."""

    nodes: list[LayoutNode] = field(default_factory=list)
    known: dict[Any, Known] = field(default_factory=dict)
    names: dict[tuple[LayoutNode, Layout], str] = field(default_factory=dict)

    def of(self, expr: Any) -> Known:
        """Returns the value of an expression."""
        if is_var(expr):
            return self.known[expr]
        return tuple(self.of(entry) for entry in expr.fields) if tvm_api.is_tuple(expr) else expr

    def add(self, var: Any, node: LayoutNode) -> LayoutUse:
        self.nodes.append(node)
        self.names[node, node.layout] = node.name
        self.known[var] = use = LayoutUse(node, node.layout)
        return use


def _read(module: Any) -> _Graph:
    graph = _Graph()
    parameters, bindings = tvm_api.main_bindings(module)
    for var in parameters:
        graph.add(var, _node(var, None))
    for var, expr in bindings:
        if is_permute(expr):
            graph.known[var] = _permuted(graph, var, graph.of(expr.args[0]), operators.permuted_axes(expr))
        elif tvm_api.is_tuple_get_item(expr) and isinstance(graph.of(expr.tuple_value), tuple):
            graph.known[var] = graph.of(expr.tuple_value)[int(expr.index)]
        elif is_call(expr) or tvm_api.is_tuple_get_item(expr):
            _add_node(graph, var, expr)
        else:
            graph.known[var] = graph.of(expr)
    _read_as_it_is(graph.of(tvm_api.main_result(module)))
    return graph


def _node(var: Any, expr: Any, inputs: tuple[LayoutUse, ...] = ()) -> LayoutNode:
    info = None if hasattr(var.ty, "fields") else info_of(var)
    return LayoutNode(var.name, info, expr, bool(inputs), inputs)


def _permuted(graph: _Graph, var: Any, source: Known, axes: Layout) -> Known:
    if not isinstance(source, LayoutUse):
        return constant(np.asarray(source.value.numpy()).transpose(axes))
    use = LayoutUse(source.node, compose(source.order, axes))
    graph.names.setdefault((use.node, use.order), var.name)
    return use


def _add_node(graph: _Graph, var: Any, expr: Any) -> None:
    arguments = [graph.of(arg) for arg in (expr.args if is_call(expr) else [expr.tuple_value])]
    node = _node(var, expr, _carried(var, expr, arguments))
    graph.add(var, node)
    for use in node.inputs:
        use.node.read_by(node, use.order)
    others = (each for argument in arguments for each in _each(argument))
    _read_as_it_is(tuple(other for other in others if not any(other is use for use in node.inputs)))


def _each(argument: Known) -> tuple[Known, ...]:
    return argument if isinstance(argument, tuple) else (argument,)


def _carried(var: Any, expr: Any, arguments: list[Known]) -> tuple[LayoutUse, ...]:
    """Returns the operands that take the layout of the result; none where it cannot be chosen."""
    rule = rule_of(expr) if is_call(expr) else None
    rank = len(var.ty.shape.values) if rule else 0
    if rule is None or rank > MOST_AXES:
        return ()
    operands = [operand for i in rule.carried(expr) for operand in _each(arguments[i])]
    uses = tuple(operand for operand in operands if isinstance(operand, LayoutUse))
    known = all(isinstance(operand, LayoutUse) or is_constant(operand) for operand in operands)
    return uses if known and all(len(use.order) == rank for use in uses) else ()


def _read_as_it_is(value: Known) -> None:
    if isinstance(value, LayoutUse):
        value.node.read_by(None, value.order)
    elif isinstance(value, tuple):
        for entry in value:
            _read_as_it_is(entry)


class _Writer:
    """Binds the module anew, every node in the layout that was chosen for it."""

    def __init__(self, module: Any, graph: _Graph) -> None:
        self.module = module
        self.graph = graph
        self.builder = relax.BlockBuilder()
        self.taken = UniqueNames()
        self.origins: dict[str, str] = {}
        self.bound: dict[LayoutNode, dict[Layout, Any]] = {}

    def run(self) -> LayoutsChanged:
        parameters, bindings = tvm_api.main_bindings(self.module)
        for var in (*parameters, *(var for var, _ in bindings)):
            self.taken.take(var.name)
        with self.builder.function("main", parameters):
            with self.builder.dataflow():
                for node, var in zip(self.graph.nodes, parameters, strict=False):
                    self.bound[node] = {node.layout: var}
                for node in self.graph.nodes[len(parameters) :]:
                    self._bind(node)
                result = self.builder.emit_output(self._as_it_is(self.graph.of(tvm_api.main_result(self.module))))
            self.builder.emit_func_output(result)
        return LayoutsChanged(_with_main(self.module, self.builder.get()["main"]), self.origins)

    def _bind(self, node: LayoutNode) -> None:
        name = self._name(node, node.layout)
        if node.layout != identity(len(node.layout)):
            self.origins[name] = node.name
        self.bound[node] = {node.layout: self.builder.emit(self._expr(node), name_hint=name)}

    def _expr(self, node: LayoutNode) -> Any:
        expr = node.expr
        if tvm_api.is_tuple_get_item(expr):
            return relax.TupleGetItem(self._as_it_is(self.graph.of(expr.tuple_value)), expr.index)
        arguments = [self.graph.of(arg) for arg in expr.args]
        rule = rule_of(expr) if node.free else None
        if rule is None:
            args = [self._as_it_is(argument) for argument in arguments]
            return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        carried = rule.carried(expr)
        args = [
            self._in_layout(argument, node.layout) if i in carried else self._as_it_is(argument)
            for i, argument in enumerate(arguments)
        ]
        return rule.rebuilt(expr, args, node.layout)

    def _in_layout(self, operand: Known, layout: Layout) -> Any:
        if isinstance(operand, tuple):
            return relax.Tuple([self._in_layout(each, layout) for each in operand])
        if isinstance(operand, LayoutUse):
            return self._tensor(operand.node, compose(operand.order, layout))
        return operand if layout == identity(len(layout)) else constant_in(operand, layout)

    def _as_it_is(self, value: Known) -> Any:
        if isinstance(value, tuple):
            return relax.Tuple([self._as_it_is(entry) for entry in value])
        return self._tensor(value.node, value.order) if isinstance(value, LayoutUse) else value

    def _tensor(self, node: LayoutNode, layout: Layout) -> Any:
        """Returns the variable with a node's tensor in a layout, permuted where that is wanted for the first time. One
        with the same bytes is the source if there is any: such a permute moves nothing."""
        bound = self.bound[node]
        if layout not in bound:
            same_bytes = (held for held in bound if node.bytes_order(held) == node.bytes_order(layout))
            source = next(same_bytes, node.layout)
            name = self._name(node, layout)
            if (node, layout) not in self.graph.names:
                self.origins[name] = node.name
            permute = relax.op.permute_dims(bound[source], compose(inverse(source), layout))
            bound[layout] = self.builder.emit(permute, name_hint=name)
        return bound[layout]

    def _name(self, node: LayoutNode, layout: Layout) -> str:
        """Returns the module's name of these values in this layout, or one made of the node's where it had none."""
        known = self.graph.names.get((node, layout))
        return known if known is not None else self.taken.take(f"{node.name}_{layout_name(layout)}")


def _with_main(module: Any, main: Any) -> Any:
    """Returns the module with another ``main``; its other functions stay as they are."""
    changed = tvm_api.tvm.IRModule(dict(module.functions.items()), attrs=module.attrs)
    changed.update_func(module.get_global_var("main"), main)
    return changed
