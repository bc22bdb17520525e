"""Which tensor lies in which layout, so that as few bytes as possible are permuted when the model runs.

Permutes are no nodes here: a tensor that a permute gives is its source, seen in another order. What remains are nodes
that hold a tensor, and readers that want it in some order; each order that is wanted and not held costs a permute.
Nodes that are ``free`` may hold their result in any layout, and then want their inputs in the corresponding one.

One node alone rarely gains: its permute merely moves from its input to its result. So a change grows from one node to
its neighbours, step by step, always to where it costs least, and is kept as far as it paid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops.axes import Layout, bytes_order, compose, identity, inverse

PATIENCE = 64
"""Nodes that a change grows by without having become better: on a large graph it would else visit all of it from
everywhere."""

Cost = tuple[int, int]
"""Bytes moved, and the number of permutes; those that move no bytes are counted as well."""


@dataclass(frozen=True)
class Use:
    """A node's tensor, in its own order of axes, permuted."""

    node: Node
    order: Layout


@dataclass(eq=False)
class Node:
    """A tensor that is computed or given; ``expr`` is what a free node or any other is bound to, None for a parameter.

    ``info`` is its type, in the order of axes of the module as it came; None for a tuple.
    """

    name: str
    info: TensorInfo | None
    expr: Any = None
    free: bool = False
    inputs: tuple[Use, ...] = ()
    readers: list[tuple[Node | None, Layout]] = field(default_factory=list)
    layout: Layout = ()

    def __post_init__(self) -> None:
        self.layout = identity(len(self.info.shape) if self.info else 0)

    def bytes_order(self, layout: Layout) -> Layout:
        """What layouts with the same bytes have in common."""
        return bytes_order(self.info.shape if self.info else (), layout)

    def wanted(self) -> set[Layout]:
        """The layouts in which it is read."""
        return {compose(order, reader.layout) if reader else order for reader, order in self.readers}

    def cost(self) -> Cost:
        missing = self.wanted() - {self.layout}
        moved = {self.bytes_order(layout) for layout in missing} - {self.bytes_order(self.layout)}
        return len(moved) * (self.info.size if self.info else 0), len(missing)

    def read_by(self, reader: Node | None, order: Layout) -> None:
        self.readers.append((reader if reader is not None and reader.free else None, order))


def choose_layouts(nodes: Sequence[Node]) -> None:
    """Change the nodes' layouts wherever that moves fewer bytes, or as many with fewer permutes."""
    free = [node for node in nodes if node.free]
    gained = True
    while gained:  # again, as one change may let another one pay
        gained = sum(_grow(node, layout) for node in free for layout in _candidates(node)) > 0


def total_cost(nodes: Iterable[Node]) -> Cost:
    costs = [node.cost() for node in nodes]
    return sum(moved for moved, _ in costs), sum(count for _, count in costs)


def _candidates(node: Node) -> list[Layout]:
    """Layouts in which a permute before or after the node would not be needed."""
    before = [compose(inverse(use.order), use.node.layout) for use in node.inputs]
    return [layout for layout in dict.fromkeys([*before, *sorted(node.wanted())]) if layout != node.layout]


def _neighbours(node: Node) -> Iterator[tuple[Node, Layout]]:
    """The free nodes around one, each with the layout that goes without a permute between the two."""
    for use in node.inputs:
        if use.node.free:
            yield use.node, compose(use.order, node.layout)
    for reader, order in node.readers:
        if reader is not None:
            yield reader, compose(inverse(order), node.layout)


def _grow(seed: Node, layout: Layout) -> bool:
    """Whether the change paid; where it did not, everything is as it was."""
    before: dict[Node, Layout] = {}
    around: dict[Node, Layout] = {seed: layout}
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


def _cheapest(around: dict[Node, Layout]) -> Node:
    """The node whose change costs least; one that costs nothing will do."""
    prices = {}
    for node, layout in around.items():
        prices[node] = _price(node, layout)
        if prices[node] <= (0, 0):
            return node
    return min(prices, key=lambda node: prices[node])


def _price(node: Node, layout: Layout) -> Cost:
    old = node.layout
    price = _change(node, layout)
    node.layout = old
    return price


def _change(node: Node, layout: Layout) -> Cost:
    """Set a node's layout; what the whole costs more than before."""
    touched = {node, *(use.node for use in node.inputs)}
    moved, count = total_cost(touched)
    node.layout = layout
    return _sum(total_cost(touched), (-moved, -count))


def _sum(first: Cost, second: Cost) -> Cost:
    return first[0] + second[0], first[1] + second[1]
