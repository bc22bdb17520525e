"""Converts If, Loop and Scan to C of ``if`` and ``while``, and operators that reverse or update sequences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.checks import need_axis
from uaccel.frontend.onnx.converter import Context, Expr, converts
from uaccel.frontend.onnx.functions import taken
from uaccel.frontend.onnx.graph import Node, OnnxGraph, onnx_package
from uaccel.frontend.onnx.reader import node_of
from uaccel.model import Array, TensorInfo, TensorSpec
from uaccel.ops.control import IF, WHILE, If, While, control_attrs
from uaccel.ops.operator import constant, get, info_of
from uaccel.tvm_api import relax

# If, Loop and Scan: each graph inside the node becomes a function.
#
# The function takes the graph's inputs, and the tensors that it reads of the graphs around it. Tensors known at import
# are constants inside, too.
#
# Loop and Scan become one While, whose two functions have the same parameters: what is carried from turn to turn, then
# what is read from around. One function says whether another turn follows. The other gives the next parameters, and
# passes on unchanged what is around. Carried are, in this order: the number of the turn, the loop's own tensors, its
# condition if that may end it, and the rows collected so far.

TURN, NEXT, MOST, LAST, PLACE = "(turn)", "(next turn)", "(most turns)", "(last)", "(place)"
ONE, FIRST_AXIS, ONE_INDEX = "(one)", "(first axis)", "(one index)"
# Constants that nodes added to a loop read. Parentheses keep added names apart from those of files.
NUMBERS: Final = {ONE: np.asarray(1), FIRST_AXIS: np.asarray([0]), ONE_INDEX: np.asarray([1, 1])}


@converts("If")
def branch(context: Context, node: Node) -> list[Expr]:
    """If: the nodes of one branch where the condition is known, else a call with both as functions."""
    condition = context.known(node.required_input(0))
    if condition is not None:
        return taken(context, node, "then_branch" if bool(condition) else "else_branch")
    branches = [node.attributes[name] for name in ("then_branch", "else_branch")]
    around = _Around.of(context, [name for graph in branches for name in _read(graph.node, graph)])
    modules = []
    for graph in branches:
        outputs = [value.name for value in graph.output]
        constants = around.known | _initialisers(graph)
        modules.append(_inside(context, list(graph.node), constants, around.specs, outputs)[0])
    call = get(If)(context.expr(node.required_input(0)), *around.exprs, attrs=control_attrs(IF, *modules))
    return _fields(context, node, call, len(branches[0].output))


@converts("Loop")
def loop(context: Context, node: Node) -> list[Expr]:
    """Loop: turns up to a count, while a condition holds.

    Where turns give rows of a result, its shape needs a known count, and a condition that holds in all turns.
    """
    body = node.attributes["body"]
    taken_in, given = [value.name for value in body.input], [value.name for value in body.output]
    count, (most, begins) = len(node.inputs) - 2, (node.optional_input(place) for place in range(2))
    need(len(taken_in) == 2 + count and len(given) > count, f"its body takes {len(taken_in)} tensors for {count}")
    turns = _Turns(context, node, body, taken_in[0], [most] if most else [])
    turns.count(_shape(body.input[0]))
    for name, after, first in zip(taken_in[2:], given[1:], node.inputs[2:], strict=False):
        turns.carry(name, after, first)
    ends = not _goes_on(context, turns, begins, taken_in[1], given[0])
    if ends:
        turns.carry(taken_in[1], given[0], begins)
    rows, known = given[1 + count :], context.known(most) if most else None
    static = not rows or (not ends and known is not None)
    need(static, "how often it turns depends on data, and so does the shape of its result; give it a number of turns")
    need(most != "" or ends, "it never ends")
    turns.collect(rows, 0 if known is None else max(0, int(np.ravel(known)[0])), [0] * len(rows))
    results = turns.run(most, taken_in[1] if ends else "")
    return [*results[:count], *results[count + ends :]]


def _goes_on(context: Context, turns: _Turns, begins: str, taken_in: str, given: str) -> bool:
    """Whether the condition provably holds in every turn; then it stays a constant in the body.

    The proof is by induction. The condition holds at first. The body is converted under the assumption that it holds.
    If the body's condition for the next turn is then known to be true, it holds always; else the assumption is dropped.
    """
    first = context.known(begins) if begins else np.asarray(True)
    if first is None or not first.all():
        return False
    turns.constants[taken_in] = np.ones(np.shape(first), np.bool_)
    after = turns.inside([given])[1].known(given)
    if after is None or not after.all():
        del turns.constants[taken_in]
        return False
    return True


@converts("Scan")
def scan(context: Context, node: Node) -> list[Expr]:
    """Scan: a turn for each row of the scanned tensors, of which each may have its own axis and direction."""
    body, scanned = node.attributes["body"], node.attributes["num_scan_inputs"]
    states = len(node.inputs) - scanned
    taken_in, given = [value.name for value in body.input], [value.name for value in body.output]
    rows = given[states:]
    fits = len(taken_in) == len(node.inputs) > states >= 0
    need(fits, f"its body takes {len(taken_in)} tensors of {len(node.inputs)}")
    axes, backwards = (_each(node, f"scan_input_{what}", scanned) for what in ("axes", "directions"))
    places, turned = (_each(node, f"scan_output_{what}", len(rows)) for what in ("axes", "directions"))
    shapes = [context.info(name).shape for name in node.inputs[states:]]
    for axis, shape in zip(axes, shapes, strict=True):
        need(-len(shape) <= axis < len(shape), f"it scans axis {axis} of a tensor of rank {len(shape)}")
    counts = {shape[axis] for shape, axis in zip(shapes, axes, strict=True)}
    need(len(counts) == 1, f"it scans tensors of {', '.join(map(str, sorted(counts)))} rows, wanted one number")
    (count,) = counts
    turns = _Turns(context, node, body, TURN, node.inputs[states:])
    turns.count(())
    for name, after, first in zip(taken_in, given, node.inputs[:states], strict=False):
        turns.carry(name, after, first)
    turns.take(taken_in[states:], axes, count, backwards)
    turns.collect(rows, count, turned)
    turns.constants[MOST] = np.asarray(count)
    results = turns.run(MOST, "")
    moved = [_first_axis_to(context, *pair) for pair in zip(results[states:], places, strict=True)]
    return [*results[:states], *moved]


def _each(node: Node, attribute: str, count: int) -> Sequence[int]:
    """A number for each of so many tensors."""
    given: Sequence[int] = node.attributes.get(attribute, (0,) * count)
    need(len(given) == count, f"{attribute} has {len(given)} numbers, wanted {count}")
    return given


@dataclass(frozen=True)
class _Around:
    """Holds what a graph inside reads of those around it: ``known`` values, and expressions with their types."""

    known: dict[str, Array]
    specs: tuple[TensorSpec, ...]
    exprs: tuple[Expr, ...]

    @classmethod
    def of(cls, context: Context, names: Iterable[str]) -> _Around:
        found = {name: context.known(name) for name in names}
        known = {name: value for name, value in found.items() if value is not None}
        others = [name for name in found if name not in known and name in context.exprs]
        specs = tuple(TensorSpec(name, context.info(name)) for name in others)
        return cls(known, specs, tuple(map(context.expr, others)))


@dataclass
class _Turns:
    """Builds a loop. ``turn`` names the tensor of a turn's number, ``read`` further tensors that the loop reads.

    ``count``, ``carry``, ``take`` and ``collect`` add what is carried, and nodes before and after the body's;
    ``run`` makes the While.
    """

    context: Context
    node: Node
    body: Any
    turn: str
    read: Iterable[str]
    constants: dict[str, Array] = field(init=False)
    around: _Around = field(init=False)
    # Tensors that a turn takes, by which names it gives them to the next, and what the first turn begins with.
    carried: list[tuple[TensorSpec, str, Expr]] = field(default_factory=list)
    opening: list[Any] = field(default_factory=list)
    closing: list[Any] = field(default_factory=list)  # Nodes before and after those of the body.

    def __post_init__(self) -> None:
        self.around = _Around.of(self.context, [*_read(self.body.node, self.body), *self.read])
        self.constants = NUMBERS | self.around.known | _initialisers(self.body)

    def count(self, shape: tuple[int, ...]) -> None:
        """Carry the number of the turn, a tensor of one element that begins with 0."""
        spec = TensorSpec(self.turn, TensorInfo(shape, "int64"))
        self.carried.append((spec, NEXT, constant(np.zeros(shape, np.int64))))
        self.closing.append(_node("Add", [self.turn, ONE], NEXT))

    def carry(self, name: str, after: str, first: str) -> None:
        """Carry a tensor that begins with one from around the loop, or with true."""
        info = self.context.info(first) if first else TensorInfo((), "bool")
        begin = self.context.expr(first) if first else constant(np.asarray(True))
        self.carried.append((TensorSpec(name, info), after, begin))

    def take(self, names: Sequence[str], axes: Sequence[int], count: int, backwards: Sequence[int]) -> None:
        """Take a row of each scanned tensor in each turn, from its end where it goes backwards."""
        sources = self.node.inputs[len(self.node.inputs) - len(names) :]
        for name, source, axis, back in zip(names, sources, axes, backwards, strict=True):
            place = self._place(count) if back else self.turn
            self.opening.append(_node("Gather", [source, place], name, axis=axis))

    def collect(self, names: Sequence[str], count: int, backwards: Sequence[int]) -> None:
        """Carry results, zeros at first, into which each turn scatters a row. A trial conversion gives their types."""
        look = self.inside(names)[1]
        for number, (name, back) in enumerate(zip(names, backwards, strict=True)):
            info = look.info(name)
            rows, after, row, index = (f"({part} {number})" for part in ("rows", "rows after", "row", "index"))
            whole = TensorInfo((count, *info.shape), info.dtype)
            self.context.budget.array(whole.shape, 8)
            self.carried.append((TensorSpec(rows, whole), after, constant(np.zeros(whole.shape, whole.dtype))))
            self.closing.append(_node("Reshape", [self._place(count) if back else self.turn, ONE_INDEX], index))
            self.closing.append(_node("Unsqueeze", [name, FIRST_AXIS], row))
            self.closing.append(_node("ScatterND", [rows, index, row], after))

    def _place(self, count: int) -> str:
        """The name of the number of this turn's row, counted from the last."""
        if LAST not in self.constants:
            self.constants[LAST] = np.asarray(count - 1)
            self.opening.append(_node("Sub", [LAST, self.turn], PLACE))
        return PLACE

    @property
    def specs(self) -> list[TensorSpec]:
        return [*(spec for spec, _, _ in self.carried), *self.around.specs]

    def inside(self, outputs: Sequence[str]) -> tuple[Any, Context]:
        """The module of a turn that gives ``outputs``, and what is known of its tensors."""
        nodes = [*self.opening, *self.body.node, *self.closing]
        return _inside(self.context, nodes, self.constants, self.specs, outputs)

    def run(self, most: str, condition: str) -> list[Expr]:
        """All that is carried after the last turn, but for the number of the turn.

        There are turns while their number is below ``most`` and ``condition`` holds; an empty name leaves out one test.
        """
        tests = [_node("Less", [self.turn, most], "(in time)")] if most else []
        if condition:
            tests.append(
                _node("And", ["(in time)", condition], "(goes on)") if most else _node("Identity", [condition], "(on)")
            )
        last = tests[-1].output[0]
        goes_on, _ = _inside(self.context, tests, self.constants, self.specs, [last])
        body, _ = self.inside([*(after for _, after, _ in self.carried), *(spec.name for spec in self.around.specs)])
        attrs = control_attrs(WHILE, goes_on, body)
        call = get(While)(*(first for _, _, first in self.carried), *self.around.exprs, attrs=attrs)
        return _fields(self.context, self.node, call, len(self.specs))[1 : len(self.carried)]


