"""Layout changes that meet their opposite vanish, across whatever does not mind the order of axes.

Accelerators that want other layouts than the model's are surrounded by permutes. Adjacent ones become one, those that
change nothing go, and those with only elementwise operators and pads between them are moved together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uaccel.model import UniqueNames
from uaccel.ops.axes import Layout, compose, identity, inverse, layout_name
from uaccel.ops.base import constant, info_of
from uaccel.ops.traits import PERMUTE, name_of, permuted_axes
from uaccel.partition.layout_choice import Node, Use, choose_layouts
from uaccel.partition.layout_rules import MOST_AXES, constant_in, rule_of
from uaccel.tvm_api import (
    is_call,
    is_constant,
    is_tuple,
    is_tuple_get_item,
    is_var,
    main_bindings,
    main_result,
    relax,
    tvm,
)


@dataclass(frozen=True)
class LayoutsChanged:
    """``origins``: for a binding that holds in another layout what one of the old module held, the latter's name.

    Bindings that have a name of the old module hold what it held there. Such a name is among the keys where another
    operator gives the value now: what a permute of the old module gave, and is computed in that layout at once.
    """

    module: Any
    origins: Mapping[str, str]


@dataclass(frozen=True)
class CancelTransposes:
    """Before: any module. After: one that means the same and permutes no more bytes when it runs."""

    name: str = "cancel_transposes"

    def __call__(self, module: Any) -> Any:
        return self.run(module).module

    def run(self, module: Any) -> LayoutsChanged:
        """The module, and what became of its bindings' names."""
        if not any(is_permute(expr) for _, expr in main_bindings(module)[1]):
            return LayoutsChanged(module, {})
        graph = _read(module)
        choose_layouts(graph.nodes)
        return _Writer(module, graph).run()


def is_permute(expr: Any) -> bool:
    return is_call(expr) and name_of(expr) == PERMUTE


Known = Any
"""What an expression stands for: a ``Use``, a tuple of such, or the expression itself where it has no variables."""


@dataclass
class _Graph:
    """``names``: what the module calls a node's tensor in an order."""

    nodes: list[Node] = field(default_factory=list)
    known: dict[Any, Known] = field(default_factory=dict)
    names: dict[tuple[Node, Layout], str] = field(default_factory=dict)

    def of(self, expr: Any) -> Known:
        """Variables replaced by what they stand for."""
        if is_var(expr):
            return self.known[expr]
        return tuple(self.of(entry) for entry in expr.fields) if is_tuple(expr) else expr

    def add(self, var: Any, node: Node) -> Use:
        self.nodes.append(node)
        self.names[node, node.layout] = node.name
        self.known[var] = use = Use(node, node.layout)
        return use


def _read(module: Any) -> _Graph:
    graph = _Graph()
    parameters, bindings = main_bindings(module)
    for var in parameters:
        graph.add(var, _node(var, None))
    for var, expr in bindings:
        if is_permute(expr):
            graph.known[var] = _permuted(graph, var, graph.of(expr.args[0]), permuted_axes(expr))
        elif is_tuple_get_item(expr) and isinstance(graph.of(expr.tuple_value), tuple):
            graph.known[var] = graph.of(expr.tuple_value)[int(expr.index)]
        elif is_call(expr) or is_tuple_get_item(expr):
            _add_node(graph, var, expr)
        else:
            graph.known[var] = graph.of(expr)
    _read_as_it_is(graph.of(main_result(module)))
    return graph


def _node(var: Any, expr: Any, inputs: tuple[Use, ...] = ()) -> Node:
    info = None if hasattr(var.ty, "fields") else info_of(var)
    return Node(var.name, info, expr, bool(inputs), inputs)


def _permuted(graph: _Graph, var: Any, source: Known, axes: Layout) -> Known:
    if not isinstance(source, Use):
        return constant(np.asarray(source.value.numpy()).transpose(axes))
    use = Use(source.node, compose(source.order, axes))
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


def _carried(var: Any, expr: Any, arguments: list[Known]) -> tuple[Use, ...]:
    """The operands that take the layout of the result; none where it cannot be chosen."""
    rule = rule_of(expr) if is_call(expr) else None
    rank = len(var.ty.shape.values) if rule else 0
    if rule is None or rank > MOST_AXES:
        return ()
    operands = [operand for i in rule.carried(expr) for operand in _each(arguments[i])]
    uses = tuple(operand for operand in operands if isinstance(operand, Use))
    known = all(isinstance(operand, Use) or is_constant(operand) for operand in operands)
    return uses if known and all(len(use.order) == rank for use in uses) else ()


def _read_as_it_is(value: Known) -> None:
    if isinstance(value, Use):
        value.node.read_by(None, value.order)
    elif isinstance(value, tuple):
        for entry in value:
            _read_as_it_is(entry)


class _Writer:
    """The module bound anew, every node in the layout that was chosen for it."""

    def __init__(self, module: Any, graph: _Graph) -> None:
        self.module = module
        self.graph = graph
        self.builder = relax.BlockBuilder()
        self.taken = UniqueNames()
        self.origins: dict[str, str] = {}
        self.bound: dict[Node, dict[Layout, Any]] = {}

    def run(self) -> LayoutsChanged:
        parameters, bindings = main_bindings(self.module)
        for var in (*parameters, *(var for var, _ in bindings)):
            self.taken.take(var.name)
        with self.builder.function("main", parameters):
            with self.builder.dataflow():
                for node, var in zip(self.graph.nodes, parameters, strict=False):
                    self.bound[node] = {node.layout: var}
                for node in self.graph.nodes[len(parameters) :]:
                    self._bind(node)
                result = self.builder.emit_output(self._as_it_is(self.graph.of(main_result(self.module))))
            self.builder.emit_func_output(result)
        return LayoutsChanged(_with_main(self.module, self.builder.get()["main"]), self.origins)

    def _bind(self, node: Node) -> None:
        name = self._name(node, node.layout)
        if node.layout != identity(len(node.layout)):
            self.origins[name] = node.name
        self.bound[node] = {node.layout: self.builder.emit(self._expr(node), name_hint=name)}

    def _expr(self, node: Node) -> Any:
        expr = node.expr
        if is_tuple_get_item(expr):
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
        if isinstance(operand, Use):
            return self._tensor(operand.node, compose(operand.order, layout))
        return operand if layout == identity(len(layout)) else constant_in(operand, layout)

    def _as_it_is(self, value: Known) -> Any:
        if isinstance(value, tuple):
            return relax.Tuple([self._as_it_is(entry) for entry in value])
        return self._tensor(value.node, value.order) if isinstance(value, Use) else value

    def _tensor(self, node: Node, layout: Layout) -> Any:
        """The variable that holds a node's tensor in a layout; permuted where it is wanted for the first time."""
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

    def _name(self, node: Node, layout: Layout) -> str:
        """What the module calls these values in this layout; where it did not have them, a name made of the node's."""
        known = self.graph.names.get((node, layout))
        return known if known is not None else self.taken.take(f"{node.name}_{layout_name(layout)}")


def _with_main(module: Any, main: Any) -> Any:
    """The module with another ``main``; its other functions stay as they are."""
    changed = tvm.IRModule(dict(module.functions.items()), attrs=module.attrs)
    changed.update_func(module.get_global_var("main"), main)
    return changed