def _inside(
    context: Context,
    nodes: Sequence[Any],
    constants: dict[str, Array],
    specs: Sequence[TensorSpec],
    outputs: Sequence[str],
) -> tuple[Any, Context]:
    """The module of a graph, and what is known of its tensors."""
    onnx = onnx_package()
    context.budget.nodes(len(nodes))
    numbered = tuple(node_of(onnx, index, proto) for index, proto in enumerate(nodes))
    return context.subgraph(OnnxGraph(numbered, constants, tuple(specs), tuple(outputs), {}, context.graph.opset))


def _node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    return onnx_package().helper.make_node(op, inputs, [output], name=output, **attributes)


def _fields(context: Context, node: Node, call: Expr, count: int) -> list[Expr]:
    """The results of a call, which is a tuple unless there is one."""
    if count == 1:
        return [call]
    whole = context.block.emit(call, node.layer_name)
    return [context.normal(relax.TupleGetItem(whole, number)) for number in range(count)]


def _initialisers(graph: Any) -> dict[str, Array]:
    read = onnx_package().numpy_helper.to_array
    return {tensor.name: np.asarray(read(tensor)) for tensor in graph.initializer}


def _read(nodes: Any, graph: Any) -> Iterator[str]:
    """The tensors that a graph reads of those around it. Its outputs may be such tensors, too."""
    made = {name for node in nodes for name in node.output} | {tensor.name for tensor in graph.initializer}
    made |= {value.name for value in graph.input}
    names = [name for node in nodes for name in node.input] + [value.name for value in graph.output]
    inner = [attribute.g for node in nodes for attribute in node.attribute if attribute.HasField("g")]
    names += [name for within in inner for name in _read(within.node, within)]
    yield from dict.fromkeys(name for name in names if name and name not in made)


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of a number or truth value, for which exporters declare no axis or one."""
    return (1,) * len(value.type.tensor_type.shape.dim)


def _first_axis_to(context: Context, expr: Expr, axis: int) -> Expr:
    """Move the first axis to another place, as rows are collected along the first."""
    rank = len(info_of(context.normal(expr)).shape)
    need(-rank <= axis < rank, f"its rows become axis {axis} of a tensor of rank {rank}")
    order = list(range(1, rank))
    order.insert(axis % rank, 0)
    return expr if axis % rank == 0 else context.normal(relax.op.permute_dims(expr, order))


# Sequences that are reversed or updated at places that are computed.


@converts("ReverseSequence")
def reverse_sequence(context: Context, node: Node) -> Expr:
    """Reverse the first steps of each sequence, as many as its length says, and leave the others as they are."""
    name, lengths = node.required_input(0), node.required_input(1)
    time, batch = node.attributes.get("time_axis", 0), node.attributes.get("batch_axis", 1)
    info = context.info(name)
    need({time, batch} == {0, 1} and len(info.shape) > 1, f"axes {time} and {batch} are not the first two of {info}")
    least, most = (constant(np.asarray(end, context.info(lengths).dtype)) for end in (0, info.shape[time]))
    known = relax.op.astype(relax.op.maximum(relax.op.minimum(context.expr(lengths), most), least), "int32")
    return relax.op.reverse_sequence(context.expr(name), known, time, batch)


@converts("TensorScatter")
def tensor_scatter(context: Context, node: Node) -> Expr:
    """Write new entries into a cache from a start for each batch; it wraps around or is clamped, so that they fit."""
    cache, update, starts = node.required_input(0), node.required_input(1), node.optional_input(2)
    whole, part = context.info(cache).shape, context.info(update).shape
    axis = need_axis(node.attributes.get("axis", -2), len(whole))
    need(axis > 0 and part[axis] <= whole[axis], f"{part[axis]} new entries along axis {axis} of {whole}")
    along, first = [1] * len(whole), [1] * len(whole)
    along[axis], first[0] = -1, whole[0]
    context.budget.array((math.prod(part),), 8)
    steps = constant(np.arange(part[axis], dtype=np.int64).reshape(along))
    last = constant(np.asarray(whole[axis] - part[axis], np.int64))
    start = relax.op.reshape(context.expr(starts), first) if starts else constant(np.zeros(first, np.int64))
    if node.attributes.get("mode", "linear") == "circular":
        places = relax.op.floor_mod(relax.op.add(start, steps), constant(np.asarray(whole[axis], np.int64)))
    else:
        zero = constant(np.asarray(0, np.int64))
        places = relax.op.add(relax.op.maximum(relax.op.minimum(start, last), zero), steps)
    indices = relax.op.broadcast_to(context.normal(places), part)
    return relax.op.scatter_elements(context.expr(cache), indices, context.expr(update), axis, "update")
